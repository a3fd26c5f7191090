//! A batch in flight, and the effect of a response on it.
//!
//! Sources: *AWS Lambda Developer Guide*, "Retain discarded records for a DynamoDB event source in Lambda" (retries,
//! splitting) and "Configuring partial batch response with DynamoDB and Lambda" (checkpoints, "Bisecting a batch").
//! The guide leaves open what this decides, the unkind way where it may be either:
//! - Retries are counted for the same batch. A batch that was split, or whose first records succeeded, counts anew
//!   ("splitting batches doesn't consume the retry quota").
//! - A batch is halved whenever the function ends in an error, also when the retry quota is 0. Nothing else halves it: the
//!   guide promises that only "if your invocation fails".
//! - A partial response splits the batch at the record that it names. If that is the first one, the batch stays as it was.

use serde_json::Value;

use crate::record::Record;
use crate::response::{self, BatchResponse};
use crate::settings::StreamSettings;
use crate::window::MAX_STATE_BYTES;

/// Records that are delivered together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    /// The number of deliveries of exactly this batch.
    pub(crate) invocations: u32,
}

/// The outcome of an invocation with a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BatchOutcome {
    /// Every record succeeded.
    Done,
    /// The records before this index succeeded.
    DoneBefore(usize),
    /// No record succeeded.
    Failed(Failure),
}

/// A failure of a batch as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) why: String,
    /// Whether the invocation ended in an error and not in a response.
    pub(crate) function_error: bool,
}

/// The next deliveries of a batch that failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Batches to deliver, in this order.
    Again(Vec<Batch>),
    /// The batch's retries are exhausted.
    Discard(Batch),
}

/// Returns a window's state from a response.
pub(crate) fn state(answer: &Result<Value, String>) -> Result<Value, Failure> {
    let answer = answer.as_ref().map_err(|why| Failure { why: why.clone(), function_error: true })?;
    let failure = |why: &str| Failure { why: why.to_owned(), function_error: false };
    match answer.get("state").filter(|state| !state.is_null()) {
        None => Err(failure("the response of a function with a tumbling window has no state")),
        Some(state) if state.to_string().len() > MAX_STATE_BYTES => {
            Err(failure("the state of a tumbling window is larger than 1 MB, which ends the window in Lambda"))
        }
        Some(state) => Ok(state.clone()),
    }
}

impl Batch {
    pub(crate) fn from_records(records: Vec<Record>) -> Self {
        Self { records, invocations: 0 }
    }

    /// Returns how the invocation with this answer ended.
    pub(crate) fn outcome(&self, settings: &StreamSettings, answer: &Result<Value, String>) -> BatchOutcome {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return BatchOutcome::Failed(Failure { why: why.clone(), function_error: true }),
        };
        if !settings.report_batch_item_failures {
            return BatchOutcome::Done;
        }
        match response::read(answer, |id| self.index(id).is_some()) {
            BatchResponse::Success => BatchOutcome::Done,
            BatchResponse::Failure(why) => BatchOutcome::Failed(Failure { why: why.to_owned(), function_error: false }),
            BatchResponse::Failures(ids) => match ids.iter().filter_map(|id| self.index(id)).min() {
                Some(lowest) => BatchOutcome::DoneBefore(lowest),
                None => BatchOutcome::Done,
            },
        }
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.records.iter().position(|record| record.sequence_number().as_str() == id)
    }

    /// Returns the next deliveries after a failure of the whole batch, by an error of the function or by its response.
    pub(crate) fn retry(mut self, settings: &StreamSettings, function_error: bool) -> Next {
        if settings.bisect_batch_on_function_error && function_error && self.records.len() > 1 {
            let half = self.records.len().div_ceil(2);
            let second = self.records.split_off(half);
            Next::Again(vec![Self::from_records(self.records), Self::from_records(second)])
        } else if settings.maximum_retry_attempts.is_some_and(|retries| self.invocations > retries) {
            Next::Discard(self)
        } else {
            Next::Again(vec![self])
        }
    }
}
