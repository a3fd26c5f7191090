//! The policies of queues: each queue has at most one, and that of the requests is the gate.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use console::gate::is_closed;
use payments_tests::template;
use serde_json::{Value, json};

use crate::template::{resources, text};
use crate::tree::read;

const ARN: &str = "arn:aws:sqs:eu-west-2:111122223333:requests";
const ROLE: &str = "arn:aws:iam::444455556666:role/service";

/// A part of the template in a stack that meets these conditions; nothing for `AWS::NoValue`.
fn resolved(value: &Value, met: &[&str]) -> Option<Value> {
    Some(match value {
        Value::Array(all) => all.iter().filter_map(|one| resolved(one, met)).collect(),
        Value::Object(fields) => {
            if let Some([condition, then, otherwise]) = fields.get("!If").and_then(Value::as_array).map(Vec::as_slice) {
                return resolved(if met.iter().any(|name| condition == name) { then } else { otherwise }, met);
            }
            match value {
                _ if *value == json!({ "!Ref": "AWS::NoValue" }) => return None,
                _ if *value == json!({ "!Ref": "TransactionServiceRole" }) => json!(ROLE),
                _ if *value == json!({ "!GetAtt": "RequestQueue.Arn" }) => json!(ARN),
                _ => fields.iter().filter_map(|(name, one)| Some((name.clone(), resolved(one, met)?))).collect(),
            }
        }
        plain => plain.clone(),
    })
}

/// The policy of the request queue in a stack that meets these conditions.
fn gate(template: &Value, met: &[&str]) -> Result<Value> {
    let document = &template["Resources"]["RequestGatePolicy"]["Properties"]["PolicyDocument"];
    resolved(document, met).context("no policy")
}

/// The second document of a queue would overwrite the first: the service's Allow, or the closed gate.
#[test]
fn each_queue_has_at_most_one_policy_and_the_requests_always_have_theirs() -> Result<()> {
    let template = template()?;
    let mut queues = BTreeSet::new();
    for (name, policy) in resources(&template, "AWS::SQS::QueuePolicy")? {
        for queue in policy["Properties"]["Queues"].as_array().context("no queues")? {
            let queue = text(&queue["!Ref"])?;
            ensure!(queues.insert(queue), "{name}: {queue} has another policy");
            ensure!(queue != "RequestQueue" || policy["Condition"].is_null(), "{name} is not always there");
        }
    }
    ensure!(queues.contains("RequestQueue"), "the request queue has no policy");
    Ok(())
}

#[test]
fn the_gate_denies_every_receive_while_it_is_closed_and_nothing_else() -> Result<()> {
    let template = template()?;
    let encrypted = json!({
        "Sid": "OnlyEncryptedConnections", "Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": ARN,
        "Condition": { "Bool": { "aws:SecureTransport": "false" } },
    });
    let allowed = json!({
        "Sid": "TransactionServiceTakesRequests", "Effect": "Allow", "Principal": { "AWS": ROLE }, "Resource": ARN,
        "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
    });
    let closed = json!({
        "Sid": "GateIsClosed", "Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage", "Resource": ARN,
    });
    for (met, statements) in [
        (&[][..], vec![&encrypted]),
        (&["HasTransactionServiceRole"], vec![&encrypted, &allowed]),
        (&["IsGateClosed"], vec![&encrypted, &closed]),
        (&["HasTransactionServiceRole", "IsGateClosed"], vec![&encrypted, &allowed, &closed]),
    ] {
        let policy = gate(&template, met)?;
        assert_eq!(policy, json!({ "Version": "2012-10-17", "Statement": statements }), "{met:?}");
        // The console reads the same text.
        assert_eq!(is_closed(&policy.to_string()), Some(met.contains(&"IsGateClosed")), "{met:?}");
    }
    Ok(())
}

/// The runbook's command with an `aws` that has the queue's attributes in files.
#[test]
fn the_command_sets_the_text_that_the_parameter_deploys() -> Result<()> {
    let template = template()?;
    let with_service = ["HasTransactionServiceRole"];
    let (open, closed) = (gate(&template, &with_service)?, gate(&template, &[with_service[0], "IsGateClosed"])?);
    let aws = r#"aws() { case "$*" in
        *describe-stack-resource*) echo https://queue ;;
        *"--attribute-names QueueArn"*) echo "$ARN" ;;
        *"--attribute-names Policy"*) echo "$POLICY" ;;
        "sqs set-queue-attributes --queue-url https://queue --attributes "*) echo "${@: -1}" ;;
        *) exit 9 ;; esac; }"#;
    for (before, to, after) in
        [(&open, "closed", &closed), (&closed, "closed", &closed), (&closed, "open", &open), (&open, "open", &open)]
    {
        let script = format!("set -- payments-prod\n{}\n{aws}\ngate {to}", read("docs/commands.sh")?);
        let ran =
            Command::new("bash").args(["-c", &script]).env("ARN", ARN).env("POLICY", before.to_string()).output()?;
        let set: Value = serde_json::from_slice(&ran.stdout).with_context(|| format!("{ran:?}"))?;
        assert_eq!(serde_json::from_str::<Value>(text(&set["Policy"])?)?, *after, "gate {to}");
    }
    Ok(())
}
