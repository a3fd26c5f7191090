//! The cost of a payment, to the unit.
//!
//! The write units of a payment with 8 KB of data that cannot be compressed:
//!
//! | step | units |
//! |---|---|
//! | created | 10: details 8, head 1, `due` 1 |
//! | pending | 3: head 1, `due` 2 |
//! | processed | 7: in the long-term table head, `due` and `transaction` 1 each; in the hot table head 1, `due` 2, `unreported` 1 |
//! | failed | 6: no `transaction` |
//! | reported | 2: head 1, `unreported` 1 |
//!
//! DynamoDB deletes expired items free of charge. Details cost 2 with the lines of an invoice, 4 with prose, 6 with base64. The
//! settlement of a payment in the index `moved` costs 1 more.

use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_store::item_bytes;
use payments_tests::prelude::*;

fn payment(kind: DataKind, data_bytes: usize) -> Value {
    order_with("2026-12-01", json!({ "data": kind.value(&mut Rng::with_seed(1), data_bytes) }))
}

/// Returns how much data of a kind makes a payment exactly as large as allowed. The API itself says so.
async fn largest_data(world: &World, kind: DataKind) -> Result<usize> {
    let ask = Ask::create("tenant", "size", &payment(kind, 10_000));
    let refused = world.refused(ask, 413, "payment-too-large").await?;
    Ok(10_000 - usize::try_from(refused.body["excessBytes"].as_u64().context("no excessBytes")?)?)
}

/// The units of details as they came, at 0.2, 2 and 4 KB of data and for the largest payment.
const AS_IT_CAME: [u64; 4] = [1, 3, 5, 8];

/// Their units by the kind of their data.
const DETAILS: [(DataKind, [u64; 4]); 6] = [
    (DataKind::Structured, [1, 1, 2, 2]),
    (DataKind::Dense, [1, 2, 3, 4]),
    (DataKind::Prose, [1, 2, 3, 4]),
    (DataKind::Base64, [1, 2, 4, 6]),
    (DataKind::Small, [1, 1, 1, 1]),
    (DataKind::Incompressible, AS_IT_CAME),
];

/// A create is two writes and no read.
#[tokio::test]
async fn details_cost_what_their_data_takes_and_never_more_than_as_it_came() -> Result<()> {
    let world = World::open().await?;
    let largest = largest_data(&world, DataKind::Incompressible).await?;
    let over = Ask::create("tenant", "size", &payment(DataKind::Incompressible, largest + 1));
    assert_eq!(world.refused(over, 413, "payment-too-large").await?.body["excessBytes"], 1);
    for kind in [DataKind::Structured, DataKind::Dense, DataKind::Prose, DataKind::Base64] {
        let same = largest_data(&world, kind).await?;
        assert_eq!(same, largest, "{kind:?}: no answer depends on how well data compresses");
    }
    let sizes = [200, 2_048, 4_096, largest];
    for (kind, cost) in DETAILS {
        for ((bytes, details), as_it_came) in sizes.into_iter().zip(cost).zip(AS_IT_CAME) {
            assert!(details <= as_it_came, "{kind:?}, {bytes}");
            world.forget();
            world.create("tenant", &format!("{}-{bytes}", kind.name()), &payment(kind, bytes)).await?;
            let spent = [("history", details), ("payments", 1), ("payments/due", 1)];
            assert_eq!(world.take_units(), units("PutItem", spent), "{kind:?}, {bytes}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_cancel_costs_three_units() -> Result<()> {
    let world = World::open().await?;
    let id = world.create("tenant", "rent", &payment(DataKind::Incompressible, 7_000)).await?;
    world.forget();
    world.cancel("tenant", &id).await?;
    assert_eq!(world.take_write_units(), units("UpdateItem", [("payments", 1), ("payments/due", 2)]));
    Ok(())
}

/// Beside it, a plan and a run write items of their own to the long-term table.
#[tokio::test]
async fn an_undone_payment_costs_what_a_cancel_costs() -> Result<()> {
    let world = World::open().await?;
    let order = payment(DataKind::Incompressible, 7_000);
    let (id, due_date) = ("0123456789abcdef", order["scheduledFor"].clone());
    world.create_all((0..100).map(|n| entry("tenant", n, order.clone()))).await?;
    let undo = async |request| {
        world.forget();
        let handle = |event| world.functions().undo.handle(event);
        invoke_until(handle, request, NO_DEADLINE).await
    };
    let plan = json!(undo(json!({ "action": "plan", "id": id, "select": { "dueDate": due_date } })).await?);
    assert_eq!(plan["payments"], 100);
    let run = json!({ "action": "run", "id": id, "plan": 1, "sha256": plan["sha256"], "ticket": "INC-4711" });
    assert_eq!(json!(undo(run).await?)["runs"][0]["ends"], json!({ "cancelled": 100 }));
    let mut writes = world.take_write_units();
    writes.retain(|(_, place), _| place != "history");
    assert_eq!(writes, units("UpdateItem", [("payments", 100), ("payments/due", 200)]));
    Ok(())
}

#[tokio::test]
async fn listing_a_hundred_payments_costs_what_their_heads_cost() -> Result<()> {
    let world = World::open().await?;
    let order = payment(DataKind::Incompressible, 7_500);
    world.create_all((0..100).map(|n| entry("tenant", n, order.clone()))).await?;
    let heads: usize = world.heads("tenant").await?.iter().map(item_bytes).sum();
    world.forget();

    assert_eq!(world.get("/accounts/tenant/payments?limit=100").await?.payments().len(), 100);
    // The index of moved payments is asked, too. None has moved.
    assert_eq!(world.recorder.take_operations(), ["Query", "Query"]);
    let read = u64::try_from(heads.div_ceil(4_096))?;
    assert_eq!(world.take_units(), units("Query", [("payments", read), ("payments/moved", 0)]));
    assert!(read <= 25, "a hundred heads of at most 1 KB: {read}");
    Ok(())
}
