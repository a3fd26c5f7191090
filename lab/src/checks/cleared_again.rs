//! The law of cleared data that comes back changed: a clear leaves it alone until it is mended.
//!
//! In the end of a month, cleared details come back as a restore of their table brings them, and somebody has changed them.

use anyhow::{Result, anyhow};
use chrono::TimeDelta;
use payments_machine::Handlers as _;
use payments_machine::invocation::context;
use payments_machine::layers::attributes::{Key, text};
use payments_machine::layers::weaken::CHANGED;
use serde_json::{Value, json};

use crate::checks::cleared::{NOTES, Sealed, is_cleared};
use crate::facts::heads::Tables;
use crate::world::bank::Bank;

/// Returns the violations. Nothing fails any more, and no restore forbids a clear.
pub(crate) async fn check(bank: &Bank, sealed: &[Sealed<'_>], tables: &Tables) -> Result<Vec<String>> {
    let Some((key, cleared, restored)) = sealed.iter().find_map(|it| restored(it, tables)) else {
        return Ok(Vec::new());
    };
    let mut changed = restored.clone();
    changed["payeeAccountId"] = json!({ "S": format!("{}{CHANGED}", text(&restored, "payeeAccountId")) });
    let date = text(&restored, "dueDate");
    call(bank, "DeleteItem", "Key", &json!({ "pk": { "S": NOTES }, "sk": { "S": date } }))?;
    let mut found = Vec::new();
    // The item that the run must leave, and the number of rows that differ.
    for (what, put, left, differ) in [("changed", &changed, &changed, 1), ("mended", &restored, cleared, 0)] {
        call(bank, "PutItem", "Item", put)?;
        let context = context(bank.time.now() + TimeDelta::minutes(15));
        let said = bank.lambda.functions().scheduled("seal", json!({ "action": "seal" }), context).await;
        let said = said.unwrap_or_else(|error| error.clone().into());
        let now = bank.item("payment-history", &key.0, &key.1);
        if said["sealDiffers"] != differ || now.as_ref() != Some(left) {
            let is_cleared = if now.as_ref().is_some_and(is_cleared) { "cleared" } else { "not cleared" };
            found.push(format!("{} was {what}, and is {is_cleared}: {said}", key.0));
        }
    }
    Ok(found)
}

/// The first details of a payment that was never amended: their key, the details as they were cleared, and with their data again.
fn restored<'t>(sealed: &Sealed<'_>, tables: &'t Tables) -> Option<(Key, &'t Value, Value)> {
    let key = (format!("PAY#{}", sealed.id()), "DETAILS".to_owned());
    let cleared = tables.history.get(&key).filter(|details| is_cleared(details) && sealed.row["versions"].is_null())?;
    let mut restored = cleared.clone();
    restored.as_object_mut()?.retain(|name, _| !["codec", "row", "hash"].contains(&name.as_str()));
    restored["data"] = json!({ "S": sealed.row["data"].to_string() });
    Some((key, cleared, restored))
}

fn call(bank: &Bank, operation: &str, name: &str, value: &Value) -> Result<()> {
    let input = json!({ "TableName": "payment-history", name: value });
    bank.engine.call(operation, &input).map(drop).map_err(|error| anyhow!("{operation} failed: {error}"))
}
