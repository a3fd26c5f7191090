//! Settles a payment: the settled head is put into history, and then the head in the hot table is settled, too.
//!
//! The put decides the outcome of a payment, because history gets its head only once. After a crash
//! between the two writes, history has the outcome, and readers still see the payment pending. The
//! next function that finds it completes the head in the hot table from history's, and never from a
//! result or a clock.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{HeadKey, State, Status, Transition};

use crate::error::StoreError;
use crate::item::{Fault, Item, key_of};
use crate::key::due::DueSort;
use crate::key::unreported::UnreportedSort;
use crate::payment::archive::{StoredHead, item_of};
use crate::payment::head_item::{encode_trail_entry, head_key};
use crate::payment::transition::Moved;
use crate::store::Store;

/// The attributes that the head in the hot table takes over from history's.
const DECIDED: [&str; 9] = [
    "status",
    "version",
    "due",
    "trail",
    "dispatchAttempt",
    "settledAt",
    "transactionId",
    "failureCode",
    "failureReason",
];

/// The attribute that a settled head no longer has, for lack of room.
const LAST_AMENDMENT: &str = "amended";

/// The settlement that history has.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// The given one, since now.
    Now(StoredHead),
    /// An earlier one: the same, another, or another outcome of the payment.
    Before(StoredHead),
}

impl Store {
    /// Puts a pending payment's settled head into history, unless history has a head of the payment: 1 write unit, 1 in
    /// `due`, and 1 in `transaction` if it was processed. If history has one, the failed condition costs 1 write unit.
    ///
    /// The item is the pending head as it was read, so attributes that only a later version knows survive.
    pub async fn decide_settlement(&self, pending: &StoredHead, step: &Transition) -> Result<Decided, StoreError> {
        let history = &self.tables.history;
        let settled = if step.to().status().is_settled() {
            item_after(pending, step).and_then(|item| Ok(StoredHead::read(history, item)?))
        } else {
            Err("the transition is not a settlement".into())
        };
        let settled = settled.map_err(|fault| {
            StoreError::unreadable(&self.tables.payments, key_of(&head_key(&pending.known().key())), fault)
        })?;
        Ok(match self.put_if_absent(history, item_of(&settled)).await? {
            None => Decided::Now(settled),
            // Test: a_result_that_comes_again_completes_it_as_it_was_decided
            Some(found) => Decided::Before(StoredHead::read(history, found)?),
        })
    }

    /// Settles the head in the hot table as history's, if it is pending: 1 write unit, 2 in `due`,
    /// and 1 in `unreported`. Returns the head in the hot table if it is not pending.
    pub async fn follow_settlement(&self, settled: &StoredHead) -> Result<Moved, StoreError> {
        let head = settled.known();
        let key = head.key();
        let Some((expression, values)) = following(settled) else {
            let why = "the long-term table has this payment, but not as settled";
            return Err(StoreError::unreadable(&self.tables.history, key_of(&head_key(&key)), why));
        };
        self.move_head(&key, expression, values, &[]).await
    }

    /// Returns the heads at up to 100 keys that history has: 1 read unit each, whether they exist or not.
    pub async fn settled_heads(
        &self,
        keys: &[HeadKey],
    ) -> Result<Vec<(HeadKey, Result<StoredHead, StoreError>)>, StoreError> {
        let history = &self.tables.history;
        let items = self.items_at(history, keys).await?;
        Ok(items.into_iter().map(|(key, item)| (key, StoredHead::read(history, item))).collect())
    }
}

/// The head as it was read, with the changes of a transition.
pub(crate) fn item_after(stored: &StoredHead, step: &Transition) -> Result<Item, Fault> {
    let head = stored.known();
    let status = step.to().status();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u32| AttributeValue::N(number.to_string());
    let due = DueSort::of(head).in_status(status);
    let mut item = item_of(stored);
    let Some(AttributeValue::L(trail)) = item.get_mut("trail") else { return Err("the trail is missing".into()) };
    trail.push(encode_trail_entry(status, step.at(), step.by()));
    let settled_at = ("settledAt", text(&step.at().to_string()));
    let more = match step.to() {
        State::Processed(id) => vec![settled_at, ("transactionId", text(id.as_str()))],
        State::Failed(failure) => {
            vec![settled_at, ("failureCode", text(failure.code().as_str())), ("failureReason", text(failure.reason()))]
        }
        State::Pending => vec![("dispatchAttempt", number(1))],
        State::Cancelled => Vec::new(),
        State::Scheduled => return Err("no transition leads to SCHEDULED".into()),
    };
    if status.is_settled() {
        item.remove(LAST_AMENDMENT);
    }
    let all =
        [("status", text(status.as_str())), ("version", number(step.version() + 1)), ("due", text(&due.to_string()))];
    item.extend(all.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)));
    Ok(item)
}

/// The update that turns a pending head into history's, and its values. `None` if history's is not
/// settled.
fn following(settled: &StoredHead) -> Option<(String, HashMap<String, AttributeValue>)> {
    let head = settled.known();
    let unreported = UnreportedSort { settled_at: head.settled_at()?, payment_id: head.payment_id };
    let from_due = DueSort::of(head).in_status(Status::Pending);
    let text = |text: String| AttributeValue::S(text);
    let mut values = HashMap::from([
        (":from".to_owned(), text(Status::Pending.to_string())),
        (":fromVersion".to_owned(), AttributeValue::N((head.version - 1).to_string())),
        (":fromDue".to_owned(), text(from_due.to_string())),
        (":unreported".to_owned(), text(unreported.to_string())),
    ]);
    let mut sets = vec!["unreported = :unreported".to_owned()];
    let item = item_of(settled);
    for name in DECIDED {
        if let Some(value) = item.get(name) {
            // STATUS is one of DynamoDB's reserved words.
            let attribute = if name == "status" { "#status" } else { name };
            sets.push(format!("{attribute} = :{name}"));
            values.insert(format!(":{name}"), value.clone());
        }
    }
    Some((format!("SET {} REMOVE {LAST_AMENDMENT}", sets.join(", ")), values))
}
