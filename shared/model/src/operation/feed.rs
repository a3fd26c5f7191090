//! The feed that a bank expects of each day, and whether it is missing.

use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::time_of_day::TimeOfDay;
use crate::calendar::zone::BusinessZone;
use crate::counts::DayCounts;
use crate::payment::transition::Status;

/// The feed that a bank expects: by a time of its day, so many payments are due on that day.
///
/// ```
/// # use payments_model::*;
/// let feed = ExpectedFeed { by: "09:30".parse()?, payments: 2 };
/// let (today, zone) = ("2026-07-01".parse()?, "Europe/London".parse()?);
/// let (mut counts, rent) = (DayCounts::default(), Money { amount: "5".parse()?, currency: "GBP".parse()? });
/// counts.enter(Status::Scheduled, rent);
/// assert!(!feed.is_missing(today, zone, "2026-07-01T08:29:59Z".parse()?, &counts));
/// assert!(feed.is_missing(today, zone, "2026-07-01T08:30:00Z".parse()?, &counts));
///
/// // A cancelled payment does not count, and one that was sent does.
/// counts.enter(Status::Cancelled, rent);
/// assert!(feed.is_missing(today, zone, "2026-07-01T08:30:00Z".parse()?, &counts));
/// counts.enter(Status::Processed, rent);
/// assert!(!feed.is_missing(today, zone, "2026-07-01T08:30:00Z".parse()?, &counts));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedFeed {
    /// The time, by the bank's clock.
    pub by: TimeOfDay,
    /// The least number of payments.
    pub payments: u32,
}

impl ExpectedFeed {
    /// Whether the feed of a date should be there, and its counters show fewer payments.
    #[must_use]
    pub fn is_missing(&self, date: BusinessDate, zone: BusinessZone, now: UtcSecond, counts: &DayCounts) -> bool {
        let is_time = zone.instant_of(date, self.by.time()) <= now;
        is_time && counts.total() - counts.count(Status::Cancelled) < self.payments.into()
    }
}
