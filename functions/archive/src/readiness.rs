//! The rules of when a payment is archived and when it is overdue, without a clock or a table.

use chrono::TimeDelta;
use payments_model::{BusinessDate, BusinessZone, Head, UtcSecond};

/// The time between the end of a day and the archiving of its payments. `ingest` completes a missing head until 30
/// minutes after its day. Twice that allows for clocks that differ: no late head can bring an archived payment back.
const AFTER_DAY: TimeDelta = TimeDelta::hours(1);

/// Time that settled payments get to expire before the archive moves them: a head expires a day
/// after its report, and DynamoDB deletes expired items within a few days.
const EXPIRING: TimeDelta = TimeDelta::days(3);

/// The time after which a payment that could have been archived is overdue: one night of the schedule.
const OVERDUE_AFTER: TimeDelta = TimeDelta::days(1);

/// Returns the first date whose payments stay in the hot table.
pub(crate) fn first_kept_date(zone: BusinessZone, now: UtcSecond) -> BusinessDate {
    zone.date_of(now.saturating_add(-AFTER_DAY))
}

/// Returns the first date whose settled payments may still leave by themselves.
pub(crate) fn first_expiring_date(zone: BusinessZone, now: UtcSecond) -> BusinessDate {
    first_kept_date(zone, now.saturating_add(-EXPIRING))
}

/// Whether a payment of this date could have been archived more than a day ago. A settled payment gets
/// time to expire first, and one that was settled late, such as after redrives, waits only since its settlement.
pub(crate) fn is_overdue(
    zone: BusinessZone,
    due_date: BusinessDate,
    settled_at: Option<UtcSecond>,
    now: UtcSecond,
) -> bool {
    let ready_at = zone.end_of(due_date).saturating_add(AFTER_DAY);
    let ready_at = settled_at.map_or(ready_at, |settled_at| ready_at.saturating_add(EXPIRING).max(settled_at));
    ready_at.saturating_add(OVERDUE_AFTER) < now
}

/// Whether a payment can be archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The payment can be archived.
    Ready,
    /// Waiting for its report.
    WaitsForReport,
    /// Not settled or cancelled, or its day is not over.
    NotOver,
}

impl Readiness {
    /// Decides by the head, since the index may lag.
    pub(crate) fn from_head(head: &Head, first_kept_date: BusinessDate) -> Self {
        if !head.state.status().is_terminal() || head.due_date >= first_kept_date {
            Self::NotOver
        } else if head.unreported {
            Self::WaitsForReport
        } else {
            Self::Ready
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_machine::given::details;
    use payments_model::{Failure, State};

    use super::*;

    fn zone(name: &str) -> BusinessZone {
        name.parse().unwrap()
    }

    fn date(text: &str) -> BusinessDate {
        text.parse().unwrap()
    }

    #[test]
    fn a_days_payments_are_archived_an_hour_after_its_end_and_overdue_a_day_later() {
        for (in_zone, day, from) in [
            ("UTC", "2026-11-20", "2026-11-21T01:00:00Z"),
            ("Europe/London", "2026-07-01", "2026-07-02T00:00:00Z"),
            // A day of 23 hours, one of 25, and the days before them.
            ("Europe/London", "2027-03-27", "2027-03-28T01:00:00Z"),
            ("Europe/London", "2027-03-28", "2027-03-29T00:00:00Z"),
            ("Europe/London", "2026-10-24", "2026-10-25T00:00:00Z"),
            ("Europe/London", "2026-10-25", "2026-10-26T01:00:00Z"),
            // Clocks skip from 00:00 to 01:00. The next day begins at 01:00.
            ("Africa/Cairo", "2026-04-23", "2026-04-23T23:00:00Z"),
            // Clocks go back from 01:00 to 00:00. The first midnight counts.
            ("America/Havana", "2026-10-31", "2026-11-01T05:00:00Z"),
            // Clocks go back from 24:00 to 23:00. The day ends at the second midnight.
            ("Asia/Beirut", "2026-10-24", "2026-10-24T23:00:00Z"),
        ] {
            let zone = zone(in_zone);
            let day = date(day);
            let from = from.parse::<UtcSecond>().unwrap();
            let second_before = from.saturating_add(TimeDelta::seconds(-1));
            assert_eq!(first_kept_date(zone, second_before), day, "{day} in {zone}, a second before {from}");
            assert_eq!(first_kept_date(zone, from), day.plus_days(1), "{day} in {zone} at {from}");
            // The payment is overdue a day later, and not before.
            let a_day_later = from.saturating_add(TimeDelta::days(1));
            let second_after = a_day_later.saturating_add(TimeDelta::seconds(1));
            assert!(!is_overdue(zone, day, None, a_day_later), "{day} in {zone} at {a_day_later}");
            assert!(is_overdue(zone, day, None, second_after), "{day} in {zone}");
            // A settled payment gets three days more to expire, and a late settlement moves that instant too.
            let three_later = second_after.saturating_add(EXPIRING);
            assert!(!is_overdue(zone, day, Some(from), a_day_later.saturating_add(EXPIRING)), "{day} in {zone}");
            assert!(is_overdue(zone, day, Some(from), three_later), "{day} in {zone}");
            assert!(!is_overdue(zone, day, Some(three_later), three_later), "{day} in {zone}");
        }
    }

    #[test]
    fn only_reported_and_cancelled_payments_of_past_days_are_archived() {
        use Readiness::{NotOver, Ready, WaitsForReport};
        let details = details("k", "2026-11-20", "2026-11-20T09:00:00Z".parse().unwrap()).unwrap();
        let processed = || State::Processed("TX-1".parse().unwrap());
        let failed = || State::Failed(Failure::new(Some("AM04"), "no funds"));
        for (state, unreported, first_kept_date, want) in [
            (processed(), false, "2026-11-21", Ready),
            (failed(), false, "2026-11-21", Ready),
            (State::Cancelled, false, "2026-11-21", Ready),
            (processed(), true, "2026-11-21", WaitsForReport),
            (failed(), true, "2026-11-21", WaitsForReport),
            (State::Scheduled, false, "2026-11-21", NotOver),
            (State::Pending, false, "2026-11-21", NotOver),
            (processed(), false, "2026-11-20", NotOver),
            (processed(), true, "2026-11-20", NotOver),
            (State::Cancelled, false, "2026-11-20", NotOver),
        ] {
            let head = Head { state, unreported, ..Head::scheduled(&details) };
            assert_eq!(Readiness::from_head(&head, date(first_kept_date)), want, "{head:?}");
        }
    }
}
