//! Sends a batch, and those of its entries again that the bank had no capacity for.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::bank::Bank;
use crate::errors::Error;
use crate::model::{BatchResult, EntryResult};

const THROTTLED: u16 = 503;

/// Replacement for the rest of a name that is too long.
const CUT: char = '…';

#[derive(Serialize)]
struct Batch<'e> {
    payments: Vec<&'e RawValue>,
}

impl Bank {
    /// Returns a result for each entry, in their order.
    ///
    /// An entry with the code 503 is sent again after its `retryAfterSeconds`. It keeps that code if no attempt is left,
    /// or if the request that repeats it fails: the results of the other entries must not be lost.
    pub(crate) async fn batch<E: Serialize>(
        &self,
        path: &str,
        entries: &[E],
        named: &[(&str, &str)],
    ) -> Result<Vec<EntryResult>, Error> {
        let entries: Result<Vec<_>, _> = entries.iter().map(serde_json::value::to_raw_value).collect();
        let entries = entries.map_err(|error| Error::Invalid(error.to_string()))?;
        let mut results = self.batch_once(path, entries.iter().map(Box::as_ref).collect(), named).await?;
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
            let named: Vec<_> = places.iter().filter_map(|place| named.get(*place)).copied().collect();
            match self.batch_once(path, again, &named).await {
                Ok(repeated) => {
                    for (place, result) in places.into_iter().zip(repeated) {
                        results[place] = at_place(result, place);
                    }
                }
                Err(_) => return Ok(results),
            }
        }
    }

    /// Sends a batch once. `named` has the account and the key of each entry.
    async fn batch_once(
        &self,
        path: &str,
        payments: Vec<&RawValue>,
        named: &[(&str, &str)],
    ) -> Result<Vec<EntryResult>, Error> {
        let (BatchResult { results }, _) = self.post(path, None, Some(&Batch { payments })).await?;
        let is_of = |(result, (account, key)): (&EntryResult, &(&str, &str))| {
            is_same(result.account_id.as_deref(), account) && is_same(result.idempotency_key.as_deref(), key)
        };
        if results.len() != named.len() || !results.iter().zip(named).all(is_of) {
            return Err(Error::contradiction("The results are not those of the entries that were sent.".to_owned()));
        }
        Ok(results)
    }
}

/// Whether a result names the sent entry. The bank cuts long names, and names nothing unreadable.
fn is_same(named: Option<&str>, sent: &str) -> bool {
    named.is_none_or(|named| named == sent || named.strip_suffix(CUT).is_some_and(|start| sent.starts_with(start)))
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
