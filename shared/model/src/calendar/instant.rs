//! Instants in whole seconds, and business dates.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};

/// The years of all dates. Four digits keep encoded keys in the order of time, and the time-zone
/// database is unreliable for later centuries.
pub const YEARS: std::ops::RangeInclusive<i32> = 2000..=2099;

/// The places of an encoded instant's pairs of digits.
const DIGITS: [usize; 7] = [0, 2, 5, 8, 11, 14, 17];

/// A UTC instant in whole seconds, in [`YEARS`] or the year before or after. So every date's first
/// and last instant exist in every time zone.
///
/// Encoded in 20 characters (`2026-12-01T09:30:00Z`), whose order is the order of time.
///
/// ```
/// # use payments_model::UtcSecond;
/// let (morning, noon) = ("2026-12-01T09:30:00Z", "2026-12-01T12:00:00Z");
/// assert!(morning < noon && morning.parse::<UtcSecond>()? < noon.parse()?);
///
/// // Each instant has one spelling.
/// assert!("2026-12-01T09:30:00+00:00".parse::<UtcSecond>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcSecond(pub(super) DateTime<Utc>);

/// The reason why a text or a time is not an instant or a date of this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// Not in this form, or a day that does not exist.
    #[error(
        "expected an existing date as YYYY-MM-DD, or a date-time as YYYY-MM-DDThh:mm:ss with Z or an offset such as +01:00"
    )]
    Malformed,
    /// Not a date, or a day that does not exist.
    #[error("expected an existing date as YYYY-MM-DD, such as 2026-12-01")]
    NoDate,
    /// A fraction of a second other than zero, or a leap second.
    #[error("a time is in whole seconds from 00 to 59; send no fraction, or one of zeros")]
    Fraction,
    /// Outside [`YEARS`].
    #[error("a date is in the years {} to {}", YEARS.start(), YEARS.end())]
    Year,
}

impl UtcSecond {
    /// Returns the whole second of `instant`.
    ///
    /// # Errors
    /// [`CalendarError::Year`] outside the years of [`UtcSecond`].
    pub fn new(instant: DateTime<Utc>) -> Result<Self, CalendarError> {
        let whole = instant.with_nanosecond(0).ok_or(CalendarError::Fraction)?;
        if (Self::MIN.0..=Self::MAX.0).contains(&whole) { Ok(Self(whole)) } else { Err(CalendarError::Year) }
    }

    /// Adds `delta`, within [`UtcSecond::MIN`] and [`UtcSecond::MAX`].
    #[must_use]
    pub fn saturating_add(self, delta: TimeDelta) -> Self {
        match self.0.checked_add_signed(delta).map(Self::new) {
            Some(Ok(moved)) => moved,
            _ if delta < TimeDelta::zero() => Self::MIN,
            _ => Self::MAX,
        }
    }

    /// The earliest instant.
    pub const MIN: Self =
        Self(NaiveDate::from_ymd_opt(*YEARS.start() - 1, 1, 1).expect("a date").and_time(NaiveTime::MIN).and_utc());
    /// The latest instant.
    pub const MAX: Self = Self(
        NaiveDate::from_ymd_opt(*YEARS.end() + 1, 12, 31)
            .expect("a date")
            .and_hms_opt(23, 59, 59)
            .expect("a time")
            .and_utc(),
    );

    /// The instant as `chrono`'s type.
    #[must_use]
    pub fn as_chrono(self) -> DateTime<Utc> {
        self.0
    }
}

impl fmt::Display for UtcSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.0.date_naive(), self.0.time());
        // By hand, because this is in every key and row, and chrono parses its format each time.
        let mut text = *b"0000-00-00T00:00:00Z";
        let year = u32::try_from(date.year()).map_err(|_| fmt::Error)?;
        let days = [year / 100, year % 100, date.month(), date.day()];
        let parts = days.into_iter().chain([time.hour(), time.minute(), time.second()]);
        for (part, place) in parts.zip(DIGITS) {
            for (at, digit) in [(place, part / 10), (place + 1, part % 10)] {
                text[at] += u8::try_from(digit).map_err(|_| fmt::Error)?;
            }
        }
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Parses the encoded form only: instants are parts of keys, so they have one spelling.
impl FromStr for UtcSecond {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |place: usize| text.get(place..place + 2)?.parse::<u32>().ok();
        let parsed = || {
            let [Some(century), Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] =
                DIGITS.map(part)
            else {
                return None;
            };
            let year = i32::try_from(century * 100 + year).ok()?;
            NaiveDate::from_ymd_opt(year, month, day)?.and_hms_opt(hour, minute, second)
        };
        let instant = Self::new(parsed().ok_or(CalendarError::Malformed)?.and_utc())?;
        if instant.to_string() == text { Ok(instant) } else { Err(CalendarError::Malformed) }
    }
}

