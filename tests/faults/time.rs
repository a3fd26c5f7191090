//! Time that passes only when a call, a pause or a test says so.
//!
//! A month's time runs by itself to the next timer; here a call can take no time, or as long as a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::Clock;

/// When every test begins: a Friday morning in winter, when London's clocks show UTC.
const MORNING: &str = "2026-11-20T09:00:00Z";

/// The time, in milliseconds. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Time(Arc<AtomicI64>);

impl Time {
    pub(crate) fn morning() -> Result<Self> {
        let morning = DateTime::parse_from_rfc3339(MORNING).with_context(|| MORNING)?;
        Ok(Self(Arc::new(AtomicI64::new(morning.timestamp_millis()))))
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }

    pub(crate) fn pass(&self, time: TimeDelta) {
        self.0.fetch_add(time.num_milliseconds(), Ordering::Relaxed);
    }

    /// The functions' clock; a pause on it lets the time pass.
    pub(crate) fn clock(&self) -> Clock {
        let (shown, passed) = (self.clone(), self.clone());
        let pass = move |time: Duration| passed.pass(TimeDelta::from_std(time).unwrap_or_default());
        Clock::simulated(move || shown.now(), pass)
    }
}
