//! The sandbox of `cargo local --sandbox`: a clock that an endpoint moves, so that a whole life takes a second.
//!
//! The clock runs with the machine's, ahead by what it was moved. A move goes in steps, and after each one everything that
//! is due is done. Moves that come at once are made one after the other. A function that waits, to keep its pace, moves it too, so it can be some seconds later than asked. Tokens keep the machine's time, or a move would end them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::{Method, StatusCode};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use payments_boot::Clock;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

/// The path of the clock. It is not a path of the bank's API: a deployed API has none.
pub const CLOCK_PATH: &str = "/sandbox/clock";

/// The farthest move in one request: past the horizon of new payments.
const MOST: TimeDelta = TimeDelta::days(1_000);

/// The shortest step. A longer move has longer steps, [`STEPS`] of them, up to [`LONGEST_STEP`].
const STEP: TimeDelta = TimeDelta::hours(1);
const STEPS: i32 = 20;

/// The longest step: half of the day for which the stream keeps changes. The changes of a step are
/// read at its end, so the log has no gap.
const LONGEST_STEP: TimeDelta = TimeDelta::hours(12);

/// The most moves that may wait.
const WAITING: usize = 16;

/// The answer to a request that does not say what to do.
const USAGE: &str = "send {\"advanceSeconds\": 1 to 86400000} or {\"to\": \"2027-01-31T09:00:00Z\"}, which is later than now and \
                     at most 1000 days ahead";

/// A move of the clock, and who waits for it.
#[derive(Debug)]
pub struct Move {
    target: Target,
    done: oneshot::Sender<()>,
}

/// A handle of the sandbox's clock.
#[derive(Debug, Clone)]
pub struct Sandbox {
    machine: Clock,
    ahead_millis: Arc<AtomicI64>,
    moves: mpsc::Sender<Move>,
}

/// The end of a move.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// So much later than when it begins, so that moves that come at once add up.
    Ahead(TimeDelta),
    At(DateTime<Utc>),
}

/// The move of the clock that a request asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    advance_seconds: Option<i64>,
    to: Option<DateTime<Utc>>,
}

impl Sandbox {
    /// Creates a sandbox, and returns the moves that somebody has to [`play`](Self::play).
    pub fn new(machine: &Clock) -> (Self, mpsc::Receiver<Move>) {
        let (moves, waiting) = mpsc::channel(WAITING);
        (Self { machine: machine.clone(), ahead_millis: Arc::default(), moves }, waiting)
    }

    /// Returns the clock. A wait on it moves it, and takes no time.
    pub fn clock(&self) -> Clock {
        let (shown, waited) = (self.clone(), self.clone());
        Clock::simulated(move || shown.now(), move |time| waited.pass(TimeDelta::from_std(time).unwrap_or(STEP)))
    }

    /// Returns the machine's time.
    pub fn machine_now(&self) -> DateTime<Utc> {
        self.machine.instant()
    }

    fn pass(&self, time: TimeDelta) {
        self.ahead_millis.fetch_add(time.num_milliseconds().max(1), Ordering::SeqCst);
    }

    fn now(&self) -> DateTime<Utc> {
        self.machine_now() + TimeDelta::milliseconds(self.ahead_millis.load(Ordering::SeqCst))
    }

    /// Moves the clock step by step, and calls `work` with the time after each step, and once more at the end.
    pub async fn play(&self, Move { target, done }: Move, mut work: impl AsyncFnMut(DateTime<Utc>)) {
        let to = match target {
            Target::Ahead(time) => self.now() + time,
            Target::At(to) => to,
        };
        let step = ((to - self.now()) / STEPS).clamp(STEP, LONGEST_STEP);
        while self.now() < to {
            let left = (to - self.now()).min(step);
            self.pass(left);
            work(self.now()).await;
        }
        work(self.now()).await;
        if done.send(()).is_err() {
            tracing::debug!("nobody waits for the move any more");
        }
    }

