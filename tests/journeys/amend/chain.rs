//! What is sent is what was in force when the payment was claimed, and nothing that never was.

use anyhow::{Context as _, Result};
use payments_store::Item;
use payments_tests::tables::text;
use payments_tests::{Ask, World};
use serde_json::json;

use super::{amend, created, get, rent, rent_with};

/// The details of a payment in the long-term table, by their sort keys.
async fn details(world: &World, id: &str) -> Result<Vec<Item>> {
    let table = &world.environment.tables.history;
    let query = world.client().await.query().table_name(table).key_condition_expression("pk = :pk");
    let query = query.expression_attribute_values(":pk", text(format!("PAY#{id}")));
    Ok(query.send().await?.items.unwrap_or_default())
}

#[tokio::test]
async fn details_that_no_head_names_were_never_in_force() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    // Two clients have seen version 1. One put its details and came too late.
    assert_eq!(amend(&world, &id, ("one", 1), &json!({ "amountMinor": 1 })).await?.status, 200);
    let mut lost =
        details(&world, &id).await?.into_iter().find(|item| item["sk"] != text("DETAILS")).context("no details")?;
    lost.insert("sk".to_owned(), text("DETAILS#2#626e8292-8e84-575a-b684-0af73927405b"));
    lost.insert("payeeAccountId".to_owned(), text("thief"));
    world.put_items(&world.environment.tables.history, [lost]).await?;
    let page = world.send(Ask::get(&format!("/accounts/tenant/payments/{id}/versions"))).await?;
    let amounts: Vec<_> =
        page.body["versions"].as_array().context("versions")?.iter().map(|v| &v["amountMinor"]).collect();
    assert_eq!(amounts, [&json!(4_200), &json!(1)], "{page}");
    assert_eq!(get(&world, &id).await?.field("payeeAccountId"), "landlord");
    Ok(())
}

/// A client's try that got as far as its details is completed by its retry, and by nothing else.
#[tokio::test]
async fn a_try_that_crashed_between_its_writes_is_completed_by_its_retry() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    let change = json!({ "amountMinor": 1, "scheduledFor": "2026-11-20" });
    assert_eq!(amend(&world, &id, ("one", 1), &change).await?.status, 200);
    // The head is as before the second write.
    let head = world.heads("tenant").await?.remove(0);
    let mut before = head.clone();
    for name in ["details", "amended", "moved"] {
        before.remove(name);
    }
    let first = format!("SCHEDULED#2026-12-01#2026-12-01T00:00:00Z#{id}");
    before.extend([("due".to_owned(), text(&first)), ("scheduledFor".to_owned(), text("2026-12-01"))]);
    before.insert("version".to_owned(), payments_tests::tables::number(1));
    before.insert("amountMinor".to_owned(), payments_tests::tables::number(4_200));
    world.put_items(&world.environment.tables.payments, [before]).await?;
    assert_eq!(get(&world, &id).await?.body["amountMinor"], 4_200);
    let other = amend(&world, &id, ("one", 1), &json!({ "amountMinor": 2 })).await?;
    assert_eq!((other.status, other.problem()), (422, "idempotency-key-reused"), "{other}");
    // It is amended now, and not when its details were written: whoever reads on from now has not seen it yet.
    world.set_clock("2026-11-20T15:00:00Z")?;
    let completed = amend(&world, &id, ("one", 1), &change).await?;
    assert_eq!((completed.status, completed.header("idempotent-replayed")), (200, None), "{completed}");
    assert_eq!(completed.field("updatedAt"), "2026-11-20T15:00:00Z");
    let completed = world.heads("tenant").await?.remove(0);
    let at = |head: &Item| head["amended"].as_m().ok().map(|amended| amended["at"].clone());
    assert_eq!((at(&head), at(&completed)), (Some(text("2026-11-20T09:00:00Z")), Some(text("2026-11-20T15:00:00Z"))));
    let without = |mut head: Item| head.remove("amended").map(|_| head);
    assert_eq!(without(completed), without(head));
    Ok(())
}

#[tokio::test]
async fn a_lost_head_of_an_amended_payment_is_not_made_anew_from_its_first_details() -> Result<()> {
    let world = World::open().await?;
    let id = created(&world).await?;
    assert_eq!(amend(&world, &id, ("one", 1), &json!({ "amountMinor": 1 })).await?.status, 200);
    let head = world.heads("tenant").await?.remove(0);
    let (table, key) = (&world.environment.tables.payments, payments_tests::tables::key_of(&head));
    world.client().await.delete_item().table_name(table).set_key(Some(key)).send().await?;
    let again = world.send(Ask::create("tenant", "rent", &rent())).await?;
    assert_eq!((again.status, again.problem()), (500, "internal"), "{again}");
    assert!(world.heads("tenant").await?.is_empty());
    let amended = world.send(Ask::amend("tenant", &id, ("one", 1), &rent_with(&json!({ "amountMinor": 1 })))).await?;
    assert_eq!(amended.status, 404, "{amended}");
    Ok(())
}
