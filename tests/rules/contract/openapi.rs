//! Compares `openapi.yaml` with the code: its routes, parameters, limits and problems, and the answer of every HTTP
//! event.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payments_http::key_header::key_of;
use payments_http::problem::TYPE_BASE;
use payments_http::routes::{ROUTES, RouteSpec};
use payments_http::{PageLimit, ProblemKind, Route, Scope};
use payments_model::webhook::EndpointId;
use payments_model::{
    AccountId, AmountMinor, BusinessDate, Currency, DateRule, IdempotencyKey, MoveReason, PaymentId, Reference,
    ScheduledFor, ShardCount, Status, TransactionId,
};
use payments_tests::contract::conforms;
use payments_tests::events::files::{answer, function_of};
use payments_tests::events::requests::{http_events, request_text};
use payments_tests::{Contract, Reply};
use serde_json::{Value, json};

use crate::template::text;

/// The statuses that no event shows, and what answers with them.
const NOT_IN_EVENTS: [(i64, &str); 4] = [
    (429, "API Gateway alone"),
    (500, "tests/faults, where something breaks in every way; API Gateway too"),
    (503, "tests/faults and tests/journeys/api/faults.rs; API Gateway too"),
    (504, "API Gateway alone"),
];

/// The routes that a client can be refused, with a 503 that events show.
const REFUSABLE: [&str; 4] = [
    "POST /accounts/{accountId}/payments",
    "POST /accounts/{accountId}/payment-batches",
    "POST /payment-batches",
    "PUT /accounts/{accountId}/payments/{paymentId}",
];

/// Answers to bodies that are too long for a case; journeys send those.
const TOO_LONG_FOR_EVENTS: [(&str, i64); 7] = [
    ("POST /payment-batches", 413),
    ("POST /accounts/{accountId}/payment-batches", 413),
    ("PUT /webhook-endpoints/{endpointId}", 413),
    ("POST /webhook-endpoints/{endpointId}/test", 413),
    ("POST /webhook-endpoints/{endpointId}/replay", 413),
    ("POST /webhook-endpoints/{endpointId}/skip", 413),
    ("POST /webhook-endpoints/{endpointId}/rotate", 413),
];

#[test]
fn operations_are_the_routes_with_their_scopes() -> Result<()> {
    let contract = Contract::get()?;
    let mut found = BTreeSet::new();
    for (key, operation) in contract.operations()?.into_iter().filter(|(key, _)| key != "$default") {
        found.insert((key, operation["security"].to_string()));
    }
    let scope = |spec: &RouteSpec| json!([{ "accessToken": [spec.scope.map(Scope::as_str)] }]).to_string();
    let wanted: BTreeSet<_> = ROUTES.iter().map(|spec| (spec.key(), scope(spec))).collect();
    assert_eq!(found, wanted);
    Ok(())
}

#[test]
fn parameters_are_those_of_the_code_in_its_order() -> Result<()> {
    let contract = Contract::get()?;
    for spec in &ROUTES {
        let operation = &contract.document()["paths"][spec.path][spec.method.as_str().to_lowercase()];
        let mut found = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = contract.resolved(parameter)?;
            found.push((text(&parameter["in"])?, text(&parameter["name"])?, parameter["required"] == true));
        }
        let path = spec.parameters(spec.path).unwrap_or_default().into_iter().map(|(name, _)| ("path", name, true));
        let required: &[&str] = match spec.route {
            Route::CreatePayment => &["Idempotency-Key"],
            Route::AmendPayment => &["Idempotency-Key", "If-Match"],
            _ => &[],
        };
        let required = required.iter().map(|name| ("header", *name, true));
        let query: &[&str] = match spec.route {
            Route::ListPayments => query_account::LIST_PARAMETERS,
            Route::ListVersions => query_account::VERSIONS_PARAMETERS,
            Route::ListDue => query_due::LIST_PARAMETERS,
            Route::GetCounts => query_due::COUNTS_PARAMETERS,
            Route::ListEvents => query_due::EVENTS_PARAMETERS,
            _ => &[],
        };
        let query = query.iter().map(|name| ("query", *name, false));
        // Last, so that a generated function has it behind what more callers give.
        let of_request = [("header", "X-Request-Id", false)];
        let wanted: Vec<_> = path.chain(required).chain(query).chain(of_request).collect();
        assert_eq!(found, wanted, "{}", spec.key());
    }
    Ok(())
}