/// A date in the bank's time zone within [`YEARS`], encoded as `2026-12-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusinessDate(pub(super) NaiveDate);

impl BusinessDate {
    /// The earliest date.
    pub const MIN: Self = Self(NaiveDate::from_ymd_opt(*YEARS.start(), 1, 1).expect("a date"));
    /// The latest date.
    pub const MAX: Self = Self(NaiveDate::from_ymd_opt(*YEARS.end(), 12, 31).expect("a date"));

    fn from_date(date: NaiveDate) -> Result<Self, CalendarError> {
        if YEARS.contains(&date.year()) { Ok(Self(date)) } else { Err(CalendarError::Year) }
    }

    /// The date as `chrono`'s type.
    #[must_use]
    pub fn as_chrono(self) -> NaiveDate {
        self.0
    }

    /// Adds `days`, up to the end of [`YEARS`].
    #[must_use]
    pub fn plus_days(self, days: u32) -> Self {
        let later = self.0.checked_add_days(Days::new(days.into())).map(Self::from_date);
        if let Some(Ok(date)) = later { date } else { Self::MAX }
    }

    /// Takes `days` away, down to the start of [`YEARS`].
    #[must_use]
    pub fn minus_days(self, days: u32) -> Self {
        let earlier = self.0.checked_sub_days(Days::new(days.into())).map(Self::from_date);
        if let Some(Ok(date)) = earlier { date } else { Self::MIN }
    }

    /// The instant at which the date is over in every time zone. The last one is 12 hours behind UTC.
    #[must_use]
    pub fn over_everywhere(self) -> UtcSecond {
        UtcSecond(self.0.and_time(NaiveTime::MIN).and_utc()).saturating_add(TimeDelta::hours(36))
    }

    /// The days from `earlier` to this date, negative if `earlier` is later.
    #[must_use]
    pub fn days_since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0).num_days()
    }
}

impl fmt::Display for BusinessDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%Y-%m-%d").fmt(f)
    }
}

impl FromStr for BusinessDate {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| CalendarError::NoDate)?;
        let date = Self::from_date(date)?;
        // Dates are parts of keys, so they have one spelling.
        if date.to_string() == text { Ok(date) } else { Err(CalendarError::NoDate) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::zone::BusinessZone;

    #[test]
    fn instants_have_one_spelling() {
        for text in
            ["2026-12-01T09:30:00+00:00", "2026-12-01 09:30:00Z", "2026-12-1T09:30:00Z", "+2026-12-01T09:30:00Z"]
        {
            assert_eq!(text.parse::<UtcSecond>(), Err(CalendarError::Malformed), "{text}");
        }
    }

    #[test]
    fn instants_and_dates_saturate() {
        let day = TimeDelta::days(1);
        assert_eq!(UtcSecond::MAX.saturating_add(day), UtcSecond::MAX);
        assert_eq!(UtcSecond::MIN.saturating_add(-day), UtcSecond::MIN);
        assert_eq!(BusinessDate::MAX.plus_days(1), BusinessDate::MAX);
        let tokyo: BusinessZone = "Asia/Tokyo".parse().unwrap();
        assert_eq!(tokyo.end_of(BusinessDate::MAX).to_string(), "2099-12-31T15:00:00Z");
        assert_eq!(tokyo.start_of(BusinessDate::MIN).to_string(), "1999-12-31T15:00:00Z");
    }

    /// Any instant of which a payment can be due.
    pub(in crate::calendar) fn instants() -> impl Strategy<Value = UtcSecond> {
        let day = |date: BusinessDate| date.0.and_time(NaiveTime::MIN).and_utc().timestamp();
        (day(BusinessDate::MIN) + 86_400..day(BusinessDate::MAX))
            .prop_filter_map("an instant", |s| DateTime::from_timestamp(s, 0).and_then(|t| UtcSecond::new(t).ok()))
    }

    proptest! {
        #[test]
        fn encoding_keeps_value_and_order(a in instants(), b in instants()) {
            prop_assert_eq!(a.to_string().parse::<UtcSecond>()?, a);
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.to_string().len(), 20);
        }

        #[test]
        fn an_instant_is_within_its_own_day(
            at in instants(),
            zone in prop::sample::select(vec!["UTC", "Europe/London", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"]),
        ) {
            let zone: BusinessZone = zone.parse()?;
            let date = zone.date_of(at);
            prop_assert!(zone.start_of(date) <= at);
            prop_assert!(at <= zone.end_of(date));
        }
    }
}