    /// Answers a request to [`CLOCK_PATH`]: `GET` reads the clock, `POST` moves it and waits until everything is done.
    pub async fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, String) {
        match *method {
            Method::GET => self.shown(),
            Method::POST => match self.wanted(body) {
                Some(target) => {
                    let (done, is_done) = oneshot::channel();
                    // Only a system that stops receives no moves.
                    if self.moves.send(Move { target, done }).await.is_err() || is_done.await.is_err() {
                        return message(StatusCode::SERVICE_UNAVAILABLE, "the system is stopping");
                    }
                    self.shown()
                }
                None => message(StatusCode::BAD_REQUEST, &format!("{USAGE}; it is {}", self.shown_now())),
            },
            _ => message(StatusCode::METHOD_NOT_ALLOWED, "use GET or POST"),
        }
    }

    fn shown(&self) -> (StatusCode, String) {
        (StatusCode::OK, json!({ "now": self.shown_now() }).to_string())
    }

    fn shown_now(&self) -> String {
        self.now().to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// Returns the end of the move that a body asks for, if it is later than now and near enough.
    fn wanted(&self, body: &[u8]) -> Option<Target> {
        let (ahead, target) = match serde_json::from_slice(body).ok()? {
            Wanted { advance_seconds: Some(seconds), to: None } => {
                let ahead = TimeDelta::try_seconds(seconds)?;
                (ahead, Target::Ahead(ahead))
            }
            Wanted { advance_seconds: None, to: Some(to) } => (to - self.now(), Target::At(to)),
            _ => return None,
        };
        (ahead > TimeDelta::zero() && ahead <= MOST).then_some(target)
    }
}

fn message(status: StatusCode, why: &str) -> (StatusCode, String) {
    (status, json!({ "message": why }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed() -> Clock {
        Clock::simulated(|| "2026-11-20T09:00:00Z".parse().unwrap(), |_| {})
    }

    #[tokio::test]
    async fn a_move_goes_in_steps_to_its_end() {
        let (sandbox, mut moves) = Sandbox::new(&fixed());
        for (body, want, times) in [
            (r#"{"advanceSeconds":1}"#, "2026-11-20T09:00:01Z", 2),
            (r#"{"to":"2026-11-20T11:25:01Z"}"#, "2026-11-20T11:25:01Z", 4),
            (r#"{"to":"2026-11-30T10:25:01+01:00"}"#, "2026-11-30T09:25:01Z", 21),
            (r#"{"to":"2026-12-20T10:25:01+01:00"}"#, "2026-12-20T09:25:01Z", 41),
        ] {
            let asks = sandbox.answer(&Method::POST, body.as_bytes());
            let plays = async {
                let mut seen = Vec::new();
                let next = moves.recv().await.unwrap();
                sandbox.play(next, async |now| seen.push(now)).await;
                seen
            };
            let (answer, seen) = tokio::join!(asks, plays);
            assert_eq!(answer, (StatusCode::OK, json!({ "now": want }).to_string()));
            assert_eq!((seen.len(), seen.is_sorted()), (times, true), "{body}");
            assert_eq!(sandbox.clock().instant(), want.parse::<DateTime<Utc>>().unwrap());
        }
        assert_eq!(sandbox.machine_now(), fixed().instant());
    }

    #[tokio::test]
    async fn moves_that_come_at_once_add_up() {
        let (sandbox, mut moves) = Sandbox::new(&fixed());
        let ask = || sandbox.answer(&Method::POST, br#"{"advanceSeconds":3600}"#);
        let plays = async {
            for _ in 0..3 {
                let next = moves.recv().await.unwrap();
                sandbox.play(next, async |_| tokio::task::yield_now().await).await;
            }
        };
        tokio::join!(ask(), ask(), ask(), plays);
        assert_eq!(sandbox.answer(&Method::GET, b"").await.1, r#"{"now":"2026-11-20T12:00:00Z"}"#);
    }

    #[tokio::test]
    async fn what_is_no_move_is_rejected() {
        let (sandbox, _moves) = Sandbox::new(&fixed());
        for body in [
            "",
            "{}",
            "[]",
            r#"{"advanceSeconds":0}"#,
            r#"{"advanceSeconds":-5}"#,
            r#"{"advanceSeconds":86400001}"#,
            r#"{"advanceSeconds":9223372036854775807}"#,
            r#"{"advanceSeconds":1.5}"#,
            r#"{"advanceSeconds":1,"to":"2026-11-21T00:00:00Z"}"#,
            r#"{"to":"2026-11-20T09:00:00Z"}"#,
            r#"{"to":"2026-11-21"}"#,
            r#"{"to":"+262142-12-31T00:00:00Z"}"#,
            r#"{"by":1}"#,
        ] {
            assert_eq!(sandbox.answer(&Method::POST, body.as_bytes()).await.0, StatusCode::BAD_REQUEST, "{body}");
        }
        assert_eq!(sandbox.answer(&Method::DELETE, b"").await.0, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(sandbox.answer(&Method::GET, b"").await.1, r#"{"now":"2026-11-20T09:00:00Z"}"#);
    }
}
