//! Compares `docs/problems.md` with the code: it has every problem, and of several faults the first in its order is
//! reported.

use std::path::Path;

use anyhow::{Context as _, Result};
use payments_http::Scope;
use payments_http::problem::ProblemKind::{
    self, BodyTooLarge, DateBeyondHorizon, DatePassed, Forbidden, IdempotencyKeyReused, InvalidAmount, InvalidCurrency,
    InvalidDate, InvalidIdempotencyKey, InvalidParameter, InvalidPayee, InvalidShape, MethodNotAllowed, NoSuchPayment,
    NoSuchRoute, NotJson, PaymentTooLarge, TokenRequired, UnsupportedMediaType,
};
use payments_http::problem::TYPE_BASE;
use payments_machine::event;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

#[test]
fn every_problem_is_documented_in_the_order_of_reporting() -> Result<()> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/problems.md"))?;
    assert!(document.contains(TYPE_BASE));
    let (_, table) = document.split_once("\n## Every problem\n").context("no table of problems")?;
    let (table, _) = table.split_once("\n## ").context("no end of the table")?;
    let documented: Vec<(&str, &str)> = table.lines().filter_map(row).collect();
    let kinds = ProblemKind::ALL.map(|kind| (kind.status().to_string(), format!("`{}`", kind.slug())));
    let kinds: Vec<(&str, &str)> = kinds.iter().map(|(status, slug)| (status.as_str(), slug.as_str())).collect();
    assert_eq!(documented, kinds);
    Ok(())
}

/// The status and type of a table's row.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let (status, slug) = (cells.next()?, cells.next()?);
    status.parse::<u16>().is_ok().then_some((status, slug))
}

#[tokio::test]
async fn of_several_faults_the_first_documented_is_reported() -> Result<()> {
    let world = World::open().await?;
    let used = body("landlord", "1", "GBP", "2026-12-01", 1);
    assert_eq!(world.send(create("tenant", "used", &used)).await?.status, 201);
    let (bad, long) = ("a%231", "{".repeat(70_000));
    // Each row mends the fault of the row above it and keeps those of the rows below.
    for (kind, ask) in [
        (NoSuchRoute, create(&format!("{bad}/b"), "", &long).header("Content-Type", "text/plain")),
        (UnsupportedMediaType, create(bad, "", &long).header("Content-Type", "text/plain")),
        (BodyTooLarge, create(bad, "", &long)),
        (InvalidParameter, create(bad, "", "{")),
        (InvalidIdempotencyKey, create("tenant", "", "{")),
        (NotJson, create("tenant", "used", "{")),
        (InvalidShape, create("tenant", "used", &body("tenant", "\"x\"", "?", "?", 9_000))),
        (InvalidPayee, create("tenant", "used", &body("tenant", "1.5", "?", "?", 9_000))),
        (InvalidAmount, create("tenant", "used", &body("landlord", "1.5", "?", "?", 9_000))),
        (InvalidCurrency, create("tenant", "used", &body("landlord", "2", "?", "?", 9_000))),
        (InvalidDate, create("tenant", "used", &body("landlord", "2", "GBP", "?", 9_000))),
        (IdempotencyKeyReused, create("tenant", "used", &body("landlord", "2", "GBP", "2026-11-19", 9_000))),
        (PaymentTooLarge, create("tenant", "new", &body("landlord", "2", "GBP", "2026-11-19", 9_000))),
        (DatePassed, create("tenant", "new", &body("landlord", "2", "GBP", "2026-11-19", 1))),
    ] {
        let reply = world.send(ask).await?;
        assert_eq!(reply.problem(), kind.slug(), "{reply}");
    }
    Ok(())
}

#[tokio::test]
async fn the_token_is_checked_after_the_route_and_before_everything_else() -> Result<()> {
    let world = World::open().await?;
    let token = |claims: Value| event::jwt(&claims);
    let anything = Scope::ALL.map(Scope::as_str).join(" ");
    let create = |path: &str| Ask::post(path).header("Content-Type", "text/plain").text("{");
    let ours = "/accounts/a%231/payments?dryRun=true";
    // Each row mends the fault of the row above it and keeps those of the rows below.
    for (kind, authorizer, ask) in [
        (NoSuchRoute, Value::Null, create("/accounts/a%231/payments/b/c/d")),
        (MethodNotAllowed, Value::Null, Ask::post("/payments")),
        (TokenRequired, Value::Null, create(ours)),
        (Forbidden, token(json!({ "custom:accounts": "tenant" })), create(ours)),
        (NoSuchPayment, token(json!({ "custom:accounts": "tenant", "scope": anything })), create(ours)),
        (Forbidden, token(json!({ "scope": anything })), create(ours)),
        (UnsupportedMediaType, token(json!({ "client_id": "feed", "scope": anything })), create(ours)),
    ] {
        let reply = world.send_authorized(&authorizer, ask).await?;
        assert_eq!(reply.problem(), kind.slug(), "{reply}");
    }
    Ok(())
}

