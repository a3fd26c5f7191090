//! The cost of a payment, to the unit.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_store::item_bytes;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

fn row(operation: &str, place: &str, units: u64) -> ((String, String), u64) {
    ((operation.to_owned(), place.to_owned()), units)
}

fn payment(data_bytes: usize) -> Value {
    payment_of(DataKind::Incompressible, data_bytes)
}

fn payment_of(kind: DataKind, data_bytes: usize) -> Value {
    let data = kind.value(&mut Rng::with_seed(1), data_bytes);
    json!({ "payeeAccountId": "landlord", "amountMinor": 120_000, "currency": "GBP", "scheduledFor": "2026-12-01", "data": data })
}

/// Returns how much data of a kind makes a payment exactly as large as allowed. The API itself says so.
async fn largest_data(world: &World, kind: DataKind) -> Result<usize> {
    let refused = world.send(Ask::create("tenant", "size", &payment_of(kind, 10_000))).await?;
    assert_eq!((refused.status, refused.problem()), (413, "payment-too-large"), "{refused}");
    let excess = refused.body["excessBytes"].as_u64().context("no excessBytes")?;
    Ok(10_000 - usize::try_from(excess)?)
}

#[tokio::test]
async fn creating_the_largest_payment_costs_ten_units() -> Result<()> {
    let world = World::open().await?;
    let largest = largest_data(&world, DataKind::Incompressible).await?;
    let over = world.send(Ask::create("tenant", "size", &payment(largest + 1))).await?;
    assert_eq!((over.status, &over.body["excessBytes"]), (413, &json!(1)), "{over}");
    drop(world.recorder.take_capacity_use());

    let put = world.send(Ask::create("tenant", "size", &payment(largest))).await?;
    assert_eq!(put.status, 201, "{put}");
    let spent = [row("PutItem", "history", 8), row("PutItem", "payments", 1), row("PutItem", "payments/due", 1)];
    assert_eq!(world.take_units(), BTreeMap::from(spent));
    Ok(())
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

#[tokio::test]
async fn details_cost_what_their_data_takes_and_never_more_than_as_it_came() -> Result<()> {
    let world = World::open().await?;
    let largest = largest_data(&world, DataKind::Incompressible).await?;
    for kind in [DataKind::Structured, DataKind::Dense, DataKind::Prose, DataKind::Base64] {
        assert_eq!(
            largest_data(&world, kind).await?,
            largest,
            "{kind:?}: no answer depends on how well data compresses"
        );
    }
    let sizes = [200, 2_048, 4_096, largest];
    for (kind, units) in DETAILS {
        for ((bytes, details), as_it_came) in sizes.into_iter().zip(units).zip(AS_IT_CAME) {
            assert!(details <= as_it_came, "{kind:?}, {bytes}");
            drop(world.recorder.take_capacity_use());
            let ask = Ask::create("tenant", &format!("{}-{bytes}", kind.name()), &payment_of(kind, bytes));
            let put = world.send(ask).await?;
            assert_eq!(put.status, 201, "{put}");
            let spent =
                [row("PutItem", "history", details), row("PutItem", "payments", 1), row("PutItem", "payments/due", 1)];
            assert_eq!(world.take_units(), BTreeMap::from(spent), "{kind:?}, {bytes}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_cancel_costs_three_units() -> Result<()> {
    let world = World::open().await?;
    let put = world.send(Ask::create("tenant", "rent", &payment(7_000))).await?;
    drop(world.recorder.take_capacity_use());
    world.send(Ask::cancel("tenant", put.field("paymentId"))).await?;
    let writes: BTreeMap<_, _> = world.take_units().into_iter().filter(|((op, _), _)| op == "UpdateItem").collect();
    assert_eq!(writes, BTreeMap::from([row("UpdateItem", "payments", 1), row("UpdateItem", "payments/due", 2)]));
    Ok(())
}

#[tokio::test]
async fn listing_a_hundred_payments_costs_what_their_heads_cost() -> Result<()> {
    let world = World::open().await?;
    for n in 0..100 {
        let put = world.send(Ask::create("tenant", &format!("rent-{n}"), &payment(7_500))).await?;
        assert_eq!(put.status, 201, "{put}");
    }
    let heads: usize = world.heads("tenant").await?.iter().map(item_bytes).sum();
    drop((world.recorder.take_capacity_use(), world.recorder.take_operations()));

    let list = world.send(Ask::get("/accounts/tenant/payments?limit=100")).await?;
    assert_eq!(list.payments().len(), 100);
    // The index of moved payments is asked, too. None has moved.
    assert_eq!(world.recorder.take_operations(), ["Query", "Query"]);
    let read = u64::try_from(heads.div_ceil(4_096))?;
    assert_eq!(world.take_units(), BTreeMap::from([row("Query", "payments", read), row("Query", "payments/moved", 0)]));
    assert!(read <= 25, "a hundred heads of at most 1 KB: {read}");
    Ok(())
}
