//! Work on a simulated clock: its ends, its pace, and retries that begin anew after progress.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::DateTime;
use payments_model::OutageKind;

use super::*;
use crate::at_once;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}")]
struct Failed(OutageKind);

impl Outage for Failed {
    fn kind(&self) -> OutageKind {
        self.0
    }
}

/// Entries of which a round completes some, at 100 a second, and fails or not, as the list says.
/// After the list a round completes four.
struct Entries {
    left: VecDeque<u32>,
    rounds: VecDeque<(usize, Option<OutageKind>)>,
    done: Vec<u32>,
}

const THROTTLED: (usize, Option<OutageKind>) = (0, Some(OutageKind::Throttled));

impl Work for Entries {
    type Error = Failed;

    fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    async fn round(&mut self) -> Round<Failed> {
        let (most, failure) = self.rounds.pop_front().unwrap_or((4, None));
        let answers = at_once(&mut self.left, most, async |entry| *entry).await;
        self.done.extend(answers.iter().map(|(_, answer)| answer));
        Round { done: u32::try_from(answers.len()).unwrap(), per_second: 100, failure: failure.map(Failed) }
    }
}

/// Drives twelve entries for at most this many seconds. Returns the end, the completed entries, and
/// the milliseconds that it took.
async fn driven(seconds: u64, rounds: &[(usize, Option<OutageKind>)]) -> (Result<(), Halt<Failed>>, Vec<u32>, i64) {
    let millis = Arc::new(AtomicI64::new(0));
    let (now, pass) = (Arc::clone(&millis), Arc::clone(&millis));
    let clock = Clock::simulated(
        move || DateTime::from_timestamp_millis(now.load(Ordering::Relaxed)).unwrap(),
        move |time: Duration| {
            pass.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
        },
    );
    let deadline = Deadline::before(seconds * 2_000, &clock);
    let mut work = Entries { left: (0..12).collect(), rounds: rounds.iter().copied().collect(), done: Vec::new() };
    let end = drive(&mut work, &clock, &deadline).await;
    (end, work.done, millis.load(Ordering::Relaxed))
}

#[tokio::test]
async fn work_keeps_its_pace_and_ends_when_nothing_is_left() {
    let (end, done, millis) = driven(10, &[]).await;
    assert_eq!((end, done, millis), (Ok(()), (0..12).collect(), 120));
}

#[tokio::test]
async fn work_ends_at_the_deadline() {
    let (end, done, millis) = driven(0, &[]).await;
    assert_eq!((end, done.len(), millis), (Err(Halt::OutOfTime), 0, 0));
    let (end, done, millis) = driven(1, &[THROTTLED; 5]).await;
    assert_eq!((end, done.len(), millis), (Err(Halt::OutOfTime), 0, 1_000));
}

#[tokio::test]
async fn work_gives_up_after_five_waits_in_a_row() {
    let (end, done, _) = driven(60, &[THROTTLED; 6]).await;
    assert_eq!((end, done.len()), (Err(Halt::GivenUp(Failed(OutageKind::Throttled))), 0));
}

/// A page that was read, and one call of a round that was answered, are progress.
#[tokio::test]
async fn any_progress_resets_the_waits() {
    for progress in [(0, None), (1, Some(OutageKind::Throttled))] {
        let rounds = [[THROTTLED; 5].as_slice(), &[progress], &[THROTTLED; 4]].concat();
        let (end, done, _) = driven(60, &rounds).await;
        assert_eq!((end, done.len()), (Ok(()), 12), "{progress:?}");
    }
}

#[tokio::test]
async fn what_a_retry_does_not_change_ends_work_at_once() {
    let (end, done, millis) = driven(60, &[(4, None), (0, Some(OutageKind::Broken))]).await;
    assert_eq!((end, done.len(), millis), (Err(Halt::Broken(Failed(OutageKind::Broken))), 4, 40));
}
