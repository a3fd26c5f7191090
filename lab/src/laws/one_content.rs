//! The law of requests: each request is a pending payment's, and all requests of a payment have one id and content.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::facts::heads::{id_of, is_settled};
use crate::facts::intent::Intent;
use payments_machine::layers::attributes::{Key, number, text};

/// Checks that a request has the content of an intent, and that the payment was not cancelled. Returns the violation, if
/// there is one.
#[must_use]
pub fn check_request(intent: &Intent, request: &Value) -> Option<String> {
    if *request != intent.request(request) {
        return Some(format!("was sent as {request}"));
    }
    intent.cancelled.then(|| "was cancelled and sent".to_owned())
}

/// The time at which each payment became pending at each dispatch attempt, and the time at which the payment was settled.
/// `When` is any scale that rises with time.
#[derive(Debug)]
pub struct Pending<When> {
    since: BTreeMap<(String, u64), When>,
    until: BTreeMap<String, When>,
    /// The names of the amendments that were in force while each payment was pending. A payment has more than one only if
    /// a restore took back its claim.
    amendments: BTreeMap<String, BTreeSet<String>>,
}

impl<When> Default for Pending<When> {
    fn default() -> Self {
        Self { since: BTreeMap::new(), until: BTreeMap::new(), amendments: BTreeMap::new() }
    }
}

impl<When: Ord> Pending<When> {
    /// Notes a change of a head.
    pub fn follow(&mut self, key: &Key, after: Option<&Value>, at: When) {
        if let Some(after) = after.filter(|after| text(after, "status") == "PENDING") {
            let attempt = (id_of(&key.1).to_owned(), number(after, "dispatchAttempt"));
            self.amendments.entry(attempt.0.clone()).or_default().insert(text(after, "details").to_owned());
            self.since.entry(attempt).or_insert(at);
        } else if after.is_some_and(|after| is_settled(text(after, "status"))) {
            self.until.entry(id_of(&key.1).to_owned()).or_insert(at);
        }
    }

    /// Returns the time at which a payment ceased to be pending.
    #[must_use]
    pub fn until(&self, id: &str) -> Option<&When> {
        self.until.get(id)
    }

    /// Returns the wanted content of a payment while it was pending.
    pub fn claimed<'p>(&'p self, id: &'p str, intent: &'p Intent) -> impl Iterator<Item = Intent> + 'p {
        self.amendments.get(id).into_iter().flatten().filter_map(move |name| intent.in_force(id, name))
    }

    /// Checks that a request's payment was pending at the request's attempt before the request was sent. Returns the
    /// violation, if there is one.
    #[must_use]
    pub fn check(&self, request: &Value, sent: &When) -> Option<String> {
        let (id, attempt) = (request["paymentId"].as_str()?, request["dispatchAttempt"].as_u64()?);
        let since = self.since.get(&(id.to_owned(), attempt));
        since.is_none_or(|since| since > sent).then(|| format!("was sent at {attempt} without being pending"))
    }
}

/// Checks that a batch of requests has each dispatch attempt of a payment once. Returns the violation, if there is one.
pub(crate) fn check_batch(operation: &str, input: &Value) -> Option<String> {
    let entries = input["Entries"].as_array().filter(|_| operation == "SendMessageBatch")?;
    let mut seen = BTreeSet::new();
    entries.iter().find_map(|entry| {
        let request: Value = serde_json::from_str(entry["MessageBody"].as_str()?).ok()?;
        let attempt = format!("{} at {}", request["paymentId"], request["dispatchAttempt"]);
        (!seen.insert(attempt.clone())).then(|| format!("{attempt} is twice in a batch"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_that_repeats_an_attempt_is_seen() {
        let entry = |id: &str, attempt: u32| json!({ "MessageBody": json!({ "paymentId": id, "dispatchAttempt": attempt }).to_string() });
        let found = |entries: &[Value]| check_batch("SendMessageBatch", &json!({ "Entries": entries }));
        assert_eq!(found(&[entry("7", 1), entry("7", 2), entry("8", 1)]), None);
        assert!(found(&[entry("7", 1), entry("8", 1), entry("7", 1)]).is_some());
    }
}
