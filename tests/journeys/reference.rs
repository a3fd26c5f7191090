//! A payment's reference, from its creation to its report.

use anyhow::{Context as _, Result};
use aws_lambda_events::sqs::SqsEvent;
use payments_tests::tables::text;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

use crate::report::settlements::{files, run, unzipped};

/// Delivers a settlement result.
async fn deliver(world: &World, result: &Value) -> Result<()> {
    let record = json!({ "messageId": "1", "body": result.to_string() });
    let event: SqsEvent = serde_json::from_value(json!({ "Records": [record] }))?;
    let response = world.functions().settle_batch(event).await;
    assert!(response.batch_item_failures.is_empty(), "{response:?}");
    Ok(())
}

#[tokio::test]
async fn a_reference_stays_and_a_reason_beside_it_is_cut_in_every_result_alike() -> Result<()> {
    let world = World::open().await?;
    let body = json!({
        "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20",
        "reference": "INV 2026/117, (a)",
    });
    let id = world.create("tenant", "rent", &body).await?;
    world.sweep().await?;
    let result = json!({
        "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": 5, "currency": "GBP",
        "outcome": "FAILED", "reason": "r".repeat(300),
    });
    deliver(&world, &result).await?;
    deliver(&world, &result).await?;
    assert_eq!(world.metric("RepeatedOutcomes")?, 1);

    // An older release cuts it after 256 bytes.
    let head = world.heads("tenant").await?.remove(0);
    world.update(&head, "SET failureReason = :long", &[(":long", text("r".repeat(256)))]).await?;
    deliver(&world, &result).await?;
    assert_eq!(world.metric("RepeatedOutcomes")?, 1);
    world.update(&head, "SET failureReason = :short", &[(":short", text("r".repeat(212)))]).await?;

    let payment = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?;
    assert_eq!((payment.field("reference"), payment.field("failureReason").len()), ("INV 2026/117, (a)", 212));
    run(&world).await?;
    let files = files(&world).await?;
    let (_, report) = files.iter().find(|(name, _)| name.ends_with(".csv.gz")).context("no report")?;
    let csv = unzipped(report)?;
    assert!(csv.ends_with(",2026-11-20T09:00:00Z,\"INV 2026/117, (a)\"\r\n"), "{csv}");
    Ok(())
}
