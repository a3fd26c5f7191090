//! The golden heads are shown, claimed, and leave the hot table.

use payments_store::ItemKind;
use payments_tests::prelude::*;

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
    let before = world.get(ALL).await?;
    for status in ["SCHEDULED", "PENDING", "PROCESSED", "FAILED", "CANCELLED"] {
        assert!(before.payments().iter().any(|payment| payment["status"] == status), "{status}: {before}");
    }
    assert!(before.payments().iter().any(|payment| payment["reference"] == "INV 2026/117"), "{before}");
    let heads = world.heads("golden").await?;
    for head in &heads {
        world.update(head, "REMOVE unreported", &[]).await?;
    }
    let outcome = world.archive().await?;
    assert_eq!((outcome.archived, outcome.failed), (6, 0), "{outcome:?}");
    let left = world.heads("golden").await?;
    assert_eq!(left.len(), heads.len() - 6);
    let is_open = |status: &str| ["SCHEDULED", "PENDING"].contains(&status);
    assert!(left.iter().all(|head| head["status"].as_s().is_ok_and(|status| is_open(status))), "{left:?}");
    // The archive leaves out the attributes that only heads of the hot table have.
    for head in world.archived_heads("golden").await? {
        assert!(["expires_at", "unreported"].iter().all(|name| !head.contains_key(*name)), "{head:?}");
    }
    assert_eq!(world.get(ALL).await?.payments(), before.payments());
    Ok(())
}

#[tokio::test]
async fn golden_amended_payments_are_shown_and_claimed() -> Result<()> {
    let world = world().await?;
    let list = world.get(&format!("{ALL}&payeeAccountId=other-landlord&include=data")).await?;
    assert_eq!(list.payments().len(), 5, "{list}");
    let (moved, same) = ("2026-11-23", "2026-12-01");
    for (status, date, version, versions) in [
        ("SCHEDULED", moved, 3, 3),
        ("PENDING", moved, 3, 2),
        ("PROCESSED", moved, 4, 2),
        ("SCHEDULED", same, 2, 2),
        ("CANCELLED", same, 3, 2),
    ] {
        let is_it = |payment: &&Value| payment["status"] == status && payment["dueDate"] == date;
        let payment = list.payments().iter().find(is_it).with_context(|| format!("{status} {date}"))?;
        let want = json!({ "scheduledFor": date, "version": version, "amountMinor": 7, "data": { "n": versions - 1 } });
        assert_has(payment, &want);
        let id = payment["paymentId"].as_str().unwrap_or_default();
        let told = world.get(&format!("/accounts/golden/payments/{id}/versions")).await?;
        assert_eq!(told.body["versions"].as_array().map(Vec::len), Some(versions), "{told}");
        assert_eq!(told.body["versions"][0]["amountMinor"], 5, "{told}");
    }
    world.set_clock("2026-11-23T10:00:00Z")?;
    world.sweep().await?;
    let left = "/accounts/golden/payments?from=2026-11-23&to=2026-11-23&status=SCHEDULED";
    assert_eq!(world.get(left).await?.payments(), [json!(null); 0]);
    Ok(())
}
