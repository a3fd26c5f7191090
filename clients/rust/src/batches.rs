//! Sends a batch, and those of its entries again that the bank had no capacity for.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::bank::Bank;
use crate::errors::Error;
use crate::model::{BatchResult, EntryResult};

const THROTTLED: u16 = 503;

#[derive(Serialize)]
struct Batch<'e> {
    payments: Vec<&'e RawValue>,
}

impl Bank {
    /// Returns a result for each entry, in their order.
    ///
    /// An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
    /// or if the request that repeats it fails: the results of the other entries must not be lost.
    pub(crate) async fn batch<E: Serialize>(&self, path: &str, entries: &[E]) -> Result<Vec<EntryResult>, Error> {
        let entries: Result<Vec<_>, _> = entries.iter().map(serde_json::value::to_raw_value).collect();
        let entries = entries.map_err(|error| Error::Invalid(error.to_string()))?;
        let mut results = self.batch_once(path, entries.iter().map(Box::as_ref).collect()).await?;
        let mut tries = self.tries();
        loop {
            let throttled = results.iter().enumerate().filter(|(_, result)| result.status_code == THROTTLED);
            let (places, demanded): (Vec<_>, Vec<_>) =
                throttled.map(|(place, result)| (place, demanded(result))).unzip();
            let Some(longest) = demanded.into_iter().max() else { return Ok(results) };
            if !tries.pause(longest).await {
                return Ok(results);
            }
            let again = places.iter().filter_map(|place| entries.get(*place)).map(Box::as_ref).collect();
            match self.batch_once(path, again).await {
                Ok(repeated) if repeated.len() == places.len() => {
                    for (place, result) in places.into_iter().zip(repeated) {
                        results[place] = at_place(result, place);
                    }
                }
                _ => return Ok(results),
            }
        }
    }

    async fn batch_once(&self, path: &str, payments: Vec<&RawValue>) -> Result<Vec<EntryResult>, Error> {
        Ok(self.post::<BatchResult>(path, None, Some(&Batch { payments })).await?.0.results)
    }
}

/// Returns how long to wait before an entry is sent again, if its problem says it.
fn demanded(result: &EntryResult) -> Option<Duration> {
    result.outcome.as_ref().err().and_then(|problem| problem.retry_after)
}

/// Returns a result whose pointers begin with the entry's place in the caller's batch.
fn at_place(mut result: EntryResult, place: usize) -> EntryResult {
    if let Err(problem) = &mut result.outcome {
        for fault in &mut problem.errors {
            let Some(rest) = fault.pointer.strip_prefix("/payments/") else { continue };
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            fault.pointer = format!("/payments/{place}{rest}");
        }
    }
    result
}
