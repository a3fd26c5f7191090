//! Attributes of a later version, which all new heads and details have here, and which every copy must have.
//!
//! The functions do not know them. The network adds them to each item that creates a head or
//! details. A copy of an item must have them.

use payments_machine::layers::attributes::{Key, text};
use serde_json::{Value, json};

use crate::facts::heads::{Tables, id_of, is_of_head};

/// The tool of a restore, as a caller.
pub(crate) const RESTORE: &str = "restore";

/// The attributes: a text, a map and bytes.
const NAMES: [&str; 3] = ["laterText", "laterMap", "laterBytes"];

/// The value of an attribute of a payment's items.
fn value(name: &str, id: &str) -> Value {
    let mark = id.get(..4).unwrap_or(id);
    match name {
        "laterText" => json!({ "S": mark }),
        "laterMap" => json!({ "M": { "deep": { "L": [{ "N": "1" }, { "S": mark }] } } }),
        _ => json!({ "B": "AP8=" }),
    }
}

/// The payment of a head or of details.
fn payment_of<'k>(pk: &'k str, sk: &'k str) -> Option<&'k str> {
    let of_details = pk.strip_prefix("PAY#");
    of_details.or_else(|| is_of_head(pk).then(|| id_of(sk)))
}

/// Adds the attributes to an item that is put, if it creates a head or details. Amendments by the
/// bank, archived heads and settlements are copies. A restore also builds settled heads from the
/// log, which has no such attributes. Returns whether it added them.
pub(crate) fn add(function: &str, input: &mut Value) -> bool {
    let is_new = input["ConditionExpression"] == "attribute_not_exists(pk)";
    let item = &input["Item"];
    let is_of_history = input["TableName"] != "payments" && function != RESTORE;
    let is_copy = if is_of_head(text(item, "pk")) { is_of_history } else { function == "redate" };
    let Some(id) = payment_of(text(item, "pk"), text(item, "sk")).filter(|_| is_new && !is_copy) else { return false };
    let id = id.to_owned();
    NAMES.into_iter().for_each(|name| input["Item"][name] = value(name, &id));
    true
}

/// Checks that all heads and details have the attributes. Returns the violations.
pub(crate) fn check(tables: &Tables) -> Vec<String> {
    let wrong = |((pk, sk), item): (&Key, &Value)| {
        let id = payment_of(pk, sk)?;
        let name = NAMES.into_iter().find(|name| item[*name] != value(name, id))?;
        Some(format!("{id} lost its {name}, which a later version knows: {pk} / {sk}"))
    };
    tables.hot.iter().chain(&tables.history).filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_created_has_the_attributes_and_a_copy_must_bring_them() {
        let put = |table: &str, pk: &str| {
            json!({
                "TableName": table, "ConditionExpression": "attribute_not_exists(pk)",
                "Item": { "pk": { "S": pk }, "sk": { "S": "2026-12-01T00:00:00Z#626e8292" } },
            })
        };
        for (function, table, pk, is_new) in [
            ("ingest", "payments", "ACCT#a", true),
            ("ingest", "payment-history", "PAY#626e8292", true),
            ("redate", "payment-history", "PAY#626e8292", false),
            ("settle", "payment-history", "ACCT#a", false),
            (RESTORE, "payment-history", "ACCT#a", true),
            ("console", "payment-history", "AUDIT#2026-12", false),
        ] {
            let mut input = put(table, pk);
            assert_eq!(add(function, &mut input), is_new, "{function} {pk}");
            let key = (pk.to_owned(), text(&input["Item"], "sk").to_owned());
            let tables = |item: &Value| Tables { hot: [(key.clone(), item.clone())].into(), ..Tables::default() };
            let is_checked = !pk.starts_with("AUDIT");
            assert_eq!(check(&tables(&input["Item"])).len(), usize::from(is_checked && !is_new), "{function} {pk}");
            input["Item"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("later"));
            assert_eq!(check(&tables(&input["Item"])).len(), usize::from(is_checked), "{function} {pk}");
        }
    }
}
