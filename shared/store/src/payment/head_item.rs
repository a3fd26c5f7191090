//! Encodes heads as items and decodes them, with checks that reject a damaged item.
//!
//! The head of an amended payment has up to three more attributes:
//!
//! | attribute | says |
//! |---|---|
//! | `details` | the amendment in force: `<version>#<amendmentId>` |
//! | `amended` | time, actor and changed fields of the last amendment; a settlement removes the attribute |
//! | `moved` | the due time, if it is not the slot's: the key of the index `moved` |
//!
//! The payment's version is the length of its trail and its amendments together.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::MAX_TRAIL_ENTRIES;
use payments_model::{
    Actor, Amended, AmendmentName, Failure, Head, HeadKey, Reference, ScheduledFor, Shard, Slot, State, Status,
    TrailEntry, TransactionId, UtcSecond,
};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, parse_money, parse_reference, text_of, to_item};
use crate::key;
use crate::key::due::DueSort;
use crate::key::unreported::UnreportedSort;

/// The attributes of a payment's head. To stay within 1 KB, a head does not repeat the content of its
/// keys. Only `status` is repeated, because stream filters and conditions use it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadItem {
    pk: String,
    sk: String,
    shard: u16,
    due: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreported: Option<String>,
    status: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amended: Option<AmendedItem>,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    trail: Vec<TrailItem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dispatch_attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_again_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
}

/// The last amendment of a payment that is not settled.
#[derive(Debug, Serialize, Deserialize)]
struct AmendedItem {
    at: String,
    by: String,
    /// The names of fields, with commas between them.
    changed: String,
}

/// One entry of a head's trail.
#[derive(Debug, Serialize, Deserialize)]
struct TrailItem {
    status: String,
    at: String,
    by: String,
}

/// The key attributes of a head.
pub(crate) fn head_key(key: &HeadKey) -> Item {
    item_key(key::account_partition(&key.account), key::head_sort(key.slot))
}

/// The key of the head that an item or index entry of a table belongs to.
pub(crate) fn head_key_of(table: &str, item: &Item) -> Result<HeadKey, StoreError> {
    key::parse_head_key(text_of(item, "pk"), text_of(item, "sk"))
        .map_err(|_| StoreError::unreadable(table, key_of(item), "not a head's keys"))
}

/// Encodes a head.
pub(crate) fn encode_head(head: &Head) -> Result<Item, StoreError> {
    let settled_at = head.settled_at();
    let unreported = settled_at
        .filter(|_| head.unreported)
        .map(|settled_at| UnreportedSort { settled_at, payment_id: head.payment_id });
    let item = HeadItem {
        pk: key::account_partition(&head.account),
        sk: key::head_sort(head.slot()),
        shard: head.shard.get(),
        due: DueSort::from_head(head).to_string(),
        moved: key::moved_sort(head),
        unreported: unreported.map(|key| key.to_string()),
        status: head.state.status().to_string(),
        version: head.version,
        details: head.amendment.map(|name| name.to_string()),
        amended: head.amended.as_ref().map(|Amended { at, by, changed }| AmendedItem {
            at: at.to_string(),
            by: by.to_string(),
            changed: changed.join(","),
        }),
        payee_account_id: head.payee.to_string(),
        amount_minor: head.money.amount.get(),
        currency: head.money.currency.to_string(),
        scheduled_for: head.scheduled_for.to_string(),
        reference: head.reference.as_ref().map(Reference::to_string),
        trail: head
            .trail()
            .map(|entry| TrailItem {
                status: entry.status.to_string(),
                at: entry.at.to_string(),
                by: entry.by.to_string(),
            })
            .collect(),
        dispatch_attempt: head.dispatch_attempt,
        sent_again_at: head.sent_again_at.map(|at| at.to_string()),
        transaction_id: head.transaction_id().map(ToString::to_string),
        failure_code: head.failure().map(|failure| failure.code().to_string()),
        failure_reason: head.failure().map(|failure| failure.reason().to_owned()),
        settled_at: settled_at.map(|at| at.to_string()),
    };
    to_item(&item)
}

/// Decodes a head of a table.
pub(crate) fn decode_head(table: &str, item: Item) -> Result<Head, StoreError> {
    let key = key_of(&item);
    parse_head(item).map_err(|fault| StoreError::unreadable(table, key, fault))
}

