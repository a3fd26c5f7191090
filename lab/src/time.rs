//! The month's time: that of a paused Tokio runtime, which jumps to the next timer whenever all tasks wait.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use payments_boot::Clock;
use tokio::time::Instant;

/// The most by which the clocks of sandboxes are ahead.
pub(crate) const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(3);

/// The month's time. Clones show the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    begin: DateTime<Utc>,
    origin: Instant,
}

impl Time {
    /// Begins the time now.
    pub(crate) fn from(begin: DateTime<Utc>) -> Self {
        Self { begin, origin: Instant::now() }
    }

    /// Returns the instant.
    pub(crate) fn now(self) -> DateTime<Utc> {
        self.begin + TimeDelta::from_std(self.origin.elapsed()).unwrap_or_default()
    }

    /// Returns a clock that is `ahead` of the time.
    pub(crate) fn clock(self, ahead: TimeDelta) -> Clock {
        Clock::driven(move || self.now() + ahead, |time| tokio::time::sleep(time).boxed())
    }
}

/// Waits. Returns the time from an instant to the next full `step`, such as the next minute.
pub(crate) fn to_next(step: TimeDelta, now: DateTime<Utc>) -> TimeDelta {
    let millis = step.num_milliseconds();
    TimeDelta::milliseconds(millis - now.timestamp_millis().rem_euclid(millis))
}

pub(crate) async fn pause(time: TimeDelta) {
    tokio::time::sleep(time.to_std().unwrap_or(Duration::ZERO)).await;
}
