//! The gate of the request queue: whether the queue's policy denies every receive.

use serde_json::Value;

/// The call that a closed gate denies.
const RECEIVE: &str = "sqs:ReceiveMessage";

/// Whether a policy denies every receive; `None` if it cannot be read.
#[must_use]
pub fn is_closed(policy: &str) -> Option<bool> {
    let policy: Value = serde_json::from_str(policy).ok()?;
    let statements = list(&policy["Statement"]);
    Some(!statements.is_empty() && statements.iter().any(|statement| denies_receives(statement)))
}

/// Whether a statement denies receives to everybody, whatever the request.
fn denies_receives(statement: &Value) -> bool {
    let is_for_all =
        statement["Principal"] == "*" || list(&statement["Principal"]["AWS"]).iter().any(|one| *one == "*");
    let names = |action: &&Value| {
        let action = action.as_str().unwrap_or_default();
        action == "*" || action.eq_ignore_ascii_case("sqs:*") || action.eq_ignore_ascii_case(RECEIVE)
    };
    let is_of_receives = list(&statement["Action"]).iter().any(names);
    statement["Effect"] == "Deny" && is_for_all && is_of_receives && statement["Condition"].is_null()
}

/// The elements of a list, or the value that stands for a list of one.
fn list(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(all) => all.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_gate_is_closed_if_all_are_denied_every_receive() {
        let deny = json!({ "Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage", "Resource": "*" });
        let with = |name: &str, value: Value| {
            let mut statement = deny.clone();
            statement[name] = value;
            statement
        };
        for (statement, want) in [
            (deny.clone(), true),
            (json!([with("Effect", json!("Allow")), deny]), true),
            (json!([with("Principal", json!({ "AWS": "*" }))]), true),
            (json!([with("Principal", json!({ "AWS": ["*"] }))]), true),
            (json!([with("Action", json!(["sqs:DeleteMessage", "SQS:ReceiveMessage"]))]), true),
            (json!([with("Action", json!("sqs:*"))]), true),
            (json!([with("Effect", json!("Allow"))]), false),
            (json!([with("Principal", json!({ "AWS": "arn:aws:iam::111122223333:role/service" }))]), false),
            (json!([with("Action", json!("sqs:SendMessage"))]), false),
            (json!([with("Condition", json!({ "Bool": { "aws:SecureTransport": "false" } }))]), false),
            (json!([]), false),
        ] {
            let policy = json!({ "Version": "2012-10-17", "Statement": statement });
            assert_eq!(is_closed(&policy.to_string()), Some(want), "{policy}");
        }
        assert_eq!(is_closed("<policy>"), None);
    }
}
