//! The switch, as a function last read it: one read for all that asks within a short time.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::Clock;
use payments_model::Switch;
use payments_store::{Store, StoreError};
use tokio::sync::Mutex;

/// The time after a change of the switch from which on nothing is claimed, redriven or sent. A function reads the switch, and then
/// makes calls that end within [`SWITCHED_CALL_TIMEOUT`](payments_boot::SWITCHED_CALL_TIMEOUT).
pub const SWITCH_WORKS_WITHIN: Duration = Duration::from_secs(5);

/// A read of the switch, and the time at which it began.
type LastRead = (DateTime<Utc>, Result<Arc<Switch>, Arc<StoreError>>);

/// Reads the switch unless the last read began a short time ago. Clones share their reads.
#[derive(Debug, Clone)]
pub struct SwitchReader {
    store: Store,
    clock: Clock,
    max_age: TimeDelta,
    last: Arc<Mutex<Option<LastRead>>>,
}

impl SwitchReader {
    /// Creates a reader whose answers were read at most `max_age` ago.
    pub fn new(store: &Store, clock: &Clock, max_age: Duration) -> Self {
        let max_age = TimeDelta::from_std(max_age).unwrap_or_default();
        Self { store: store.clone(), clock: clock.clone(), max_age, last: Arc::default() }
    }

    /// Returns the switch, strongly consistent at some moment of the last `max_age`. A failed read is an answer, too: others who
    /// ask meanwhile do not repeat it.
    ///
    /// # Errors
    /// [`StoreError`]. Then the switch is unknown, which means stopped. So does an answer that took longer than `max_age`.
    pub async fn switch(&self) -> Result<Arc<Switch>, StoreError> {
        let mut last = self.last.lock().await;
        let read = match &*last {
            Some((at, read)) if self.is_recent(*at) => read.clone(),
            _ => {
                let at = self.clock.instant();
                let read = self.store.switch().await.map(Arc::new).map_err(Arc::new);
                let read = if self.is_recent(at) { read } else { read.and(Err(Arc::new(StoreError::late("GetItem")))) };
                *last = Some((at, read.clone()));
                read
            }
        };
        read.map_err(|error| StoreError::shared(&error))
    }

    /// Returns the last read without a call. `None` if the switch is unknown.
    pub async fn last(&self) -> Option<Arc<Switch>> {
        let last = self.last.lock().await;
        last.as_ref().and_then(|(_, read)| read.as_ref().ok().cloned())
    }

    /// Whether a read that began then may still be used. A clock that was set back makes it unusable.
    fn is_recent(&self, at: DateTime<Utc>) -> bool {
        (TimeDelta::zero()..=self.max_age).contains(&(self.clock.instant() - at))
    }
}
