//! The configuration of `seal`.

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;
use payments_model::{BusinessZone, ShardCount};
use payments_sealed::MAX_PART_ROWS;
use payments_store::CHANGEABLE_DAYS;

/// The days between the end of a date and its sealing: 35 to which the tables can be restored, and 15 in which a payment may be
/// redriven, settled, reported and expire. Only tests and one machine shorten them; the template does not.
pub const SEAL_AFTER_DAYS: u32 = 50;

/// The days between the writing of a part and the clear of its payments' data. At each instant to which tables can be restored, the part
/// was there, and its payments had left the hot table. Only tests and one machine shorten them.
pub const CLEAR_AFTER_DAYS: u32 = CHANGEABLE_DAYS;

/// The least days for which parts are kept: a run looks at the parts of the last 500 days, whose payments must not have expired.
const LEAST_KEPT_DAYS: u32 = 600;

/// The configuration of `seal`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `BUSINESS_TIME_ZONE`.
    pub zone: BusinessZone,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `SEALED_URL`: the storage of the parts.
    pub storage: Storage,
    /// `SEAL_AFTER_DAYS`.
    pub seal_after_days: u32,
    /// `CLEAR_AFTER_DAYS`.
    pub clear_after_days: u32,
    /// `KEPT_DAYS`: the days after which S3 deletes a part; 0 keeps it for good. The payments are deleted before that.
    pub kept_days: u32,
    /// `MAX_PART_ROWS`: the most rows of a part. Tests alone have fewer.
    pub max_part_rows: usize,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        const KEPT_DAYS: &str = "KEPT_DAYS";
        let kept_days: u32 = lookup.required(KEPT_DAYS, "the days for which parts are kept, or 0")?;
        // S3 would hide a part that its lock keeps.
        let locked_days = lookup.number("RETENTION_YEARS", 0)?.saturating_mul(366);
        let least = LEAST_KEPT_DAYS.max(locked_days);
        if (1..least).contains(&kept_days) {
            let why = format!("expected 0, or at least {least}");
            return Err(ConfigError::Invalid(KEPT_DAYS, kept_days.to_string(), why));
        }
        Ok(Self {
            data: lookup.data()?,
            zone: lookup.zone()?,
            read_shards: lookup.read_shards()?,
            storage: lookup.required("SEALED_URL", "where sealed parts are stored, such as s3://bucket")?,
            seal_after_days: lookup.number("SEAL_AFTER_DAYS", SEAL_AFTER_DAYS)?,
            clear_after_days: lookup.number("CLEAR_AFTER_DAYS", CLEAR_AFTER_DAYS)?,
            kept_days,
            max_part_rows: lookup.number("MAX_PART_ROWS", MAX_PART_ROWS)?.max(1) as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_for_good_or_for_as_long_as_they_are_looked_at_and_locked() {
        for (kept_days, years, least) in [
            ("0", "10", None),
            ("599", "0", Some(600)),
            ("600", "0", None),
            ("600", "1", None),
            ("731", "2", Some(732)),
            ("732", "2", None),
        ] {
            let set = |name: &str| {
                let value = match name {
                    "PAYMENTS_TABLE" | "HISTORY_TABLE" | "LOG_TABLE" => "table",
                    "BUSINESS_TIME_ZONE" => "Europe/London",
                    "READ_SHARDS" => "10",
                    "SEALED_URL" => "s3://a-bank-sealed",
                    "KEPT_DAYS" => kept_days,
                    "RETENTION_YEARS" => years,
                    _ => return None,
                };
                Some(value.to_owned())
            };
            let error = Config::read(&Lookup::new(&set)).err().map(|error| error.to_string());
            let want = least.map(|least| {
                format!("the environment variable KEPT_DAYS is \"{kept_days}\": expected 0, or at least {least}")
            });
            assert_eq!(error, want, "{kept_days} days, {years} years");
        }
    }
}
