//! Lateness: a payment is late from when it could be claimed, whether the sweep claims it, leaves it or cannot read it.
//!
//! A month does not compute how late a payment is.

use anyhow::{Context as _, Result, bail};
use daily_due_sweeper::{Action, Request, SweepOutcome, SweeperOutcome};
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_machine::{Call, Fate, Recorder};
use payments_tests::World;
use payments_tests::tables::{NO_DEADLINE, context};
use serde_json::{Value, json};

/// Five minutes after the feed of a date that began an hour before.
const FED: &str = "2026-11-20T01:00:00Z";
const SWEPT: &str = "2026-11-20T01:05:00Z";

/// A world in which the feed has created payments of the date.
async fn fed() -> Result<World> {
    let world = World::open().await?;
    world.set_clock(FED)?;
    let entry = |n: usize| {
        json!({
            "accountId": format!("payer-{n}"), "idempotencyKey": "rent", "payeeAccountId": "landlord",
            "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20",
        })
    };
    world.create_all((0..40).map(entry)).await?;
    world.set_clock(SWEPT)?;
    Ok(world)
}

/// Sweeps, and returns the outcome with the metric of lateness.
async fn sweep(world: &World, functions: &Functions) -> Result<(SweepOutcome, Option<u64>)> {
    drop(world.outside.metrics.take());
    let event = LambdaEvent::new(Request { action: Action::Sweep }, context(NO_DEADLINE));
    let outcome = match functions.sweeper.handle(event).await {
        Ok(SweeperOutcome::Sweep(outcome)) => outcome,
        Ok(other) => bail!("{other:?}"),
        Err(_) => SweepOutcome::default(),
    };
    let line: Value = serde_json::from_str(world.outside.metrics.take().last().context("no metrics")?)?;
    Ok((outcome, line["OldestOverdueSeconds"].as_u64()))
}

/// Functions whose calls of some operations have this fate.
async fn under(world: &World, operations: &'static [&'static str], fate: Fate) -> Result<Functions> {
    let fate = move |call: &Call| if operations.contains(&call.operation.as_str()) { fate } else { Fate::Pass };
    world.functions_over(&Recorder::with_fate(fate)).await
}

#[tokio::test]
async fn a_feed_at_one_for_a_date_that_began_at_midnight_is_not_late() -> Result<()> {
    let world = fed().await?;
    let (outcome, late) = sweep(&world, world.functions()).await?;
    assert_eq!((outcome.claimed, late), (40, Some(300)));
    // Nothing is left, so nothing is late.
    assert_eq!(sweep(&world, world.functions()).await?.1, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_payment_that_was_due_long_ago_is_late_when_it_is_claimed() -> Result<()> {
    let world = fed().await?;
    world.set_clock("2026-11-20T02:00:00Z")?;
    assert_eq!(sweep(&world, world.functions()).await?.1, Some(3_600), "created at 01:00");
    let later =
        json!({ "payeeAccountId": "b", "amountMinor": 5, "currency": "GBP", "scheduledFor": "2026-11-20T03:00:00Z" });
    world.create("a", "later", &later).await?;
    world.set_clock("2026-11-20T03:40:00Z")?;
    assert_eq!(sweep(&world, world.functions()).await?.1, Some(2_400), "due at 03:00");
    Ok(())
}

/// The waits between retries pass on the clock.
fn is_five_minutes(late: Option<u64>) -> bool {
    late.is_some_and(|late| (300..400).contains(&late))
}

#[tokio::test]
async fn payments_that_a_sweep_leaves_are_late_from_their_creation_too() -> Result<()> {
    let throttled = Fate::Refuse(400, "ProvisionedThroughputExceededException");
    let world = fed().await?;
    let functions = under(&world, &["UpdateItem"], throttled).await?;
    let (outcome, late) = sweep(&world, &functions).await?;
    assert_eq!((outcome.claimed, outcome.remaining), (0, 40));
    assert!(is_five_minutes(late), "{late:?}");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_read_is_not_known_to_be_in_time() -> Result<()> {
    let throttled = Fate::Refuse(400, "ProvisionedThroughputExceededException");
    let broken = Fate::Refuse(400, "AccessDeniedException");
    for (operations, fate) in [
        (&["Query"] as &'static [&'static str], throttled),
        (&["Query"], broken),
        (&["UpdateItem", "BatchGetItem"], throttled),
        (&["UpdateItem"], broken),
    ] {
        let world = fed().await?;
        let functions = under(&world, operations, fate).await?;
        // The alarm counts a missing metric as late.
        assert_eq!(sweep(&world, &functions).await?.1, None, "{operations:?} {fate:?}");
    }
    Ok(())
}
