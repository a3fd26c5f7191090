//! Settles a payment: puts the settled head into history, and then settles the head in the hot table.
//!
//! The put decides the settlement, because history gets a head of the payment only once. After a
//! crash between the two writes, history has the settled head, and readers still see the payment
//! pending. The next function that finds both heads completes the settlement: it copies status, time
//! and transaction id from history's head, and ignores any other result.

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

/// The attributes that the hot table's head takes over from history's head.
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

/// The attributes that a settlement removes from a head. A head has at most 1 KB, and the settlement's
/// own attributes need the room.
const REMOVED: [&str; 2] = ["amended", "sentAgainAt"];

/// The head that history has after [`Store::decide_settlement`].
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// The settled head that this call put.
    Put(StoredHead),
    /// A head that history had before: settled in the same way or differently, or cancelled.
    Existing(StoredHead),
}

impl Store {
    /// Puts a pending payment's settled head into history, unless history has a head of the payment: 1 write unit, 1 in
    /// `due`, and 1 in `transaction` if the payment was processed. A failed condition also costs 1 write unit.
    ///
    /// The new item is the pending head's item with the changes of the settlement. So attributes of a later release,
    /// which this one does not know, survive.
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
            None => Decided::Put(settled),
            // Test: a_result_that_comes_again_completes_it_as_it_was_decided
            Some(found) => Decided::Existing(StoredHead::read(history, found)?),
        })
    }

    /// Gives the hot table's head the settlement of history's head, if the hot table's head is pending: 1 write unit, 2
    /// in `due`, and 1 in `unreported`. Returns the hot table's head if it is not pending.
    pub async fn follow_settlement(&self, settled: &StoredHead) -> Result<Moved, StoreError> {
        let head = settled.known();
        let key = head.key();
        let Some((expression, values)) = following(settled) else {
            let why = "the long-term table has this payment, but not as settled";
            return Err(StoreError::unreadable(&self.tables.history, key_of(&head_key(&key)), why));
        };
        self.move_head(&key, expression, values, &[]).await
    }

    /// Returns the heads that history has at up to 100 keys: 1 read unit for each key, found or not. If such a
    /// payment is still pending in the hot table, a crash came between the two writes of its settlement.
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
    let due = DueSort::from_head(head).in_status(status);
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
        REMOVED.iter().for_each(|name| drop(item.remove(*name)));
    }
    let all =
        [("status", text(status.as_str())), ("version", number(step.version() + 1)), ("due", text(&due.to_string()))];
    item.extend(all.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)));
    Ok(item)
}

/// The update that gives a pending head the settlement of history's head, and the update's values.
/// `None` if history's head is not settled.
fn following(settled: &StoredHead) -> Option<(String, HashMap<String, AttributeValue>)> {
    let head = settled.known();
    let unreported = UnreportedSort { settled_at: head.settled_at()?, payment_id: head.payment_id };
    let from_due = DueSort::from_head(head).in_status(Status::Pending);
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
    Some((format!("SET {} REMOVE {}", sets.join(", "), REMOVED.join(", ")), values))
}
