//! A payment's reference and why it failed, from its creation and its result to its report.

use anyhow::{Context as _, Result};
use aws_lambda_events::sqs::SqsEvent;
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
async fn a_reference_and_a_failure_go_from_the_result_to_the_report() -> Result<()> {
    let world = World::open().await?;
    let body = json!({
        "payeeAccountId": "landlord", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20",
        "reference": "INV 2026/117, (a)",
    });
    let id = world.create("tenant", "rent", &body).await?;
    world.sweep().await?;
    let result = json!({
        "v": 1, "kind": "settlement", "paymentId": id, "amountMinor": 5, "currency": "GBP", "payeeAccountId": "landlord",
        "status": "FAILED", "failureCode": "LIMIT-1", "failureReason": "é".repeat(200),
    });
    deliver(&world, &result).await?;
    deliver(&world, &result).await?;
    assert_eq!(world.metric("RepeatedResults")?, 1);

    let mut listed = result.clone();
    listed["failureCode"] = json!("AM21");
    deliver(&world, &listed).await?;
    assert_eq!(world.metric("ConflictingResults")?, 1);

    let payment = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}"))).await?;
    assert_eq!((payment.field("reference"), payment.field("failureCode")), ("INV 2026/117, (a)", "NARR"));
    let reason = payment.field("failureReason");
    assert_eq!((reason, reason.len()), (format!("LIMIT-1: {}", "é".repeat(48)).as_str(), 105));
    run(&world).await?;
    let files = files(&world).await?;
    let (_, report) = files.iter().find(|(name, _)| name.ends_with(".csv.gz")).context("no report")?;
    let csv = unzipped(report)?;
    let row = format!(",FAILED,,NARR,{reason},2026-11-20T09:00:00Z,\"INV 2026/117, (a)\"\r\n");
    assert!(csv.ends_with(&row), "{csv}");
    Ok(())
}
