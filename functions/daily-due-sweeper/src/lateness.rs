//! Lateness: the time for which a payment could have been claimed, since it was due, created, amended and not held.
//!
//! The index shows when a payment is due, but not when it was created: at 01:00, the feed creates
//! payments that are due at 00:00. A claim returns the head, which shows both times without another
//! read. For the payments that a sweep leaves, the sweep reads some heads.

use payments_model::{BusinessDate, Head, State, UtcSecond};

/// Returns how many seconds before `now` the payment could be claimed. `freed_at` is the last end of a stop or a hold.
pub(crate) fn claimable_seconds(head: &Head, freed_at: Option<UtcSecond>, now: UtcSecond) -> u64 {
    let since = freed_at.map_or(head.claimable_from(), |freed_at| head.claimable_from().max(freed_at));
    u64::try_from((now.as_chrono() - since.as_chrono()).num_seconds()).unwrap_or(0)
}

/// Returns the longest time for which one of the payments could have been claimed. Payments that are no longer scheduled
/// do not count.
pub(crate) fn oldest_of<'h>(
    heads: impl Iterator<Item = &'h Head>,
    freed_at: impl Fn(BusinessDate) -> Option<UtcSecond>,
    now: UtcSecond,
) -> u64 {
    let scheduled = heads.filter(|head| head.state == State::Scheduled);
    scheduled.map(|head| claimable_seconds(head, freed_at(head.due_date), now)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use payments_machine::given::details;
    use payments_model::{Actor, Amended};

    use super::*;

    /// A payment of a day that begins at midnight, created at `created_at`.
    fn head(created_at: &str) -> Head {
        Head::scheduled(&details("k", "2026-11-20", created_at.parse().unwrap()).unwrap())
    }

    #[test]
    fn a_payment_is_late_from_the_later_of_due_and_created() {
        for (created_at, now, seconds) in [
            ("2026-11-20T01:00:00Z", "2026-11-20T01:05:00Z", 300),
            ("2026-11-19T08:00:00Z", "2026-11-20T01:05:00Z", 3_900),
            ("2026-11-20T01:00:00Z", "2026-11-20T00:59:59Z", 0),
        ] {
            let (head, now) = (head(created_at), now.parse().unwrap());
            assert_eq!(oldest_of([&head].into_iter(), |_| None, now), seconds, "{created_at}, {now}");
            let claimed = Head { state: State::Pending, ..head };
            assert_eq!(oldest_of([&claimed].into_iter(), |_| None, now), 0, "it is claimed");
        }
        // At half past nine it was moved to today.
        let first = head("2026-11-19T08:00:00Z");
        let amended = Amended { at: "2026-11-20T09:30:00Z".parse().unwrap(), by: Actor::client("x"), changed: vec![] };
        let head = Head { amended: Some(amended), ..first };
        assert_eq!(claimable_seconds(&head, None, "2026-11-20T09:31:00Z".parse().unwrap()), 60);
        for (freed_at, seconds) in [("2026-11-20T09:00:00Z", 60), ("2026-11-20T09:30:20Z", 40)] {
            let freed_at = Some(freed_at.parse().unwrap());
            assert_eq!(claimable_seconds(&head, freed_at, "2026-11-20T09:31:00Z".parse().unwrap()), seconds);
        }
    }
}
