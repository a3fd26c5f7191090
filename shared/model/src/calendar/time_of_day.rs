//! Times of the day that exist on every date: cut-offs of calendars, and the time of a bank's feed.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveTime;

/// The hours of such a time: no zone's clocks change then, and no business day ends before it.
const HOURS: std::ops::RangeInclusive<&str> = "04:00"..="23:59";

/// A time of the day: hours and minutes from 04:00 to 23:59.
///
/// ```
/// # use payments_model::TimeOfDay;
/// assert!("17:30".parse::<TimeOfDay>().is_ok());
///
/// // Clocks change before 04:00, so 02:30 does not exist on some days.
/// assert!("02:30".parse::<TimeOfDay>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(NaiveTime);

impl TimeOfDay {
    pub(crate) fn time(self) -> NaiveTime {
        self.0
    }
}

impl FromStr for TimeOfDay {
    type Err = TimeOfDayError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = NaiveTime::parse_from_str(text, "%H:%M").ok();
        let time = time.filter(|time| HOURS.contains(&text) && Self(*time).to_string() == text);
        time.map(Self).ok_or_else(|| TimeOfDayError(text.to_owned()))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%H:%M").fmt(f)
    }
}

/// A text that is not a time of the day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time as hh:mm, from {start} to {end}", start = HOURS.start(), end = HOURS.end())]
pub struct TimeOfDayError(String);
