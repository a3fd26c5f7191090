//! Every crash point of `report` and `archive`, without and with disturbances, and both functions at once. After each
//! failure, every payment is seen exactly once. In the end each settlement is in one report, and every payment in
//! history.
//!
//! A month fails the calls of these functions at random, and has few of their runs; here no call is left out.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use futures::FutureExt as _;

use payments_bank::Functions;
use payments_lab::facts::intent::Intent;
use payments_lab::laws::reports::{Published, published};
use payments_machine::Handlers as _;
use payments_machine::invocation::context;
use payments_machine::layers::random::Seed;
use payments_tests::{Ask, CrashPoint};
use serde_json::{Value, json};

use crate::kit::disturbances;
use crate::kit::fault_plan::{WAYS, every_crash_point, run_to};
use crate::kit::fixture::{Fixture, timeout_of};
use crate::kit::invariants::{self, Stage};

/// From the morning of the payments' day, between 09:00 and 12:00, to the night in which the archive takes settled payments that did not
/// expire, past 02:30.
pub(crate) const UNTIL_NIGHT: TimeDelta = TimeDelta::hours(3 * 24 + 18);

/// From that night to the next morning.
const UNTIL_MORNING: TimeDelta = TimeDelta::hours(6);

/// Invokes a scheduled function.
pub(crate) async fn invoke(fixture: &Fixture, functions: &Functions, function: &'static str) -> Result<Value> {
    let mut context = context(fixture.time.now() + timeout_of(function)?);
    context.request_id = fixture.new_name();
    functions.scheduled(function, json!({ "action": function }), context).await.map_err(anyhow::Error::msg)
}

/// Invokes both functions, one after the other.
async fn report_and_archive(fixture: &Fixture) -> Result<()> {
    invoke(fixture, &fixture.functions, "report").await?;
    invoke(fixture, &fixture.functions, "archive").await.map(drop)
}

/// Creates payments that end in every way, and passes the time until the night after their day.
async fn settled(fixture: &Fixture, count: usize) -> Result<Vec<Intent>> {
    let mut intents = fixture.created(count).await?;
    fixture.cancel(&mut intents[0]).await?;
    let violations = fixture.finish(&intents, None).await?;
    ensure!(violations.is_empty(), "{violations:#?}");
    fixture.time.pass(UNTIL_NIGHT);
    Ok(intents)
}

/// The account sees each payment once.
async fn assert_seen_once(fixture: &Fixture, intents: &[Intent], when: &str) -> Result<()> {
    let account = &intents[0].account;
    let from = intents[0].scheduled_for.get(..10).context("a date")?;
    let reply = fixture.ask(Ask::get(&format!("/accounts/{account}/payments?from={from}"))).await?;
    let mut seen: Vec<&str> = reply.payments().iter().filter_map(|payment| payment["paymentId"].as_str()).collect();
    let mut want: Vec<&str> = intents.iter().filter_map(|intent| intent.accepted.as_deref()).collect();
    seen.sort_unstable();
    want.sort_unstable();
    ensure!(seen == want, "{when}: {seen:?} are seen, of {want:?}");
    for id in want {
        let reply = fixture.ask(Ask::get(&format!("/accounts/{account}/payments/{id}"))).await?;
        ensure!(reply.status == 200, "{when}: {reply}");
    }
    Ok(())
}

/// One case: a function with one failing call.
#[derive(Debug, Clone, Copy)]
struct Case {
    function: &'static str,
    point: CrashPoint,
    disturbed: bool,
}

impl Case {
    /// Runs it. Returns whether the planned call was reached, and whether one failed.
    async fn run(self, fixture: &Fixture) -> Result<(bool, bool)> {
        let intents = settled(fixture, 4).await?;
        let before = published(&fixture.world.outside.reports).await?;
        if self.function == "archive" {
            invoke(fixture, &fixture.functions, "report").await?;
        }
        let place = disturbances::place(fixture).await?;
        if self.disturbed {
            // From these seeds on, lag leads to more failing calls than from 0.
            let first = if self.function == "report" { 2 } else { 3 };
            disturbances::begin(fixture, first + u64::try_from(self.point.call)?);
        }
        let run = run_to(self.point, &fixture.faults, invoke(fixture, &fixture.functions, self.function)).await;
        self.check(fixture, &intents, "after the failure", Stage::UnderWay).await?;
        if self.disturbed {
            // While reads lag, runs may do less, but nothing wrong.
            for function in ["report", "archive"] {
                let _as_good_as_the_reads_were = invoke(fixture, &fixture.functions, function).await;
                self.check(fixture, &intents, "while reads lag", Stage::UnderWay).await?;
            }
            disturbances::redeliver_since(fixture, &place, &mut Seed(7).source("redeliveries")).await?;
            disturbances::end(fixture);
        }
        report_and_archive(fixture).await.with_context(|| format!("{self:?}"))?;
        self.check(fixture, &intents, "at the end", Stage::Finished).await?;
        assert_night_is_over(fixture, &intents, &before).await.with_context(|| format!("{self:?}"))?;
        fixture.time.pass(UNTIL_MORNING);
        Ok((run.reached, run.failed))
    }

