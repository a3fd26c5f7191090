//! The golden heads are shown, claimed, and leave the hot table.

use anyhow::{Context as _, Result};
use archive::{Action, Request};
use lambda_runtime::LambdaEvent;
use payments_store::ItemKind;
use payments_tests::tables::{NO_DEADLINE, context};
use payments_tests::{Ask, World};
use serde_json::{Value, json};

use crate::golden::golden_items;

/// The list of all golden payments.
const ALL: &str = "/accounts/golden/payments?from=2026-11-20&to=2026-12-31";

/// A world with the golden payments.
async fn world() -> Result<World> {
    let world = World::open().await?;
    world.set_clock("2026-11-20T10:00:00Z")?;
    let names = &world.environment.tables;
    for kind in [ItemKind::Head, ItemKind::FirstDetails, ItemKind::AmendedDetails] {
        for (table, item) in golden_items(kind, "payments")? {
            let table = if table == "payments" { &names.payments } else { &names.history };
            world.put_items(table, [item]).await?;
        }
    }
    Ok(world)
}

#[tokio::test]
async fn golden_heads_are_shown_and_leave_the_hot_table() -> Result<()> {
    let world = world().await?;
    // All dates are over.
    world.set_clock("2026-12-29T02:30:00Z")?;
    let before = world.send(Ask::get(ALL)).await?;
    for status in ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"] {
        assert!(before.payments().iter().any(|payment| payment["status"] == status), "{status}: {before}");
    }
    assert!(before.payments().iter().any(|payment| payment["reference"] == "INV 2026/117"), "{before}");
    let (mut ended, mut all) = (0, 0);
    for head in world.heads("golden").await? {
        world.update(&head, "REMOVE unreported", &[]).await?;
        all += 1;
        ended += u64::from(!["SCHEDULED", "PENDING"].contains(&head["status"].as_s().map_or("", String::as_str)));
    }
    let event = LambdaEvent::new(Request { action: Action::Archive }, context(NO_DEADLINE));
    let outcome = world.functions().archive.handle(event).await.map_err(anyhow::Error::msg)?;
    assert_eq!((outcome.archived, outcome.failed, ended), (ended, 0, 6), "{outcome:?}");
    assert_eq!(u64::try_from(world.heads("golden").await?.len())?, all - ended);
    // What only the hot table says about a head is not archived.
    for head in world.archived_heads("golden").await? {
        assert!(["expires_at", "unreported"].iter().all(|name| !head.contains_key(*name)), "{head:?}");
    }
    let after = world.send(Ask::get(ALL)).await?;
    assert_eq!(after.payments(), before.payments());
    Ok(())
}

#[tokio::test]
async fn golden_amended_payments_are_shown_and_claimed() -> Result<()> {
    let world = world().await?;
    let list = world.send(Ask::get(&format!("{ALL}&payeeAccountId=other-landlord&include=data"))).await?;
    let shown: Vec<&Value> = list.payments().iter().collect();
    assert_eq!(shown.len(), 5, "{list}");
    let (moved, same) = ("2026-11-23", "2026-12-01");
    for (status, date, version, versions) in [
        ("SCHEDULED", moved, 3, 3),
        ("PENDING", moved, 3, 2),
        ("PROCESSED", moved, 4, 2),
        ("SCHEDULED", same, 2, 2),
        ("CANCELLED", same, 3, 2),
    ] {
        let is_it = |payment: &&&Value| payment["status"] == status && payment["dueDate"] == date;
        let payment = shown.iter().find(is_it).with_context(|| format!("{status} {date}"))?;
        assert_eq!((&payment["scheduledFor"], &payment["version"]), (&json!(date), &json!(version)));
        assert_eq!((&payment["amountMinor"], &payment["data"]["n"]), (&json!(7), &json!(versions - 1)));
        let path = format!("/accounts/golden/payments/{}/versions", payment["paymentId"].as_str().unwrap_or_default());
        let told = world.send(Ask::get(&path)).await?;
        assert_eq!(told.body["versions"].as_array().map(Vec::len), Some(versions), "{told}");
        assert_eq!(told.body["versions"][0]["amountMinor"], 5, "{told}");
    }
    world.set_clock("2026-11-23T10:00:00Z")?;
    world.sweep().await?;
    let left = Ask::get("/accounts/golden/payments?from=2026-11-23&to=2026-11-23&status=SCHEDULED");
    let left = world.send(left).await?;
    assert_eq!(left.payments(), [json!(null); 0], "{left}");
    Ok(())
}
