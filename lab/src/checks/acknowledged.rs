//! An acknowledged record or message is done: Lambda brings it again only if the function says so.
//!
//! A redrive sends again what was not sent, and its result comes again, too. So without this law nothing would show an early
//! acknowledgement but a payment that waits.

use payments_machine::layers::attributes::{Key, key_of, number, text};
use payments_machine::layers::sqs::Sent;
use serde_json::Value;

use crate::facts::heads::id_of;
use crate::world::bank::Bank;

/// The records or messages of an invocation of `dispatch` or `settle`.
pub(crate) struct Asked(Vec<One>);

/// A record or message, by its sequence number or id.
struct One {
    number: String,
    what: What,
}

enum What {
    /// A request at this dispatch attempt is to be sent.
    Send { key: Key, attempt: u64 },
    /// A payment is to be settled.
    Settle { payment_id: String },
}

impl Asked {
    /// Reads an event. Other functions have laws of their own: the log has each change.
    pub(crate) fn from_event(function: &'static str, event: &Value) -> Self {
        let records = event["Records"].as_array().into_iter().flatten();
        Self(match function {
            "dispatch" => records.map(One::to_send).collect(),
            "settle" => records.filter_map(One::to_settle).collect(),
            _ => Vec::new(),
        })
    }

    /// Checks what an invocation that ended well acknowledged.
    pub(crate) fn check(&self, bank: &Bank, answer: &Value) {
        // A table that is lost is not what it was.
        if bank.switches.is_table_lost() {
            return;
        }
        let failures = answer["batchItemFailures"].as_array();
        let again: Vec<&str> =
            failures.into_iter().flatten().filter_map(|failure| failure["itemIdentifier"].as_str()).collect();
        for one in &self.0 {
            let is_again = again.contains(&one.number.as_str());
            match &one.what {
                // A stream is delivered again from the first failed record on.
                What::Send { .. } if is_again => return,
                What::Send { key, attempt } => check_sent(bank, key, *attempt),
                What::Settle { .. } if is_again => {}
                What::Settle { payment_id } => check_settled(bank, payment_id),
            }
        }
    }
}

impl One {
    fn to_send(record: &Value) -> Self {
        let (change, head) = (&record["dynamodb"], &record["dynamodb"]["NewImage"]);
        let number_of_record = change["SequenceNumber"].as_str().unwrap_or_default().to_owned();
        let what = What::Send { key: key_of(head), attempt: number(head, "dispatchAttempt") };
        Self { number: number_of_record, what }
    }

    fn to_settle(message: &Value) -> Option<Self> {
        let body: Value = serde_json::from_str(message["body"].as_str()?).ok()?;
        let payment_id = body["paymentId"].as_str()?.to_owned();
        Some(Self { number: message["messageId"].as_str()?.to_owned(), what: What::Settle { payment_id } })
    }
}

/// A payment that still waits at a dispatch attempt was sent at it.
fn check_sent(bank: &Bank, key: &Key, attempt: u64) {
    let head = bank.item("payments", &key.0, &key.1).unwrap_or_default();
    let waits = text(&head, "status") == "PENDING" && number(&head, "dispatchAttempt") == attempt;
    let is_it = |sent: &Sent| sent.request["paymentId"] == id_of(&key.1) && sent.request["dispatchAttempt"] == attempt;
    if waits && !bank.requests.sent().iter().rev().any(is_it) {
        bank.complain(format!("dispatch acknowledged {} at attempt {attempt} and has not sent it", id_of(&key.1)));
    }
}

/// A payment whose result was taken does not wait.
fn check_settled(bank: &Bank, payment_id: &str) {
    let key = {
        let changes = bank.changes.log();
        let last = changes.iter().rev().find(|change| id_of(&change.key.1) == payment_id);
        last.map(|change| change.key.clone())
    };
    let head = key.and_then(|(pk, sk)| bank.item("payments", &pk, &sk)).unwrap_or_default();
    if text(&head, "status") == "PENDING" {
        bank.complain(format!("settle acknowledged a result of {payment_id}, which waits for it"));
    }
}
