//! A calendar: the dates on which a payment rail is closed.

use chrono::{Datelike, Weekday};

use crate::business_days::rule::MoveReason;
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::time_of_day::TimeOfDay;
use crate::calendar::zone::BusinessZone;

/// The closed dates of a payment rail.
///
/// ```
/// # use payments_model::business_days::calendars;
/// let t2 = calendars()?.iter().find(|calendar| calendar.id() == "T2").ok_or("no T2")?;
///
/// // Good Friday of 2027. Weekends are closed in every calendar.
/// assert!(t2.is_closed("2027-03-26".parse()?));
/// assert!(t2.is_closed("2027-03-27".parse()?));
/// assert_eq!(t2.open_from("2027-03-26".parse()?), Some("2027-03-30".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    pub(super) id: &'static str,
    pub(super) version: String,
    pub(super) name: &'static str,
    pub(super) zone: BusinessZone,
    pub(super) source: &'static str,
    pub(super) first: BusinessDate,
    pub(super) published: BusinessDate,
    pub(super) covered: BusinessDate,
    /// In order, without weekends.
    pub(super) closed: Vec<ClosedDate>,
}

/// A closed date that is neither a Saturday nor a Sunday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedDate {
    /// The date.
    pub date: BusinessDate,
    /// Its name.
    pub name: &'static str,
}

impl Calendar {
    /// Its id, such as `T2`.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// The version of its data: the date at which its file was made, and the first digits of the
    /// file's SHA-256, because a file can be changed by hand.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of its payment rail.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its time zone, in which its cut-off is.
    #[must_use]
    pub fn zone(&self) -> BusinessZone {
        self.zone
    }

    /// The source of its dates.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Its first and its last date. Other dates are unknown.
    #[must_use]
    pub fn covers(&self) -> std::ops::RangeInclusive<BusinessDate> {
        self.first..=self.covered
    }

    /// The first date that the calendar's owner has not published, if the calendar covers it.
    #[must_use]
    pub fn projected_from(&self) -> Option<BusinessDate> {
        (self.published < self.covered).then(|| self.published.plus_days(1))
    }

    /// Its closed dates in order, without weekends.
    #[must_use]
    pub fn closed(&self) -> &[ClosedDate] {
        &self.closed
    }

    /// The reason why a covered date is closed; `None` if it is open.
    #[must_use]
    pub fn closed_for(&self, date: BusinessDate) -> Option<MoveReason> {
        if is_weekend(date) {
            return Some(MoveReason::Weekend);
        }
        self.closed.binary_search_by_key(&date, |closed| closed.date).is_ok().then_some(MoveReason::Holiday)
    }

    /// Whether it covers a date and is closed on it.
    #[must_use]
    pub fn is_closed(&self, date: BusinessDate) -> bool {
        self.covers().contains(&date) && self.closed_for(date).is_some()
    }

    /// The first open date from `date` on, if it covers one.
    #[must_use]
    pub fn open_from(&self, date: BusinessDate) -> Option<BusinessDate> {
        let mut date = date.max(self.first);
        while date <= self.covered {
            if self.closed_for(date).is_none() {
                return Some(date);
            }
            date = date.plus_days(1);
        }
        None
    }

    /// The last open date up to `date`, if it covers one.
    #[must_use]
    pub fn open_until(&self, date: BusinessDate) -> Option<BusinessDate> {
        let mut date = date.min(self.covered);
        while date >= self.first {
            if self.closed_for(date).is_none() {
                return Some(date);
            }
            date = date.minus_days(1);
        }
        None
    }

    /// The instant of a wall-clock time on a date in its zone.
    pub(super) fn instant(&self, date: BusinessDate, cut_off: TimeOfDay) -> UtcSecond {
        self.zone.instant_of(date, cut_off.time())
    }
}

/// Whether a date is a Saturday or a Sunday. Every calendar is closed then.
pub(super) fn is_weekend(date: BusinessDate) -> bool {
    matches!(date.as_chrono().weekday(), Weekday::Sat | Weekday::Sun)
}
