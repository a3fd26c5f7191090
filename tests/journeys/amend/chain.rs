//! The sent version is the one in force at the claim, and never one that was not in force.

use super::{amend, amended, created, rent, versions};
use payments_tests::prelude::*;

#[tokio::test]
async fn details_that_no_head_names_were_never_in_force() -> Result<()> {
    let (world, id) = created().await?;
    // Two clients have seen version 1. One put its details and came too late.
    amended(&world, &id, ("one", 1), json!({ "amountMinor": 1 })).await?;
    let mut lost = world.details(&id).await?.remove(1);
    lost.insert("sk".to_owned(), text("DETAILS#2#626e8292-8e84-575a-b684-0af73927405b"));
    lost.insert("payeeAccountId".to_owned(), text("thief"));
    world.put_items(&world.environment.tables.history, [lost]).await?;
    let amounts: Vec<_> = versions(&world, &id, "").await?.iter().map(|it| it["amountMinor"].as_u64()).collect();
    assert_eq!(amounts, [Some(4_200), Some(1)]);
    assert_eq!(world.payment("tenant", &id).await?.field("payeeAccountId"), "landlord");
    Ok(())
}

/// A client's try that got as far as its details is completed by its retry, and by nothing else.
#[tokio::test]
async fn a_try_that_crashed_between_its_writes_is_completed_by_its_retry() -> Result<()> {
    let (world, id) = created().await?;
    let first = world.heads("tenant").await?;
    let change = || json!({ "amountMinor": 1, "scheduledFor": "2026-11-20" });
    amended(&world, &id, ("one", 1), change()).await?;
    // The head is as before the second write.
    let head = world.heads("tenant").await?.remove(0);
    world.put_items(&world.environment.tables.payments, first).await?;
    assert_eq!(world.payment("tenant", &id).await?.body["amountMinor"], 4_200);
    let other = amend(&id, ("one", 1), json!({ "amountMinor": 2 }));
    world.refused(other, 422, "idempotency-key-reused").await?;
    // The payment is amended now, and not when its details were written: a reader that reads on
    // from now has not seen it yet.
    world.set_clock("2026-11-20T15:00:00Z")?;
    let reply = amended(&world, &id, ("one", 1), change()).await?;
    let seen = (reply.header("idempotent-replayed"), reply.field("updatedAt"));
    assert_eq!(seen, (None, "2026-11-20T15:00:00Z"), "{reply}");
    let completed = world.heads("tenant").await?.remove(0);
    let at = |head: &Item| head["amended"].as_m().ok().map(|amended| amended["at"].clone());
    assert_eq!((at(&head), at(&completed)), (Some(text("2026-11-20T09:00:00Z")), Some(text("2026-11-20T15:00:00Z"))));
    let without = |mut head: Item| head.remove("amended").map(|_| head);
    assert_eq!(without(completed), without(head));
    Ok(())
}

#[tokio::test]
async fn a_lost_head_of_an_amended_payment_is_not_made_anew_from_its_first_details() -> Result<()> {
    let (world, id) = created().await?;
    amended(&world, &id, ("one", 1), json!({ "amountMinor": 1 })).await?;
    let head = world.heads("tenant").await?.remove(0);
    world.delete(&world.environment.tables.payments, &head).await?;
    world.refused(Ask::create("tenant", "rent", &rent()), 500, "internal").await?;
    assert!(world.heads("tenant").await?.is_empty());
    world.refused(amend(&id, ("one", 1), json!({ "amountMinor": 1 })), 404, "no-such-payment").await?;
    Ok(())
}
