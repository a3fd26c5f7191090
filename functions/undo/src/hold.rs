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

/// The number of holds from which on undos begin no other: the last four are for operators.
const MOST_OF_UNDOS: usize = MAX_HOLDS - 4;

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
            let Some(holds) = with_room(&switch.holds, &change, &in_a_row(&free)) else {
                // The holds of others suffice: what the sweep claims after their release is listed as claimed.
                if free.iter().all(|date| switch.is_held(*date)) {
                    return Ok(self.now());
                }
                return Err(UndoError::Holds(switch.holds.len()));
            };
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

/// The holds with those of an undo's new ranges of dates. Without room for each range, those with the fewest dates between them become one:
/// an undo never leaves a date free for lack of room. `None` if there is no room at all.
fn with_room(known: &[Hold], change: &SwitchChange, new: &[(BusinessDate, BusinessDate)]) -> Option<Vec<Hold>> {
    let (own, others): (Vec<&Hold>, Vec<&Hold>) = known.iter().partition(|hold| hold.change.by == change.by);
    let room = MOST_OF_UNDOS.saturating_sub(others.len()).max(own.len().min(1));
    if room == 0 {
        return None;
    }
    let mut ranges: Vec<_> = own.iter().map(|hold| (hold.from, hold.to)).chain(new.iter().copied()).collect();
    ranges.sort_unstable();
    while ranges.len() > room {
        let between = |place: &usize| ranges[place + 1].0.days_since(ranges[*place].1);
        let Some(nearest) = (0..ranges.len() - 1).min_by_key(between) else { break };
        let (_, to) = ranges.remove(nearest + 1);
        ranges[nearest].1 = ranges[nearest].1.max(to);
    }
    let known_as = |range: &(BusinessDate, BusinessDate)| own.iter().find(|hold| (hold.from, hold.to) == *range);
    let own = ranges.iter().map(|range| match known_as(range) {
        Some(hold) => Hold::clone(hold),
        None => Hold { from: range.0, to: range.1, change: change.clone() },
    });
    Some(others.into_iter().cloned().chain(own).collect())
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

    fn date(day: u32) -> BusinessDate {
        "2026-12-01".parse::<BusinessDate>().unwrap().plus_days(day)
    }

    /// Holds of single dates by these undos.
    fn holds(by: &[(u32, u32)]) -> Vec<Hold> {
        let hold = |(undo, day): &(u32, u32)| Hold { from: date(*day), to: date(*day), change: change(*undo) };
        by.iter().map(hold).collect()
    }

    fn change(undo: u32) -> SwitchChange {
        let id: UndoId = format!("{undo:016x}").parse().unwrap();
        SwitchChange { by: id.actor(), at: UtcSecond::MIN, reason: "an undo".to_owned() }
    }

    #[test]
    fn undos_leave_room_for_the_holds_of_operators() {
        let others: Vec<_> = (0..12).map(|place| (9, place * 2)).collect();
        let new = |known: &[(u32, u32)], days: &[u32]| {
            let ranges: Vec<_> = days.iter().map(|day| (date(*day), date(*day))).collect();
            let holds = with_room(&holds(known), &change(1), &ranges)?;
            let own = holds.iter().filter(|hold| hold.change.by == change(1).by).map(|hold| (hold.from, hold.to));
            Some((holds.len(), own.collect::<Vec<_>>()))
        };
        let one = |day| (date(day), date(day));
        assert_eq!(new(&[], &[1, 3, 5, 7]), Some((4, vec![one(1), one(3), one(5), one(7)])));
        // Without room, the nearest become one.
        assert_eq!(new(&others[4..], &[1, 4, 7, 9, 12]), Some((12, vec![one(1), one(4), (date(7), date(9)), one(12)])));
        assert_eq!(new(&[(1, 1), (9, 2), (1, 5)], &[7]), Some((4, vec![one(1), one(5), one(7)])));
        assert_eq!(new(&others[1..], &[1, 3]), Some((12, vec![(date(1), date(3))])));
        // An undo that holds dates always holds more, and another does not take the last places.
        let with_own: Vec<_> = others.iter().copied().chain([(1, 5)]).collect();
        assert_eq!(new(&with_own, &[1]), Some((13, vec![(date(1), date(5))])));
        assert_eq!(new(&others, &[1]), None);
    }

    #[test]
    fn dates_in_a_row_are_one_hold() {
        let dates = [1, 0, 3].map(date).into();
        assert_eq!(in_a_row(&dates), [(date(0), date(1)), (date(3), date(3))]);
    }
}
