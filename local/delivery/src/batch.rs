//! A batch in flight: what an answer does to it.
//!
//! Sources: *AWS Lambda Developer Guide*, "Retain discarded records for a DynamoDB event source in
//! Lambda" (retries, splitting) and "Configuring partial batch response with DynamoDB and Lambda"
//! (checkpoints, "Bisecting a batch"). Where the guide is silent, this decides:
//! - retries are counted for the same batch: a batch that was split or whose first records are done
//!   counts anew ("splitting batches doesn't consume the retry quota");
//! - a batch is split on every failure, also when the retry quota is 0;
//! - a partial answer splits at the record it names; if that is the first one, which would leave the
//!   batch as it was, the batch is halved. So a record that always fails ends alone.

use serde_json::Value;

use crate::record::Record;
use crate::response::{self, BatchResponse};
use crate::stream::StreamSettings;

/// Records that are handed over together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    /// How often exactly this batch was handed over.
    pub(crate) invocations: u32,
}

/// What an invocation with a batch came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Every record is done.
    Done,
    /// The records before this index are done.
    DoneBefore(usize),
    /// None is.
    Failed(Failure),
}

/// Why a batch failed as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// The invocation ended in an error: it gave no answer.
    pub(crate) function_error: bool,
}

/// What becomes of a batch that is not done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// These batches are handed over, in this order.
    Again(Vec<Batch>),
    /// It has been tried often enough.
    GiveUp(Batch),
}

/// What a function returned of a window's state, or why its answer counts as a failure.
pub(crate) fn state(answer: &Result<Value, String>) -> Result<Value, Failure> {
    let answer = answer.as_ref().map_err(|why| Failure { why: why.clone(), function_error: true })?;
    answer.get("state").filter(|state| !state.is_null()).cloned().ok_or_else(|| Failure {
        why: "the response of a function with a tumbling window has no state".to_owned(),
        function_error: false,
    })
}

impl Batch {
    pub(crate) fn of(records: Vec<Record>) -> Self {
        Self { records, invocations: 0 }
    }

    /// Judges an answer.
    pub(crate) fn judge(&self, settings: &StreamSettings, answer: &Result<Value, String>) -> Verdict {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Verdict::Failed(Failure { why: why.clone(), function_error: true }),
        };
        if !settings.report_batch_item_failures {
            return Verdict::Done;
        }
        match response::read(answer, |id| self.index(id).is_some()) {
            BatchResponse::Success => Verdict::Done,
            BatchResponse::Failure(why) => Verdict::Failed(Failure { why: why.to_owned(), function_error: false }),
            BatchResponse::Failures(ids) => match ids.iter().filter_map(|id| self.index(id)).min() {
                Some(lowest) => Verdict::DoneBefore(lowest),
                None => Verdict::Done,
            },
        }
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.records.iter().position(|record| record.sequence_number().as_str() == id)
    }

    /// What becomes of this batch after a failure that left none of its records done.
    pub(crate) fn retry(mut self, settings: &StreamSettings) -> Next {
        if settings.bisect_batch_on_function_error && self.records.len() > 1 {
            let half = self.records.len().div_ceil(2);
            let second = self.records.split_off(half);
            Next::Again(vec![Self::of(self.records), Self::of(second)])
        } else if settings.maximum_retry_attempts.is_some_and(|retries| self.invocations > retries) {
            Next::GiveUp(self)
        } else {
            Next::Again(vec![self])
        }
    }
}
