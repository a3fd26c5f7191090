//! What is past, and what of it moves: the arithmetic of the archive, without a clock or a table.

use chrono::TimeDelta;
use payments_model::{BusinessDate, BusinessZone, Head, UtcSecond};

/// How long a day has been over before its payments move. `ingest` completes a missing head until 30
/// minutes after its day; twice that leaves room for clocks that differ, so that no late head can
/// bring a moved payment back.
const AFTER_DAY: TimeDelta = TimeDelta::hours(1);

/// How long after it could have moved a payment that still stays is an alarm: by then a whole night
/// of the schedule has passed.
const PATIENCE: TimeDelta = TimeDelta::days(1);

/// The first date whose payments stay: those of every date before it may move now.
pub(crate) fn first_that_stays(zone: BusinessZone, now: UtcSecond) -> BusinessDate {
    zone.date_of(now.saturating_add(-AFTER_DAY))
}

/// Whether a payment of this date could have moved more than a day ago. One that was settled late,
/// after redrives perhaps, can only have waited since then.
pub(crate) fn is_overdue(
    zone: BusinessZone,
    due_date: BusinessDate,
    settled_at: Option<UtcSecond>,
    now: UtcSecond,
) -> bool {
    let could_move = zone.end_of(due_date).saturating_add(AFTER_DAY);
    settled_at.map_or(could_move, |settled_at| could_move.max(settled_at)).saturating_add(PATIENCE) < now
}

/// What to do about a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It moves.
    Move,
    /// It would, but a report still waits for it.
    WaitForReport,
    /// It is not what the index showed: it is not over, or its day is not.
    Stay,
}

/// Judges a payment by its head, which knows what the index may not know yet.
pub(crate) fn judge(head: &Head, first_that_stays: BusinessDate) -> Verdict {
    if !head.state.status().is_terminal() || head.due_date >= first_that_stays {
        Verdict::Stay
    } else if head.unreported {
        Verdict::WaitForReport
    } else {
        Verdict::Move
    }
}

#[cfg(test)]
mod tests {
    use payments_model::settlement::FailureReason;
    use payments_model::{AccountId, Actor, Details, Instruction, Money, PaymentId, ScheduledFor, ShardCount, State};

    use super::*;

    fn zone(name: &str) -> BusinessZone {
        name.parse().unwrap()
    }

    fn date(text: &str) -> BusinessDate {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_moves_an_hour_after_its_end() {
        for (in_zone, day, from) in [
            ("UTC", "2026-11-20", "2026-11-21T01:00:00Z"),
            ("Europe/London", "2026-07-01", "2026-07-02T00:00:00Z"),
            // A day of 23 hours, one of 25, and the days before them.
            ("Europe/London", "2027-03-27", "2027-03-28T01:00:00Z"),
            ("Europe/London", "2027-03-28", "2027-03-29T00:00:00Z"),
            ("Europe/London", "2026-10-24", "2026-10-25T00:00:00Z"),
            ("Europe/London", "2026-10-25", "2026-10-26T01:00:00Z"),
            // Clocks skip from 00:00 to 01:00: the day after begins at 01:00.
            ("Africa/Cairo", "2026-04-23", "2026-04-23T23:00:00Z"),
            // Clocks go back from 01:00 to 00:00, which so comes twice: the first one counts.
            ("America/Havana", "2026-10-31", "2026-11-01T05:00:00Z"),
            // Clocks go back from 24:00 to 23:00: the day lasts until the second midnight.
            ("Asia/Beirut", "2026-10-24", "2026-10-24T23:00:00Z"),
        ] {
            let (zone, day, from) = (zone(in_zone), date(day), from.parse::<UtcSecond>().unwrap());
            let second_before = from.saturating_add(TimeDelta::seconds(-1));
            assert_eq!(first_that_stays(zone, second_before), day, "{day} in {zone}, a second before {from}");
            assert_eq!(first_that_stays(zone, from), day.plus_days(1), "{day} in {zone} at {from}");
            // A day later it is late, and not before.
            let a_day_later = from.saturating_add(TimeDelta::days(1));
            let second_after = a_day_later.saturating_add(TimeDelta::seconds(1));
            assert!(!is_overdue(zone, day, None, a_day_later), "{day} in {zone} at {a_day_later}");
            assert!(is_overdue(zone, day, None, second_after), "{day} in {zone}");
            // Settled in time it makes no difference, settled late it does.
            assert!(is_overdue(zone, day, Some(from), second_after), "{day} in {zone}");
            assert!(!is_overdue(zone, day, Some(second_after), second_after), "{day} in {zone}");
        }
    }

    #[test]
    fn only_reported_payments_of_past_days_move_and_only_where_they_are_over() {
        use Verdict::{Move, Stay, WaitForReport};
        let account: AccountId = "tenant".parse().unwrap();
        let instruction = Instruction {
            account: account.clone(),
            payee: "landlord".parse().unwrap(),
            money: Money { amount: 5.try_into().unwrap(), currency: "GBP".parse().unwrap() },
            scheduled_for: "2026-11-20".parse::<ScheduledFor>().unwrap(),
            data: None,
        };
        let (shards, now): (ShardCount, UtcSecond) = ("10".parse().unwrap(), "2026-11-20T09:00:00Z".parse().unwrap());
        let payment_id = PaymentId::derive(&account, &"k".parse().unwrap());
        let details = Details::accept(payment_id, instruction, zone("UTC"), shards, now, Actor::named("the test"));
        let processed = || State::Processed("TX-1".parse().unwrap());
        let failed = || State::Failed(FailureReason::cut("no funds"));
        for (state, unreported, first_that_stays, want) in [
            (processed(), false, "2026-11-21", Move),
            (failed(), false, "2026-11-21", Move),
            (State::Cancelled, false, "2026-11-21", Move),
            (processed(), true, "2026-11-21", WaitForReport),
            (failed(), true, "2026-11-21", WaitForReport),
            (State::Scheduled, false, "2026-11-21", Stay),
            (State::Pending, false, "2026-11-21", Stay),
            (processed(), false, "2026-11-20", Stay),
            (processed(), true, "2026-11-20", Stay),
            (State::Cancelled, false, "2026-11-20", Stay),
        ] {
            let head = Head { state, unreported, ..Head::scheduled(&details) };
            assert_eq!(judge(&head, date(first_that_stays)), want, "{head:?}");
        }
    }
}