#[tokio::test]
async fn exceptions_to_the_order_are_as_documented() -> Result<()> {
    let world = World::open().await?;
    let used = body("landlord", "1", "GBP", "2026-12-01", 1);
    let put = world.send(create("tenant", "used", &used)).await?;
    assert_eq!(put.status, 201, "{put}");
    let plain = |ask: Ask, text: &str| ask.header("Content-Type", "text/plain").text(text);
    let cancel = |account: &str, query: &str| {
        Ask::post(&format!("/accounts/{account}/payments/{}/cancel{query}", put.field("paymentId")))
    };
    let list = |account: &str, query: &str| Ask::get(&format!("/accounts/{account}/payments?{query}"));
    for (kind, field, ask) in [
        // The query of a POST.
        (UnsupportedMediaType, "", plain(Ask::post("/payment-batches?dryRun=true"), "{")),
        (InvalidParameter, "dryRun", Ask::post("/payment-batches?dryRun=true").text("{")),
        (InvalidParameter, "dryRun", cancel("tenant", "?dryRun=true").text("{")),
        // The order of a GET's parameters.
        (InvalidParameter, "accountId", list("a%231", "status=OPEN&from=soon&state=OPEN")),
        (InvalidParameter, "state", list("tenant", "status=OPEN&from=soon&state=OPEN")),
        (InvalidParameter, "from", list("tenant", "cursor=x&limit=0&status=OPEN&from=soon")),
        (InvalidParameter, "dueDate", Ask::get("/payments?cursor=x&shard=10&status=OPEN&dueDate=soon")),
        (InvalidParameter, "shard", Ask::get("/payments?cursor=x&shard=10")),
        // Faults of the same type are in the order of the description, and unknown fields come after those.
        (NotJson, "", create("tenant", "new", r#"{"urgent":true,"#)),
        (InvalidShape, "payeeAccountId", create("tenant", "new", r#"{"urgent":true}"#)),
        (
            InvalidShape,
            "urgent",
            create("tenant", "new", &body("#", "0", "gbp", "soon", 1).replacen('{', r#"{"urgent":1,"#, 1)),
        ),
        (InvalidShape, "payeeAccountId", create("tenant", "new", r#"{"amountMinor":"1","currency":1}"#)),
        (InvalidShape, "payeeAccountId", create("tenant", "new", r#"{"amountMinor":"1"}"#)),
        (InvalidShape, "amountMinor", create("tenant", "new", r#"{"payeeAccountId":"","amountMinor":"1"}"#)),
        (InvalidShape, "currency", create("tenant", "new", r#"{"payeeAccountId":"","amountMinor":0}"#)),
        // A cancel.
        (UnsupportedMediaType, "", plain(cancel("a%231", ""), "{")),
        (BodyTooLarge, "", cancel("a%231", "").text("{".repeat(70_000))),
        (InvalidParameter, "accountId", cancel("a%231", "").text("{")),
        (NotJson, "", cancel("tenant", "").text("{")),
        // The date, once the payment exists.
        (DateBeyondHorizon, "scheduledFor", create("tenant", "new", &body("landlord", "2", "GBP", "2036-11-19", 1))),
    ] {
        let reply = world.send(ask).await?;
        assert_eq!((reply.problem(), reply.field("field")), (kind.slug(), field), "{reply}");
    }
    world.set_clock("2026-12-02T00:01:00Z")?;
    let again = world.send(create("tenant", "used", &used)).await?;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{again}");
    let cancelled = world.send(cancel("tenant", "")).await?;
    assert_eq!(cancelled.status, 200, "a cancel without a body needs no type: {cancelled}");
    Ok(())
}

#[tokio::test]
async fn a_batch_entry_is_checked_by_account_and_key_then_shape_then_other_fields() -> Result<()> {
    let world = World::open().await?;
    // Each row mends the fault of the row above it and keeps those of the rows below.
    for (kind, field, entry) in [
        (InvalidParameter, "accountId", r##"{"accountId":"#","idempotencyKey":"é","urgent":true}"##.to_owned()),
        (
            InvalidIdempotencyKey,
            "idempotencyKey",
            r#"{"accountId":"tenant","idempotencyKey":"é","urgent":true}"#.to_owned(),
        ),
        (InvalidShape, "payeeAccountId", r#"{"accountId":"tenant","idempotencyKey":"new","urgent":true}"#.to_owned()),
        (InvalidShape, "urgent", entry("tenant", "new").replacen('{', r#"{"urgent":true,"#, 1)),
        (InvalidPayee, "payeeAccountId", entry("tenant", "new")),
    ] {
        let reply = world.send(Ask::post("/payment-batches").text(format!(r#"{{"payments":[{entry}]}}"#))).await?;
        let problem = &reply.body["results"][0]["problem"];
        let kind_of = problem["type"].as_str().and_then(|kind| kind.strip_prefix(TYPE_BASE));
        assert_eq!((kind_of, problem["field"].as_str()), (Some(kind.slug()), Some(field)), "{reply}");
    }
    Ok(())
}

/// A batch's entry with an invalid payee.
fn entry(account: &str, key: &str) -> String {
    let fields = body("#", "1", "GBP", "2026-12-01", 1);
    fields.replacen('{', &format!(r#"{{"accountId":"{account}","idempotencyKey":"{key}","#), 1)
}

fn create(account: &str, key: &str, body: &str) -> Ask {
    Ask::post(&format!("/accounts/{account}/payments")).header("Idempotency-Key", key).text(body)
}

fn body(payee: &str, amount: &str, currency: &str, date: &str, data: usize) -> String {
    let data = "x".repeat(data);
    format!(
        r#"{{"payeeAccountId":"{payee}","amountMinor":{amount},"currency":"{currency}","scheduledFor":"{date}","data":"{data}"}}"#
    )
}
