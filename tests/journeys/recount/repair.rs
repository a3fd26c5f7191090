//! Repairs: only of dates that were found wrong twice, a day apart, without a change in between.

use payments_machine::layers::record::is_of_runs;
use payments_tests::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

use payments_boot::Lookup;
use payments_tests::given::{HORIZON_DAYS, prepare};
use recount::RecountOutcome;

use super::{
    NIGHT, THAT_NIGHT, a_counted_day, alter, exact, finding, interfered, moving, of_day, put, recount, repair, shown,
};

/// The time at which the next night's recount finds drift, and the time from which it can be repaired.
const FOUND_AT: &str = "2090-06-16T02:30:10Z";
const REPAIRABLE_FROM: &str = "2090-06-17T03:30:10Z";

/// A time at which it can be repaired, and what is found anew then.
const LATER: &str = "2090-06-17T04:00:00Z";
const FOUND_LATER: (u64, u64, &str) = (0, 1, "2090-06-17T04:00:10Z");

/// A world whose counters were found wrong, and the wrong and the right counts.
async fn a_drifted_day() -> Result<(Arc<World>, [Value; 2])> {
    let world = a_counted_day().await?;
    let right = shown(&world).await?;
    alter(&world, 0, &[("SCHEDULED", -4), ("PROCESSED", 1), ("GBP.pro", 4_200), ("EUR.can", 7)]).await?;
    assert_eq!(drifted(&recount(&world).await?), (0, 1, FOUND_AT));
    world.forget();
    let wrong = shown(&world).await?;
    Ok((world, [wrong, right]))
}

fn transacts(call: &Call) -> bool {
    call.operation == "TransactWriteItems"
}

/// The number of repaired dates, the number of drifted ones, and the time at which the first was found.
fn drifted(report: &RecountOutcome) -> (u64, u64, &str) {
    (report.repaired, report.drifted, report.drifts.first().map_or("", |drift| drift.found_at.as_str()))
}

#[tokio::test]
async fn drift_is_repaired_after_a_day_and_an_hour() -> Result<()> {
    let (world, [wrong, right]) = a_drifted_day().await?;
    world.forget();
    // The second look, which counts, comes ten seconds after the beginning.
    for too_early in ["2090-06-16T02:31:00Z", "2090-06-16T03:31:00Z", "2090-06-17T02:30:10Z", "2090-06-17T03:29:59Z"] {
        world.set_clock(too_early)?;
        let report = repair(&world).await?;
        assert_eq!(drifted(&report), (0, 1, FOUND_AT), "{too_early}");
        assert_eq!(report.drifts[0].repairable_from, REPAIRABLE_FROM);
        assert_eq!(shown(&world).await?, wrong, "{too_early}");
    }
    let mut operations = world.recorder.take_operations();
    operations.retain(|operation| operation != "Query");
    assert_eq!(operations, ["UpdateItem"; 4], "each run puts its outcome");
    world.set_clock("2090-06-17T03:30:00Z")?;
    world.forget();
    let report = repair(&world).await?;
    assert_eq!((drifted(&report), report.drifts[0].repaired), ((1, 0, FOUND_AT), true), "{report:?}");
    assert_eq!(world.metric("RepairedDates")?, 1);
    // One lane takes the difference, seven are conditions, the finding is deleted; 2 units each. The log's head notes
    // that it may lack changes.
    let mut spent = world.take_units();
    spent.retain(|(operation, place), _| operation != "Query" && !is_of_runs(place));
    let all =
        [("TransactWriteItems", "payments", 18), ("GetItem", "payments-log", 1), ("UpdateItem", "payments-log", 1)];
    let all = all.map(|(operation, table, units)| ((operation.to_owned(), table.to_owned()), units));
    if Lookup::environment().text("DYNAMODB_ENDPOINT").is_some() {
        println!("SKIPPED: what a repair costs, because DynamoDB Local counts 2 of the transaction's 18 units");
    } else {
        assert_eq!(spent, all.into());
    }
    assert_eq!((shown(&world).await?, finding(&world).await?), (right, None));
    assert_eq!((recount(&world).await?, repair(&world).await?), (exact(3), exact(1)));

    // The stream continues.
    put(&world, "one-more", LATER).await?;
    world.count_all().await?;
    assert_eq!(recount(&world).await?, exact(3));
    Ok(())
}

#[tokio::test]
async fn a_date_that_was_never_counted_gets_its_counters() -> Result<()> {
    let world = World::with(|environment| environment.horizon_days = HORIZON_DAYS).await?;
    prepare(&world, &["a-day"], THAT_NIGHT).await?;
    assert_eq!(shown(&world).await?["total"], 0);
    for (now, action) in [(NIGHT, "recount"), (LATER, "repair")] {
        world.set_clock(now)?;
        of_day(world.functions(), action).await?;
    }
    assert_eq!(shown(&world).await?["total"], 7);
    Ok(())
}

#[tokio::test]
async fn a_repair_without_a_finding_only_records_one() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 3, &[("PENDING", 1)]).await?;
    for (at, want) in [
        ("2090-06-16T02:30:00Z", (0, 1, FOUND_AT)),
        ("2090-06-17T03:29:59Z", (0, 1, FOUND_AT)),
        ("2090-06-17T03:30:00Z", (1, 0, FOUND_AT)),
    ] {
        world.set_clock(at)?;
        assert_eq!(drifted(&repair(&world).await?), want, "{at}");
    }
    Ok(())
}

