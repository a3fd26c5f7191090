//! Encodes details as items, and decodes them.

use payments_model::{Amendment, CalendarVersion, DateMove, Details, Instruction, Reference, Shard, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::item::{Fault, Item, key_of, parse_money, parse_reference, to_item};
use crate::key;
use crate::payment::data;

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
    /// The instant of the head's slot, in an amendment's details. In first details, `dueAt` is that instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slot_at: Option<String>,
    /// The amendment in force before, in an amendment's details; absent if the first details were in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    due_at: String,
    due_date: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    move_reason: Option<String>,
    /// The calendar that moved the payment, and the version of the calendar's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calendar_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calendar_version: Option<String>,
    shard: u16,
    created_at: String,
    created_by: String,
}

/// Encodes details, with their data as it came.
pub(crate) fn encode_details(details: &Details) -> Result<Item, StoreError> {
    let Instruction { account, payee, money, scheduled_for, date_rule, reference, data } = &details.instruction;
    let (amendment, moved) = (details.amendment, details.moved.as_ref());
    let calendar = moved.and_then(|moved| moved.calendar.as_ref());
    let item = DetailsItem {
        pk: key::payment_partition(details.payment_id),
        sk: key::details_sort(amendment.map(|amendment| amendment.name)),
        account_id: account.to_string(),
        payee_account_id: payee.to_string(),
        amount_minor: money.amount.get(),
        currency: money.currency.to_string(),
        scheduled_for: scheduled_for.to_string(),
        date_rule: date_rule.map(|rule| rule.to_string()),
        reference: reference.as_ref().map(Reference::to_string),
        slot_at: amendment.map(|_| details.slot_at.to_string()),
        previous: amendment.and_then(|amendment| amendment.previous).map(|name| name.to_string()),
        due_at: details.due_at.to_string(),
        due_date: details.due_date.to_string(),
        move_reason: moved.map(|moved| moved.reason.to_string()),
        calendar_id: calendar.map(|calendar| calendar.id().to_owned()),
        calendar_version: calendar.map(|calendar| calendar.version().to_owned()),
        shard: details.shard.get(),
        created_at: details.created_at.to_string(),
        created_by: details.created_by.to_string(),
    };
    let mut item = to_item(&item)?;
    item.extend(data.iter().flat_map(data::attributes));
    Ok(item)
}

/// The number of bytes that the client chose. Only these bytes decide whether a payment is too large:
/// the bank's own attributes may grow, and must not reduce what a client may send. The amount and the
/// currency have almost fixed sizes, so they count among the bank's attributes.
pub(crate) fn client_bytes(instruction: &Instruction) -> usize {
    let Instruction { account, payee, money: _, scheduled_for, date_rule, reference, data } = instruction;
    account.as_str().len()
        + payee.as_str().len()
        + scheduled_for.to_string().len()
        + date_rule.map_or(0, |rule| rule.as_str().len())
        + reference.as_ref().map_or(0, |reference| reference.as_str().len())
        + data.as_ref().and_then(|data| data.text().ok()).map_or(0, |text| text.as_str().len())
}

/// Decodes details of a table.
pub(crate) fn decode_details(table: &str, item: Item) -> Result<Details, StoreError> {
    let key = key_of(&item);
    parse_details(item).map_err(|fault| StoreError::unreadable(table, key, fault))
}

fn parse_details(mut item: Item) -> Result<Details, Fault> {
    let data = data::take(&mut item)?;
    let item: DetailsItem = serde_dynamo::from_item(item)?;
    let due_at: UtcSecond = item.due_at.parse()?;
    let previous = item.previous.map(|name| name.parse()).transpose()?;
    let (slot_at, amendment) = match (key::parse_details_sort(&item.sk)?, item.slot_at) {
        (None, None) if previous.is_none() => (item.due_at.parse()?, None),
        (Some(name), Some(slot_at)) => (slot_at.parse()?, Some(Amendment { name, previous })),
        _ => return Err("sk, slotAt and previous disagree".into()),
    };
    let calendar = item.calendar_id.zip(item.calendar_version);
    let calendar = calendar.map(|(id, version)| CalendarVersion::from_stored(id, version));
    let reason = item.move_reason.map(|reason| reason.parse()).transpose()?;
    let moved = reason.map(|reason| DateMove { reason, calendar });
    Ok(Details {
        payment_id: key::parse_payment_partition(&item.pk)?,
        instruction: Instruction {
            account: item.account_id.parse()?,
            payee: item.payee_account_id.parse()?,
            money: parse_money(item.amount_minor, &item.currency)?,
            scheduled_for: item.scheduled_for.parse()?,
            date_rule: item.date_rule.map(|rule| rule.parse()).transpose()?,
            reference: parse_reference(item.reference)?,
            data,
        },
        slot_at,
        due_at,
        due_date: item.due_date.parse()?,
        moved,
        shard: Shard::from_stored(item.shard).ok_or("the shard is out of range")?,
        created_at: item.created_at.parse()?,
        created_by: item.created_by.parse()?,
        amendment,
    })
}
