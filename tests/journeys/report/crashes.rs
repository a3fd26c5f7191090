//! The report is killed: at every call, and at each of its steps by name.

use payments_tests::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use payments_store::ReportFile;

use super::faulty_store::FaultyStore;
use super::settlements::{SETTLED_AT, files, invoke, many, measured, published_files, reported_ids, run, unreported};

/// The report's functions, over a recorder and with faults of the report store.
async fn functions_over(
    world: &World,
    recorder: &Recorder,
    decide: impl Fn(&str, &Path) -> Fate + Send + Sync + 'static,
) -> Result<Functions> {
    let dependencies = world.dependencies_over(recorder).await;
    let reports = FaultyStore::over(&dependencies.reports, decide);
    world.functions_in(&Dependencies { reports, ..dependencies })
}

/// The ways in which an invocation ends early: before its nth call, or after it, when the reply is
/// lost. A hiccup loses the reply alone.
const ENDS: [Way; 3] = [
    Way::lasting(Fate::LoseRequest).named("Before"),
    Way::once(Fate::LoseReply).then(Fate::LoseRequest).named("After"),
    Way::once(Fate::LoseReply).named("Hiccup"),
];

/// Asserts that everything is reported once, nothing is left, and published files are unchanged.
async fn assert_whole(world: &World, all: &[String], before: &BTreeMap<String, Vec<u8>>, when: &str) -> Result<()> {
    assert_eq!(reported_ids(world).await?, all, "{when}");
    assert_eq!(unreported(world).await?, BTreeSet::new(), "{when}");
    let after = published_files(world).await?;
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "what is published stays: {when}");
    let runs: Vec<&str> =
        after.keys().filter_map(|name| name.split_once("-run-")?.1.split_once('.')).map(|(run, _)| run).collect();
    let numbers: BTreeSet<&str> = runs.iter().copied().collect();
    let want: Vec<String> = (1..=numbers.len()).map(|n| format!("{n:06}")).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), want, "{when}");
    assert_eq!(runs.len(), 2 * want.len(), "each run has two files: {when}");
    Ok(())
}

#[tokio::test]
async fn a_run_killed_at_any_call_loses_and_repeats_nothing() -> Result<()> {
    let mut points = CrashPoints::new("report", ENDS);
    while let Some(point) = points.next_case() {
        // Two commits in one invocation: the first ever, and the one after another.
        let world = World::with(|environment| environment.max_report_rows = 7).await?;
        let all = many(&world, SETTLED_AT, 12, 0).await?;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let next_fate = move || point.fate_at(counted.fetch_add(1, Ordering::Relaxed));
        let of_file = next_fate.clone();
        let recorder = Recorder::with_fate(move |_| next_fate());
        let doomed = functions_over(&world, &recorder, move |_, _| of_file()).await?;
        let answer = invoke(&doomed, "doomed").await;
        let before = published_files(&world).await?;
        let is_reached = calls.load(Ordering::Relaxed) > point.call;
        let case = format!("{point:?}, after {answer:?}");
        run(&world).await.with_context(|| case.clone())?;
        assert_whole(&world, &all, &before, &case).await?;
        if is_reached {
            points.failed(point.way.name)?;
        } else {
            ensure!(answer.is_ok(), "{answer:?}");
        }
    }
    let cases = points.cases();
    println!("{cases} cases");
    assert!(cases > 150, "the test enumerates the calls: {cases}");
    Ok(())
}

/// A step that does not happen, and its consequences.
struct Stop {
    step: &'static str,
    /// Whether a call of DynamoDB is lost, by the number of updates of heads before it.
    call: fn(&Call, usize) -> bool,
    /// Whether a call of the report store is lost.
    file: fn(&str, &Path) -> bool,
    /// The numbers of files under `attempts/` and `reports/`.
    files: (usize, usize),
    /// Whether the run is committed, and how many payments have left the index.
    committed: bool,
    drained: usize,
}

