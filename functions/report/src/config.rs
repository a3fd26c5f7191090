//! The configuration of `report`.

use std::str::FromStr;

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_files::Storage;
use payments_model::ShardCount;

/// The default and maximum of `MAX_REPORT_ROWS`. A report must be drained within one invocation, and 100,000
/// rows take 100 s. Its sums are in memory until it is written: 16 MB for 100,000 different payees. A quarter
/// of an hour of two million payments a day is 21,000 rows; a week's backlog is 140 reports.
const MOST_ROWS: u32 = 100_000;

/// The configuration of `report`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The tables.
    pub data: DataConfig,
    /// `READ_SHARDS`: the number of shards to read.
    pub read_shards: ShardCount,
    /// `REPORTS_URL`: the storage of the reports, which are final.
    pub storage: Storage,
    /// `ATTEMPTS_URL`: the storage of the attempts, whose files expire.
    pub attempts: Storage,
    /// `MAX_REPORT_ROWS`: the most settlements of one report.
    pub max_rows: MaxRows,
}

impl Config {
    /// Reads the configuration.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            read_shards: lookup.read_shards()?,
            storage: lookup.required("REPORTS_URL", "where reports are stored, such as s3://bucket/prefix")?,
            attempts: lookup.required("ATTEMPTS_URL", "where attempts are stored, such as s3://bucket/prefix")?,
            max_rows: lookup.optional("MAX_REPORT_ROWS")?.unwrap_or(MaxRows(MOST_ROWS)),
        })
    }
}

/// The most settlements of one report: 1 to 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxRows(u32);

/// A text that is not a valid number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a report's maximum of rows is a whole number from 1 to {MOST_ROWS}")]
pub struct MaxRowsError;

impl FromStr for MaxRows {
    type Err = MaxRowsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rows = text.parse().ok().filter(|rows| (1..=MOST_ROWS).contains(rows));
        rows.map(Self).ok_or(MaxRowsError)
    }
}

impl MaxRows {
    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(changed: &str, to: &str) -> Result<Config, String> {
        let set = |name: &str| {
            let good = match name {
                "PAYMENTS_TABLE" => "payments",
                "HISTORY_TABLE" => "history",
                "LOG_TABLE" => "payments-log",
                "READ_SHARDS" => "10",
                "REPORTS_URL" => "s3://a-bank-reports/billing",
                "ATTEMPTS_URL" => "s3://a-bank-attempts",
                _ => "",
            };
            Some(if name == changed { to } else { good }.to_owned())
        };
        Config::read(&Lookup::new(&set)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_maximum_of_rows_has_a_default() {
        assert_eq!(read("", "").unwrap().max_rows.get(), 100_000);
        assert_eq!(read("MAX_REPORT_ROWS", "1").unwrap().max_rows.get(), 1);
    }

    #[test]
    fn errors_name_the_variable_and_what_it_wants() {
        for (name, value, want) in [
            (
                "REPORTS_URL",
                "",
                "REPORTS_URL is not set; set it to where reports are stored, such as s3://bucket/prefix",
            ),
            (
                "ATTEMPTS_URL",
                "",
                "ATTEMPTS_URL is not set; set it to where attempts are stored, such as s3://bucket/prefix",
            ),
            (
                "REPORTS_URL",
                "https://a.example",
                "REPORTS_URL is \"https://a.example\": expected s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER",
            ),
            (
                "REPORTS_URL",
                "s3://",
                "REPORTS_URL is \"s3://\": expected s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER",
            ),
            (
                "MAX_REPORT_ROWS",
                "0",
                "MAX_REPORT_ROWS is \"0\": a report's maximum of rows is a whole number from 1 to 100000",
            ),
            (
                "MAX_REPORT_ROWS",
                "100001",
                "MAX_REPORT_ROWS is \"100001\": a report's maximum of rows is a whole number from 1 to 100000",
            ),
            ("READ_SHARDS", "0", "READ_SHARDS is \"0\": a shard count is a whole number from 1 to 1000"),
        ] {
            let said = read(name, value).err();
            assert_eq!(said, Some(format!("the environment variable {want}")), "{name}={value}");
        }
    }
}
