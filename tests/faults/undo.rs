//! An undo of payments: every crash point of its plan and its run, which end as if no call had failed.

use anyhow::{Context as _, Result, bail, ensure};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_lab::facts::intent::Intent;
use payments_machine::invocation::context;
use payments_model::{PaymentId, Switch};
use payments_tests::CrashPoint;
use serde_json::{Value, json};
use undo::{PlanOutcome, RunOutcome, UndoOutcome};

use crate::kit::disturbances;
use crate::kit::fault_plan::{KILLED_BEFORE, WAYS, WAYS_OF_TRANSACTIONS, every_crash_point, run_to};
use crate::kit::fixture::{Fixture, timeout_of};
use crate::kit::invariants::{self, Stage};

/// An undo of some payments, and the plan that is approved.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) id: String,
    plan: u32,
    sha256: String,
}

impl Fixture {
    /// Creates a payment whose create is cut off after its details were written.
    pub(crate) async fn cut_off(&self, account: &str) -> Result<Intent> {
        let mut intent = self.intent(account);
        let point = CrashPoint { call: 1, way: KILLED_BEFORE };
        let run = run_to(point, &self.faults, self.create(&mut intent)).await;
        ensure!(run.answer.is_none(), "the create was not cut off");
        Ok(intent)
    }

    async fn ask_undo(&self, functions: &Functions, request: Value) -> Result<UndoOutcome> {
        let event = LambdaEvent::new(serde_json::from_value(request)?, context(self.time.now() + timeout_of("undo")?));
        functions.undo.handle(event).await.map_err(|error| anyhow::Error::from_boxed(error).context("undo failed"))
    }

    /// Plans an undo of these payments.
    pub(crate) async fn plan_undo(&self, id: &str, intents: &[Intent]) -> Result<(Planned, PlanOutcome)> {
        let id_of =
            |intent: &Intent| anyhow::Ok(PaymentId::derive(&intent.account.parse()?, &intent.key.parse()?).to_string());
        let ids: Vec<String> = intents.iter().map(id_of).collect::<Result<_>>()?;
        let request = json!({ "action": "plan", "id": id, "select": { "ids": ids } });
        let UndoOutcome::Planned(plan) = self.ask_undo(&self.functions, request).await? else { bail!("not a plan") };
        let planned = Planned { id: id.to_owned(), plan: plan.plan, sha256: plan.sha256.clone() };
        Ok((planned, plan))
    }

    /// Runs a plan that was approved.
    pub(crate) async fn run_undo(&self, functions: &Functions, planned: &Planned) -> Result<RunOutcome> {
        let Planned { id, plan, sha256 } = planned;
        let request = json!({ "action": "run", "id": id, "plan": plan, "sha256": sha256, "ticket": "INC-4711" });
        let UndoOutcome::Ran { mut runs } = self.ask_undo(functions, request).await? else { bail!("not a run") };
        runs.pop().context("no run")
    }

    /// An id that no other case has.
    pub(crate) fn new_undo(&self) -> String {
        let number = self.new_name().bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(131).wrapping_add(byte.into()));
        format!("{number:016x}")
    }

    /// Releases all holds, as operators do once an undo is done.
    pub(crate) async fn release(&self) -> Result<()> {
        let store = &self.dependencies.store;
        let switch = store.switch().await?;
        let freed_at = Some(self.dependencies.clock.now());
        let released = Switch { version: switch.version + 1, holds: Vec::new(), freed_at, ..switch };
        ensure!(store.change_switch(&released).await?, "another change of the switch was faster");
        Ok(())
    }

    /// Scheduled payments, one that is amended after it was planned, one that was claimed, and a create that was cut off.
    async fn to_be_undone(&self) -> Result<Vec<Intent>> {
        let mut intents = self.pending(1).await?;
        let account = intents[0].account.clone();
        for _ in 0..3 {
            let mut intent = self.intent(&account);
            ensure!(self.create(&mut intent).await?.status == 201);
            intents.push(intent);
        }
        intents.push(self.cut_off(&account).await?);
        Ok(intents)
    }
}

/// The payments of [`Fixture::to_be_undone`], by their places.
const CLAIMED: usize = 0;
const AMENDED: usize = 3;

