//! Changes that something other than the functions makes: an item is damaged, and corrected by an operator.
//!
//! The checker leaves these changes out. Everything that the functions do before, between and after them is checked.

use anyhow::{Context as _, Result, anyhow};
use payments_machine::layers::attributes::{Key, key_of, text};
use serde_json::{Value, json};

use crate::plans::outages::Outage;
use crate::world::bank::Bank;
use crate::world::by_hand_log::Damage;

/// Returns the heads of the hot table with a status that are not damaged, those that are due first before the others.
pub(crate) fn heads(bank: &Bank, status: &str) -> Result<Vec<Value>> {
    let scan = json!({ "TableName": "payments", "FilterExpression": "begins_with(pk, :heads) AND #status = :status",
        "ExpressionAttributeNames": { "#status": "status" },
        "ExpressionAttributeValues": { ":heads": { "S": "ACCT#" }, ":status": { "S": status } } });
    let found = bank.engine.call("Scan", &scan).map_err(|error| anyhow!("{error}"))?;
    let mut heads = found["Items"].as_array().cloned().unwrap_or_default();
    let damaged: Vec<Key> = bank.state().by_hand.damages.iter().map(|damage| damage.key.clone()).collect();
    heads.retain(|head| !damaged.contains(&key_of(head)));
    heads.sort_by(|a, b| text(a, "due").cmp(text(b, "due")));
    Ok(heads)
}

/// Damages an attribute of a head.
pub(crate) async fn damage(
    bank: &Bank,
    outage: Outage,
    head: &Value,
    attribute: &'static str,
    damaged: Value,
) -> Result<()> {
    let key = key_of(head);
    set(bank, &key, attribute, damaged).await?;
    bank.state().by_hand.damages.push(Damage { key, attribute, original: head[attribute].clone(), outage });
    Ok(())
}

/// Corrects the items that the log names beside an alarm.
pub(crate) async fn correct(bank: &Bank, alarm: &str) -> Result<()> {
    let damages: Vec<Damage> = {
        let damages = &mut bank.state().by_hand.damages;
        damages.extract_if(.., |damage| damage.outage.is_named_by(alarm)).collect()
    };
    for Damage { key, attribute, original, .. } in damages {
        set(bank, &key, attribute, original).await?;
    }
    Ok(())
}

async fn set(bank: &Bank, key: &Key, attribute: &str, value: Value) -> Result<()> {
    let update = json!({ "TableName": "payments", "Key": { "pk": { "S": key.0 }, "sk": { "S": key.1 } },
        "UpdateExpression": "SET #attribute = :value", "ExpressionAttributeNames": { "#attribute": attribute },
        "ConditionExpression": "attribute_exists(pk)", "ExpressionAttributeValues": { ":value": value } });
    bank.engine.call("UpdateItem", &update).map_err(|error| anyhow!("{key:?} cannot be changed by hand: {error}"))?;
    bank.changes.follow()?;
    let place = bank.changes.last_of(key).context("a change by hand is in no stream")?;
    bank.state().by_hand.places.insert(place);
    Ok(())
}
