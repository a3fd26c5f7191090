//! The clock, which functions get as an argument.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Either, select};
use payments_model::UtcSecond;

/// A wait of a length.
type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// A source of the current time, on which callers can also wait. Functions on AWS get [`Clock::system`]; tests and
/// the local runner create their own with [`Clock::simulated`].
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    sleep: Sleep,
    /// The wait for the end of the time that work may take.
    end: Sleep,
}

impl Clock {
    /// Creates the machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the clock is the one reader of the system's time")]
    pub fn system() -> Self {
        Self::driven(Utc::now, |time| tokio::time::sleep(time).boxed())
    }

    /// Creates a clock that shows what `now` returns. A wait passes its length to `pass`, and ends at once. Work that may take some time
    /// takes the machine's.
    pub fn simulated(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        pass: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let sleep = move |time| {
            pass(time);
            tokio::task::yield_now().boxed()
        };
        Self { end: Arc::new(|time| tokio::time::sleep(time).boxed()), ..Self::driven(now, sleep) }
    }

    /// Creates a clock that shows what `now` returns, and waits as `sleep` does.
    pub fn driven(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let sleep: Sleep = Arc::new(sleep);
        Self { now: Arc::new(now), end: Arc::clone(&sleep), sleep }
    }

    /// Waits for `time`.
    pub async fn sleep(&self, time: Duration) {
        (self.sleep)(time).await;
    }

    /// Does some work, for at most `time`. `None` if it takes longer.
    pub async fn within<T>(&self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), (self.end)(time)).await {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_has_its_time_and_passes_none_of_a_simulated_clock() {
        let passed = Arc::new(Mutex::new(Duration::ZERO));
        let sum = Arc::clone(&passed);
        let clock = Clock::simulated(DateTime::default, move |time| *sum.lock().unwrap() += time);
        let wait = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        assert_eq!(clock.within(Duration::from_secs(5), wait(4)).await, Some(()));
        assert_eq!(clock.within(Duration::from_secs(5), wait(6)).await, None);
        assert_eq!(*passed.lock().unwrap(), Duration::ZERO);
    }
}