/// Runs a case of a plan or of a run that fails at a point, and is then repeated. Returns whether the planned call was reached, and
/// whether one failed.
async fn case(fixture: &Fixture, of_plan: bool, point: CrashPoint, disturbed: bool) -> Result<(bool, bool)> {
    let mut intents = fixture.to_be_undone().await?;
    let id = fixture.new_undo();
    if disturbed {
        disturbances::begin(fixture, u64::try_from(point.call)?);
    }
    let mut run = None;
    if of_plan {
        run = Some(run_to(point, &fixture.faults, async { fixture.plan_undo(&id, &intents).await.map(drop) }).await);
    }
    let run = match run {
        Some(planned) => planned,
        None => {
            let (planned, _) = fixture.plan_undo(&id, &intents).await?;
            run_to(point, &fixture.faults, async { fixture.run_undo(&fixture.functions, &planned).await.map(drop) })
                .await
        }
    };
    let found = invariants::violations(fixture, &intents, Stage::UnderWay).await?;
    ensure!(found.is_empty(), "{point:?}, after the failure: {found:#?}");
    let (planned, plan) = fixture.plan_undo(&id, &intents).await?;
    ensure!(plan.unknown.is_empty() && plan.is_complete, "{point:?}: {plan:?}");
    if of_plan {
        let place = fixture.want_amended(&mut intents[AMENDED], 1, 0)?;
        ensure!(fixture.amend(&mut intents[AMENDED], place).await?.status == 200);
    }
    // The run that was cut off goes on by its schedule, and the later plan has what is left.
    let UndoOutcome::Ran { runs } = fixture.ask_undo(&fixture.functions, json!({ "action": "continue" })).await? else {
        bail!("not runs")
    };
    ensure!(runs.iter().all(|run| run.has_ended), "{point:?}: {runs:?}");
    let ended = fixture.run_undo(&fixture.functions, &planned).await?;
    disturbances::end(fixture);
    ensure!(ended.has_ended && ended.ends.values().sum::<u64>() == plan.payments, "{point:?}: {ended:?} of {plan:?}");
    let lost: u64 = ["lost", "unreadable", "never-created"].iter().filter_map(|end| ended.ends.get(*end)).sum();
    ensure!(lost == 0, "{point:?}: {ended:?}");
    let store = &fixture.dependencies.store;
    ensure!(store.open_undos().await?.is_empty(), "{point:?}: an undo is open");
    for (place, intent) in intents.iter_mut().enumerate() {
        intent.cancelled = place != CLAIMED && !(of_plan && place == AMENDED);
        // A create that is repeated after its undo finds the cancelled payment.
        ensure!(fixture.create(intent).await?.status == 201);
    }
    fixture.release().await?;
    let found = fixture.finish(&intents, None).await?;
    ensure!(found.is_empty(), "{point:?}, at the end: {found:#?}");
    Ok((run.reached, run.failed))
}

async fn every_crash_point_of(of_plan: bool) -> Result<()> {
    let fixture = Fixture::start().await?;
    let run = async |point, disturbed| case(&fixture, of_plan, point, disturbed).await;
    let ways = WAYS.into_iter().chain(WAYS_OF_TRANSACTIONS);
    let (cases, calls) = every_crash_point(&format!("crash-points undo {of_plan}"), ways, run).await?;
    println!("undo, plan {of_plan}: {cases} cases over {calls} calls");
    assert!(cases >= calls * 8, "{cases} cases failed over {calls} calls: did a way stop failing?");
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn every_crash_point_of_a_plan_of_an_undo() -> Result<()> {
    every_crash_point_of(true).await
}

#[tokio::test]
async fn every_crash_point_of_a_run_of_an_undo() -> Result<()> {
    every_crash_point_of(false).await
}

#[tokio::test]
async fn what_an_undo_ended_is_never_claimed_after_it() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut intents = fixture.due(3).await?;
    let (planned, _) = fixture.plan_undo(&fixture.new_undo(), &intents).await?;
    let run = fixture.run_undo(&fixture.functions, &planned).await?;
    assert_eq!(run.ends, [("cancelled".to_owned(), 3)].into());
    intents.iter_mut().for_each(|intent| intent.cancelled = true);
    fixture.release().await?;
    fixture.time.pass(TimeDelta::minutes(5));
    fixture.tick(Action::Sweep).await?;
    fixture.assert_finishes(&intents).await?;
    fixture.assert_counters_exact().await
}
