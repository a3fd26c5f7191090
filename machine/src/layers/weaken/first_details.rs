//! A `dispatch` that sends a payment's first details, as a weakness, and not those that its head names.

use serde_json::{Value, json};

use crate::engine::Direct;
use crate::layers::attributes::{number, text};

/// Puts the payments' first details into the requests of a batch, but for their data.
pub(super) fn send(engine: &Direct, input: &mut Value) {
    for entry in input["Entries"].as_array_mut().into_iter().flatten() {
        let body = entry["MessageBody"].as_str().unwrap_or_default();
        let Ok(mut request) = serde_json::from_str::<Value>(body) else { continue };
        let pk = format!("PAY#{}", request["paymentId"].as_str().unwrap_or_default());
        let key = json!({ "pk": { "S": pk }, "sk": { "S": "DETAILS" } });
        let found = engine.call("GetItem", &json!({ "TableName": "payment-history", "Key": key }));
        let Ok(found) = found else { continue };
        let first = &found["Item"];
        request["amountMinor"] = number(first, "amountMinor").into();
        for name in ["payeeAccountId", "currency", "dueAt", "reference"] {
            match text(first, name) {
                "" => request.as_object_mut().into_iter().for_each(|fields| drop(fields.remove(name))),
                value => request[name] = value.into(),
            }
        }
        entry["MessageBody"] = request.to_string().into();
    }
}
