//! A payment's reference and why it failed, from its creation and its result to its report.

use anyhow::Result;
use payments_tests::World;
use payments_tests::orders::{failed, order_with};
use serde_json::json;

use crate::report::settlements::{published, run};

#[tokio::test]
async fn a_reference_and_a_failure_go_from_the_result_to_the_report() -> Result<()> {
    let world = World::open().await?;
    let order = order_with("2026-11-20", json!({ "reference": "INV 2026/117, (a)" }));
    let id = world.create("tenant", "rent", &order).await?;
    world.sweep().await?;
    let reason = "é".repeat(200);
    world.settle(&[failed(&id, &order, "LIMIT-1", &reason)]).await?;
    for (code, metric) in [("LIMIT-1", "RepeatedResults"), ("AM21", "ConflictingResults")] {
        world.settle(&[failed(&id, &order, code, &reason)]).await?;
        assert_eq!(world.metric(metric)?, 1);
    }
    let payment = world.payment("tenant", &id).await?;
    assert_eq!((payment.field("reference"), payment.field("failureCode")), ("INV 2026/117, (a)", "NARR"));
    let reason = payment.field("failureReason");
    assert_eq!((reason, reason.len()), (format!("LIMIT-1: {}", "é".repeat(48)).as_str(), 105));
    run(&world).await?;
    let csv = published(&world).await?.remove(0);
    let row = format!(",FAILED,,NARR,{reason},2026-11-20T09:00:00Z,\"INV 2026/117, (a)\"\r\n");
    assert!(csv.ends_with(&row), "{csv}");
    Ok(())
}
