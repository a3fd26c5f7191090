//! The day's payments in parts, and a question in SQL about them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use lambda_runtime::Context;
use payments_bank::Functions;
use payments_machine::Handlers as _;
use payments_model::BusinessDate;
use serde_json::json;

/// The program that answers the question, if it is installed.
const DUCKDB: &str = "duckdb";

/// The sealed payments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sealed {
    /// The number of the day's payments in parts.
    pub(super) payments: u64,
    /// The question.
    pub(super) sql: String,
    /// Its answer, if DuckDB is installed.
    pub(super) answer: Option<String>,
}

impl Sealed {
    /// Seals the day, and asks for its counts and sums.
    pub(super) async fn seal(
        functions: &Functions,
        in_time: impl Fn() -> Context,
        folder: &Path,
        day: BusinessDate,
    ) -> Result<Self> {
        let mut payments = 0;
        // Each run has a pace and a deadline.
        loop {
            let outcome = functions.scheduled("seal", json!({ "action": "seal" }), in_time()).await;
            let outcome = outcome.map_err(anyhow::Error::msg)?;
            let sealed = outcome["sealed"].as_u64().with_context(|| format!("nothing is sealed: {outcome}"))?;
            payments += sealed;
            if sealed == 0 || outcome["datesLeft"] == 0 {
                break;
            }
        }
        let parts = folder.join("sealed/*/*.parquet").display().to_string().replace('\'', "''");
        let sql = format!(
            "SELECT status, currency, count(*) AS payments, sum(amount_minor) AS minor \
             FROM read_parquet('{parts}', hive_partitioning = true) \
             WHERE date = '{day}' GROUP BY ALL ORDER BY ALL"
        );
        let asked = Command::new(DUCKDB).args(["-c", &sql]).output();
        let answer = asked.ok().filter(|asked| asked.status.success());
        Ok(Self { payments, answer: answer.map(|asked| String::from_utf8_lossy(&asked.stdout).into_owned()), sql })
    }

    /// Returns the question as a command.
    pub(super) fn command(&self) -> String {
        format!("{DUCKDB} -c \"{}\"", self.sql)
    }
}
