//! Drift: real drift, the appearance of drift, and the findings that are stored.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

use payments_tests::given::ACCOUNT;
use recount::RecountOutcome;

use super::{
    DAY, NIGHT, NO_DEADLINE, a_counted_day, alter, exact, finding, interfered, moving, of_day, put, reads_counters,
    recount, run_of, shown,
};

/// The operations of the run since the last time, without queries and the put of its outcome.
fn writes(world: &World) -> Vec<String> {
    let operations = world.recorder.take_operations().into_iter();
    let mut operations: Vec<String> = operations.filter(|operation| operation != "Query").collect();
    assert_eq!(operations.pop().as_deref(), Some("UpdateItem"), "the outcome");
    operations
}

fn found_at(report: &RecountOutcome) -> Vec<&str> {
    report.drifts.iter().map(|drift| drift.found_at.as_str()).collect()
}

#[tokio::test]
async fn altered_counters_are_drift_and_the_first_finding_is_kept() -> Result<()> {
    let world = a_counted_day().await?;
    let right = shown(&world).await?;
    alter(&world, 5, &[("PENDING", 2), ("GBP.pro", -3)]).await?;
    let wrong = shown(&world).await?;
    world.forget();
    let report = recount(&world).await?;
    assert_eq!((report.exact, report.drifted, report.drifts.len()), (2, 1, 1), "{report:?}");
    let want = json!({
        "date": DAY, "counters": wrong, "recounted": right, "repaired": false,
        // Ten seconds after the first look at half past two.
        "foundAt": "2090-06-16T02:30:10Z", "repairableFrom": "2090-06-17T03:30:10Z",
    });
    assert_eq!(serde_json::to_value(&report.drifts[0])?, want);
    assert_eq!(writes(&world), ["PutItem"]);
    let kept = finding(&world).await?.context("no finding is stored")?;
    assert_eq!(world.metric("DriftedDates")?, 1);

    // The next night finds the same, and writes nothing.
    world.set_clock("2090-06-17T02:30:00Z")?;
    let next_night = recount(&world).await?;
    assert_eq!((next_night.drifted, found_at(&next_night)), (1, vec!["2090-06-16T02:30:10Z"]));
    assert_eq!((writes(&world), finding(&world).await?.as_ref()), (vec!["GetItem".to_owned()], Some(&kept)));

    // Other numbers, or a moved counter, are another finding.
    for (lane, numbers, at) in [(5, [("moves", 1)], "2090-06-17T03:00"), (0, [("moves", 2)], "2090-06-17T04:00")] {
        alter(&world, lane, &numbers).await?;
        world.set_clock(&format!("{at}:00Z"))?;
        assert_eq!(found_at(&recount(&world).await?), [format!("{at}:10Z")]);
    }
    put(&world, "not-counted", "2090-06-17T05:00:00Z").await?;
    assert_eq!(found_at(&recount(&world).await?), ["2090-06-17T05:00:10Z"]);

    // Exact again: the finding is deleted, once.
    alter(&world, 5, &[("PENDING", -2), ("GBP.pro", 3)]).await?;
    world.count_all().await?;
    world.forget();
    for want in [vec!["DeleteItem"], vec![]] {
        assert_eq!(recount(&world).await?, exact(3));
        assert_eq!(writes(&world), want);
    }
    assert_eq!(finding(&world).await?, None);
    Ok(())
}

#[tokio::test]
async fn an_uncounted_record_is_drift() -> Result<()> {
    let world = a_counted_day().await?;
    let mut counting = Counting::start(&world).await?;
    counting.count(world.functions()).await?;
    for (key, skipped) in [("one", true), ("two", false)] {
        put(&world, key, NIGHT).await?;
        let records = if skipped { counting.skip().await? } else { counting.count(world.functions()).await? };
        assert_eq!(records, 1, "{key}");
    }
    // The checkpoint is past it: it does not come again.
    let before = shown(&world).await?;
    world.count_all().await?;
    let report = recount(&world).await?;
    assert_eq!((report.exact, report.drifted), (2, 1), "{report:?}");
    let drift = serde_json::to_value(&report.drifts[0])?;
    assert_eq!(drift["counters"], before);
    for (side, payments) in [("counters", 4), ("recounted", 5)] {
        // Three and one more of pounds are scheduled, 42 each, and these of 5 pence.
        assert_has(&drift[side]["byStatus"], &json!({ "SCHEDULED": payments }));
        let sum = 3 * 4_200 + (payments - 3) * 5;
        assert_has(&drift[side]["sums"]["GBP"], &json!({ "SCHEDULED": sum.to_string() }));
    }
    Ok(())
}

#[tokio::test]
async fn an_unparsed_change_is_drift_even_if_the_numbers_agree() -> Result<()> {
    let world = a_counted_day().await?;
    alter(&world, 0, &[("unparsed", 1), ("moves", 1)]).await?;
    let report = recount(&world).await?;
    assert_eq!((report.drifted, report.unparsed_changes), (1, 1), "{report:?}");
    assert_eq!(world.metric("UnparsedChanges")?, 1);
    Ok(())
}

/// An event of a date between its first and second look.
#[derive(Debug, Clone, Copy)]
enum Between {
    TheStreamIsCounted,
    OneMoreComes,
    OneGoes,
    CountersChange(&'static str),
}

async fn happen(what: Between, world: &World) -> Result<()> {
    match what {
        Between::TheStreamIsCounted => drop(world.count_all().await?),
        Between::OneMoreComes => drop(put(world, "in-between", NIGHT).await?),
        Between::OneGoes => {
            let again = put(world, "late", NIGHT).await?;
            world.cancel(ACCOUNT, &again).await?;
        }
        Between::CountersChange(number) => alter(world, 7, &[(number, 1)]).await?,
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_change_between_two_looks_is_not_drift() -> Result<()> {
    for (what, want) in [
        (Between::TheStreamIsCounted, exact(1)),
        (Between::OneMoreComes, moving()),
        (Between::OneGoes, moving()),
        (Between::CountersChange("moves"), moving()),
        (Between::CountersChange("FAILED"), moving()),
    ] {
        let world = a_counted_day().await?;
        put(&world, "late", NIGHT).await?;
        // The third read of the counters begins the second look.
        let reads = AtomicU32::new(0);
        let when = move |call: &Call| reads_counters(call) && reads.fetch_add(1, Ordering::Relaxed) == 2;
        let happens = move |world: Arc<World>| async move { happen(what, &world).await };
        let functions = interfered(&world, when, happens).await?;
        assert_eq!(of_day(&functions, "recount").await?, want, "{what:?}");
        assert_eq!(finding(&world).await?, None, "{what:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_outcome_names_a_hundred_dates_and_counts_the_others() -> Result<()> {
    let world = World::open().await?;
    let first: payments_model::BusinessDate = "2026-12-01".parse()?;
    let date = |days| first.plus_days(days).to_string();
    let counter = |days| item([("pk", text("COUNTS#2")), ("sk", text(date(days))), ("FAILED", number(1))]);
    world.put_items(&world.environment.tables.payments, (0..103).map(counter)).await?;
    let report = run_of(world.functions(), "recount", (&date(0), &date(103)), NO_DEADLINE).await?;
    assert_eq!((report.exact, report.drifted), (1, 103));
    assert_eq!((report.drifts.len(), report.drifts_left_out), (100, 3));
    // Dates wait for their second look ten at a time: eleven pauses, and not a hundred.
    let found_at = found_at(&report);
    assert_eq!((found_at[0], found_at[99]), ("2026-11-20T09:00:10Z", "2026-11-20T09:01:40Z"));
    Ok(())
}
