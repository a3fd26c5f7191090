//! The report's job item: its last committed run. Writing it commits a run; of two runs at once only
//! one succeeds.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use payments_model::UtcSecond;
use serde::{Deserialize, Serialize};

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Item, item_key, key_of};
use crate::key::checkpoint_partition;
use crate::store::Store;

/// The owner of the job item.
pub(crate) const CONSUMER: &str = "report";

/// The sort key of the job's item.
pub(crate) const JOB: &str = "job";

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportFile {
    /// Its path in the committed attempt.
    pub attempt: String,
    /// Its published path.
    pub published: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// A committed run of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRun {
    /// Its number. The first is 1.
    pub number: u64,
    /// The settlements, as CSV.
    pub csv: ReportFile,
    /// Their counts and sums.
    pub summary: ReportFile,
    /// The number of settlements.
    pub rows: u64,
    /// The first settlement.
    pub first_settled_at: UtcSecond,
    /// The last settlement.
    pub last_settled_at: UtcSecond,
    /// The time of the commit.
    pub committed_at: UtcSecond,
    /// Whether its files are published and its payments have left `unreported`.
    pub finished: bool,
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportCommit {
    /// The run is committed.
    Done,
    /// Another run was committed first. This run will never be.
    Lost,
}

/// The attributes of the job's item. It never expires.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobItem {
    pk: String,
    sk: String,
    run: u64,
    csv: ReportFile,
    summary: ReportFile,
    rows: u64,
    first_settled_at: String,
    last_settled_at: String,
    committed_at: String,
    finished: bool,
}

impl Store {
    /// Returns the report's last committed run, strongly consistent: 1 read unit.
    pub async fn last_report_run(&self) -> Result<Option<ReportRun>, StoreError> {
        let job = self.get(&self.tables.payments, job_key()).await?;
        job.map(|item| decode(&self.tables.payments, item)).transpose()
    }

    /// Commits a run if the last one is `previous` and finished: 1 write unit. Repeating a successful
    /// commit succeeds: attempts have unique names, and the existing item names its attempt.
    /// Attributes that this version does not know stay.
    ///
    /// # Errors
    /// [`StoreError`] if DynamoDB fails. If it did not answer, the run may be committed.
    pub async fn commit_report_run(&self, run: &ReportRun, previous: Option<u64>) -> Result<ReportCommit, StoreError> {
        let (assignments, names, values) = equations(&encode(run)?, ", ");
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(job_key()))
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        let update = match previous {
            None => update.condition_expression("attribute_not_exists(pk)"),
            Some(previous) => update
                .condition_expression("run = :previous AND finished = :true")
                .expression_attribute_values(":previous", AttributeValue::N(previous.to_string()))
                .expression_attribute_values(":true", AttributeValue::Bool(true)),
        };
        let update = update.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Err(existing) = conditional("UpdateItem", update.send().await)? else { return Ok(ReportCommit::Done) };
        let existing = existing.map(|item| decode(&self.tables.payments, item)).transpose()?;
        let ours = existing.is_some_and(|existing| existing.csv.attempt == run.csv.attempt);
        Ok(if ours { ReportCommit::Done } else { ReportCommit::Lost })
    }

    /// Sets the last run to one that was published before the tables were restored, if the last one is `previous`: 1
    /// write unit. Returns whether it was. Attributes that this version does not know stay.
    pub async fn restore_report_run(&self, previous: Option<u64>, run: &ReportRun) -> Result<bool, StoreError> {
        let (assignments, names, values) = equations(&encode(run)?, ", ");
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(job_key()))
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        let update = match previous {
            None => update.condition_expression("attribute_not_exists(pk)"),
            Some(previous) => update
                .condition_expression("run = :previous")
                .expression_attribute_values(":previous", AttributeValue::N(previous.to_string())),
        };
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }

    /// Marks a run as finished, if it is the last one and another invocation has not marked it yet: 1 write unit.
    pub async fn finish_report_run(&self, number: u64) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.payments)
            .set_key(Some(job_key()))
            .condition_expression("run = :run AND finished = :false")
            .update_expression("SET finished = :true")
            .expression_attribute_values(":run", AttributeValue::N(number.to_string()))
            .expression_attribute_values(":false", AttributeValue::Bool(false))
            .expression_attribute_values(":true", AttributeValue::Bool(true))
            .send()
            .await;
        conditional("UpdateItem", update).map(drop)
    }
}

fn job_key() -> Item {
    item_key(checkpoint_partition(CONSUMER), JOB.to_owned())
}

fn encode(run: &ReportRun) -> Result<Item, StoreError> {
    let item = JobItem {
        pk: checkpoint_partition(CONSUMER),
        sk: JOB.to_owned(),
        run: run.number,
        csv: run.csv.clone(),
        summary: run.summary.clone(),
        rows: run.rows,
        first_settled_at: run.first_settled_at.to_string(),
        last_settled_at: run.last_settled_at.to_string(),
        committed_at: run.committed_at.to_string(),
        finished: run.finished,
    };
    serde_dynamo::to_item(item).map_err(|error| unreadable_job("(none)", error))
}

fn decode(table: &str, item: Item) -> Result<ReportRun, StoreError> {
    let item: JobItem = serde_dynamo::from_item(item).map_err(|error| unreadable_job(table, error))?;
    let instant = |text: &str| text.parse::<UtcSecond>().map_err(|error| unreadable_job(table, error));
    Ok(ReportRun {
        number: item.run,
        rows: item.rows,
        first_settled_at: instant(&item.first_settled_at)?,
        last_settled_at: instant(&item.last_settled_at)?,
        committed_at: instant(&item.committed_at)?,
        finished: item.finished,
        csv: item.csv,
        summary: item.summary,
    })
}

fn unreadable_job(table: &str, error: impl std::error::Error) -> StoreError {
    StoreError::unreadable(table, key_of(&job_key()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_bytes;

    /// A run with every field at its longest: a million runs a day for three thousand years.
    fn longest() -> ReportRun {
        let file = |ending: &str| ReportFile {
            attempt: format!("999999999999-20991231T235959.999999Z-{}/report.{ending}", "r".repeat(64)),
            published: format!("reports/2099-12-31T235959Z--2099-12-31T235959Z-run-999999999999.{ending}"),
            bytes: 999_999_999,
            sha256: "f".repeat(64),
        };
        ReportRun {
            number: 999_999_999_999,
            csv: file("csv.gz"),
            summary: file("summary.json"),
            rows: 999_999_999,
            first_settled_at: UtcSecond::MIN,
            last_settled_at: UtcSecond::MAX,
            committed_at: UtcSecond::MAX,
            finished: false,
        }
    }

    #[test]
    fn a_run_is_decoded_and_takes_one_write_unit() {
        let item = encode(&longest()).unwrap();
        assert!(item_bytes(&item) <= 1_024, "{} bytes", item_bytes(&item));
        assert_eq!(decode("t", item).unwrap(), longest());
    }

    #[test]
    fn a_damaged_job_is_unreadable() {
        for (name, value) in [
            ("run", AttributeValue::S("7".to_owned())),
            ("committedAt", AttributeValue::S("yesterday".to_owned())),
            ("finished", AttributeValue::N("1".to_owned())),
        ] {
            let mut item = encode(&longest()).unwrap();
            item.insert(name.to_owned(), value);
            assert!(matches!(decode("t", item), Err(StoreError::Unreadable { .. })), "{name}");
        }
    }
}
