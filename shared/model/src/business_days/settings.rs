//! A bank's settings: the calendars of currencies, their cut-offs, and the rule for requests without one.

use std::collections::BTreeMap;
use std::str::FromStr;

use chrono::TimeDelta;

use crate::business_days::calendar_file::CalendarFileError;
use crate::business_days::closed_days::Calendar;
use crate::business_days::compiled::calendars;
use crate::business_days::rule::DateRule;
use crate::calendar::instant::{BusinessDate, UtcSecond};
use crate::calendar::time_of_day::{TimeOfDay, TimeOfDayError};
use crate::calendar::zone::BusinessZone;
use crate::currency::Currency;
use crate::currency::CurrencyError;

/// The calendars of currencies, such as `EUR=T2,GBP=GB,USD=FED`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrencyCalendars(BTreeMap<Currency, &'static Calendar>);

/// The reason why a text is not calendars of currencies, or not cut-offs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusinessDaysError {
    /// An entry is not `left=right`.
    #[error("{0:?} is not of the form {1}; separate entries with commas")]
    Form(String, &'static str),
    /// The currency of an entry.
    #[error("{0:?} is not a currency: {1}")]
    Currency(String, CurrencyError),
    /// The calendar of an entry.
    #[error("there is no calendar {0:?}; the calendars are {1}")]
    Calendar(String, String),
    /// A repeated entry.
    #[error("{0} has two entries; leave one")]
    Repeated(String),
    /// The time of an entry.
    #[error("{0}")]
    Time(#[from] TimeOfDayError),
    /// A cut-off that no payment can meet.
    #[error(
        "on {date} the cut-off of {calendar} comes before the bank's day begins, or within the lead time; choose a later one"
    )]
    BeforeTheDay {
        /// The calendar.
        calendar: &'static str,
        /// The first such date.
        date: BusinessDate,
    },
    /// A file of a calendar.
    #[error("{0}")]
    File(#[from] CalendarFileError),
}

/// The entries of a text: `left=right`, with commas between them.
fn entries<'t>(
    text: &'t str,
    form: &'static str,
) -> impl Iterator<Item = Result<(&'t str, &'t str), BusinessDaysError>> {
    let wrong = move |entry: &str| BusinessDaysError::Form(entry.to_owned(), form);
    text.split(',').map(move |entry| entry.split_once('=').ok_or_else(|| wrong(entry)))
}

fn calendar(id: &str) -> Result<&'static Calendar, BusinessDaysError> {
    let all = calendars()?;
    let ids = || all.iter().map(Calendar::id).collect::<Vec<_>>().join(", ");
    all.iter().find(|calendar| calendar.id() == id).ok_or_else(|| BusinessDaysError::Calendar(id.to_owned(), ids()))
}

impl FromStr for CurrencyCalendars {
    type Err = BusinessDaysError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut calendars = BTreeMap::new();
        for entry in entries(text, "currency=calendar, such as EUR=T2") {
            let (code, id) = entry?;
            let currency = code.parse().map_err(|error| BusinessDaysError::Currency(code.to_owned(), error))?;
            if calendars.insert(currency, calendar(id)?).is_some() {
                return Err(BusinessDaysError::Repeated(code.to_owned()));
            }
        }
        Ok(Self(calendars))
    }
}

impl CurrencyCalendars {
    /// The number of days after `today` for which the calendar that ends first covers dates; `None` without calendars.
    #[must_use]
    pub fn days_covered(&self, today: BusinessDate) -> Option<i64> {
        self.0.values().map(|calendar| calendar.covers().end().days_since(today)).min()
    }

    /// Whether a date is closed in every calendar; `false` without calendars.
    #[must_use]
    pub fn are_closed(&self, date: BusinessDate) -> bool {
        !self.0.is_empty() && self.0.values().all(|calendar| calendar.is_closed(date))
    }
}

/// The cut-offs of calendars, such as `T2=16:00,FED=17:30`, each by the clock of its calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutOffs(BTreeMap<&'static str, TimeOfDay>);

