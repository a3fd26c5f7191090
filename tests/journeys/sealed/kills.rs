//! `seal` is killed at every call, and two runs meet.

use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::path::Path;
use payments_tests::CrashPoint;
use payments_tests::prelude::*;

use super::clearing::{CLEARED_AT, assert_cleared, sealed_day};
use super::reading::answers;
use super::{LATE_AT, SEALED_AT, assert_sealed, day, parts, seal, settle_late, world};
use crate::report::faulty_store::FaultyStore;

/// The ways in which a run ends early: before its nth call, or after it, when the reply is lost. A hiccup loses the reply alone.
const ENDS: [Way; 3] = [
    Way::lasting(Fate::LoseRequest).named("Before"),
    Way::once(Fate::LoseReply).then(Fate::LoseRequest).named("After"),
    Way::once(Fate::LoseReply).named("Hiccup"),
];

/// Functions whose run ends early, and the number of their calls of DynamoDB and of the storage.
async fn doomed(world: &World, point: CrashPoint) -> Result<(Functions, Arc<AtomicUsize>)> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let next_fate = move || point.fate_at(counted.fetch_add(1, Ordering::Relaxed));
    let of_file = next_fate.clone();
    let recorder = Recorder::with_fate(move |_| next_fate());
    let dependencies = world.dependencies_over(&recorder).await;
    let reports = FaultyStore::over(&dependencies.reports, move |_, _: &Path| of_file());
    Ok((world.functions_in(&Dependencies { reports, ..dependencies })?, calls))
}

#[tokio::test]
async fn a_run_killed_at_any_call_loses_and_repeats_nothing() -> Result<()> {
    let mut points = CrashPoints::new("seal", ENDS);
    while let Some(point) = points.next_case() {
        let world = world().await?;
        let (mut ids, pending) = day(&world).await?;
        world.set_clock(SEALED_AT)?;
        let (doomed, calls) = doomed(&world, point).await?;
        let answer = seal(&doomed).await;
        let before = parts(&world).await?;
        let case = format!("{point:?}, after {answer:?}");
        seal(world.functions()).await.with_context(|| case.clone())?;
        assert_sealed(&world, &ids, &case).await?;
        settle_late(&world, &pending).await?;
        world.set_clock(LATE_AT)?;
        seal(world.functions()).await.with_context(|| case.clone())?;
        ids.push(pending);
        ids.sort();
        assert_sealed(&world, &ids, &case).await?;
        let after = parts(&world).await?;
        assert!(before.iter().zip(&after).all(|(one, other)| (&one.0, &one.3) == (&other.0, &other.3)), "{case}");
        if calls.load(Ordering::Relaxed) > point.call {
            points.failed(point.way.name)?;
        } else {
            ensure!(answer.is_ok(), "{answer:?}");
        }
    }
    let cases = points.cases();
    println!("{cases} cases");
    assert!(cases > 60, "the test enumerates the calls: {cases}");
    Ok(())
}

#[tokio::test]
async fn a_clear_killed_at_any_call_loses_and_repeats_nothing() -> Result<()> {
    let mut points = CrashPoints::new("clear", ENDS);
    while let Some(point) = points.next_case() {
        let (world, ids, shown) = sealed_day(3_650).await?;
        world.set_clock(CLEARED_AT)?;
        let (doomed, calls) = doomed(&world, point).await?;
        let answer = seal(&doomed).await;
        let case = format!("{point:?}, after {answer:?}");
        assert_eq!(answers(&world, &ids).await?, shown, "{case}");
        seal(world.functions()).await.with_context(|| case.clone())?;
        assert_cleared(&world, &ids, &shown, &case).await?;
        world.forget();
        assert_eq!(seal(world.functions()).await?["cleared"], 0, "{case}");
        assert_eq!(world.take_write_units(), Units::new(), "{case}");
        if calls.load(Ordering::Relaxed) > point.call {
            points.failed(point.way.name)?;
        } else {
            ensure!(answer.is_ok(), "{answer:?}");
        }
    }
    let cases = points.cases();
    println!("{cases} cases");
    assert!(cases > 60, "the test enumerates the calls: {cases}");
    Ok(())
}

#[tokio::test]
async fn of_two_runs_at_once_one_commits_each_part() -> Result<()> {
    let world = world().await?;
    let (ids, _) = day(&world).await?;
    world.set_clock(SEALED_AT)?;
    let dependencies = world.dependencies_over(&world.recorder).await;
    // Both put the first part at once.
    let reports = FaultyStore::meeting(&dependencies.reports, |operation, path| {
        operation == "publish" && path.as_ref().contains("/000001.")
    });
    let functions = world.functions_in(&Dependencies { reports, ..dependencies })?;
    let (one, other) = futures::future::join(seal(&functions), seal(&functions)).await;
    let sealed = |run: Value| run["sealed"].as_u64().context("a number");
    assert_eq!(sealed(one?)? + sealed(other?)?, 4);
    assert_sealed(&world, &ids, "after two runs").await
}
