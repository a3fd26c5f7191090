//! Two concurrent reports: one commits, and both may drain the same file.

use super::crashes::is_commit;
use super::faulty_store::FaultyStore;
use super::settlements::{SETTLED_AT, files, invoke, many, reported_ids, run, unreported};
use payments_tests::prelude::*;

/// Runs two invocations that both write their attempts before one of them commits.
async fn two_attempts(world: &World) -> Result<[Value; 2]> {
    let dependencies = world.dependencies_over(&world.recorder).await;
    let reports = FaultyStore::meeting(&dependencies.reports, |operation, path| {
        operation == "put" && path.as_ref().ends_with("summary.json")
    });
    let functions = world.functions_in(&Dependencies { reports, ..dependencies })?;
    two_runs(&functions).await
}

async fn two_runs(functions: &Functions) -> Result<[Value; 2]> {
    let (one, other) = tokio::try_join!(invoke(functions, "one"), invoke(functions, "other"))?;
    Ok([one, other])
}

fn sum(answers: &[Value; 2], name: &str) -> u64 {
    answers.iter().filter_map(|answer| answer[name].as_u64()).sum()
}

#[tokio::test]
async fn of_two_concurrent_reports_one_commits() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, 40, 0).await?;
    // Once as the first commit, once after another.
    for (at, expected) in [("2026-11-20T09:50:00Z", 40), ("2026-11-20T10:50:00Z", 25)] {
        let answers = two_attempts(&world).await?;
        let sums = ["runsCommitted", "reported", "drained"].map(|name| sum(&answers, name));
        assert_eq!(sums, [1, expected, expected], "{answers:?}");
        assert_eq!(unreported(&world).await?, BTreeSet::new());
        many(&world, at, 25, 1).await?;
    }
    let ids = reported_ids(&world).await?;
    assert_eq!(ids.len(), 65);
    assert!(all.iter().all(|id| ids.contains(id)) && ids.windows(2).all(|pair| pair[0] < pair[1]), "each once");
    // Both attempts of each race are stored; only the committed ones are published.
    let files = files(&world).await?;
    let under = |folder: &str| files.keys().filter(|name| name.starts_with(folder)).count();
    assert_eq!((under("attempts/"), under("reports/")), (8, 4), "{:?}", files.keys());
    Ok(())
}

#[tokio::test]
async fn two_runs_may_drain_the_same_file() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, 200, 0).await?;
    let stopped = invoke(&world.functions_meeting(Fate::LoseRequest, is_mark).await?, "stopped").await?;
    assert_eq!(stopped["drained"], 0);
    let before = files(&world).await?;
    let answers = two_runs(world.functions()).await?;
    assert_eq!((sum(&answers, "drained"), sum(&answers, "alreadyDrained")), (200, 200), "{answers:?}");
    assert_eq!(sum(&answers, "runsCommitted"), 0, "{answers:?}");
    assert_eq!(files(&world).await?, before);
    assert_eq!(reported_ids(&world).await?, all);
    assert_eq!(run(&world).await?["moreWaits"], json!(false));
    Ok(())
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_recognised_as_its_own() -> Result<()> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, 10, 0).await?;
    // The first try is done without a reply; the SDK repeats it and finds its own run.
    let recorder =
        Recorder::with_fate(|call| if is_commit(call) && is_first(call.number) { Fate::LoseReply } else { Fate::Pass });
    let answer = invoke(&world.functions_over(&recorder).await?, "unlucky").await?;
    // One for each payment, one marks the run as finished, the commit is tried twice, and one puts the outcome.
    let updates = recorder.take_operations().iter().filter(|operation| *operation == "UpdateItem").count();
    assert_eq!(updates, 10 + 1 + 2 + 1);
    assert_has(&answer, &json!({ "runsCommitted": 1, "drained": 10 }));
    assert_eq!(reported_ids(&world).await?, all);
    Ok(())
}

/// Whether a call is an update, but no commit.
fn is_mark(call: &Call) -> bool {
    call.operation == "UpdateItem" && !is_commit(call)
}

/// Whether a commit is the invocation's first: one read of the job's item, ten shards, one batch of heads.
fn is_first(number: usize) -> bool {
    number == 12
}
