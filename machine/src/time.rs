//! A time that passes only when a test, a demo, a call or a wait says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::Clock;

/// The time, in milliseconds. Clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedTime(Arc<AtomicI64>);

impl SimulatedTime {
    /// Creates a time that begins at this instant.
    pub fn at(instant: DateTime<Utc>) -> Self {
        Self(Arc::new(AtomicI64::new(instant.timestamp_millis())))
    }

    /// Returns the instant.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Sets the time, also back.
    pub fn set(&self, instant: DateTime<Utc>) {
        self.0.store(instant.timestamp_millis(), Ordering::Relaxed);
    }

    /// Lets the time pass to an instant, and never goes back: a function may have waited past it.
    pub fn pass_to(&self, instant: DateTime<Utc>) {
        self.0.fetch_max(instant.timestamp_millis(), Ordering::Relaxed);
    }

    /// Lets time pass.
    pub fn pass(&self, time: TimeDelta) {
        self.0.fetch_add(time.num_milliseconds(), Ordering::Relaxed);
    }

    /// Returns a clock that shows this time. Waits on it let their time pass.
    pub fn clock(&self) -> Clock {
        self.clock_in_steps(1)
    }

    /// Returns the same clock, on which only whole seconds of a wait pass.
    pub fn clock_in_seconds(&self) -> Clock {
        self.clock_in_steps(1_000)
    }

    fn clock_in_steps(&self, millis: i64) -> Clock {
        let (shown, waited) = (self.clone(), self.clone());
        Clock::simulated(
            move || shown.now(),
            move |time| {
                let time = TimeDelta::from_std(time).unwrap_or_default().num_milliseconds();
                waited.pass(TimeDelta::milliseconds(time - time % millis));
            },
        )
    }
}
