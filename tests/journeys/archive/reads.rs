//! Reads of a payment while it is archived, and afterwards: one answer, whichever table it is in.

use anyhow::{Context as _, Result};
use payments_machine::{Fate, Recorder};
use payments_tests::{Ask, Reply, World};
use serde_json::{Value, json};

use super::{DAY, NIGHT, body, processed, put, put_processed, refused, settle, tick, tick_of};

/// The answer to every question about the account's only payment of the day.
async fn answers(world: &World, payment_id: &str) -> Result<Vec<(String, Reply)>> {
    let mut answers = Vec::new();
    for question in [
        format!("/accounts/tenant/payments/{payment_id}"),
        format!("/accounts/tenant/payments?from={DAY}&to=2026-12-31&include=data"),
        format!("/accounts/tenant/payments?from=2026-11-01&to={DAY}&status=PROCESSED"),
        format!("/payments?dueDate={DAY}"),
        format!("/payments?dueDate={DAY}&status=PROCESSED&limit=1"),
    ] {
        let reply = world.send(Ask::get(&question)).await?;
        assert_eq!(reply.status, 200, "{question}: {reply}");
        answers.push((question, reply));
    }
    Ok(answers)
}

/// The payments in an answer: a list, or one payment.
fn payments(reply: &Reply) -> Vec<Value> {
    if reply.body.get("payments").is_some() { reply.payments().to_vec() } else { vec![reply.body.clone()] }
}

#[tokio::test]
async fn a_payment_is_shown_once_and_the_same_in_either_table() -> Result<()> {
    let world = World::open().await?;
    let id = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    world.set_clock(NIGHT)?;
    let hot = answers(&world, &id).await?;
    for (question, reply) in &hot {
        let shown = payments(reply);
        assert_eq!(shown.len(), 1, "{question}: {reply}");
        assert_eq!((&shown[0]["paymentId"], &shown[0]["status"]), (&json!(id), &json!("PROCESSED")), "{question}");
    }
    assert_eq!(hot[0].1.body["data"], "rent", "{}", hot[0].1);
    assert_eq!(hot[1].1.payments()[0]["data"], "rent", "{}", hot[1].1);

    // Stopped between put and delete: the payment is in both tables.
    let no_removals = |call: &payments_machine::Call| match call.operation.as_str() {
        "DeleteItem" => Fate::LoseRequest,
        _ => Fate::Pass,
    };
    tick_of(&world.functions_over(&Recorder::with_fate(no_removals)).await?).await?;
    assert_eq!((world.heads("tenant").await?.len(), world.archived_heads("tenant").await?.len()), (1, 1));
    assert_same(&hot, &answers(&world, &id).await?, "both");
    assert_eq!(tick(&world).await?.archived, 1);
    assert_eq!((world.heads("tenant").await?.len(), world.archived_heads("tenant").await?.len()), (0, 1));
    assert_same(&hot, &answers(&world, &id).await?, "history");
    Ok(())
}

/// Asserts the same payments, each once. (A full page may or may not know that it is the last.)
fn assert_same(before: &[(String, Reply)], now: &[(String, Reply)], place: &str) {
    for ((question, before), (_, now)) in before.iter().zip(now) {
        assert_eq!(payments(now), payments(before), "{place}: {question}");
    }
}

#[tokio::test]
async fn a_retry_of_an_archived_payment_is_a_replay_and_writes_nothing() -> Result<()> {
    let world = World::open().await?;
    let id = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 1);
    for at in [NIGHT, "2031-01-01T09:00:00Z"] {
        world.set_clock(at)?;
        drop((world.take_write_units(), world.recorder.take_operations()));
        let again = world.send(Ask::create("tenant", "rent", &body(DAY, "rent"))).await?;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{at}: {again}");
        assert_eq!((again.field("paymentId"), again.field("status")), (id.as_str(), "PROCESSED"), "{at}: {again}");
        assert!(world.take_write_units().is_empty());
        let mut reads = world.recorder.take_operations();
        reads.sort();
        assert_eq!(reads, ["GetItem", "GetItem", "GetItem", "Query"], "details, the hot table, history, amendments");
        let other = world.send(Ask::create("tenant", "rent", &body(DAY, "other"))).await?;
        assert_eq!((other.status, other.problem()), (422, "idempotency-key-reused"), "{at}: {other}");
        assert!(world.heads("tenant").await?.is_empty(), "no head is created again");
    }
    Ok(())
}

#[tokio::test]
async fn a_cancel_of_an_archived_payment_is_answered_as_before() -> Result<()> {
    let world = World::open().await?;
    let settled = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    let cancelled = put(&world, "tenant", "gym").await?;
    let first = world.send(Ask::cancel("tenant", &cancelled)).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 2);
    let again = world.send(Ask::cancel("tenant", &cancelled)).await?;
    assert_eq!((again.status, &again.body), (200, &first.body));
    let late = world.send(Ask::cancel("tenant", &settled)).await?;
    assert_eq!((late.status, late.problem()), (409, "not-cancellable"), "{late}");
    assert!(world.heads("tenant").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn results_for_an_archived_payment_change_nothing() -> Result<()> {
    let world = World::open().await?;
    let id = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    world.set_clock(NIGHT)?;
    assert_eq!(tick(&world).await?.archived, 1);
    let history = world.archived_heads("tenant").await?;
    let head = history.first().context("it is in history")?;
    let due_at = head["sk"].as_s().ok().and_then(|sk| sk.split('#').next()).context("a sort key")?;
    let with_echo = |mut result: Value| {
        (result["accountId"], result["dueAt"]) = (json!("tenant"), json!(due_at));
        result
    };
    let mut other = processed(&id);
    other["transactionId"] = json!("TX-another");
    drop((world.outside.metrics.take(), world.take_write_units()));
    for (result, number) in [
        (processed(&id), "RepeatedResults"),
        (other.clone(), "ConflictingResults"),
        (refused(&id), "ConflictingResults"),
    ] {
        for result in [with_echo(result.clone()), result] {
            settle(&world, result.clone()).await?;
            assert_eq!(world.metric(number)?, 1, "{result}");
        }
    }
    assert!(world.take_write_units().is_empty());
    assert_eq!((world.heads("tenant").await?.len(), world.archived_heads("tenant").await?), (0, history));
    Ok(())
}
