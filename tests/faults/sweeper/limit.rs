//! The limit of a date: whichever call of a sweep fails, no more is claimed, and all that is claimed was reserved.
//!
//! The counters lag: nobody counts in these tests, so the reservations alone keep the limit.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_lab::facts::intent::Intent;
use payments_model::BusinessDate;
use payments_store::{DayClaims, Store};
use payments_tests::tables::{text, units};
use payments_tests::{CrashPoint, CrashPoints};

use crate::kit::fault_plan::{WAYS, run_to};
use crate::kit::fixture::Fixture;
use crate::kit::staleness::Lag;
use crate::sweeper::swept;

/// The due date of the payments.
fn today() -> Result<BusinessDate> {
    Ok("2026-11-20".parse()?)
}

async fn claims(fixture: &Fixture) -> Result<DayClaims> {
    let store = Store::new(fixture.client.clone(), fixture.tables().clone());
    Ok(store.day_claims(today()?).await?.1)
}

/// The number of payments that were claimed.
async fn claimed(fixture: &Fixture, intents: &[Intent]) -> Result<u64> {
    let heads = fixture.world.heads(&intents[0].account).await?;
    let is_claimed = |head: &&payments_store::Item| head["status"].as_s().is_ok_and(|status| status == "PENDING");
    Ok(u64::try_from(heads.iter().filter(is_claimed).count())?)
}

/// Sweeps, and fails at a point. The index shows two payments that were cancelled, whose reservations are given back. Then more
/// payments fall due than the limit admits. Returns whether the call was reached and whether it failed.
async fn case(point: CrashPoint) -> Result<(bool, bool)> {
    const LIMIT: u64 = 6;
    let fixture = Fixture::limited(2, "payments=6").await?;
    let mut first = fixture.created(6).await?;
    for intent in &mut first[..2] {
        fixture.cancel(intent).await?;
    }
    fixture.time.pass(TimeDelta::seconds(61));
    fixture.faults.lag(Lag::always(2));
    // A claim that is tried again has another time than the one whose answer was lost.
    fixture.faults.calls_take(TimeDelta::milliseconds(400));
    let run = run_to(point, &fixture.faults, fixture.tick(Action::Sweep)).await;
    fixture.faults.lag(Lag::default());
    let check = async |second: &[Intent], when: &str| -> Result<u64> {
        let mut sum = claimed(&fixture, &first).await?;
        if !second.is_empty() {
            sum += claimed(&fixture, second).await?;
        }
        let reserved = claims(&fixture).await?.reserved.payments;
        assert!(sum <= reserved && reserved <= LIMIT, "{point:?}, {when}: {sum} claimed, {reserved} reserved");
        Ok(sum)
    };
    // A failed run shows in its outcome, and not here.
    check(&[], "after the failure").await?;
    let second = fixture.due(4).await?;
    for _ in 0..2 {
        fixture.tick(Action::Sweep).await?;
        check(&second, "at the end").await?;
    }
    Ok((run.reached, run.failed))
}

#[tokio::test]
async fn a_sweep_that_fails_at_any_call_claims_no_more_than_the_limit() -> Result<()> {
    let mut points = CrashPoints::new("limit", WAYS);
    while let Some(point) = points.next_case() {
        match case(point).await? {
            (true, true) => points.failed(format_args!("{}", point.way.name))?,
            (true, false) => points.reached(),
            (false, _) => {}
        }
    }
    assert!(points.cases() > 80 && points.calls() > 15, "{} cases, {} calls", points.cases(), points.calls());
    Ok(())
}

#[tokio::test]
async fn a_limit_costs_a_unit_for_each_hundred_claims_of_a_shard_and_what_was_not_claimed_is_given_back() -> Result<()>
{
    let fixture = Fixture::limited(1, "payments=250").await?;
    let mut intents = fixture.created(7).await?;
    for intent in &mut intents[..2] {
        fixture.cancel(intent).await?;
    }
    fixture.time.pass(TimeDelta::seconds(61));
    fixture.faults.lag(Lag::always(2));
    drop(fixture.world.take_write_units());
    let outcome = swept(fixture.tick(Action::Sweep).await?)?;
    assert_eq!((outcome.claimed, outcome.already_claimed, outcome.days_held), (5, 2, 0));
    // The reservation, five claims, and what was given back.
    assert_eq!(fixture.world.take_write_units(), units("UpdateItem", [("payments", 7), ("payments/due", 10)]));
    assert_eq!(claims(&fixture).await?.reserved.payments, 5);
    Ok(())
}

#[tokio::test]
async fn two_sweeps_beside_each_other_claim_no_more_than_the_limit() -> Result<()> {
    // Within one second, a claim looks like the other sweep's.
    for (limit, millis) in
        ["payments=60", "payments=119", "payments=120"].into_iter().flat_map(|limit| [(limit, 7), (limit, 0)])
    {
        let fixture = Fixture::limited(4, limit).await?;
        let intents = fixture.due(120).await?;
        fixture.faults.calls_take(TimeDelta::milliseconds(millis));
        let (one, other) = tokio::join!(fixture.tick(Action::Sweep), fixture.tick(Action::Sweep));
        let claimed_by_both = swept(one?)?.claimed + swept(other?)?.claimed;
        let most: u64 = limit.trim_start_matches("payments=").parse()?;
        let sum = claimed(&fixture, &intents).await?;
        assert_eq!(sum, claimed_by_both, "{limit}");
        assert!(sum <= most, "{limit}: {sum}");
        // Each gave back the claims that the other made, so the next sweep finds the room that is left.
        fixture.tick(Action::Sweep).await?;
        let (sum, reserved) = (claimed(&fixture, &intents).await?, claims(&fixture).await?.reserved.payments);
        assert!(sum == reserved && (most < 120 || sum == 120), "{limit}: {sum} claimed, {reserved} reserved");
    }
    Ok(())
}

#[tokio::test]
async fn a_date_whose_release_is_damaged_is_held() -> Result<()> {
    let fixture = Fixture::limited(1, "payments=5").await?;
    let intents = fixture.due(2).await?;
    let damaged = fixture.client.put_item().table_name(&fixture.tables().history);
    damaged.item("pk", text("CONTROL")).item("sk", text("RELEASE#2026-11-20")).send().await?;
    let outcome = swept(fixture.tick(Action::Sweep).await?)?;
    assert_eq!((outcome.claimed, outcome.days_held), (0, 1));
    claims(&fixture).await?.held_since.context("it is not noted")?;
    assert_eq!(claimed(&fixture, &intents).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_damaged_payment_takes_no_room_from_sweep_to_sweep() -> Result<()> {
    let fixture = Fixture::limited(1, "payments=3").await?;
    let intents = fixture.due(3).await?;
    let head = fixture.world.heads(&intents[0].account).await?.pop().context("no head")?;
    // No claim can be added to this trail.
    let damage =
        fixture.client.update_item().table_name(&fixture.tables().payments).update_expression("SET trail = :text");
    let damage = damage.key("pk", head["pk"].clone()).key("sk", head["sk"].clone());
    damage.expression_attribute_values(":text", text("damage")).send().await?;
    for sweep in 0..4 {
        let outcome = swept(fixture.tick(Action::Sweep).await?)?;
        assert_eq!((outcome.failed, outcome.days_held), (1, 0), "{sweep}: {outcome:?}");
        assert_eq!(claims(&fixture).await?.reserved.payments, 2, "{sweep}");
    }
    Ok(())
}
