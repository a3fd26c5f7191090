//! Cut-offs: the times from which a calendar takes no more payments of a date.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveTime;

/// The hours in which a cut-off can be: no zone's clocks change then, and no business day ends before it.
const CUT_OFF_HOURS: std::ops::RangeInclusive<&str> = "04:00"..="23:59";

/// A time of the day after which a calendar takes no more payments of a date: hours and minutes from 04:00 to 23:59.
///
/// ```
/// # use payments_model::business_days::CutOff;
/// assert!("17:30".parse::<CutOff>().is_ok());
///
/// // Clocks change before 04:00, so a cut-off of 02:30 would not exist on some days.
/// assert!("02:30".parse::<CutOff>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CutOff(NaiveTime);

impl CutOff {
    pub(super) fn time(self) -> NaiveTime {
        self.0
    }
}

impl FromStr for CutOff {
    type Err = CutOffError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = NaiveTime::parse_from_str(text, "%H:%M").ok();
        let time = time.filter(|time| CUT_OFF_HOURS.contains(&text) && Self(*time).to_string() == text);
        time.map(Self).ok_or_else(|| CutOffError(text.to_owned()))
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%H:%M").fmt(f)
    }
}

/// A text that is not a cut-off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cut-off {0:?} is not a time as hh:mm, from {start} to {end}", start = CUT_OFF_HOURS.start(), end = CUT_OFF_HOURS.end())]
pub struct CutOffError(String);
