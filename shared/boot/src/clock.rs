//! The clock, handed to whatever needs the time.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use payments_model::UtcSecond;

/// Tells the time. Functions on AWS get [`Clock::system`]; tests and the local runner make their
/// own with [`Clock::from_fn`].
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn system() -> Self {
        Self(Arc::new(Utc::now))
    }

    /// A clock that shows what `now` says.
    #[must_use]
    pub fn from_fn(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The whole second it is now; a clock outside the calendar's years is held at their end.
    #[must_use]
    pub fn now(&self) -> UtcSecond {
        let now = (self.0)();
        UtcSecond::of(now).unwrap_or(if now < UtcSecond::MIN.as_chrono() { UtcSecond::MIN } else { UtcSecond::MAX })
    }

    /// The instant it is now, with all the precision there is: for deadlines, never for payments.
    #[must_use]
    pub fn instant(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
