//! The report's own item: its last committed run. Writing it is the report's commit, and the
//! only thing that two concurrent runs compete for.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use payments_model::UtcSecond;
use serde::{Deserialize, Serialize};

use crate::error::failed;
use crate::key::checkpoint_partition;
use crate::{Item, Store, StoreError};

/// The consumer whose job this is.
const CONSUMER: &str = "report";

/// The sort key of the job's item.
const JOB: &str = "job";

/// A file of a run: where it was written, where readers find it, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportFile {
    /// Where the attempt that became the run wrote it.
    pub attempt: String,
    /// Where it is published.
    pub published: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their SHA-256, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// A committed run of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRun {
    /// Its number: 1 for the first, and one more for each that follows.
    pub number: u64,
    /// The settlements, as CSV.
    pub csv: ReportFile,
    /// Their counts and sums.
    pub summary: ReportFile,
    /// How many settlements they are.
    pub rows: u64,
    /// The settlement of the first of them.
    pub first_settled_at: UtcSecond,
    /// The settlement of the last of them.
    pub last_settled_at: UtcSecond,
    /// When the run was committed.
    pub committed_at: UtcSecond,
    /// Whether its files are published and its payments out of `unreported`.
    pub finished: bool,
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportCommit {
    /// The run is committed.
    Done,
    /// Another run was committed first; this one is not, and never will be.
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
    /// The last committed run of the report, if there was one: 1 read unit, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or the item cannot be read.
    pub async fn last_report_run(&self) -> Result<Option<ReportRun>, StoreError> {
        let get = self.client.get_item().table_name(&self.tables.payments).set_key(Some(job_key()));
        let answer = get.consistent_read(true).send().await.map_err(failed("GetItem"))?;
        answer.item.map(decode).transpose()
    }

    /// Commits a run, on the condition that the last one still is `previous`, and finished: 1 write
    /// unit. A repetition of a commit that had succeeded is a success: attempts have names of their
    /// own, and the item that comes back tells whose attempt it holds.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails. Where it did not answer, the run may be committed.
    pub async fn commit_report_run(&self, run: &ReportRun, previous: Option<u64>) -> Result<ReportCommit, StoreError> {
        use aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException;
        let put = self.client.put_item().table_name(&self.tables.payments).set_item(Some(encode(run)?));
        let put = match previous {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some(previous) => put
                .condition_expression("run = :previous AND finished = :true")
                .expression_attribute_values(":previous", AttributeValue::N(previous.to_string()))
                .expression_attribute_values(":true", AttributeValue::Bool(true)),
        };
        let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match put.send().await {
            Ok(_) => Ok(ReportCommit::Done),
            Err(error) => match error.as_service_error() {
                Some(ConditionalCheckFailedException(check)) => {
                    let there = check.item.clone().map(decode).transpose()?;
                    let ours = there.is_some_and(|there| there.csv.attempt == run.csv.attempt);
                    Ok(if ours { ReportCommit::Done } else { ReportCommit::Lost })
                }
                _ => Err(failed("PutItem")(error)),
            },
        }
    }

    /// Marks a run as finished, if it still is the last one and is not: 1 write unit.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn finish_report_run(&self, number: u64) -> Result<(), StoreError> {
        use aws_sdk_dynamodb::operation::update_item::UpdateItemError::ConditionalCheckFailedException;
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
        match update {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                // Another did.
                Some(ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(failed("UpdateItem")(error)),
            },
        }
    }
}

fn job_key() -> Item {
    Item::from([
        ("pk".to_owned(), AttributeValue::S(checkpoint_partition(CONSUMER))),
        ("sk".to_owned(), AttributeValue::S(JOB.to_owned())),
    ])
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
    serde_dynamo::to_item(item).map_err(|error| unreadable(&error))
}

fn decode(item: Item) -> Result<ReportRun, StoreError> {
    let item: JobItem = serde_dynamo::from_item(item).map_err(|error| unreadable(&error))?;
    let instant = |text: &str| text.parse::<UtcSecond>().map_err(|error| unreadable(&error));
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

fn unreadable(error: &dyn std::error::Error) -> StoreError {
    StoreError::Unreadable { key: format!("{} / {JOB}", checkpoint_partition(CONSUMER)), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_bytes;

    /// A run with every field as long as it can be: a million runs a day for three thousand years.
    fn longest() -> ReportRun {
        let file = |ending: &str| ReportFile {
            attempt: format!("attempts/999999999999-20991231T235959.999999Z-{}/report.{ending}", "r".repeat(64)),
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
    fn a_run_is_read_back_and_takes_one_write_unit() {
        let item = encode(&longest()).unwrap();
        assert!(item_bytes(&item) <= 1_024, "{} bytes", item_bytes(&item));
        assert_eq!(decode(item).unwrap(), longest());
    }

    #[test]
    fn a_damaged_job_does_not_pass() {
        for (name, value) in [
            ("run", AttributeValue::S("7".to_owned())),
            ("committedAt", AttributeValue::S("yesterday".to_owned())),
            ("finished", AttributeValue::N("1".to_owned())),
        ] {
            let mut item = encode(&longest()).unwrap();
            item.insert(name.to_owned(), value);
            assert!(matches!(decode(item), Err(StoreError::Unreadable { .. })), "{name}");
        }
    }
}