/// Counters that moved are found anew, even if they moved back. So are those that disagree with the payments.
#[tokio::test]
async fn what_has_changed_since_it_was_found_is_not_repaired() -> Result<()> {
    for lane in [Some(0), Some(1), Some(7), None] {
        let (world, [wrong, _]) = a_drifted_day().await?;
        if let Some(lane) = lane {
            // A change and its opposite, each counted.
            alter(&world, lane, &[("PENDING", 1), ("moves", 1)]).await?;
            alter(&world, lane, &[("PENDING", -1), ("moves", 1)]).await?;
        } else {
            // The payment is created, but not counted.
            put(&world, "not-counted", LATER).await?;
        }
        assert_eq!(shown(&world).await?, wrong, "{lane:?}");
        world.set_clock(LATER)?;
        assert_eq!(drifted(&repair(&world).await?), FOUND_LATER, "{lane:?}");
        assert_eq!(shown(&world).await?, wrong, "{lane:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_counter_that_moves_at_the_last_moment_stops_the_repair() -> Result<()> {
    let (world, [wrong, _]) = a_drifted_day().await?;
    world.set_clock(LATER)?;
    for lane in 0..8 {
        let moves = move |world: Arc<World>| async move { alter(&world, lane, &[("moves", 1)]).await };
        let functions = interfered(&world, transacts, moves).await?;
        assert_eq!(of_day(&functions, "repair").await?, moving(), "lane {lane}");
        assert_eq!(shown(&world).await?, wrong, "lane {lane}");
        // Restored for the next lane.
        alter(&world, lane, &[("moves", -1)]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_repair_requires_an_unchanged_finding() -> Result<()> {
    let (world, [wrong, _]) = a_drifted_day().await?;
    world.set_clock(LATER)?;
    let whole = finding(&world).await?.context("no finding is stored")?;
    // Another run has found the same anew, or no drift.
    for change in ["SET foundAt = :at", "REMOVE foundAt"] {
        let item = whole.clone();
        let changes = move |world: Arc<World>| {
            let (item, at) = (item.clone(), [(":at", text("2090-06-17T03:59:59Z"))]);
            async move { world.update(&item, change, &at[..usize::from(change.contains(":at"))]).await }
        };
        let functions = interfered(&world, transacts, changes).await?;
        assert_eq!(of_day(&functions, "repair").await?, moving(), "{change}");
        assert_eq!(shown(&world).await?, wrong, "{change}");
        world.put_items(&world.environment.tables.payments, [whole.clone()]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn of_two_concurrent_repairs_one_writes() -> Result<()> {
    let (world, [_, right]) = a_drifted_day().await?;
    world.set_clock(LATER)?;
    // The second one begins and ends while the first one is about to write.
    let first = AtomicBool::new(true);
    let when = move |call: &Call| transacts(call) && first.swap(false, Ordering::Relaxed);
    let repairs = |world: Arc<World>| async move {
        let second = repair(&world).await?;
        ensure!(second.repaired == 1, "{second:?}");
        Ok(())
    };
    let functions = interfered(&world, when, repairs).await?;
    assert_eq!(of_day(&functions, "repair").await?, moving());
    assert_eq!(shown(&world).await?, right);

    // And wherever two repairs race.
    alter(&world, 2, &[("PENDING", 5)]).await?;
    world.set_clock("2090-06-20T04:00:00Z")?;
    recount(&world).await?;
    world.set_clock("2090-06-25T04:00:00Z")?;
    let (one, other) = futures::try_join!(repair(&world), repair(&world))?;
    assert_eq!(one.repaired + other.repaired, 1, "{one:?} and {other:?}");
    assert_eq!(shown(&world).await?, right);
    Ok(())
}

#[tokio::test]
async fn a_repair_whose_answer_is_lost_is_done_once() -> Result<()> {
    let (world, [_, right]) = a_drifted_day().await?;
    world.set_clock(LATER)?;
    for _ in 0..2 {
        let functions = world.functions_meeting(Fate::LoseReply, transacts).await?;
        let report = of_day(&functions, "repair").await?;
        assert_eq!(report.repaired, 0, "the run does not know: {report:?}");
        assert_eq!(shown(&world).await?, right);
    }
    assert_eq!(repair(&world).await?.exact, 1);
    Ok(())
}

#[tokio::test]
async fn a_date_with_unparsed_changes_is_repaired() -> Result<()> {
    let world = a_counted_day().await?;
    let right = shown(&world).await?;
    alter(&world, 1, &[("unparsed", 2), ("moves", 2)]).await?;
    alter(&world, 6, &[("unparsed", 1), ("FAILED", -1), ("moves", 1)]).await?;
    recount(&world).await?;
    world.set_clock(LATER)?;
    world.forget();
    let report = repair(&world).await?;
    assert_eq!((report.repaired, report.unparsed_changes), (1, 0), "{report:?}");
    assert_eq!(world.metric("UnparsedChanges")?, 0);
    assert_eq!((shown(&world).await?, &right["unparsed"]), (right.clone(), &json!(0)));
    Ok(())
}
