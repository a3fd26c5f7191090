//! Drift: what it is, what only looks like it, and what is stored of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use payments_machine::Call;
use payments_tests::given::ACCOUNT;
use payments_tests::tables::{number, text};
use payments_tests::{Counting, World};
use recount::RecountOutcome;
use serde_json::{Value, json};

use super::{DAY, NIGHT, NO_DEADLINE, a_counted_day, alter, finding, put, reads_counters, recount, run_of, shown};

/// The operations since the last time, without queries.
fn writes(world: &World) -> Vec<String> {
    world.recorder.take_operations().into_iter().filter(|operation| operation != "Query").collect()
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
    drop(world.recorder.take_operations());
    let report = recount(&world).await?;
    assert_eq!((report.exact, report.drifted, report.drifts.len()), (2, 1, 1), "{report:?}");
    let drift = serde_json::to_value(&report.drifts[0])?;
    let want = json!({
        "date": DAY, "counters": wrong, "recounted": right, "repaired": false,
        // Ten seconds after the first look at half past two.
        "foundAt": "2090-06-16T02:30:10Z", "repairableFrom": "2090-06-17T03:30:10Z",
    });
    assert_eq!(drift, want);
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
    drop(world.recorder.take_operations());
    for want in [vec!["DeleteItem"], vec![]] {
        assert_eq!(recount(&world).await?, RecountOutcome { exact: 3, ..RecountOutcome::default() });
        assert_eq!(writes(&world), want);
    }
    assert_eq!(finding(&world).await?, None);
    Ok(())
}

#[tokio::test]
async fn an_uncounted_record_is_drift() -> Result<()> {
    let world = a_counted_day().await?;
    let mut counting = Counting::of(&world).await?;
    counting.count(world.functions()).await?;
    for (key, skipped) in [("one", true), ("two", false)] {
        put(&world, key, NIGHT).await?;
        let records = if skipped { counting.skip().await? } else { counting.count(world.functions()).await? };
        assert_eq!(records, 1, "{key}");
    }
    // The checkpoint is past it: it does not come again.
    world.count_all().await?;
    let report = recount(&world).await?;
    assert_eq!((report.exact, report.drifted), (2, 1), "{report:?}");
    let drift = serde_json::to_value(&report.drifts[0])?;
    let scheduled = |side: &str| [&drift[side]["byStatus"]["SCHEDULED"], &drift[side]["sums"]["EUR"]["SCHEDULED"]];
    let two = |count: i64, sum: i64| [json!(count), json!(sum.to_string())];
    assert_eq!(scheduled("counters"), two(4, 99).each_ref());
    assert_eq!(scheduled("recounted"), two(5, 198).each_ref());
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

/// What can happen to a date between its first and second look.
#[derive(Debug, Clone, Copy)]
enum Between {
    TheStreamIsCounted,
    OneMoreComes,
    OneGoes(&'static str),
    CountersMove,
    CountersAreAltered,
}

async fn happen(what: Between, world: &World) -> Result<()> {
    match what {
        Between::TheStreamIsCounted => drop(world.count_all().await?),
        Between::OneMoreComes => drop(put(world, "in-between", NIGHT).await?),
        Between::OneGoes(key) => {
            let again = put(world, key, NIGHT).await?;
            world.cancel(ACCOUNT, &again).await?;
        }
        Between::CountersMove => alter(world, 7, &[("moves", 1)]).await?,
        Between::CountersAreAltered => alter(world, 7, &[("FAILED", 1)]).await?,
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_change_between_two_looks_is_not_drift() -> Result<()> {
    let moving = || RecountOutcome { moving: vec![DAY.to_owned()], ..RecountOutcome::default() };
    for (what, want) in [
        (Between::TheStreamIsCounted, RecountOutcome { exact: 1, ..RecountOutcome::default() }),
        (Between::OneMoreComes, moving()),
        (Between::OneGoes("late"), moving()),
        (Between::CountersMove, moving()),
        (Between::CountersAreAltered, moving()),
    ] {
        let world = Arc::new(a_counted_day().await?);
        put(&world, "late", NIGHT).await?;
        let (reads, inside) = (AtomicU32::new(0), Arc::clone(&world));
        // The third read of the counters begins the second look.
        let when = move |call: &Call| reads_counters(call) && reads.fetch_add(1, Ordering::Relaxed) == 2;
        let functions = super::interfered(&world, when, move || {
            let world = Arc::clone(&inside);
            async move { happen(what, &world).await }
        });
        let functions = functions.await?;
        let report = run_of(&functions, "recount", (DAY, DAY), NO_DEADLINE).await?;
        assert_eq!(report, want, "{what:?}");
        assert_eq!(finding(&world).await?, None, "{what:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_outcome_names_a_hundred_dates_and_counts_the_others() -> Result<()> {
    let world = World::open().await?;
    let first: payments_model::BusinessDate = "2026-12-01".parse()?;
    let counter = |days| {
        let sk = first.plus_days(days).to_string();
        [("pk", text("COUNTS#2")), ("sk", text(sk)), ("FAILED", number(1))]
            .map(|(name, value)| (name.to_owned(), value))
    };
    world.put_items(&world.environment.tables.payments, (0..103).map(|days| counter(days).into())).await?;
    let dates = (first.to_string(), first.plus_days(103).to_string());
    let report = run_of(world.functions(), "recount", (&dates.0, &dates.1), NO_DEADLINE).await?;
    assert_eq!((report.exact, report.drifted), (1, 103));
    assert_eq!((report.drifts.len(), report.drifts_left_out), (100, 3));
    // Dates wait for their second look ten at a time: eleven pauses, and not a hundred.
    let waited: Vec<Value> = report.drifts.iter().map(|drift| json!(drift.found_at)).collect();
    assert_eq!((&waited[0], &waited[99]), (&json!("2026-11-20T09:00:10Z"), &json!("2026-11-20T09:01:40Z")));
    Ok(())
}