pub(crate) fn parse_head(item: impl Into<serde_dynamo::Item>) -> Result<Head, Fault> {
    let item: HeadItem = serde_dynamo::from_item(item)?;
    let Slot { at: slot_at, payment_id } = key::parse_head_sort(&item.sk)?;
    let due: DueSort = item.due.parse()?;
    let status: Status = item.status.parse()?;
    let scheduled_for: ScheduledFor = item.scheduled_for.parse()?;
    let trail = item.trail.into_iter().map(parse_trail_entry).collect::<Result<Vec<_>, _>>()?;
    let [created, moved @ ..] = trail.as_slice() else { return Err("the trail is empty".into()) };
    let state =
        parse_state(status, item.dispatch_attempt, item.transaction_id, (item.failure_code, item.failure_reason))?;
    let head = Head {
        payment_id,
        account: key::parse_account_partition(&item.pk)?,
        payee: item.payee_account_id.parse()?,
        money: parse_money(item.amount_minor, &item.currency)?,
        scheduled_for,
        reference: parse_reference(item.reference)?,
        slot_at,
        due_at: due.due_at,
        due_date: due.due_date,
        shard: Shard::from_stored(item.shard).ok_or("the shard is out of range")?,
        state,
        version: item.version,
        amendment: item.details.map(|name| name.parse::<AmendmentName>()).transpose()?,
        amended: item.amended.map(parse_amended).transpose()?,
        created: (created.at, created.by.clone()),
        moved: moved.to_vec(),
        dispatch_attempt: item.dispatch_attempt,
        sent_again_at: item.sent_again_at.map(|at| at.parse()).transpose()?,
        unreported: item.unreported.is_some(),
    };
    // Every rule that the encoding keeps is checked.
    let last = trail.last().map(|entry| entry.status);
    let settled_at = item.settled_at.map(|at| at.parse::<UtcSecond>()).transpose()?;
    let unreported = item.unreported.map(|key| key.parse::<UnreportedSort>()).transpose()?;
    // Transitions and amendments raise the version by one each, and only a scheduled payment is amended.
    let amendments = head.amendment.map_or(0, |name| name.version - 1);
    let version = u32::try_from(trail.len()).unwrap_or(u32::MAX).saturating_add(amendments);
    let promises = [
        ("the due key is another payment's", due.payment_id == payment_id),
        ("the due key has another status", due.status == status),
        ("the trail does not begin with SCHEDULED", created.status == Status::Scheduled),
        ("the trail does not end with the status", last == Some(status)),
        ("the trail and the version disagree", item.version == version),
        (
            "it is amended, and does not say by whom",
            head.amended.is_some() == (!status.is_settled() && head.amendment.is_some()),
        ),
        ("the moved key is not that of its due time", item.moved == key::moved_sort(&head)),
        ("it is due elsewhere without an amendment", head.is_due_as_at_first() || head.amendment.is_some()),
        ("the trail is too long", trail.len() <= MAX_TRAIL_ENTRIES),
        ("settledAt and the trail disagree", settled_at == head.settled_at()),
        (
            "the unreported key is another payment's",
            unreported.is_none_or(|key| key.payment_id == payment_id && Some(key.settled_at) == settled_at),
        ),
    ];
    match promises.into_iter().find(|(_, kept)| !kept) {
        Some((broken, _)) => Err(broken.into()),
        None => Ok(head),
    }
}

fn parse_state(
    status: Status,
    attempt: Option<u32>,
    transaction_id: Option<String>,
    failure: (Option<String>, Option<String>),
) -> Result<State, Fault> {
    let attempted = attempt.is_some_and(|attempt| attempt >= 1);
    Ok(match (status, transaction_id, failure) {
        (Status::Scheduled, None, (None, None)) if attempt.is_none() => State::Scheduled,
        (Status::Cancelled, None, (None, None)) if attempt.is_none() => State::Cancelled,
        (Status::Pending, None, (None, None)) if attempted => State::Pending,
        (Status::Processed, Some(id), (None, None)) => State::Processed(id.parse::<TransactionId>()?),
        (Status::Failed, None, (Some(code), Some(reason))) => State::Failed(Failure::from_stored(&code, &reason)?),
        _ => return Err("status, dispatchAttempt, transactionId, failureCode and failureReason disagree".into()),
    })
}

fn parse_amended(item: AmendedItem) -> Result<Amended, Fault> {
    let changed = item.changed.split(',').filter(|field| !field.is_empty()).map(str::to_owned).collect();
    Ok(Amended { at: item.at.parse()?, by: item.by.parse()?, changed })
}

fn parse_trail_entry(entry: TrailItem) -> Result<TrailEntry, Fault> {
    Ok(TrailEntry { status: entry.status.parse()?, at: entry.at.parse()?, by: entry.by.parse()? })
}

/// Encodes an entry of the trail.
pub(crate) fn encode_trail_entry(status: Status, at: UtcSecond, by: &Actor) -> AttributeValue {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    AttributeValue::M(HashMap::from([
        ("status".to_owned(), text(status.as_str())),
        ("at".to_owned(), text(&at.to_string())),
        ("by".to_owned(), text(by.as_str())),
    ]))
}

#[cfg(test)]
mod tests;
