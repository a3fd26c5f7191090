//! The switch, with which operators stop all claims and sends, or hold the claims of due dates.

use std::ops::RangeInclusive;

use chrono::TimeDelta;

use crate::actor::Actor;
use crate::calendar::instant::{BusinessDate, UtcSecond};

/// The most holds at once. With reasons of [`MAX_REASON`] characters of four bytes, a switch has less than 16 KB; usual ones
/// keep it below 4 KB, which one read unit reads.
pub const MAX_HOLDS: usize = 16;

/// The most characters of a reason.
pub const MAX_REASON: usize = 200;

/// An operator's change of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchChange {
    /// The operator.
    pub by: Actor,
    /// The time.
    pub at: UtcSecond,
    /// The operator's reason.
    pub reason: String,
}

/// A hold of due dates: their payments are not claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The first date.
    pub from: BusinessDate,
    /// The last date.
    pub to: BusinessDate,
    /// The change that began the hold.
    pub change: SwitchChange,
}

/// The switch. By default nothing was ever stopped or held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switch {
    /// The number of changes so far.
    pub version: u64,
    /// Whether nothing is claimed, redriven or sent.
    pub stopped: bool,
    /// The last stop or resume.
    pub change: Option<SwitchChange>,
    /// The holds, in the order in which they began.
    pub holds: Vec<Hold>,
    /// The time of the last resume or release. A payment was not late before it.
    pub freed_at: Option<UtcSecond>,
    /// The time of the last stop; of the first one, if each began within three hours of the resume before.
    pub stopped_at: Option<UtcSecond>,
}

/// Stops with less than this between them are one: a redrive an hour after the first resume may not have come to all payments.
const ONE_STOP: TimeDelta = TimeDelta::hours(3);

/// The time from a claim or a redrive until its request is sent, even if `dispatch` is behind.
const SENT_WITHIN: TimeDelta = TimeDelta::hours(1);

/// The time from a resume until `dispatch` sends again: the age of what it knows of the switch.
const SENDS_AFTER: TimeDelta = TimeDelta::seconds(5);

impl Switch {
    /// Whether payments of this due date are not claimed.
    #[must_use]
    pub fn is_held(&self, date: BusinessDate) -> bool {
        self.holds.iter().any(|hold| hold.covers(date))
    }

    /// The end of the last stop, unless it lasts. A release, which also sets `freed_at`, ends no stop.
    fn resumed_at(&self) -> Option<UtcSecond> {
        self.change.as_ref().filter(|_| !self.stopped).map(|resume| resume.at)
    }

    /// The begin of a stop that begins at `at`: that of the last one, if this stop continues it.
    #[must_use]
    pub fn stop_begins(&self, at: UtcSecond) -> UtcSecond {
        let is_one = |resumed: &UtcSecond| at <= resumed.saturating_add(ONE_STOP);
        self.resumed_at().filter(is_one).and(self.stopped_at).unwrap_or(at)
    }

    /// Whether a request that was written at `at`, by a claim or a redrive, may not have been sent for the last stop.
    #[must_use]
    pub fn may_have_skipped(&self, at: UtcSecond) -> bool {
        let (begins, ends) = (self.stopped_at, self.resumed_at().map(|resumed| resumed.saturating_add(SENDS_AFTER)));
        begins.is_some_and(|begins| at >= begins.saturating_add(-SENT_WITHIN)) && ends.is_some_and(|ends| at <= ends)
    }

    /// Returns the first dates in a row, from `from` to `to`, that no hold covers.
    ///
    /// ```
    /// # use payments_model::*;
    /// let change = SwitchChange { by: Actor::operator("ada"), at: "2026-12-01T09:00:00Z".parse()?, reason: "a wrong feed".to_owned() };
    /// let hold = Hold { from: "2026-12-02".parse()?, to: "2026-12-03".parse()?, change };
    /// let switch = Switch { holds: vec![hold], ..Switch::default() };
    /// assert_eq!(switch.free("2026-12-01".parse()?, "2026-12-09".parse()?), Some("2026-12-01".parse()?..="2026-12-01".parse()?));
    /// assert_eq!(switch.free("2026-12-02".parse()?, "2026-12-09".parse()?), Some("2026-12-04".parse()?..="2026-12-09".parse()?));
    /// assert_eq!(switch.free("2026-12-02".parse()?, "2026-12-03".parse()?), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn free(&self, from: BusinessDate, to: BusinessDate) -> Option<RangeInclusive<BusinessDate>> {
        let mut first = from;
        while let Some(hold) = self.holds.iter().find(|hold| hold.covers(first)) {
            if hold.to >= to {
                return None;
            }
            first = hold.to.plus_days(1);
        }
        if first > to {
            return None;
        }
        let next = self.holds.iter().map(|hold| hold.from).filter(|begin| *begin > first).min();
        Some(first..=next.map_or(to, |next| next.minus_days(1).min(to)))
    }
}

impl Hold {
    fn covers(&self, date: BusinessDate) -> bool {
        (self.from..=self.to).contains(&date)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn day(number: u32) -> BusinessDate {
        "2026-12-01".parse::<BusinessDate>().unwrap().plus_days(number)
    }

    #[test]
    fn a_release_does_not_lengthen_a_stop() {
        let at =
            |hours: i64| "2026-12-01T09:00:00Z".parse::<UtcSecond>().unwrap().saturating_add(TimeDelta::hours(hours));
        let resume = SwitchChange { by: Actor::operator("ada"), at: at(2), reason: "it is undone".to_owned() };
        let resumed =
            Switch { stopped_at: Some(at(0)), freed_at: Some(at(2)), change: Some(resume), ..Switch::default() };
        let released = Switch { freed_at: Some(at(20)), ..resumed.clone() };
        for switch in [&resumed, &released] {
            assert!(switch.may_have_skipped(at(2)) && !switch.may_have_skipped(at(3)), "{switch:?}");
            assert_eq!((switch.stop_begins(at(5)), switch.stop_begins(at(6))), (at(0), at(6)), "{switch:?}");
        }
        let never = Switch { freed_at: Some(at(20)), ..Switch::default() };
        assert!(!never.may_have_skipped(at(20)));
    }

    proptest! {
        #[test]
        fn free_dates_are_all_that_are_not_held(holds in vec((0_u32..20, 0_u32..6), 0..5), end in 0_u32..25) {
            let change = SwitchChange { by: Actor::sweep(), at: UtcSecond::MIN, reason: "why".to_owned() };
            let hold = |(from, days): (u32, u32)| Hold { from: day(from), to: day(from + days), change: change.clone() };
            let switch = Switch { holds: holds.into_iter().map(hold).collect(), ..Switch::default() };
            let (mut found, mut from) = (Vec::new(), day(0));
            while let Some(free) = switch.free(from, day(end)) {
                from = free.end().plus_days(1);
                let days = u32::try_from(free.end().days_since(*free.start())).unwrap();
                found.extend((0..=days).map(|days| free.start().plus_days(days)));
            }
            let want: Vec<BusinessDate> = (0..=end).map(day).filter(|date| !switch.is_held(*date)).collect();
            prop_assert_eq!(found, want);
        }
    }
}
