//! Reads of a payment while it is archived, and afterwards: one answer, whichever table it is in.

use super::{DAY, NIGHT, archive_with, body, processed, put, put_processed, refused, settle};
use payments_tests::prelude::*;

/// A world with a payment that is processed, reported, and archived in the night. Returns its id, too.
async fn archived() -> Result<(World, String)> {
    let world = World::open().await?;
    let id = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?.archived, 1);
    Ok((world, id))
}

/// The payments in the answer to every question about the account's only payment of the day.
async fn shown(world: &World, payment_id: &str) -> Result<Vec<(String, Vec<Value>)>> {
    let mut shown = Vec::new();
    for question in [
        format!("/accounts/tenant/payments/{payment_id}"),
        format!("/accounts/tenant/payments?from={DAY}&to=2026-12-31&include=data"),
        format!("/accounts/tenant/payments?from=2026-11-01&to={DAY}&status=PROCESSED"),
        format!("/payments?dueDate={DAY}"),
        format!("/payments?dueDate={DAY}&status=PROCESSED&limit=1"),
    ] {
        let reply = world.get(&question).await?;
        let is_list = reply.body.get("payments").is_some();
        shown.push((question, if is_list { reply.payments().to_vec() } else { vec![reply.body] }));
    }
    Ok(shown)
}

#[tokio::test]
async fn a_payment_is_shown_once_and_the_same_in_either_table() -> Result<()> {
    let world = World::open().await?;
    let id = put_processed(&world, "tenant", &["rent"], true).await?.remove(0);
    world.set_clock(NIGHT)?;
    let hot = shown(&world, &id).await?;
    for (question, payments) in &hot {
        assert_eq!(payments.len(), 1, "{question}: {payments:?}");
        assert_has(&payments[0], &json!({ "paymentId": id, "status": "PROCESSED" }));
    }
    assert!(hot[..2].iter().all(|(_, payments)| payments[0]["data"] == "rent"), "{hot:?}");

    // Stopped between put and delete: the payment is in both tables.
    let stopped = world.functions_meeting(Fate::LoseRequest, |call| call.operation == "DeleteItem").await?;
    archive_with(&stopped).await?;
    assert_eq!(world.places("tenant").await?, (1, 1));
    assert_eq!(shown(&world, &id).await?, hot, "both");
    assert_eq!(world.archive().await?.archived, 1);
    assert_eq!(world.places("tenant").await?, (0, 1));
    assert_eq!(shown(&world, &id).await?, hot, "history");
    Ok(())
}

#[tokio::test]
async fn a_retry_of_an_archived_payment_is_a_replay_and_writes_nothing() -> Result<()> {
    let (world, id) = archived().await?;
    let mut shown = world.payment("tenant", &id).await?.body;
    // A reply to a create shows no data.
    shown.as_object_mut().context("a payment")?.remove("data");
    for at in [NIGHT, "2031-01-01T09:00:00Z"] {
        world.set_clock(at)?;
        world.forget();
        let again = world.send(Ask::create("tenant", "rent", &body(DAY, "rent"))).await?.replayed()?;
        assert_eq!((again.status, again.body), (201, shown.clone()), "{at}");
        let mut reads = world.recorder.take_operations();
        reads.sort();
        assert_eq!(reads, ["GetItem", "GetItem", "GetItem", "Query"], "details, the hot table, history, amendments");
        let other = Ask::create("tenant", "rent", &body(DAY, "other"));
        world.refused(other, 422, "idempotency-key-reused").await?;
        assert!(world.heads("tenant").await?.is_empty(), "no head is created again");
    }
    Ok(())
}

#[tokio::test]
async fn a_cancel_of_an_archived_payment_is_answered_as_before() -> Result<()> {
    let (world, settled) = archived().await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    let cancelled = put(&world, "tenant", "gym").await?;
    let first = world.send(Ask::cancel("tenant", &cancelled)).await?;
    world.set_clock(NIGHT)?;
    assert_eq!(world.archive().await?.archived, 1);
    let again = world.send(Ask::cancel("tenant", &cancelled)).await?.with_status(200)?;
    assert_eq!(again.body, first.body);
    world.refused(Ask::cancel("tenant", &settled), 409, "not-cancellable").await?;
    assert!(world.heads("tenant").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn results_for_an_archived_payment_change_nothing() -> Result<()> {
    let (world, id) = archived().await?;
    let history = world.archived_heads("tenant").await?;
    let head = history.first().context("it is in history")?;
    let due_at = head["sk"].as_s().ok().and_then(|sk| sk.split('#').next()).context("a sort key")?;
    let other = with(processed(&id), json!({ "transactionId": "TX-another" }));
    world.forget();
    for (result, number) in
        [(processed(&id), "RepeatedResults"), (other, "ConflictingResults"), (refused(&id), "ConflictingResults")]
    {
        let with_echo = with(result.clone(), json!({ "accountId": "tenant", "dueAt": due_at }));
        for result in [with_echo, result] {
            settle(&world, result.clone()).await?;
            assert_eq!(world.metric(number)?, 1, "{result}");
        }
    }
    // Each of two contradicting results is a finding, however often it comes.
    assert_eq!(world.take_write_units(), units("TransactWriteItems", [("history", 8)]));
    super::assert_archived(&world, "tenant", &history).await
}
