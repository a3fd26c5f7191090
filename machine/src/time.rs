//! Simulated time: it passes only when a function waits, or when a caller says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::Clock;

/// The time, in milliseconds. Clones share it.
#[derive(Debug, Clone)]
pub struct Time {
    millis: Arc<AtomicI64>,
    step: i64,
}

impl Time {
    /// Begins at an instant.
    pub fn at(instant: DateTime<Utc>) -> Self {
        Self { millis: Arc::new(AtomicI64::new(instant.timestamp_millis())), step: 1 }
    }

    /// Returns the same time of which only whole seconds pass, so that short waits take none.
    pub fn in_seconds(self) -> Self {
        Self { step: 1_000, ..self }
    }

    /// Returns the instant.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.millis.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Sets the instant.
    pub fn set(&self, instant: DateTime<Utc>) {
        self.millis.store(instant.timestamp_millis(), Ordering::Relaxed);
    }

    /// Moves on to an instant, never back.
    pub fn move_to(&self, instant: DateTime<Utc>) {
        self.millis.fetch_max(instant.timestamp_millis(), Ordering::Relaxed);
    }

    /// Advances the time.
    pub fn pass(&self, time: TimeDelta) {
        let millis = time.num_milliseconds();
        self.millis.fetch_add(millis - millis % self.step, Ordering::Relaxed);
    }

    /// Returns the clock. A wait on it advances the time.
    pub fn clock(&self) -> Clock {
        let (shown, passed) = (self.clone(), self.clone());
        let pass = move |time| passed.pass(TimeDelta::from_std(time).unwrap_or_default());
        Clock::simulated(move || shown.now(), pass)
    }
}
