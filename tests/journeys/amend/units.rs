//! What an amendment costs, to the unit.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_tests::{Ask, World};
use serde_json::{Value, json};

fn body(kind: DataKind, bytes: usize, amount: u32, date: &str) -> Value {
    let data = kind.value(&mut Rng::with_seed(1), bytes);
    json!({ "payeeAccountId": "landlord", "amountMinor": amount, "currency": "GBP", "scheduledFor": date, "data": data })
}

/// The write units of an amendment, by table and index.
async fn spent(world: &World, ask: Ask) -> Result<BTreeMap<String, u64>> {
    drop(world.recorder.take_capacity_use());
    let amended = world.send(ask).await?;
    assert_eq!(amended.status, 200, "{amended}");
    let writes = world.take_units().into_iter().filter(|((operation, _), _)| operation.ends_with("Item"));
    let writes =
        writes.filter(|((operation, _), _)| !operation.starts_with("Get") && !operation.starts_with("BatchGet"));
    let mut places = BTreeMap::new();
    for ((_, place), units) in writes {
        *places.entry(place).or_default() += units;
    }
    Ok(places)
}

fn places(all: &[(&str, u64)]) -> BTreeMap<String, u64> {
    all.iter().map(|(place, units)| ((*place).to_owned(), *units)).collect()
}

/// Details of an amendment also say which it is. There is room for that beside the largest payment.
#[tokio::test]
async fn an_amendment_of_the_largest_payment_costs_no_more_than_its_creation() -> Result<()> {
    let world = World::open().await?;
    let order = |bytes: usize, amount: u32| body(DataKind::Incompressible, bytes, amount, "2026-12-01");
    let too_large = world.send(Ask::create("tenant", "rent", &order(9_000, 1))).await?;
    let excess = usize::try_from(too_large.body["excessBytes"].as_u64().context("how much too large")?)?;
    let id = world.create("tenant", "rent", &order(9_000 - excess, 1)).await?;
    let spent = spent(&world, Ask::amend("tenant", &id, ("amount", 1), &order(9_000 - excess, 2))).await?;
    assert_eq!(spent, places(&[("history", 8), ("payments", 1), ("payments/due", 1)]));
    Ok(())
}

#[tokio::test]
async fn an_amount_costs_four_units_and_a_date_six() -> Result<()> {
    for (kind, details) in [(DataKind::Structured, 2), (DataKind::Incompressible, 8)] {
        let world = World::open().await?;
        let body = |amount, date| body(kind, 7_500, amount, date);
        let id = world.create("tenant", "rent", &body(1, "2026-12-01")).await?;
        let amend = |key, body: &Value| Ask::amend("tenant", &id, key, body);
        let amount = spent(&world, amend(("amount", 1), &body(2, "2026-12-01"))).await?;
        assert_eq!(amount, places(&[("history", details), ("payments", 1), ("payments/due", 1)]));
        let away = spent(&world, amend(("away", 2), &body(2, "2026-12-02"))).await?;
        let want = [("history", details), ("payments", 1), ("payments/due", 2), ("payments/moved", 1)];
        assert_eq!(away, places(&want));
        let on = spent(&world, amend(("on", 3), &body(2, "2026-12-03"))).await?;
        assert_eq!(on, places(&[("history", details), ("payments", 1), ("payments/due", 2), ("payments/moved", 2)]));
        let back = spent(&world, amend(("back", 4), &body(2, "2026-12-01"))).await?;
        assert_eq!(back, places(&want));
        // An amendment that comes again, or too late, writes nothing, or what nobody reads.
        let again = spent(&world, amend(("back", 4), &body(2, "2026-12-01"))).await?;
        assert_eq!(again, places(&[]));
    }
    Ok(())
}
