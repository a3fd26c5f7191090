//! Messages that the sender signs, in `clients/vectors/webhooks.json`: receivers in each language verify them.
//!
//! `UPDATE_GOLDEN=1` writes the file anew. `.ci/try-webhooks.sh` and the clients' checks read it.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::TimeDelta;
use payments_boot::Lookup;
use payments_model::UtcSecond;
use payments_model::webhook::{EndpointSecret, EndpointUrl, SecretGeneration};
use serde::Serialize;

use super::request;

/// The headers of the scheme, which receivers read.
const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const EVENTS: &str = r#"{"events":[{"id":"3637440-0f8fad5b-d9cb-529f-a165-70867728950e-3","type":"payment.failed","at":"2026-12-01T00:05:13Z","epoch":3637440,"v":1,"accountId":"acc-1","payeeAccountId":"landlord","paymentId":"0f8fad5b-d9cb-529f-a165-70867728950e","version":3,"previousStatus":"PENDING","status":"FAILED","by":{"kind":"transaction-service"},"dueAt":"2026-12-01T00:00:00Z","dueDate":"2026-12-01","amountMinor":9007199254740991,"currency":"GBP","failureCode":"AM04","failureReason":"Zoë → 雪 \"quoted\""},{"id":"3637440-gap-1","type":"log.gap","at":"2026-12-01T00:05:14Z","epoch":3637440,"v":1,"until":"2026-12-01T00:05:14Z","reason":"lost"}]}"#;
const TEST: &str = r#"{"events":[{"at":"2026-12-01T00:05:13Z","epoch":3637440,"id":"test-erp-1796083513","type":"webhook.test","v":1}]}"#;
const LATER: &str = r#"{"events":[{"id":"1","type":"payment.paused","at":"2026-12-01T00:05:13Z","epoch":1,"v":1,"status":"PAUSED","colour":["red"]}],"more":{}}"#;
const FRACTION: &str =
    r#"{"events":[{"id":"1","type":"x","at":"2026-12-01T00:05:13Z","epoch":1,"v":1,"amountMinor":1.5}]}"#;
const NAMELESS: &str = r#"{"events":[{"type":"x","at":"2026-12-01T00:05:13Z","epoch":1,"v":1}]}"#;

/// A message, and the error of a receiver with these secrets, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Vector {
    name: &'static str,
    error: Option<&'static str>,
    secrets: Vec<String>,
    headers: BTreeMap<String, String>,
    body: String,
}

/// The clock of all receivers.
fn now() -> UtcSecond {
    "2026-12-01T00:05:13Z".parse().unwrap()
}

/// The secret of a generation of an endpoint.
fn secret(endpoint: &str, generation: u32) -> EndpointSecret {
    let master = "a master secret for these cases, of no worth".parse().unwrap();
    let generation = SecretGeneration::from_stored(generation).unwrap();
    EndpointSecret::derive(&master, &endpoint.parse().unwrap(), generation)
}

/// A message that is signed with these generations of the secret this many seconds from now. Its receiver knows the first generation.
fn signed(name: &'static str, generations: &[u32], seconds: i64, body: &str) -> Vector {
    let url = EndpointUrl::from_stored("https://hooks.example.com/bank").unwrap();
    let secrets: Vec<_> = generations.iter().map(|generation| secret("erp", *generation)).collect();
    let at = now().saturating_add(TimeDelta::seconds(seconds));
    let request = request(&url, &secrets, &"msg_1".parse().unwrap(), at, body.to_owned().into()).unwrap();
    let header = |name: &str| (name.to_owned(), request.headers()[name].to_str().unwrap().to_owned());
    Vector { name, error: None, secrets: vec![], headers: HEADERS.map(header).into(), body: body.to_owned() }
        .known(&[1])
}

impl Vector {
    /// The same for a receiver that knows these generations of the secret.
    fn known(mut self, generations: &[u32]) -> Self {
        self.secrets = generations.iter().map(|generation| secret("erp", *generation).reveal()).collect();
        self
    }

    fn fails(self, error: &'static str) -> Self {
        Self { error: Some(error), ..self }
    }

    fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.insert(header.to_owned(), value.to_owned());
        self
    }

    fn without(mut self, header: &str) -> Self {
        self.headers.remove(header);
        self
    }

    fn with_body(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }
}

