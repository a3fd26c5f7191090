//! The clock, handed to whatever needs the time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use payments_model::UtcSecond;

/// Tells the time, and lets it pass. Functions on AWS get [`Clock::system`]; tests and the local
/// runner make their own with [`Clock::simulated`].
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn system() -> Self {
        Self { now: Arc::new(Utc::now), sleep: Arc::new(|time| tokio::time::sleep(time).boxed()) }
    }

    /// A clock that shows what `now` says; whoever waits on it tells `pass` for how long, and
    /// goes on at once.
    #[must_use]
    pub fn simulated(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        pass: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let sleep = move |time| {
            pass(time);
            tokio::task::yield_now().boxed()
        };
        Self { now: Arc::new(now), sleep: Arc::new(sleep) }
    }

    /// Waits.
    pub async fn sleep(&self, time: Duration) {
        (self.sleep)(time).await;
    }

    /// The whole second it is now; a clock outside the calendar's years is held at their end.
    #[must_use]
    pub fn now(&self) -> UtcSecond {
        let now = (self.now)();
        UtcSecond::of(now).unwrap_or(if now < UtcSecond::MIN.as_chrono() { UtcSecond::MIN } else { UtcSecond::MAX })
    }

    /// The instant it is now, with all the precision there is: for deadlines, never for payments.
    #[must_use]
    pub fn instant(&self) -> DateTime<Utc> {
        (self.now)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