impl FromStr for CutOffs {
    type Err = BusinessDaysError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cut_offs = BTreeMap::new();
        for entry in entries(text, "calendar=hh:mm, such as T2=16:00") {
            let (id, time) = entry?;
            if cut_offs.insert(calendar(id)?.id(), time.parse()?).is_some() {
                return Err(BusinessDaysError::Repeated(id.to_owned()));
            }
        }
        Ok(Self(cut_offs))
    }
}

/// The rail on which a currency's payments leave the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rail {
    /// Its open and closed dates.
    pub calendar: &'static Calendar,
    /// The time until which it takes payments of a date.
    pub cut_off: Option<TimeOfDay>,
}

/// A bank's business days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusinessDays {
    zone: BusinessZone,
    rails: BTreeMap<Currency, Rail>,
    rule: DateRule,
    lead: TimeDelta,
}

impl BusinessDays {
    /// Joins a bank's settings. The lead time is the time before a cut-off at which a payment must be due and created.
    /// A cut-off of a calendar that no currency has applies to nothing: emptying the calendars alone switches all off.
    ///
    /// # Errors
    /// An error for a cut-off that no payment can meet.
    pub fn new(
        zone: BusinessZone,
        CurrencyCalendars(calendars): CurrencyCalendars,
        CutOffs(cut_offs): CutOffs,
        rule: DateRule,
        lead: TimeDelta,
    ) -> Result<Self, BusinessDaysError> {
        let rail = |calendar: &'static Calendar| Rail { calendar, cut_off: cut_offs.get(calendar.id()).copied() };
        let rails = calendars.into_iter().map(|(currency, calendar)| (currency, rail(calendar))).collect();
        let days = Self { zone, rails, rule, lead };
        for rail in days.rails.values() {
            if let Some(date) = days.unmet(rail) {
                return Err(BusinessDaysError::BeforeTheDay { calendar: rail.calendar.id(), date });
            }
        }
        Ok(days)
    }

    /// The first open date on which not even a payment of the day's first instant makes the cut-off. So a payment that moves to
    /// an open date in the future makes its cut-off.
    fn unmet(&self, rail: &Rail) -> Option<BusinessDate> {
        let (first, last) = rail.calendar.covers().into_inner();
        let mut open = std::iter::successors(rail.calendar.open_from(first), |date| {
            Some(*date).filter(|date| *date < last).and_then(|date| rail.calendar.open_from(date.plus_days(1)))
        });
        open.find(|date| self.last_call(rail, *date).is_some_and(|last| last < self.zone.start_of(*date)))
    }

    /// The bank's time zone.
    #[must_use]
    pub fn zone(&self) -> BusinessZone {
        self.zone
    }

    /// The rule of requests without one.
    #[must_use]
    pub fn rule(&self) -> DateRule {
        self.rule
    }

    pub(crate) fn lead(&self) -> TimeDelta {
        self.lead
    }

    /// The rail of a currency, if it has a calendar.
    #[must_use]
    pub fn rail(&self, currency: Currency) -> Option<&Rail> {
        self.rails.get(&currency)
    }

    /// Whether no currency has a calendar.
    #[must_use]
    pub fn is_always_open(&self) -> bool {
        self.rails.is_empty()
    }

    /// The calendars in use, each with its currencies, by their ids.
    #[must_use]
    pub fn calendars(&self) -> BTreeMap<&'static str, (Rail, Vec<Currency>)> {
        let mut calendars: BTreeMap<_, (Rail, Vec<Currency>)> = BTreeMap::new();
        for (currency, rail) in &self.rails {
            calendars.entry(rail.calendar.id()).or_insert_with(|| (*rail, Vec::new())).1.push(*currency);
        }
        calendars
    }

    /// The business date of an instant.
    #[must_use]
    pub fn date_of(&self, instant: UtcSecond) -> BusinessDate {
        self.zone.date_of(instant)
    }
}
