//! The hold that precedes a plan: the sweep claims no payment of its due dates, so no run is slower than the sweep.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::{Actor, BusinessDate, Hold, MAX_HOLDS, Switch, SwitchChange, UndoId, UtcSecond};
use payments_work::retried;

use crate::error::UndoError;
use crate::function::Undo;
use crate::plan::MAX_TRIES;

/// The time after which the sweep has read a hold: twice the time within which the switch works.
pub(crate) const HOLD_WORKS_AFTER: TimeDelta = TimeDelta::seconds(10);

/// Cancels a second while the sweep claims beside the run, as in a redate of 8 shards at 30.
const BESIDE_THE_SWEEP: u32 = 240;

impl Undo {
    /// Holds due dates for an undo, and returns the time from which they are held.
    pub(crate) async fn hold(
        &self,
        id: &UndoId,
        dates: &BTreeSet<BusinessDate>,
        deadline: &Deadline,
    ) -> Result<UtcSecond, UndoError> {
        let by = id.actor();
        for _ in 0..MAX_TRIES {
            let switch = retried(deadline, async || self.store.switch().await).await?;
            let free: BTreeSet<_> = dates.iter().copied().filter(|date| !is_held_by(&switch, &by, *date)).collect();
            if free.is_empty() {
                return Ok(self.now());
            }
            let change = SwitchChange { by: by.clone(), at: self.now(), reason: format!("undo {id}") };
            let mut ranges = in_a_row(&free);
            if switch.holds.len() + ranges.len() > MAX_HOLDS {
                // One hold from the first date to the last: an undo never leaves a date free for lack of room.
                ranges = free.first().copied().zip(free.last().copied()).into_iter().collect();
            }
            if switch.holds.len() + ranges.len() > MAX_HOLDS {
                return Err(UndoError::Holds(switch.holds.len()));
            }
            let new = ranges.into_iter().map(|(from, to)| Hold { from, to, change: change.clone() });
            let holds = switch.holds.iter().cloned().chain(new).collect();
            let changed = Switch { version: switch.version + 1, holds, ..switch };
            if retried(deadline, async || self.store.change_switch(&changed).await).await? {
                return Ok(self.now());
            }
        }
        Err(UndoError::Overtaken)
    }

    /// The most cancels a second: as many as the sweep's claims while the sweep is stopped or holds the undo's dates. 0 is unlimited.
    pub(crate) async fn pace(&self, id: &UndoId, deadline: &Deadline) -> Result<u32, UndoError> {
        let (switch, by) = (retried(deadline, async || self.store.switch().await).await?, id.actor());
        let is_held = switch.stopped || switch.holds.iter().any(|hold| hold.change.by == by);
        let as_the_sweep = self.config.cancels_per_second.saturating_mul(self.config.read_shards.get().into());
        Ok(if is_held { as_the_sweep } else { BESIDE_THE_SWEEP })
    }
}

fn is_held_by(switch: &Switch, by: &Actor, date: BusinessDate) -> bool {
    switch.holds.iter().any(|hold| hold.change.by == *by && (hold.from..=hold.to).contains(&date))
}

/// Dates as ranges of dates in a row.
fn in_a_row(dates: &BTreeSet<BusinessDate>) -> Vec<(BusinessDate, BusinessDate)> {
    let mut ranges: Vec<(BusinessDate, BusinessDate)> = Vec::new();
    for date in dates {
        match ranges.last_mut() {
            Some((_, to)) if to.plus_days(1) == *date => *to = *date,
            _ => ranges.push((*date, *date)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_a_row_are_one_hold() {
        let date = |text: &str| text.parse::<BusinessDate>().unwrap();
        let dates = ["2026-12-01", "2026-11-30", "2026-12-03"].map(date).into();
        let [first, last] = [("2026-11-30", "2026-12-01"), ("2026-12-03", "2026-12-03")];
        assert_eq!(in_a_row(&dates), [(date(first.0), date(first.1)), (date(last.0), date(last.1))]);
    }
}
