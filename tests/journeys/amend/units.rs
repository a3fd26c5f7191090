//! The cost of an amendment, to the unit.
//!
//! The cost is 1 for each KB of the details as stored, 1 for the head and 1 in `due`. With another
//! due time it is 2 in `due`, and 1 in `moved`, or 2 if the payment was moved before.

use fastrand::Rng;
use payments_machine::payload::DataKind;
use payments_tests::prelude::*;

fn body(kind: DataKind, bytes: usize, amount: u32, date: &str) -> Value {
    order_with(date, json!({ "amountMinor": amount, "data": kind.value(&mut Rng::with_seed(1), bytes) }))
}

/// The write units of an amendment: of its details and of its head.
async fn spent(world: &World, ask: Ask) -> Result<Units> {
    world.forget();
    world.send(ask).await?.with_status(200)?;
    Ok(world.take_write_units())
}

/// The units of details, and of a head that moves into or out of the index of moved payments.
fn cost(details: u64, due: u64, moved: u64) -> Units {
    let mut cost = units("PutItem", [("history", details)]);
    cost.extend(units("UpdateItem", [("payments", 1), ("payments/due", due), ("payments/moved", moved)]));
    cost.retain(|_, units| *units > 0);
    cost
}

/// Details of an amendment also say which it is. There is room for that beside the largest payment.
#[tokio::test]
async fn an_amendment_of_the_largest_payment_costs_no_more_than_its_creation() -> Result<()> {
    let world = World::open().await?;
    let order = |bytes: usize, amount: u32| body(DataKind::Incompressible, bytes, amount, "2026-12-01");
    let too_large = world.send(Ask::create("tenant", "rent", &order(9_000, 1))).await?;
    let excess = usize::try_from(too_large.body["excessBytes"].as_u64().context("how much too large")?)?;
    let id = world.create("tenant", "rent", &order(9_000 - excess, 1)).await?;
    let amend = Ask::amend("tenant", &id, ("amount", 1), &order(9_000 - excess, 2));
    assert_eq!(spent(&world, amend).await?, cost(8, 1, 0));
    Ok(())
}

#[tokio::test]
async fn an_amount_costs_four_units_and_a_date_six() -> Result<()> {
    for (kind, details) in [(DataKind::Structured, 2), (DataKind::Incompressible, 8)] {
        let world = World::open().await?;
        let body = |amount, date| body(kind, 7_500, amount, date);
        let id = world.create("tenant", "rent", &body(1, "2026-12-01")).await?;
        for (key, version, date, want) in [
            ("amount", 1, "2026-12-01", cost(details, 1, 0)),
            ("away", 2, "2026-12-02", cost(details, 2, 1)),
            ("on", 3, "2026-12-03", cost(details, 2, 2)),
            ("back", 4, "2026-12-01", cost(details, 2, 1)),
            // An amendment that comes again writes nothing.
            ("back", 4, "2026-12-01", Units::new()),
        ] {
            let amend = Ask::amend("tenant", &id, (key, version), &body(2, date));
            assert_eq!(spent(&world, amend).await?, want, "{key}, {kind:?}");
        }
    }
    Ok(())
}
