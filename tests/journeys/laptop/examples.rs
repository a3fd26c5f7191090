//! The examples of the description: the requests that the page fills in succeed, in the order of a payment's life.

use payments_tests::prelude::*;
use std::fmt::Write as _;

use payments_machine::yaml::{Node, from_str};
use payments_model::PaymentId;
use serde::Deserialize as _;

use super::{exchange, get, request, start};

/// The description as it is written.
const WRITTEN: &str = include_str!("../../../openapi.yaml");

/// The operations in the order of a payment's life, and what their examples lead to.
const STORY: [(&str, u16); 22] = [
    ("createPayment", 201),
    ("listAccountPayments", 200),
    ("getPayment", 200),
    ("amendPayment", 200),
    ("listPaymentVersions", 200),
    ("cancelPayment", 200),
    ("createPaymentBatch", 200),
    ("createAccountPaymentBatch", 200),
    ("listDuePayments", 200),
    ("getCounts", 200),
    ("listEvents", 200),
    ("listCalendars", 200),
    ("getCalendar", 200),
    ("putWebhookEndpoint", 201),
    ("listWebhookEndpoints", 200),
    ("getWebhookEndpoint", 200),
    ("getWebhookSecret", 200),
    ("testWebhookEndpoint", 202),
    ("rotateWebhookSecret", 200),
    // The page cannot know a place of this log, and no event blocks the endpoint.
    ("replayWebhookEvents", 400),
    ("skipWebhookEvent", 409),
    ("deleteWebhookEndpoint", 200),
];

#[tokio::test]
async fn the_examples_that_the_page_fills_in_succeed_in_order() -> Result<()> {
    let system = start(|_| {}).await?;
    let api = system.api_url();
    let yaml = &get(&api, "/openapi.yaml").await?.body;
    assert!(!yaml.contains("2028-"), "a date is far away");
    // A payment's id depends on its key, and keys have dates.
    assert_eq!(ids(yaml).intersection(&ids(WRITTEN)).copied().collect::<Vec<_>>(), [""; 0], "ids of other dates");
    let operations = operations(yaml)?;
    let played: BTreeSet<_> = STORY.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(operations.iter().map(|operation| operation.id.clone()).collect::<BTreeSet<_>>(), played);
    for (id, want) in STORY {
        let operation = operations.iter().find(|operation| operation.id == id).context(id)?;
        let mut answers = Vec::new();
        for number in 0..operation.bodies.len().max(1) {
            let reply = exchange(&api, &operation.request(number)).await?;
            assert_eq!(reply.status, want, "{id}, example {number}: {reply}");
            answers.push(reply.json()?);
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

/// An operation with the values that the page fills in.
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
        request(method, path, &format!("Content-Type: application/json\n{headers}"), &body)
    }
}

fn operations(yaml: &str) -> Result<Vec<Operation>> {
    let described: Value = from_str(yaml)?;
    // The page chooses the first example in the file's order, which only this type keeps.
    let ordered = Node::parse(yaml)?;
    let mut operations = Vec::new();
    for (path, item) in described["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().context("operations")?.iter().filter(|(_, it)| it.is_object()) {
            let content = ["paths", path.as_str(), method.as_str(), "requestBody", "content", "application/json"];
            let content = content.into_iter().try_fold(&ordered, |node, name| node.get(name));
            let in_order = |name| content.and_then(|content: &Node| content.get(name));
            let examples = in_order("examples").into_iter().flat_map(Node::fields);
            let bodies = examples.filter_map(|(_, example)| example.get("value")).chain(in_order("example"));
            let bodies = bodies.map(Value::deserialize).collect::<Result<_, _>>()?;
            let mut path = path.clone();
            let mut query = Vec::new();
            let mut headers = String::new();
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