    async fn check(self, fixture: &Fixture, intents: &[Intent], when: &str, stage: Stage) -> Result<()> {
        let violations = invariants::violations(fixture, intents, stage).await?;
        ensure!(violations.is_empty(), "{self:?}, {when}: {violations:#?}");
        assert_seen_once(fixture, intents, &format!("{self:?}, {when}")).await
    }
}

/// Fails unless each settlement is in exactly one report, published files are unchanged, and the hot
/// table no longer has these payments.
async fn assert_night_is_over(
    fixture: &Fixture,
    intents: &[Intent],
    before: &BTreeMap<String, Published>,
) -> Result<()> {
    let after = published(&fixture.world.outside.reports).await?;
    ensure!(before.iter().all(|(name, file)| after.get(name) == Some(file)), "a published report has changed");
    let ids: Vec<&String> = after.values().flat_map(|file| &file.payments).collect();
    let distinct: BTreeSet<&String> = ids.iter().copied().collect();
    ensure!(ids.len() == distinct.len(), "a settlement was reported twice");
    for intent in intents {
        let id = intent.accepted.as_ref().context("an id")?;
        ensure!(distinct.contains(id) != intent.cancelled, "{id} is in the reports: {}", distinct.contains(id));
    }
    let tables = fixture.tables();
    let pk = format!("ACCT#{}", intents[0].account);
    let (hot, history) = (fixture.items(&tables.payments, &pk).await?, fixture.items(&tables.history, &pk).await?);
    ensure!(hot.is_empty() && history.len() == intents.len(), "{} are in the hot table", hot.len());
    Ok(())
}

async fn every_crash_point_of(function: &'static str) -> Result<()> {
    let fixture = Fixture::start().await?;
    let run = async |point, disturbed| Case { function, point, disturbed }.run(&fixture).await;
    let (cases, calls) = every_crash_point(&format!("night {function}"), WAYS, run).await?;
    println!("{function}: {cases} cases over {calls} calls");
    // Eight ways apply to every call, a read too, without and with disturbances. Some runs make fewer calls.
    assert!(
        cases >= calls * 11,
        "only {cases} cases failed over {calls} calls, fewer than 11 a call: did a way stop failing?"
    );
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn every_crash_point_of_the_report() -> Result<()> {
    every_crash_point_of("report").await
}

#[tokio::test]
async fn every_crash_point_of_the_archive() -> Result<()> {
    every_crash_point_of("archive").await
}

#[tokio::test]
async fn concurrent_reports_and_archives_skip_and_repeat_nothing() -> Result<()> {
    let fixture = Fixture::start().await?;
    for (seed, pair) in (0..12).flat_map(|seed| {
        [["report", "report"], ["archive", "archive"], ["report", "archive"]].map(move |pair| (seed, pair))
    }) {
        let intents = settled(&fixture, 5).await?;
        let before = published(&fixture.world.outside.reports).await?;
        if pair[0] == "archive" {
            invoke(&fixture, &fixture.functions, "report").await?;
        }
        let sandboxes = [fixture.functions_of_task(1).await?, fixture.functions_of_task(2).await?];
        let runs = pair.iter().zip(&sandboxes).map(|(function, sandbox)| {
            // Of two runs at once, either may be too late.
            invoke(&fixture, sandbox, function).map(drop).boxed_local()
        });
        let mut random = Seed(seed).source("interleavings");
        fixture.faults.scheduler().run(runs.collect(), move |ready| random.usize(..ready.len())).await;
        let when = format!("{pair:?} {seed}");
        let violations = invariants::violations(&fixture, &intents, Stage::UnderWay).await?;
        ensure!(violations.is_empty(), "{when}: {violations:#?}");
        assert_seen_once(&fixture, &intents, &when).await?;
        report_and_archive(&fixture).await?;
        assert_night_is_over(&fixture, &intents, &before).await.with_context(|| when.clone())?;
        fixture.time.pass(UNTIL_MORNING);
    }
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn the_first_runs_after_a_week_handle_everything() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut week = Vec::new();
    for _ in 0..7 {
        week.push(settled(&fixture, 3).await?);
        fixture.time.pass(UNTIL_MORNING);
    }
    fixture.time.pass(UNTIL_NIGHT);
    for function in ["archive", "report", "archive"] {
        invoke(&fixture, &fixture.functions, function).await?;
    }
    for intents in &week {
        assert_night_is_over(&fixture, intents, &BTreeMap::new()).await?;
        assert_seen_once(&fixture, intents, "after a week").await?;
    }
    fixture.assert_counters_exact().await
}
