//! Details and heads as items, and back, with checks that reject a damaged item.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::payment::MAX_TRAIL_ENTRIES;
use payments_model::{
    AccountId, Actor, Currency, Details, FailureReason, Head, HeadKey, Instruction, Money, Reference, ScheduledFor,
    Shard, Slot, State, Status, TrailEntry, TransactionId, UtcSecond,
};
use serde::{Deserialize, Serialize};

use crate::attributes::{Fault, Item};
use crate::key::{self, DETAILS_SORT, DueSort, UnreportedSort};
use crate::{StoreError, data};

/// The attribute of details that says why the payment moved.
pub(crate) const MOVE_REASON: &str = "moveReason";

/// The attributes of a payment's details, without its data.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetailsItem {
    pk: String,
    sk: String,
    account_id: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    scheduled_for: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date_rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    due_at: String,
    due_date: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    move_reason: Option<String>,
    shard: u16,
    created_at: String,
    created_by: String,
}

/// The attributes of a payment's head. To stay within 1 KB, it does not repeat what its keys hold,
/// except `status`, which stream filters and conditions use.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadItem {
    pk: String,
    sk: String,
    shard: u16,
    due: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreported: Option<String>,
    status: String,
    version: u32,
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
    transaction_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled_at: Option<String>,
}

/// One entry of a head's trail.
#[derive(Debug, Serialize, Deserialize)]
struct TrailItem {
    status: String,
    at: String,
    by: String,
}

/// Encodes details, with their data as it came.
pub(crate) fn encode_details(details: &Details) -> Result<Item, StoreError> {
    let Instruction { account, payee, money, scheduled_for, date_rule, reference, data } = &details.instruction;
    let item = DetailsItem {
        pk: key::payment_partition(details.payment_id),
        sk: DETAILS_SORT.to_owned(),
        account_id: account.to_string(),
        payee_account_id: payee.to_string(),
        amount_minor: money.amount.get(),
        currency: money.currency.to_string(),
        scheduled_for: scheduled_for.to_string(),
        date_rule: date_rule.map(|rule| rule.to_string()),
        reference: reference.as_ref().map(Reference::to_string),
        due_at: details.due_at.to_string(),
        due_date: details.due_date.to_string(),
        move_reason: details.moved.map(|reason| reason.to_string()),
        shard: details.shard.get(),
        created_at: details.created_at.to_string(),
        created_by: details.created_by.to_string(),
    };
    let mut item = to_item(&item)?;
    item.extend(data.as_ref().map(data::raw));
    Ok(item)
}

/// Decodes details of a table.
pub(crate) fn decode_details(table: &str, item: Item) -> Result<Details, StoreError> {
    let key = key_of(&item);
    parse_details(item).map_err(|fault| StoreError::unreadable(table, key, fault))
}

fn parse_details(mut item: Item) -> Result<Details, Fault> {
    let data = data::take(&mut item)?;
    let item: DetailsItem = serde_dynamo::from_item(item)?;
    Ok(Details {
        payment_id: key::parse_payment_partition(&item.pk)?,
        instruction: Instruction {
            account: AccountId::from_stored(&item.account_id)?,
            payee: AccountId::from_stored(&item.payee_account_id)?,
            money: parse_money(item.amount_minor, &item.currency)?,
            scheduled_for: item.scheduled_for.parse()?,
            date_rule: item.date_rule.map(|rule| rule.parse()).transpose()?,
            reference: parse_reference(item.reference)?,
            data,
        },
        due_at: item.due_at.parse()?,
        due_date: item.due_date.parse()?,
        moved: item.move_reason.map(|reason| reason.parse()).transpose()?,
        shard: Shard::from_stored(item.shard).ok_or("the shard is out of range")?,
        created_at: item.created_at.parse()?,
        created_by: Actor::named(&item.created_by),
    })
}

/// Parses a stored amount.
pub(crate) fn parse_money(amount_minor: i64, currency: &str) -> Result<Money, Fault> {
    Ok(Money { amount: amount_minor.try_into()?, currency: Currency::from_stored(currency)? })
}

fn parse_reference(text: Option<String>) -> Result<Option<Reference>, Fault> {
    Ok(text.map(|text| text.parse()).transpose()?)
}

