//! Checks of batches.

use anyhow::{Context as _, Result, ensure};
use scheduled_payments::{AccountBatchEntry, BatchEntry, PaymentOrder};
use serde_json::{Value, json};

use crate::fake::{Fake, Planned, payment, planned, problem, throttled};
use crate::suite::{checks, equal};
use crate::world::World;

checks![batch_one_rejected, account_batch, batch_repeats_503, batch_pointers, batch_keeps_results];

/// Returns entries of an account's batch, one for each letter.
pub(crate) fn entries(world: &World, keys: &str) -> Vec<AccountBatchEntry> {
    let entry = |key: char| AccountBatchEntry { idempotency_key: key.to_string(), order: world.order() };
    keys.chars().map(entry).collect()
}

/// Returns the result of an entry that was created.
pub(crate) fn created(key: &str) -> Value {
    json!({"statusCode": 201, "accountId": "acc-1", "idempotencyKey": key, "payment": payment()})
}

/// Returns the result of an entry that was not.
pub(crate) fn rejected(key: &str, status: u16, kind: &str, more: &Value) -> Value {
    json!({"statusCode": status, "accountId": "acc-1", "idempotencyKey": key, "problem": problem(status, kind, more)})
}

/// Returns the result of an entry that the bank has no capacity for.
fn busy(key: &str, seconds: u64) -> Value {
    rejected(key, 503, "throttled", &json!({"retryAfterSeconds": seconds}))
}

pub(crate) fn results(results: &[Value]) -> Planned {
    planned(200, &json!({"results": results}))
}

/// Returns the keys of a batch that was sent, one after the other.
pub(crate) fn keys(body: &str) -> Result<String> {
    let body: Value = serde_json::from_str(body)?;
    let entries = body["payments"].as_array().context("no payments")?;
    Ok(entries.iter().filter_map(|entry| entry["idempotencyKey"].as_str()).collect())
}

async fn batch_one_rejected(world: World) -> Result<()> {
    let entry = |(account, amount): (&str, i64)| BatchEntry {
        account_id: account.to_owned(),
        idempotency_key: format!("b-{amount}"),
        order: PaymentOrder { amount_minor: amount, ..world.order() },
    };
    let entries = [("rs-batch-1", 100), ("rs-batch-2", 0), ("rs-batch-1", 300)].map(entry);
    let results = world.bank.create_batch(&entries).await?;
    equal(results.iter().map(|result| result.status_code).collect::<Vec<_>>(), [201, 422, 201])?;
    for (place, amount) in [(0, 100), (2, 300)] {
        let created = results[place].outcome.as_ref().map_err(Clone::clone)?;
        equal(created.payment.amount_minor, amount)?;
    }
    equal(
        (results[1].account_id.as_deref(), results[1].idempotency_key.as_deref()),
        (Some("rs-batch-2"), Some("b-0")),
    )?;
    let problem = results[1].outcome.as_ref().err().context("created")?;
    equal((problem.kind(), &*problem.errors[0].pointer), ("invalid-amount", "/payments/1/amountMinor"))
}

async fn account_batch(world: World) -> Result<()> {
    let results = world.bank.create_account_batch("rs-batch-3", &entries(&world, "aba")).await?;
    let named: Vec<_> =
        results.iter().map(|result| (result.account_id.as_deref(), result.idempotency_key.as_deref())).collect();
    equal(named, ["a", "b", "a"].map(|key| (Some("rs-batch-3"), Some(key))))?;
    let created = results.into_iter().map(|result| result.outcome).collect::<Result<Vec<_>, _>>()?;
    equal(created.iter().map(|created| created.replayed).collect::<Vec<_>>(), [false, false, true])?;
    equal(&created[0].payment, &created[2].payment)
}

async fn batch_repeats_503(world: World) -> Result<()> {
    let failed = rejected("c", 500, "internal", &json!({}));
    let fake = Fake::new([
        results(&[created("a"), busy("b", 2), failed, busy("d", 3)]),
        results(&[created("b"), busy("d", 3)]),
        results(&[created("d")]),
    ]);
    let fake = fake.await?;
    let results = fake.bank.create_account_batch("acc-1", &entries(&world, "abcd")).await?;
    let sent = fake.seen().iter().map(|seen| keys(&seen.body)).collect::<Result<Vec<_>>>()?;
    equal(sent, ["abcd", "bd", "d"])?;
    let ends: Vec<_> = results.iter().map(|result| (result.idempotency_key.as_deref(), result.status_code)).collect();
    equal(ends, [(Some("a"), 201), (Some("b"), 201), (Some("c"), 500), (Some("d"), 201)])?;
    equal(fake.timer.pauses(), [3000, 6000])
}

async fn batch_pointers(world: World) -> Result<()> {
    let fault = json!({
        "pointer": "/payments/0/currency",
        "type": "urn:scheduled-payments:problem:x",
        "detail": "It is so.",
    });
    let wrong = rejected("b", 422, "invalid-currency", &json!({"errors": [fault]}));
    let fake = Fake::new([results(&[created("a"), busy("b", 1)]), results(&[wrong])]).await?;
    let results = fake.bank.create_account_batch("acc-1", &entries(&world, "ab")).await?;
    let problem = results[1].outcome.as_ref().err().context("created")?;
    equal(&*problem.errors[0].pointer, "/payments/1/currency")
}

async fn batch_keeps_results(world: World) -> Result<()> {
    for later in [planned(401, &json!({"message": "Unauthorized"})), throttled(100)] {
        let fake = Fake::new([results(&[created("a"), busy("b", 1)]), later]).await?;
        let results = fake.bank.create_account_batch("acc-1", &entries(&world, "ab")).await?;
        ensure!(results[0].outcome.is_ok());
        equal(results.iter().map(|result| result.status_code).collect::<Vec<_>>(), [201, 503])?;
        equal(fake.seen().len(), 2)?;
    }
    Ok(())
}
