//! The last run of each scheduled job: an item each in one partition, so that one query reads all of them.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::UtcSecond;
use serde::Serialize;
use serde_json::Value;

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, text, text_of};
use crate::key::runs_partition;
use crate::runs::shortened::{cut, shortened};
use crate::store::Store;

/// The end of the partition key of all last runs.
pub(crate) const LAST: &str = "LAST";

/// The most bytes of an outcome's JSON. A longer outcome loses elements of its lists.
pub const MAX_OUTCOME_BYTES: usize = 6 * 1024;

/// The most bytes of the text of an error.
pub const MAX_FAILED_BYTES: usize = 512;

payments_model::kinds! {
    /// A scheduled job, or an operator's move of payments.
    Job {
        /// Claims payments that are due.
        Sweep = "sweep",
        /// Sends the requests of pending payments again.
        Redrive = "redrive",
        /// Writes the billing file.
        Report = "report",
        /// Archives the heads of finished payments.
        Archive = "archive",
        /// Compares counters with payments.
        Recount = "recount",
        /// Counts the payments that wait for a redate.
        Look = "look",
        /// Moves the payments of closed dates.
        Move = "move",
        /// Writes the sealed parts of past dates.
        Seal = "seal",
        /// Writes the journal, and delivers events.
        Publish = "publish",
    }
}

/// The last run of a job that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct LastRun {
    /// The job.
    pub job: Job,
    /// The time at which the run began.
    pub began_at: UtcSecond,
    /// The time at which the run ended.
    pub ended_at: UtcSecond,
    /// The outcome, which the function returned. `None` if a failed run has no outcome.
    pub outcome: Option<Value>,
    /// The error, if the run failed.
    pub failed: Option<String>,
}

impl Job {
    /// Returns the job with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|job| job.as_str() == name)
    }
}

impl LastRun {
    /// Creates the last run of a job. An outcome or an error that is too long is shortened; an outcome that is not an
    /// object of JSON is left out.
    #[must_use]
    pub fn new(job: Job, (began_at, ended_at): (UtcSecond, UtcSecond), outcome: Option<&impl Serialize>) -> Self {
        let outcome = outcome.and_then(|outcome| serde_json::to_value(outcome).ok()).filter(Value::is_object);
        let outcome = outcome.map(|outcome| shortened(outcome, MAX_OUTCOME_BYTES));
        Self { job, began_at, ended_at, outcome, failed: None }
    }

    /// Returns the same run with an error.
    #[must_use]
    pub fn with_failure(self, failed: Option<&str>) -> Self {
        Self { failed: failed.map(|failed| cut(failed, MAX_FAILED_BYTES).to_owned()), ..self }
    }

    fn attributes(&self) -> Item {
        let failed = self.failed.clone().map(|failed| ("failed".to_owned(), AttributeValue::S(failed)));
        let outcome = self.outcome.as_ref().map(|it| ("outcome".to_owned(), AttributeValue::S(it.to_string())));
        let times = [("beganAt".to_owned(), text(self.began_at)), ("endedAt".to_owned(), text(self.ended_at))];
        times.into_iter().chain(outcome).chain(failed).collect()
    }

    fn parse(item: &Item) -> Result<Self, Fault> {
        let optional = |name| Some(text_of(item, name)).filter(|text| !text.is_empty());
        Ok(Self {
            job: Job::from_name(text_of(item, "sk")).ok_or("the job is unknown")?,
            began_at: text_of(item, "beganAt").parse()?,
            ended_at: text_of(item, "endedAt").parse()?,
            outcome: optional("outcome").map(serde_json::from_str).transpose()?,
            failed: optional("failed").map(str::to_owned),
        })
    }
}

impl Store {
    /// Puts the last run of a job, unless the stored one ended later: 1 write unit for each KB. Attributes that this
    /// version does not know stay.
    pub async fn put_last_run(&self, run: &LastRun) -> Result<(), StoreError> {
        let item = run.attributes();
        let removed: Vec<&str> = ["outcome", "failed"].into_iter().filter(|name| !item.contains_key(*name)).collect();
        let (assignments, names, values) = equations(&item, ", ");
        let remove = if removed.is_empty() { String::new() } else { format!(" REMOVE {}", removed.join(", ")) };
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(item_key(runs_partition(LAST), run.job.as_str().to_owned())))
            .condition_expression("attribute_not_exists(pk) OR endedAt <= :end")
            .update_expression(format!("SET {assignments}{remove}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .expression_attribute_values(":end", text(run.ended_at));
        conditional("UpdateItem", update.send().await).map(drop)
    }

    /// Returns the last run of each job that ever ended, strongly consistent: 1 read unit for each 4 KB, usually one in
    /// all. An unreadable item is an error in its place.
    pub async fn last_runs(&self) -> Result<Vec<Result<LastRun, StoreError>>, StoreError> {
        let read = self.items_between(&self.tables.history, runs_partition(LAST), "a", "~");
        let items = self.bounded("Query", read).await?;
        let table = &self.tables.history;
        let parse = |item: &Item| LastRun::parse(item).map_err(|it| StoreError::unreadable(table, key_of(item), it));
        Ok(items.iter().map(parse).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item_bytes;

    fn times() -> (UtcSecond, UtcSecond) {
        ("2026-11-20T08:00:00Z".parse().unwrap(), "2026-11-20T08:00:07Z".parse().unwrap())
    }

    fn stored(run: &LastRun) -> Item {
        let mut item = item_key(runs_partition(LAST), run.job.as_str().to_owned());
        item.extend(run.attributes());
        item
    }

    #[test]
    fn a_run_is_read_as_it_was_put() {
        for job in Job::ALL {
            for outcome in [None, Some(json!({"claimed": 3, "dates": ["2026-12-01"]}))] {
                for failed in [None, Some("DynamoDB did not answer Query")] {
                    let run = LastRun::new(*job, times(), outcome.as_ref()).with_failure(failed);
                    assert_eq!(LastRun::parse(&stored(&run)).unwrap(), run);
                    assert_eq!((&run.outcome, run.failed.as_deref()), (&outcome, failed));
                }
            }
        }
    }

    #[test]
    fn a_long_run_takes_at_most_seven_write_units() {
        let long = json!({"published": vec!["reports/".repeat(10); 1_000], "claimed": 3});
        let run = LastRun::new(Job::Report, times(), Some(&long)).with_failure(Some(&"é".repeat(1_000)));
        assert!(item_bytes(&stored(&run)) <= 7 * 1024, "{} bytes", item_bytes(&stored(&run)));
        assert_eq!(run.outcome.as_ref().unwrap()["claimed"], 3);
        assert_eq!(run.failed.as_ref().unwrap().len(), 512);
    }

    #[test]
    fn a_damaged_run_is_unreadable() {
        let run = LastRun::new(Job::Sweep, times(), Some(&json!({})));
        for (name, value) in [("sk", "sweeps"), ("beganAt", "today"), ("endedAt", ""), ("outcome", "{")] {
            let mut item = stored(&run);
            item.insert(name.to_owned(), AttributeValue::S(value.to_owned()));
            assert!(LastRun::parse(&item).is_err(), "{name}");
        }
    }
}