fn accepted() -> Vec<Vector> {
    let first = |name| signed(name, &[1], 0, TEST);
    let named_in_capitals = first("header names in capitals").headers.into_iter();
    let capitals = named_in_capitals.map(|(name, value)| (name.to_uppercase(), value)).collect();
    vec![
        signed("a first message", &[1], 0, EVENTS),
        first("a test"),
        signed("a type, a status and fields of a later release", &[1], 0, LATER),
        signed("no event", &[1], 0, r#"{"events":[]}"#),
        signed("both secrets sign, and the new one is known", &[2, 1], 0, TEST).known(&[2]),
        signed("both secrets sign, and the old one is known", &[2, 1], 0, TEST),
        signed("the new secret signs alone, and both are known", &[2], 0, TEST).known(&[1, 2]),
        signed("five minutes old", &[1], -300, TEST),
        signed("five minutes early", &[1], 300, TEST),
        Vector { headers: capitals, ..first("header names in capitals") },
    ]
}

fn rejected() -> Vec<Vector> {
    let first = |name| signed(name, &[1], 0, TEST);
    let intact = first("");
    let signature = intact.headers["webhook-signature"].as_str();
    let forged = |name, header, value: &str| first(name).with(header, value).fails("wrong-signature");
    let changed = |name, body: &str| signed(name, &[1], 0, EVENTS).with_body(body).fails("wrong-signature");
    let absent = |name, header| first(name).without(header).fails("missing-header");
    let odd = |name, body| signed(name, &[1], 0, body).fails("not-events");
    vec![
        signed("a retired secret", &[2], 0, TEST).fails("wrong-signature"),
        first("a secret that is not in force yet").known(&[2]).fails("wrong-signature"),
        Vector { secrets: vec![secret("erp2", 1).reveal()], ..first("another endpoint's secret") }
            .fails("wrong-signature"),
        changed("a changed body", &EVENTS.replace("acc-1", "acc-2")),
        changed("a body with a space more", &format!("{EVENTS} ")),
        changed("a body that was parsed and written again", &EVENTS.replace('ë', "\\u00eb")),
        changed("an empty body", ""),
        forged("another id", "webhook-id", "msg_2"),
        forged("another timestamp", "webhook-timestamp", "1796083514"),
        forged("a timestamp that is not a number", "webhook-timestamp", "now"),
        forged("a signature of another version", "webhook-signature", &signature.replace("v1,", "v2,")),
        forged("a signature without its version", "webhook-signature", &signature[3..]),
        forged("a signature in parts", "webhook-signature", &signature.replace(',', " ")),
        forged("a cut signature", "webhook-signature", &signature[..20]),
        forged("a version alone", "webhook-signature", "v1,"),
        signed("a message that is replayed after ten minutes", &[1], -600, TEST).fails("too-old"),
        signed("a second too old", &[1], -301, TEST).fails("too-old"),
        signed("a second too early", &[1], 301, TEST).fails("too-new"),
        signed("an old message that is changed", &[1], -600, TEST).with_body(LATER).fails("wrong-signature"),
        absent("no signature", "webhook-signature"),
        absent("no timestamp", "webhook-timestamp"),
        absent("no id", "webhook-id"),
        first("an empty signature").with("webhook-signature", "").fails("missing-header"),
        odd("a list", "[]"),
        odd("a number of events", r#"{"events":5}"#),
        odd("events that are an object", r#"{"events":{}}"#),
        odd("an event without an id", NAMELESS),
        odd("a fraction of a minor unit", FRACTION),
    ]
}

#[test]
fn the_vectors_are_what_the_sender_signs() {
    let vectors = [accepted(), rejected()].concat();
    let today = serde_json::json!({ "now": now().as_chrono().timestamp(), "vectors": vectors });
    let today = serde_json::to_string_pretty(&today).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/vectors/webhooks.json");
    if Lookup::environment().text("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &today).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), today, "UPDATE_GOLDEN=1 writes the vectors");
}

/// The library of Standard Webhooks signs likewise what receivers accept.
#[test]
fn the_library_of_receivers_agrees() {
    for vector in [accepted(), rejected()].concat() {
        let header = |name: &str| {
            let mut headers = vector.headers.iter();
            headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
        };
        let [id, sent, signatures] = HEADERS.map(header);
        let signs = |secret: &String| {
            let library = standardwebhooks::Webhook::new(secret).unwrap();
            let signature = sent.parse().ok().and_then(|sent| library.sign(id, sent, vector.body.as_bytes()).ok());
            signature.is_some_and(|wanted| signatures.split(' ').any(|one| one == wanted))
        };
        let is_signed = !matches!(vector.error, Some("wrong-signature" | "missing-header"));
        assert_eq!(vector.secrets.iter().any(signs), is_signed, "{}", vector.name);
    }
}