/// A schema's place, and whether the code accepts a text.
type Reads = (&'static str, fn(&str) -> bool);

/// The schemas of texts, and the types that parse them.
const TEXTS: [Reads; 11] = [
    ("/components/schemas/AccountId", |text| text.parse::<AccountId>().is_ok()),
    ("/components/schemas/PaymentId", |text| text.parse::<PaymentId>().is_ok()),
    ("/components/schemas/TransactionId", |text| text.parse::<TransactionId>().is_ok()),
    ("/components/schemas/IdempotencyKey", |text| text.parse::<IdempotencyKey>().is_ok()),
    ("/components/parameters/IdempotencyKeyParameter/schema", |text| {
        key_of(text).is_some_and(|key| key.parse::<IdempotencyKey>().is_ok())
    }),
    ("/components/schemas/Reference", |text| text.parse::<Reference>().is_ok()),
    ("/components/schemas/EndpointId", |text| text.parse::<EndpointId>().is_ok()),
    ("/components/schemas/Status", |text| text.parse::<Status>().is_ok()),
    ("/components/schemas/BusinessDate", |text| text.parse::<BusinessDate>().is_ok()),
    ("/components/schemas/DateRule", |text| text.parse::<DateRule>().is_ok()),
    ("/components/schemas/MoveReason", |text| text.parse::<MoveReason>().is_ok()),
];

#[test]
fn texts_have_the_limits_of_the_code() -> Result<()> {
    let contract = Contract::get()?;
    let mut texts: Vec<String> = (0..=0x7f_u8).chain([0xe9]).map(|c| char::from(c).to_string()).collect();
    texts.extend([0, 1, 47, 48, 49, 63, 64, 65, 254, 255, 256].map(|length| "a".repeat(length)));
    texts.extend(Status::ALL.map(|status| status.as_str().to_owned()));
    texts.extend(DateRule::ALL.map(|rule| rule.as_str().to_owned()));
    texts.extend(MoveReason::ALL.map(|reason| reason.as_str().to_owned()));
    let others = [
        "scheduled",
        "b2b52c61-096a-55bf-800b-2491fc375636",
        "B2B52C61-096A-55BF-800B-2491FC375636",
        "b2b52c61096a55bf800b2491fc375636",
        "b2b52c61-096a-55bf-800b-2491fc37563",
        "2026-12-01",
        "2026-02-29",
        "2028-02-29",
        "2026-13-01",
        "2026-1-01",
        "1999-12-31",
        "2000-01-01",
        "2099-12-31",
        "2100-01-01",
        "2026-12-01T09:30:00Z",
        "2026-12-01T09:30:00+01:00",
        "2026-12-01T09:30:00.5Z",
        "2026-12-01T09:30:00",
        "2026-12-01T24:30:00Z",
        "2026-12-01 at nine",
        "2026-12-01T09:30:00.000Z",
        "2026-12-01 09:30:00Z",
        "2026-12-01t09:30:00z",
        "2026-12-01T09:30:00\u{2212}05:00",
        "2026-12-01T09:30:00-05:00",
        "2026-12-01T09:30:00+0100",
        "2026-12-01T09:30:00.Z",
        "2026-12-01T09:30:00.0",
        "..",
        "...",
        ".a",
        "..a",
        "a..",
        "a/b c",
        "/a",
        "a/",
        "a//b",
        " a",
        "a /b",
        "\"a\"",
        "\"a",
        "\"a\\\"\"",
        "\"a\\b\"",
        "\"a\"b\"",
        "a\"b\"",
    ];
    texts.extend(others.map(str::to_owned));
    for (pointer, reads) in TEXTS {
        let schema = contract.document().pointer(pointer).context(pointer)?;
        let validator = contract.validator(schema)?;
        for text in &texts {
            assert_eq!(validator.is_valid(&json!(text)), reads(text), "{pointer}: {text:?}");
        }
        assert!(texts.iter().any(|text| reads(text)), "{pointer} rejects every text");
    }
    Ok(())
}

/// One pattern has the form, and the code knows which dates and times there are. It shows each in the same form.
#[test]
fn a_time_has_the_form_of_its_pattern() -> Result<()> {
    let validator = Contract::get()?.validator(&json!({ "$ref": "#/components/schemas/ScheduledFor" }))?;
    let nine_zeros = "2026-12-01T09:30:00.000000000Z";
    for text in
        ["2026-12-01", "2026-12-01T09:30:00Z", "2026-12-01T09:30:00+01:00", "2026-12-01T09:30:00-05:30", nine_zeros]
    {
        let shown = text.parse::<ScheduledFor>()?.to_string();
        assert!(validator.is_valid(&json!(text)) && validator.is_valid(&json!(shown)), "{text}, {shown}");
        assert!(!shown.contains('.'), "{shown}");
    }
    for text in ["2026-02-29", "2026-13-01", "2026-12-01T24:30:00Z", "2026-12-01T09:30:00+24:00"] {
        assert!(validator.is_valid(&json!(text)) && text.parse::<ScheduledFor>().is_err(), "{text}");
    }
    for text in [
        "",
        "tomorrow",
        "1999-12-31",
        "2100-01-01",
        "2026-1-01",
        "2026-12-01 ",
        "2026-12-01T09:30:00",
        "2026-12-01T09:30Z",
        "2026-12-01 09:30:00Z",
        "2026-12-01t09:30:00z",
        "2026-12-01T09:30:00.5Z",
        "2026-12-01T09:30:00.Z",
        "2026-12-01T09:30:00.0000000000Z",
        "2026-12-01T09:30:00+0100",
        "2026-12-01T09:30:00\u{2212}05:00",
        "\u{662}026-12-01",
    ] {
        assert!(!validator.is_valid(&json!(text)) && text.parse::<ScheduledFor>().is_err(), "{text}");
    }
    Ok(())
}

#[test]
fn numbers_have_the_limits_of_the_code() -> Result<()> {
    let contract = Contract::get()?;
    let due = "/paths/~1payments/get/parameters/3/schema";
    let numbers: [Reads; 3] = [
        ("/components/schemas/Amount", |text| text.parse::<AmountMinor>().is_ok()),
        ("/components/parameters/LimitParameter/schema", |text| text.parse::<PageLimit>().is_ok()),
        // One more shard than its number.
        (due, |text| {
            text.parse().is_ok_and(|shard: i32| shard >= 0 && (shard + 1).to_string().parse::<ShardCount>().is_ok())
        }),
    ];
    for (pointer, reads) in numbers {
        let schema = contract.document().pointer(pointer).context(pointer)?;
        let validator = contract.validator(schema)?;
        for number in [i64::MIN, -1, 0, 1, 2, 999, 1_000, 1_001, 65_536, (1 << 53) - 1, 1 << 53, i64::MAX] {
            assert_eq!(validator.is_valid(&json!(number)), reads(&number.to_string()), "{pointer}: {number}");
        }
    }
    let limit = contract.document().pointer("/components/parameters/LimitParameter/schema/default");
    assert_eq!(limit, Some(&PageLimit::DEFAULT.get().into()));
    // The list of currencies is ISO's, not the description's.
    let currency = contract.validator(&json!({ "$ref": "#/components/schemas/Currency" }))?;
    for (code, shape) in [("GBP", true), ("XXX", true), ("gbp", false), ("GB", false), ("GBPX", false)] {
        assert_eq!(currency.is_valid(&json!(code)), shape, "{code}");
        assert!(shape || code.parse::<Currency>().is_err(), "{code}");
    }
    Ok(())
}

#[test]
fn problems_are_those_of_the_code_under_their_statuses() -> Result<()> {
    let contract = Contract::get()?;
    let types = |schema: &Value| -> Vec<String> {
        let all = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.map(|kind| kind.trim_start_matches(TYPE_BASE).to_owned()).collect()
    };
    let all = types(&contract.document()["components"]["schemas"]["Problem"]["properties"]["type"]);
    assert_eq!(all, ProblemKind::ALL.map(|kind| kind.slug()));
    let statuses: BTreeMap<&str, u16> = ProblemKind::ALL.map(|kind| (kind.slug(), kind.status())).into();
    let mut described = BTreeSet::new();
    for (key, operation) in contract.operations()? {
        for (status, answer) in operation["responses"].as_object().context("no responses")? {
            let schema = &contract.resolved(answer)?["content"]["application/problem+json"]["schema"];
            if schema.is_null() {
                continue;
            }
            let own = &schema["allOf"][1]["properties"];
            assert_eq!(own["status"]["enum"][0].to_string(), *status, "{key}");
            for kind in types(&own["type"]) {
                assert_eq!(statuses.get(kind.as_str()).map(u16::to_string).as_ref(), Some(status), "{key}: {kind}");
                described.insert(kind);
            }
        }
    }
    assert_eq!(described, all.into_iter().collect(), "each problem is an answer to something");
    Ok(())
}

#[test]
fn every_example_is_valid() -> Result<()> {
    let contract = Contract::get()?;
    let mut seen = 0;
    let mut places = vec![contract.document()];
    while let Some(place) = places.pop() {
        places.extend(place.as_object().into_iter().flat_map(|object| object.values()));
        places.extend(place.as_array().into_iter().flatten());
        if place["schema"].is_object() {
            let validator = contract.validator(&place["schema"])?;
            let named = place["examples"].as_object().into_iter().flat_map(|named| named.values());
            let values = named.map(|example| Ok(&contract.resolved(example)?["value"])).collect::<Result<Vec<_>>>()?;
            for value in values.into_iter().chain(place.get("example")) {
                conforms(&validator, value).with_context(|| format!("the example {value}"))?;
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen} examples");
    Ok(())
}

/// An HTTP event and its stored answer.
struct Exchange {
    name: String,
    key: String,
    event: Value,
    reply: Reply,
}

#[test]
fn every_stored_answer_is_described_and_every_description_has_one() -> Result<()> {
    let contract = Contract::get()?;
    let mut seen = BTreeSet::new();
    for Exchange { name, key, reply, .. } in exchanges()? {
        contract.check(&key, &reply).with_context(|| format!("the answer of {name}"))?;
        seen.insert((key, reply.status));
    }
    for (key, _) in contract.operations()? {
        for status in contract.statuses(&key) {
            let is_refusal = status == 503 && REFUSABLE.contains(&key.as_str());
            let is_elsewhere = NOT_IN_EVENTS.iter().any(|(other, _)| *other == status && !is_refusal)
                || TOO_LONG_FOR_EVENTS.contains(&(key.as_str(), status));
            let is_seen = seen.contains(&(key.clone(), status));
            assert!(is_seen != is_elsewhere, "{key} with {status}: in an event {is_seen}, elsewhere {is_elsewhere}");
        }
    }
    Ok(())
}

#[test]
fn every_accepted_body_is_described() -> Result<()> {
    let contract = Contract::get()?;
    let entry = |name: &str| contract.validator(&json!({ "$ref": format!("#/components/schemas/{name}") }));
    let (any, own) = (entry("BatchEntry")?, entry("AccountBatchEntry")?);
    let operations: BTreeMap<_, _> = contract.operations()?.into_iter().collect();
    let mut seen = 0;
    for Exchange { name, key, event, reply } in exchanges()? {
        let Some(body) = event["body"].as_str().filter(|body| !body.is_empty() && reply.status < 300) else { continue };
        let decoded = if event["isBase64Encoded"] == true { STANDARD.decode(body)? } else { body.into() };
        let body: Value = serde_json::from_slice(&decoded)?;
        let results = reply.body["results"].as_array();
        if let Some(results) = results {
            for (payment, result) in body["payments"].as_array().context("a batch")?.iter().zip(results) {
                let entry = if key.contains("{accountId}") { &own } else { &any };
                let is_described = entry.is_valid(payment);
                assert!(is_described || result["status"] != 201, "{name}: {payment}");
            }
        }
        if results.is_none_or(|results| results.iter().all(|result| result["statusCode"] == 201)) {
            let request = contract.resolved(&operations[&key]["requestBody"])?;
            let schema = &request["content"]["application/json"]["schema"];
            conforms(&contract.validator(schema)?, &body).with_context(|| format!("the body of {name}"))?;
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen} bodies");
    Ok(())
}

/// Every HTTP event with its stored answer.
fn exchanges() -> Result<Vec<Exchange>> {
    // The console is not part of the API.
    let of_the_api = http_events()?.into_iter().filter(|name| function_of(name) != "console");
    let exchanges: Vec<_> = of_the_api.map(exchange).collect::<Result<_>>()?;
    ensure!(exchanges.len() > 100, "{} events", exchanges.len());
    Ok(exchanges)
}

fn exchange(name: String) -> Result<Exchange> {
    let event: Value = serde_json::from_str(&request_text(&name)?).with_context(|| name.clone())?;
    let key = text(&event["routeKey"])?.to_owned();
    let reply = parsed(&answer(&name)?).with_context(|| format!("{name}.snap"))?;
    Ok(Exchange { name, key, event, reply })
}

/// Parses a stored reply: status, headers and body.
fn parsed(reply: &str) -> Result<Reply> {
    let (head, text) = reply.split_once("\n\n").context("no body")?;
    let mut lines = head.lines();
    let status = lines.next().context("no status")?.parse()?;
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers = lines.map(|line| header(line).context("no header")).collect::<Result<_>>()?;
    Ok(Reply { status, headers, text: text.to_owned(), body: serde_json::from_str(text)? })
}