fn is_update(call: &Call, of: &str) -> bool {
    call.operation == "UpdateItem" && call.input()["Key"]["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(of))
}

/// The number of payments in these reports.
const PAYMENTS: usize = 40;

/// A run that does everything.
const WHOLE: Stop =
    Stop { step: "", call: |_, _| false, file: |_, _| false, files: (2, 2), committed: true, drained: 0 };

const STOPS: [Stop; 7] = [
    Stop {
        step: "gathered, and not written",
        file: |operation, _| operation == "put",
        files: (0, 0),
        committed: false,
        ..WHOLE
    },
    Stop {
        step: "written, and not committed",
        call: |call, _| is_commit(call),
        files: (2, 0),
        committed: false,
        ..WHOLE
    },
    Stop { step: "committed, and not published", file: |operation, _| operation == "publish", files: (2, 0), ..WHOLE },
    Stop {
        step: "half published",
        file: |operation, path| operation == "publish" && path.as_ref().ends_with(".csv.gz"),
        files: (2, 1),
        ..WHOLE
    },
    Stop { step: "published, and not drained", call: |call, _| is_update(call, "ACCT#"), ..WHOLE },
    Stop {
        step: "half drained",
        call: |call, updates| is_update(call, "ACCT#") && updates >= 32,
        drained: 32,
        ..WHOLE
    },
    Stop {
        step: "drained, and not marked",
        call: |call, _| is_update(call, "CHECKPOINT#") && !is_commit(call),
        drained: PAYMENTS,
        ..WHOLE
    },
];

/// Whether a call commits a run. The other update of the job's item marks a run as finished.
pub(crate) fn is_commit(call: &Call) -> bool {
    is_update(call, "CHECKPOINT#report") && call.input()["ConditionExpression"] != "run = :run AND finished = :false"
}

fn lost_if(is_lost: bool) -> Fate {
    if is_lost { Fate::LoseRequest } else { Fate::Pass }
}

/// Runs an invocation that stops at a step.
async fn stopped(world: &World, stop: &'static Stop) -> Result<()> {
    let updates = AtomicUsize::new(0);
    let recorder = Recorder::with_fate(move |call| {
        let updates = if is_update(call, "ACCT#") { updates.fetch_add(1, Ordering::Relaxed) } else { 0 };
        lost_if((stop.call)(call, updates))
    });
    let functions = functions_over(world, &recorder, |operation, path| lost_if((stop.file)(operation, path))).await?;
    let answer = invoke(&functions, "stopped").await;
    ensure!(answer.as_ref().map_or(true, |answer| answer["moreWaits"] == true), "{}: {answer:?}", stop.step);
    Ok(())
}

/// A world whose first report stopped at a step, and the ids of its payments.
async fn stopped_world(stop: &'static Stop) -> Result<(World, Vec<String>)> {
    let world = World::open().await?;
    let all = many(&world, SETTLED_AT, PAYMENTS, 0).await?;
    stopped(&world, stop).await?;
    Ok((world, all))
}

async fn stopped_at(step: &str) -> Result<(World, Vec<String>)> {
    stopped_world(STOPS.iter().find(|stop| stop.step == step).context("no such step")?).await
}

#[tokio::test]
async fn the_next_run_completes_one_killed_at_any_step() -> Result<()> {
    for (number, stop) in STOPS.iter().enumerate() {
        let (world, all) = stopped_world(stop).await?;
        let left = files(&world).await?;
        let under = |folder: &str| left.keys().filter(|name| name.starts_with(folder)).count();
        assert_eq!((under("attempts/"), under("reports/")), stop.files, "{}", stop.step);
        assert_eq!(PAYMENTS - unreported(&world).await?.len(), stop.drained, "{}", stop.step);
        let job = world.store().await.last_report_run().await?.map(|run| (run.number, run.finished));
        assert_eq!(job, stop.committed.then_some((1, false)), "{}", stop.step);

        let before = published_files(&world).await?;
        let reported = if stop.committed { 0 } else { PAYMENTS };
        let drained = PAYMENTS - stop.drained;
        let want = json!({ "reported": reported, "drained": drained, "alreadyDrained": stop.drained });
        assert_has(&run(&world).await?, &want);
        assert_whole(&world, &all, &before, stop.step).await?;
        note_case("report-steps", stop.step, number)?;
    }
    Ok(())
}

/// The committed run.
async fn committed(world: &World) -> Result<payments_store::ReportRun> {
    world.store().await.last_report_run().await?.context("no run is committed")
}

/// The path of an attempt among the files of one machine, whose attempt storage is a folder among them.
fn attempt_path(file: &ReportFile) -> Result<Path> {
    Ok(Path::parse(format!("attempts/{}", file.attempt))?)
}

/// Asserts that the next run stops with the alarm: it gathers, publishes and drains nothing.
async fn assert_stops(world: &World, file: &str, why: &str) -> Result<()> {
    // Something new is settled, too.
    many(world, "2026-11-20T10:20:00Z", 3, 1).await?;
    let (before, waiting) = (files(world).await?, unreported(world).await?);
    let Err(error) = run(world).await else { anyhow::bail!("it did not stop at {file}") };
    assert!(error.to_string().contains(file) && error.to_string().contains(why), "{error}");
    assert_eq!(files(world).await?, before, "{file}");
    assert_eq!(unreported(world).await?, waiting, "{file}");
    assert!(!committed(world).await?.finished);
    assert_has(&measured(world)?, &json!({ "ReportFileAltered": 1, "Drained": 0 }));
    Ok(())
}

#[tokio::test]
async fn a_committed_file_that_is_missing_or_altered_stops_the_job() -> Result<()> {
    for (step, is_summary) in [
        ("committed, and not published", false),
        ("committed, and not published", true),
        ("published, and not drained", false),
        ("published, and not drained", true),
        ("half drained", false),
    ] {
        for damage in ["missing", "shorter", "another"] {
            let (world, _) = stopped_at(step).await?;
            let run = committed(&world).await?;
            let file = if is_summary { run.summary } else { run.csv };
            let at = if step == "committed, and not published" { &file.attempt } else { &file.published };
            let (store, attempt) = (&world.outside.reports, attempt_path(&file)?);
            let path = if at == &file.attempt { attempt.clone() } else { Path::parse(at)? };
            let mut bytes = store.get(&path).await?.bytes().await?.to_vec();
            match damage {
                "shorter" => drop(bytes.pop()),
                "another" => *bytes.last_mut().context("an empty file")? ^= 1,
                _ => bytes.clear(),
            }
            store.delete(&path).await?;
            if damage != "missing" {
                store.put(&path, bytes.into()).await?;
            } else if at == &file.published {
                // Otherwise the attempt would be published again.
                store.delete(&attempt).await?;
            }
            let (name, why) = match damage {
                "missing" => (&file.attempt, "is missing"),
                "shorter" => (at, "bytes, but"),
                _ => (at, "SHA-256"),
            };
            drop(world.outside.metrics.take());
            assert_stops(&world, name, why)
                .await
                .with_context(|| format!("{step}, {damage}, summary: {is_summary}"))?;
        }
    }
    Ok(())
}

/// An operator may have made the file anew, with a settlement too many or too few.
#[tokio::test]
async fn a_file_with_another_number_of_rows_stops_the_job_before_anything_is_removed() -> Result<()> {
    for rows in [PAYMENTS + 1, PAYMENTS - 1] {
        let (world, _) = stopped_at("published, and not drained").await?;
        let job = item([("pk", text("CHECKPOINT#report")), ("sk", text("job"))]);
        let values = [(":rows", number(rows))];
        world.update(&job, "SET #rows = :rows", &values).await?;
        drop(world.outside.metrics.take());
        let why = format!("has {PAYMENTS} rows, but {rows} were committed");
        assert_stops(&world, &committed(&world).await?.csv.published, &why).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_removed_file_is_published_again_and_an_attempt_is_needed_no_more() -> Result<()> {
    for removes_attempts in [false, true] {
        let (world, all) = stopped_at("half drained").await?;
        let (job, before) = (committed(&world).await?, published_files(&world).await?);
        let removed = if removes_attempts {
            vec![attempt_path(&job.csv)?, attempt_path(&job.summary)?]
        } else {
            vec![Path::parse(job.csv.published)?]
        };
        for path in removed {
            world.outside.reports.delete(&path).await?;
        }
        run(&world).await?;
        assert_whole(&world, &all, &before, "removed").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_replaced_file_is_neither_overwritten_nor_trusted() -> Result<()> {
    // Just before the report is stored at its place, and after it was checked there.
    for (operation, occurrence) in [("publish", 0), ("get", 3)] {
        let world = World::open().await?;
        let all = many(&world, SETTLED_AT, PAYMENTS, 0).await?;
        let (store, seen) = (Arc::clone(&world.outside.reports), AtomicUsize::new(0));
        let functions = functions_over(&world, &world.recorder, move |called, path| {
            let is_report = path.as_ref().ends_with(".csv.gz") && called == operation;
            if is_report && seen.fetch_add(1, Ordering::Relaxed) == occurrence {
                let published = Path::from("reports/2026-11-20T092000Z--2026-11-20T092000Z-run-000001.csv.gz");
                // In memory, a put is done at once.
                let put = store.put(&published, "another's".into()).now_or_never();
                assert!(matches!(put, Some(Ok(_))), "{put:?}");
            }
            Fate::Pass
        });
        let Err(error) = invoke(&functions.await?, "deceived").await else {
            anyhow::bail!("it believed what it found at its {operation}")
        };
        let error = error.to_string();
        assert!(error.contains("reports/") && error.contains("run-000001.csv.gz"), "{error}");
        assert_eq!(unreported(&world).await?.len(), all.len(), "{operation}");
        assert!(files(&world).await?.values().any(|bytes| bytes == b"another's"), "{operation}");
    }
    Ok(())
}