/// The key attributes of an item.
pub(crate) fn item_key(partition: String, sort: String) -> Item {
    HashMap::from([("pk".to_owned(), AttributeValue::S(partition)), ("sk".to_owned(), AttributeValue::S(sort))])
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

/// A string attribute; empty if it is missing, which no stored string is.
pub(crate) fn text_of<'i>(item: &'i Item, name: &str) -> &'i str {
    item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str)
}

/// An item's key, for error messages.
pub(crate) fn key_of(item: &Item) -> String {
    format!("{} / {}", text_of(item, "pk"), text_of(item, "sk"))
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
        due: DueSort::of(head).to_string(),
        unreported: unreported.map(|key| key.to_string()),
        status: head.state.status().to_string(),
        version: head.version,
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
        transaction_id: head.transaction_id().map(ToString::to_string),
        failure_reason: head.failure_reason().map(|reason| reason.as_str().to_owned()),
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
    let state = parse_state(status, item.dispatch_attempt, item.transaction_id, item.failure_reason)?;
    let head = Head {
        payment_id,
        account: key::parse_account_partition(&item.pk)?,
        payee: AccountId::from_stored(&item.payee_account_id)?,
        money: parse_money(item.amount_minor, &item.currency)?,
        scheduled_for,
        reference: parse_reference(item.reference)?,
        slot_at,
        due_at: due.due_at,
        due_date: due.due_date,
        shard: Shard::from_stored(item.shard).ok_or("the shard is out of range")?,
        state,
        version: item.version,
        created: (created.at, created.by.clone()),
        moved: moved.to_vec(),
        dispatch_attempt: item.dispatch_attempt,
        unreported: item.unreported.is_some(),
    };
    // The reader checks what the writer ensured.
    let last = trail.last().map(|entry| entry.status);
    let settled_at = item.settled_at.map(|at| at.parse::<UtcSecond>()).transpose()?;
    let unreported = item.unreported.map(|key| key.parse::<UnreportedSort>()).transpose()?;
    let promises = [
        ("the due key is another payment's", due.payment_id == payment_id),
        ("the due key has another status", due.status == status),
        ("the trail does not begin with SCHEDULED", created.status == Status::Scheduled),
        ("the trail does not end with the status", last == Some(status)),
        (
            "the trail and the version disagree",
            usize::try_from(item.version).is_ok_and(|version| version == trail.len()),
        ),
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
    reason: Option<String>,
) -> Result<State, Fault> {
    let attempted = attempt.is_some_and(|attempt| attempt >= 1);
    Ok(match (status, transaction_id, reason) {
        (Status::Scheduled, None, None) if attempt.is_none() => State::Scheduled,
        (Status::Cancelled, None, None) if attempt.is_none() => State::Cancelled,
        (Status::Pending, None, None) if attempted => State::Pending,
        (Status::Processed, Some(id), None) => State::Processed(id.parse::<TransactionId>()?),
        (Status::Failed, None, Some(reason)) => State::Failed(FailureReason::cut(&reason)),
        _ => return Err("status, dispatchAttempt, transactionId and failureReason disagree".into()),
    })
}

fn parse_trail_entry(entry: TrailItem) -> Result<TrailEntry, Fault> {
    Ok(TrailEntry { status: entry.status.parse()?, at: entry.at.parse()?, by: Actor::named(&entry.by) })
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

fn to_item<T: Serialize>(item: &T) -> Result<Item, StoreError> {
    serde_dynamo::to_item(item).map_err(|error| StoreError::unreadable("(none)", "(new)", error))
}

#[cfg(test)]
mod tests {
    use payments_model::{BusinessZone, DateRule, Event, JsonText, MoveReason, PaymentId, Settlement, ShardCount};

    use super::*;
    use crate::{IN_HISTORY, item_bytes};

    /// Details with every field at its longest.
    fn longest() -> Details {
        let account: AccountId = "a".repeat(48).parse().unwrap();
        let payment_id = PaymentId::derive(&account, &"k".parse().unwrap());
        let instruction = Instruction {
            account,
            payee: "p".repeat(48).parse().unwrap(),
            money: Money { amount: i64::MAX.try_into().unwrap(), currency: "GBP".parse().unwrap() },
            scheduled_for: "2099-12-30T23:59:59+00:30".parse().unwrap(),
            date_rule: Some(DateRule::Following),
            reference: Some("R".repeat(35).parse().unwrap()),
            data: Some(JsonText::from_stored("\"data\"".to_owned()).unwrap()),
        };
        let zone: BusinessZone = "Pacific/Kiritimati".parse().unwrap();
        let shards: ShardCount = "1000".parse().unwrap();
        let now: UtcSecond = "2099-12-31T00:00:01Z".parse().unwrap();
        Details::accept(payment_id, instruction, zone, shards, now, Actor::named(&"b".repeat(40)))
    }

    /// A head in each state, with every field at its longest.
    fn longest_heads() -> Vec<Head> {
        let scheduled = Head::scheduled(&longest());
        let entry = |status| TrailEntry { status, at: UtcSecond::MAX, by: Actor::named(&"c".repeat(40)) };
        let transaction_id = Settlement::Processed("t".repeat(64).parse().unwrap());
        let failed = Event::Settle(Settlement::Failed(FailureReason::cut(&"r".repeat(256))));
        let settled = |settlement: Settlement| {
            let state = State::from(settlement);
            let moved = vec![entry(Status::Pending), entry(state.status())];
            let dispatch_attempt = Some(u32::MAX);
            Head { state, moved, version: 3, dispatch_attempt, unreported: true, ..scheduled.clone() }
        };
        let cancelled =
            Head { state: State::Cancelled, moved: vec![entry(Status::Cancelled)], version: 2, ..scheduled.clone() };
        let moved = vec![entry(Status::Pending)];
        let pending = Head { state: State::Pending, moved, version: 2, dispatch_attempt: Some(1), ..scheduled.clone() };
        let without =
            Head { reference: None, ..settled(reason_of(&failed, &Head { reference: None, ..pending.clone() })) };
        let reason = reason_of(&failed, &pending);
        vec![scheduled.clone(), pending, settled(transaction_id), settled(reason), without, cancelled]
    }

    /// How a pending head keeps this end.
    fn reason_of(event: &Event, pending: &Head) -> Settlement {
        let step = pending.transition(event, UtcSecond::MAX, Actor::named("settle")).unwrap();
        let State::Failed(reason) = step.to() else { panic!("it failed") };
        Settlement::Failed(reason.clone())
    }

    #[test]
    fn every_head_fits_one_write_unit() {
        for head in longest_heads() {
            // A settlement also marks the head as in history.
            let mark = if head.state.status().is_settled() { IN_HISTORY.len() + 1 } else { 0 };
            let bytes = item_bytes(&encode_head(&head).unwrap()) + mark;
            assert!(bytes <= 1_024, "{}: {bytes}", head.state.status());
        }
    }

    #[test]
    fn heads_and_details_are_decoded() {
        for head in longest_heads() {
            assert_eq!(decode_head("t", encode_head(&head).unwrap()).unwrap(), head);
            // Due on another date than its slot's.
            let (due_at, due_date) = ("2027-01-04T00:00:00Z".parse().unwrap(), "2027-01-04".parse().unwrap());
            let head = Head { due_at, due_date, ..head };
            assert_eq!(decode_head("t", encode_head(&head).unwrap()).unwrap(), head);
        }
        let moved = Details { moved: Some(MoveReason::CutOff), ..longest() };
        assert_eq!(decode_details("t", encode_details(&moved).unwrap()).unwrap(), moved);
    }

    #[test]
    fn damaged_heads_are_unreadable() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let whole = encode_head(&longest_heads()[2]).unwrap();
        for (attribute, damage, why) in [
            ("status", text("PENDING"), "status, dispatchAttempt, transactionId and failureReason disagree"),
            ("version", AttributeValue::N("2".to_owned()), "the trail and the version disagree"),
            ("settledAt", text("2099-12-31T23:59:58Z"), "settledAt and the trail disagree"),
            ("sk", text("nonsense"), "\"nonsense\" is not a head sort key"),
            ("amountMinor", AttributeValue::N("0".to_owned()), "an amount is at least 1 minor unit"),
            ("shard", AttributeValue::N("1000".to_owned()), "the shard is out of range"),
            ("trail", AttributeValue::L(vec![]), "the trail is empty"),
        ] {
            let mut item = whole.clone();
            item.insert(attribute.to_owned(), damage);
            let Err(StoreError::Unreadable { why: said, .. }) = decode_head("t", item) else {
                panic!("{attribute} passed")
            };
            assert_eq!(said, why);
        }
    }
}
