//! What `report` has to be told.

use std::fmt;
use std::str::FromStr;

use payments_boot::{ConfigError, DataConfig, Lookup};
use payments_model::ShardCount;

use crate::storage::Storage;

/// The most settlements of one report, unless `MAX_REPORT_ROWS` says otherwise: a quarter of an
/// hour of a day's two million is 21,000, and a week's backlog is 140 reports.
const DEFAULT_MAX_ROWS: u32 = 100_000;

/// The most that `MAX_REPORT_ROWS` may say. A report is drained within one invocation or not at all,
/// and 100,000 take 100 s. And its sums are in memory until it is written: 100,000 payees, of whom no two
/// are the same, are 16 MB.
const MOST_ROWS: u32 = 100_000;

/// The configuration of `report`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the data is.
    pub data: DataConfig,
    /// `READ_SHARDS`: over how many shards payments may be spread.
    pub read_shards: ShardCount,
    /// `REPORTS_URL`: where the reports are stored.
    pub storage: Storage,
    /// `MAX_REPORT_ROWS`: the most settlements of one report.
    pub max_rows: MaxRows,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the variable.
    pub fn read(lookup: &Lookup<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            data: lookup.data()?,
            read_shards: lookup.read_shards()?,
            storage: lookup.required("REPORTS_URL", "where reports are stored, such as s3://bucket/prefix")?,
            max_rows: lookup.optional("MAX_REPORT_ROWS")?.unwrap_or(MaxRows(DEFAULT_MAX_ROWS)),
        })
    }
}

/// The most settlements of one report: 1 to 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxRows(u32);

/// Why a text is not a number of settlements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a report has at most 1 to {MOST_ROWS} rows, as a whole number")]
pub struct MaxRowsError;

impl FromStr for MaxRows {
    type Err = MaxRowsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rows = text.parse().ok().filter(|rows| (1..=MOST_ROWS).contains(rows));
        rows.map(Self).ok_or(MaxRowsError)
    }
}

impl MaxRows {
    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for MaxRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
                "READ_SHARDS" => "10",
                "REPORTS_URL" => "s3://a-bank-reports/billing",
                _ => "",
            };
            Some(if name == changed { to } else { good }.to_owned())
        };
        Config::read(&Lookup::new(&set)).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_what_the_template_sets() {
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
                "MAX_REPORT_ROWS is \"0\": a report has at most 1 to 100000 rows, as a whole number",
            ),
            (
                "MAX_REPORT_ROWS",
                "100001",
                "MAX_REPORT_ROWS is \"100001\": a report has at most 1 to 100000 rows, as a whole number",
            ),
            ("READ_SHARDS", "0", "READ_SHARDS is \"0\": a shard count is a whole number from 1 to 1000"),
        ] {
            let said = read(name, value).err();
            assert_eq!(said, Some(format!("the environment variable {want}")), "{name}={value}");
        }
    }
}
