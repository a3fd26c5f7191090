//! The clock, which functions get as an argument.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use payments_model::UtcSecond;

/// A source of the current time, on which callers can also wait. Functions on AWS get [`Clock::system`]; tests and
/// the local runner create their own with [`Clock::simulated`].
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Clock {
    /// Creates the machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the clock is the one reader of the system's time")]
    pub fn system() -> Self {
        Self { now: Arc::new(Utc::now), sleep: Arc::new(|time| tokio::time::sleep(time).boxed()) }
    }

    /// Creates a clock that shows what `now` returns. A wait passes its length to `pass`, and ends at once.
    pub fn simulated(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        pass: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        Self::driven(now, move |time| {
            pass(time);
            tokio::task::yield_now().boxed()
        })
    }

    /// Creates a clock that shows what `now` returns, and waits as `sleep` does.
    pub fn driven(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self { now: Arc::new(now), sleep: Arc::new(sleep) }
    }

    /// Waits for `time`.
    pub async fn sleep(&self, time: Duration) {
        (self.sleep)(time).await;
    }

    /// Does some work, for at most `time`. `None` if it takes longer.
    pub async fn within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), pin!(self.sleep(time))).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// The current time in whole seconds; a time outside the calendar's years becomes the nearest one inside.
    pub fn now(&self) -> UtcSecond {
        let now = (self.now)();
        UtcSecond::new(now).unwrap_or(if now < UtcSecond::MIN.as_chrono() { UtcSecond::MIN } else { UtcSecond::MAX })
    }

    /// The current time with full precision: for deadlines, never for payments.
    pub fn instant(&self) -> DateTime<Utc> {
        (self.now)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
