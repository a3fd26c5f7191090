//! The guard of a sweep: claims of a due date stay within its limit, whatever lags, fails or runs beside the sweep.
//!
//! Before a sweep's first claims of a date, the guard looks at the counters: if all payments of the date together exceed the
//! limit, none is claimed. Counters lag, so each shard also reserves its claims in one item of the date before it makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use payments_boot::Clock;
use payments_model::{Actor, causes};
use payments_model::{BusinessDate, DayLimit, DayTotal, Hold, Status, Switch, SwitchChange, UtcSecond};
use payments_store::{Store, StoreError};
use tokio::sync::OnceCell;

/// The statuses of payments that were or will be claimed.
const TO_CLAIM: [Status; 4] = [Status::Scheduled, Status::Pending, Status::Processed, Status::Failed];

/// The most looks at a date, if other sweeps change its claims meanwhile.
const LOOKS: usize = 3;

/// The guard of one sweep, shared by its shards.
pub(crate) struct Guard<'s> {
    limit: &'s DayLimit,
    store: &'s Store,
    clock: &'s Clock,
    /// One for each date that a shard has asked for: the first shard looks, and the others wait.
    looks: Mutex<BTreeMap<BusinessDate, Arc<OnceCell<()>>>>,
    /// The dates that were looked at. No lock is held over a call, or a slow one would keep other shards from the switch.
    dates: Mutex<BTreeMap<BusinessDate, Day>>,
}

/// A due date in this sweep.
#[derive(Debug, Clone)]
struct Day {
    /// The limit, raised by a release.
    limit: DayLimit,
    /// Whether nothing more of the date is claimed by this sweep.
    is_held: bool,
    /// Whether its claims and its release were read.
    is_known: bool,
    /// The begin of the hold, if the table has it.
    held_since: Option<UtcSecond>,
    /// The end of the last hold.
    freed_at: Option<UtcSecond>,
}

impl<'s> Guard<'s> {
    pub(crate) fn new(limit: &'s DayLimit, store: &'s Store, clock: &'s Clock) -> Self {
        Self { limit, store, clock, looks: Mutex::default(), dates: Mutex::default() }
    }

    /// Reserves claims of a date. Returns whether they may be made; if not, the date is held until the end of the sweep.
    pub(crate) async fn reserve(&self, date: BusinessDate, claims: &DayTotal) -> Result<bool, StoreError> {
        let day = self.day(date).await?;
        if !day.is_held {
            // The first reservation after a hold ends it: payments were not late before.
            let frees_at = day.held_since.map(|_| self.clock.now());
            if self.store.reserve_claims(date, claims, &day.limit, frees_at).await? {
                if let Some(day) = locked(&self.dates).get_mut(&date).filter(|_| frees_at.is_some()) {
                    (day.held_since, day.freed_at) = (None, frees_at);
                }
                return Ok(true);
            }
            tracing::error!(%date, limit = %day.limit, "further claims would exceed the limit of the date, so it is held");
        }
        // Another shard may just have ended the noted hold.
        let now = self.clock.now();
        if !day.is_held || day.held_since.is_none() {
            self.store.note_day_held(date, now).await?;
        }
        if let Some(day) = locked(&self.dates).get_mut(&date) {
            // The begin is unknown if the item, or the release, cannot be read.
            day.held_since = day.held_since.or_else(|| day.is_known.then_some(now));
            day.is_held = true;
        }
        Ok(false)
    }

    /// Returns the known state of a date.
    async fn day(&self, date: BusinessDate) -> Result<Day, StoreError> {
        let look = locked(&self.looks).entry(date).or_default().clone();
        look.get_or_try_init(async || {
            let day = match self.look(date).await {
                Err(error @ StoreError::Unreadable { .. }) => {
                    tracing::error!(%date, causes = ?causes(&error), "what was claimed of the date cannot be read, so it is held");
                    self.unlooked()
                }
                looked => looked?,
            };
            locked(&self.dates).insert(date, day);
            Ok::<_, StoreError>(())
        })
        .await?;
        Ok(locked(&self.dates).get(&date).cloned().unwrap_or_else(|| self.unlooked()))
    }

    /// The state of a date of which nothing is known: nothing of it is claimed.
    fn unlooked(&self) -> Day {
        Day { limit: self.limit.clone(), is_held: true, is_known: false, held_since: None, freed_at: None }
    }

    /// Reads the counters, the reserved claims and the release of a date. Claims that were made without a reservation are added: those
    /// before a restore of the table, or while there was no limit.
    async fn look(&self, date: BusinessDate) -> Result<Day, StoreError> {
        let limit = match self.store.day_release(date).await? {
            Some(release) => self.limit.raised_to(&release.up_to),
            None => self.limit.clone(),
        };
        for _ in 0..LOOKS {
            let (counts, known) = self.store.day_claims(date).await?;
            let claimed = DayTotal::claimed(&counts);
            let raised = known.reserved.raised_to(&claimed);
            if raised != known.reserved && !self.store.correct_claims(date, &known.reserved, &raised).await? {
                continue;
            }
            let all = DayTotal::from_counts(&counts, &TO_CLAIM);
            let is_held = !limit.admits(&all);
            if is_held {
                tracing::error!(%date, %limit, payments = all.payments, "the payments of the date exceed its limit, so it is held");
            }
            let (held_since, freed_at) = (known.held_since, known.freed_at);
            return Ok(Day { limit, is_held, is_known: true, held_since, freed_at });
        }
        Err(StoreError::Throttled {
            operation: "UpdateItem",
            source: "other sweeps change the claims of the date".into(),
        })
    }

    /// Gives back reserved claims that are not made. A failed call leaves them reserved.
    pub(crate) async fn give_back(&self, date: BusinessDate, unclaimed: &DayTotal) {
        if let Err(error) = self.store.give_back_claims(date, unclaimed).await {
            let payments = unclaimed.payments;
            tracing::warn!(%date, payments, causes = ?causes(&error), "claims that were not made stay reserved");
        }
    }

    /// The dates that the sweep has found to be held.
    pub(crate) fn held(&self) -> BTreeSet<BusinessDate> {
        locked(&self.dates).iter().filter(|(_, day)| day.is_held).map(|(date, _)| *date).collect()
    }

    /// The begins of the holds, as far as they are known.
    pub(crate) fn held_since(&self) -> Vec<UtcSecond> {
        locked(&self.dates).values().filter(|day| day.is_held).filter_map(|day| day.held_since).collect()
    }

    /// The ends of holds of dates.
    pub(crate) fn freed(&self) -> BTreeMap<BusinessDate, UtcSecond> {
        locked(&self.dates).iter().filter_map(|(date, day)| Some((*date, day.freed_at?))).collect()
    }
}

fn locked<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The switch with the dates that the guard holds.
pub(crate) fn with_held(switch: &Switch, held: &BTreeSet<BusinessDate>) -> Switch {
    let change = || SwitchChange { by: Actor::sweep(), at: UtcSecond::MIN, reason: String::new() };
    let holds = held.iter().map(|date| Hold { from: *date, to: *date, change: change() });
    Switch { holds: switch.holds.iter().cloned().chain(holds).collect(), ..switch.clone() }
}
