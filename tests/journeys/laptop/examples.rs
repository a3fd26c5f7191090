//! The examples of the description: what the page fills in succeeds, in the order of a payment's life.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use payments_local::System;
use payments_model::PaymentId;
use serde_json::{Value, json};

use super::description::get;
use crate::laptop::gateway::{exchange, fixed_clock, options};

/// The description as it is written.
const WRITTEN: &str = include_str!("../../../openapi.yaml");

/// The operations in the order of a payment's life, and what their examples lead to.
const STORY: [(&str, &str); 22] = [
    ("createPayment", "201 Created"),
    ("listAccountPayments", "200 OK"),
    ("getPayment", "200 OK"),
    ("amendPayment", "200 OK"),
    ("listPaymentVersions", "200 OK"),
    ("cancelPayment", "200 OK"),
    ("createPaymentBatch", "200 OK"),
    ("createAccountPaymentBatch", "200 OK"),
    ("listDuePayments", "200 OK"),
    ("getCounts", "200 OK"),
    ("listEvents", "200 OK"),
    ("listCalendars", "200 OK"),
    ("getCalendar", "200 OK"),
    ("putWebhookEndpoint", "201 Created"),
    ("listWebhookEndpoints", "200 OK"),
    ("getWebhookEndpoint", "200 OK"),
    ("getWebhookSecret", "200 OK"),
    ("testWebhookEndpoint", "202 Accepted"),
    ("rotateWebhookSecret", "200 OK"),
    // The page cannot know a place of this log, and no event blocks the endpoint.
    ("replayWebhookEvents", "400 Bad Request"),
    ("skipWebhookEvent", "409 Conflict"),
    ("deleteWebhookEndpoint", "200 OK"),
];

#[tokio::test]
async fn the_examples_that_the_page_fills_in_succeed_in_order() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let api = system.api_url();
    let reply = get(&api, "/openapi.yaml").await?;
    let (_, yaml) = reply.split_once("\r\n\r\n").context("a body")?;
    assert!(!yaml.contains("2028-"), "a date is far away");
    // A payment's id follows from its key, and keys have dates.
    assert_eq!(ids(yaml).intersection(&ids(WRITTEN)).copied().collect::<Vec<_>>(), [""; 0], "ids of other dates");
    let operations = operations(yaml)?;
    let played: BTreeSet<_> = STORY.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(operations.iter().map(|operation| operation.id.clone()).collect::<BTreeSet<_>>(), played);
    for (id, want) in STORY {
        let operation = operations.iter().find(|operation| operation.id == id).context(id)?;
        let mut answers = Vec::new();
        for number in 0..operation.bodies.len().max(1) {
            let reply = exchange(&api, &operation.request(number)).await?;
            let (_, body) = reply.split_once("\r\n\r\n").context("a body")?;
            assert!(reply.starts_with(&format!("HTTP/1.1 {want}")), "{id}, example {number}: {reply}");
            answers.push(serde_json::from_str::<Value>(body)?);
        }
        let first = answers.first().context("an answer")?;
        match id {
            "createPayment" => {
                assert!(yaml.contains(&format!("example: {}\n", first["paymentId"].as_str().context("an id")?)))
            }
            "listAccountPayments" => assert_eq!(first["payments"].as_array().map(Vec::len), Some(2), "{first}"),
            "cancelPayment" => assert_eq!(first["status"], "CANCELLED"),
            "createPaymentBatch" | "createAccountPaymentBatch" => {
                assert_eq!(first["results"][1]["statusCode"], 201, "{first}")
            }
            "listDuePayments" => assert_ne!(first["payments"], json!([])),
            _ => {}
        }
    }
    system.stop().await
}

/// The ids of payments in a text.
fn ids(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| word.parse::<PaymentId>().is_ok())
        .collect()
}

/// An operation with what the page fills in.
struct Operation {
    id: String,
    method: String,
    path: String,
    headers: String,
    bodies: Vec<Value>,
}

impl Operation {
    /// The request with this example of a body. Each has an idempotency key of its own.
    fn request(&self, number: usize) -> String {
        let Self { method, path, headers, bodies, .. } = self;
        let body = bodies.get(number).map(Value::to_string).unwrap_or_default();
        let headers = if number == 0 { headers.clone() } else { headers.replace('\n', &format!("-{number}\n")) };
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nContent-Type: application/json\n\
             {headers}Content-Length: {length}\n\n{body}"
        )
    }
}

fn operations(yaml: &str) -> Result<Vec<Operation>> {
    let described: Value = serde_yaml_ng::from_str(yaml)?;
    // The page chooses the first example in the file's order, which only this type keeps.
    let ordered: serde_yaml_ng::Value = serde_yaml_ng::from_str(yaml)?;
    let mut operations = Vec::new();
    for (path, item) in described["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().context("operations")?.iter().filter(|(_, it)| it.is_object()) {
            let content = &ordered["paths"][path.as_str()][method.as_str()]["requestBody"]["content"];
            let bodies = content["application/json"]["examples"].as_mapping().into_iter().flatten();
            let only = content["application/json"].get("example");
            let bodies = bodies.map(|(_, example)| &example["value"]).chain(only);
            let bodies = bodies.map(serde_json::to_value).collect::<Result<_, _>>()?;
            let (mut path, mut query, mut headers) = (path.clone(), Vec::new(), String::new());
            let parameters = [&item["parameters"], &operation["parameters"]];
            for parameter in parameters.into_iter().filter_map(Value::as_array).flatten() {
                let reference = parameter["$ref"].as_str().and_then(|at| at.strip_prefix('#'));
                let parameter = reference.and_then(|at| described.pointer(at)).unwrap_or(parameter);
                let name = parameter["name"].as_str().context("a name")?;
                let Some(example) = parameter["example"].as_str() else { continue };
                match parameter["in"].as_str() {
                    Some("path") => path = path.replace(&format!("{{{name}}}"), example),
                    Some("query") => query.push(format!("{name}={example}")),
                    _ => writeln!(headers, "{name}: {example}")?,
                }
            }
            if !query.is_empty() {
                path = format!("{path}?{}", query.join("&"));
            }
            operations.push(Operation {
                id: operation["operationId"].as_str().context("an operationId")?.to_owned(),
                method: method.to_uppercase(),
                path,
                headers,
                bodies,
            });
        }
    }
    Ok(operations)
}
