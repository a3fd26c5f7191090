//! The bank's time zone as a client knows it, read with another library than the functions read it with.

use anyhow::{Result, ensure};
use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A time zone. No clock of the zones that are played is changed at midnight.
#[derive(Debug, Clone)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    /// Reads the zone of an IANA name.
    ///
    /// # Errors
    /// If there is no such zone.
    pub(crate) fn read(name: &str) -> Result<Self> {
        let zone = TimeZone::get(name)?;
        // Spelt in another way, it would be another text than the functions know.
        ensure!(zone.iana_name() == Some(name), "{name} is not an IANA name");
        Ok(Self(zone))
    }

    /// The date of an instant.
    pub(crate) fn date_of(&self, at: DateTime<Utc>) -> Option<NaiveDate> {
        let offset = self.0.to_offset(Timestamp::from_second(at.timestamp()).ok()?);
        Some((at + TimeDelta::seconds(offset.seconds().into())).date_naive())
    }

    /// The instant at which a date begins; `None` if midnight does not come once.
    pub(crate) fn start_of(&self, date: NaiveDate) -> Option<DateTime<Utc>> {
        let year = date.year().try_into();
        let month = date.month().try_into();
        let day = date.day().try_into();
        let midnight = Date::new(year.ok()?, month.ok()?, day.ok()?).ok()?.at(0, 0, 0, 0);
        let start = self.0.to_ambiguous_timestamp(midnight).unambiguous().ok()?;
        DateTime::from_timestamp(start.as_second(), 0)
    }
}
