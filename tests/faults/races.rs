//! Races: two functions work on one payment at the same time. A task scheduler orders their calls by a random
//! schedule, and a schedule that breaks something is shrunk.
//!
//! In a month, calls on one payment race by chance. Here all calls race, even those that no month
//! brings together: a result before its sweep, a cancel before its create was answered.

/// The tests of races, each by its name and its race.
macro_rules! no_schedule_breaks {
    ($($test:ident: $race:ident,)*) => {
        $(#[test]
        fn $test() -> anyhow::Result<()> {
            $crate::races::no_schedule_breaks($crate::races::Race::$race)
        })*
    };
}

mod amend;
mod redate;
mod undo;

use std::cell::RefCell;
use std::collections::HashSet;
use std::pin::Pin;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use daily_due_sweeper::Action;
use payments_bank::Functions;
use payments_lab::Weakness;
use payments_lab::facts::intent::Intent;
use payments_lab::facts::results::failed;
use payments_machine::layers::random::Seed;
use payments_model::PaymentId;
use payments_tests::Ask;
use proptest::collection::vec;
use proptest::num::u8::ANY;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::Value;

use crate::contradictions::without_one_finding;
use crate::kit::disturbances;
use crate::kit::fixture::{Fixture, dispatch, settle};
use crate::kit::invariants::{self, Stage};
use crate::kit::transaction_service;

/// The number of schedules of each race.
const SCHEDULES: u32 = 64;

/// The length of the longest schedule; after its end, the first waiting task goes next.
const LONGEST: usize = 48;

/// The most tasks of a race.
const TASKS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Race {
    CancelAgainstSweep,
    TwoSweepers,
    /// Repeated, contradicting and disordered results, in three deliveries at once.
    Results,
    /// A result that comes before the sweep.
    EarlyResult,
    RedriveAgainstLateResult,
    RetryAgainstCancel,
    AmendAgainstSweep,
    AmendAgainstCancel,
    /// Two clients have seen one version.
    TwoAmendments,
    /// A create that comes again, and an amendment of what it made.
    RetryAgainstAmend,
    RedateAgainstSweep,
    RedateAgainstCancel,
    RedateAgainstAmend,
    TwoRedates,
    UndoAgainstSweep,
    UndoAgainstAmend,
    UndoAgainstCancel,
    /// A create that was cut off, and comes again.
    UndoAgainstRetry,
}

impl Race {
    /// Whether a client's request can be first or too late.
    fn has_choice(self) -> bool {
        let has_one_end = matches!(self, Self::UndoAgainstCancel | Self::UndoAgainstRetry);
        !has_one_end
            && !matches!(self, Self::Results | Self::EarlyResult | Self::RedriveAgainstLateResult | Self::TwoRedates)
    }
}

/// A task, and its error.
type Task<'r> = Pin<Box<dyn Future<Output = Result<()>> + 'r>>;

/// A system with a Lambda sandbox for each task.
struct Races {
    fixture: Fixture,
    sandboxes: Vec<Functions>,
    /// The same of a bank whose calendar has closed Saturdays since.
    redating: Vec<Functions>,
    /// The plan of a race of an undo.
    planned: RefCell<Option<crate::undo::Planned>>,
    seen: RefCell<Seen>,
}

/// The orders and outcomes of the races.
#[derive(Debug, Default)]
struct Seen {
    /// The orders of their calls, each call by task and operation.
    interleavings: HashSet<Vec<(usize, String)>>,
    /// The number of times that the client's request for the first payment, a cancel or an amendment, was in time.
    in_time: usize,
    /// The number of times that this request was too late.
    too_late: usize,
}

impl Races {
    async fn start() -> Result<Self> {
        // With one shard a sweep is as short as a cancel, so that neither always wins.
        let fixture = Fixture::with_shards(1).await?;
        let (mut sandboxes, mut redating) = (Vec::new(), Vec::new());
        for task in 0..TASKS {
            sandboxes.push(fixture.functions_of_task(task).await?);
            redating.push(fixture.redating_of_task(task).await?);
        }
        Ok(Self { fixture, sandboxes, redating, planned: RefCell::default(), seen: RefCell::default() })
    }

    /// Creates the payments of a race. Returns them with the requests that were sent for them.
    async fn prepare(&self, race: Race) -> Result<(Vec<Intent>, Vec<Value>)> {
        let fixture = &self.fixture;
        if matches!(race, Race::RetryAgainstCancel | Race::RetryAgainstAmend) {
            let mut intent = fixture.intent(&fixture.new_name());
            if race == Race::RetryAgainstAmend {
                fixture.want_amended(&mut intent, 1, 30)?;
            }
            return Ok((vec![intent], Vec::new()));
        }
        if race.is_of_undo() {
            return Ok((self.prepare_undo(race).await?, Vec::new()));
        }
        if race.is_of_saturday() {
            return Ok((self.prepare_saturday(race).await?, Vec::new()));
        }
        let mut intents = fixture.due(2).await?;
        self.want_amendments(race, &mut intents[0])?;
        if race == Race::Results {
            intents.iter_mut().for_each(|intent| intent.contested = true);
        }
        if !matches!(race, Race::Results | Race::RedriveAgainstLateResult) {
            return Ok((intents, Vec::new()));
        }
        fixture.tick(Action::Sweep).await?;
        fixture.dispatch_all().await?;
        let requests = transaction_service::read_requests(&fixture.requests, &fixture.time)?;
        if race == Race::RedriveAgainstLateResult {
            fixture.time.pass(TimeDelta::minutes(61));
        }
        Ok((intents, requests))
    }

    /// The tasks of a race. They note clients' responses in `intents`.
    fn tasks<'r>(&'r self, race: Race, intents: &'r RefCell<Vec<Intent>>, requests: &[Value]) -> Vec<Task<'r>> {
        let results: Vec<Value> = requests.iter().map(transaction_service::result_of).collect();
        match race {
            Race::CancelAgainstSweep => {
                vec![self.sweep(0), self.cancel(1, intents), self.dispatch(2)]
            }
            Race::TwoSweepers => vec![self.sweep(0), self.sweep(1), self.cancel(2, intents), self.dispatch(3)],
            Race::Results => {
                let reversed: Vec<Value> = results.iter().rev().cloned().collect();
                let contradictions = results.iter().map(|result| failed(result, "or not")).collect();
                vec![self.settle(0, results), self.settle(1, contradictions), self.settle(2, reversed)]
            }
            Race::EarlyResult => {
                let early =
                    intents.borrow().iter().map(|intent| transaction_service::result_of(&intent.transfer())).collect();
                vec![self.sweep(0), self.settle(1, early), self.dispatch(2)]
            }
            Race::RedriveAgainstLateResult => {
                vec![self.redrive(0), self.settle(1, results), self.dispatch(2), self.redrive(3)]
            }
            Race::RetryAgainstCancel => {
                vec![self.create(0, intents), self.create(1, intents), self.cancel(2, intents), self.cancel(3, intents)]
            }
            _ if race.is_of_undo() => self.undos(race, intents),
            _ if race.is_of_saturday() => self.redates(race, intents),
            _ => self.amendments(race, intents),
        }
    }

    fn sweep(&self, task: usize) -> Task<'_> {
        self.tick(task, Action::Sweep)
    }

    fn redrive(&self, task: usize) -> Task<'_> {
        self.tick(task, Action::Redrive)
    }

    fn tick(&self, task: usize, action: Action) -> Task<'_> {
        let tick = self.fixture.tick_within(&self.sandboxes[task], action, TimeDelta::minutes(4));
        Box::pin(async { tick.await.map(drop) })
    }

    /// Reads the stream three times: before, between and after the others' calls.
    fn dispatch(&self, task: usize) -> Task<'_> {
        Box::pin(async move {
            for _ in 0..3 {
                let function = |event| dispatch(&self.sandboxes[task], event);
                self.fixture.dispatching.lock().await.step(self.fixture.time.now(), function).await?;
                // At a pause another task may go first.
                self.fixture.faults.for_task(task).pause().await;
            }
            Ok(())
        })
    }

    fn settle(&self, task: usize, results: Vec<Value>) -> Task<'_> {
        let event = transaction_service::batch_of(&results);
        Box::pin(async move { settle(&self.sandboxes[task], event).await.map(drop).map_err(anyhow::Error::msg) })
    }

    fn create<'r>(&'r self, task: usize, intents: &'r RefCell<Vec<Intent>>) -> Task<'r> {
        let (account, key, body) = {
            let intent = &intents.borrow()[0];
            (intent.account.clone(), intent.key.clone(), intent.body())
        };
        Box::pin(async move {
            let create = Ask::create(&account, &key, &body);
            let mut reply = self.fixture.world.send_to(&self.sandboxes[task], create.clone()).await?;
            if reply.status == 503 {
                // An amendment came between the create's own reads. Now the create can read it.
                reply = self.fixture.world.send_to(&self.sandboxes[task], create).await?;
            }
            anyhow::ensure!(reply.status == 201, "{reply}");
            intents.borrow_mut()[0].accepted = Some(reply.field("paymentId").to_owned());
            Ok(())
        })
    }

    /// Cancels the first payment, whose id a client can derive before it is told.
    fn cancel<'r>(&'r self, task: usize, intents: &'r RefCell<Vec<Intent>>) -> Task<'r> {
        let (account, key) = (intents.borrow()[0].account.clone(), intents.borrow()[0].key.clone());
        Box::pin(async move {
            let id = PaymentId::derive(&account.parse()?, &key.parse()?).to_string();
            let reply = self.fixture.world.send_to(&self.sandboxes[task], Ask::cancel(&account, &id)).await?;
            anyhow::ensure!(matches!(reply.status, 200 | 404 | 409), "{reply}");
            intents.borrow_mut()[0].cancelled |= reply.status == 200;
            Ok(())
        })
    }

    /// Runs a race by a schedule. Returns what was wrong during and after it.
    async fn run(&self, race: Race, conditions: Conditions, schedule: &[u8]) -> Result<Vec<String>> {
        let place = disturbances::place(&self.fixture).await?;
        let (intents, requests) = self.prepare(race).await?;
        let intents = RefCell::new(intents);
        let trouble = RefCell::new(Vec::new());
        let tasks = self.tasks(race, &intents, &requests).into_iter().map(|task| async {
            if let Err(error) = task.await {
                trouble.borrow_mut().push(format!("{error:#}"));
            }
        });
        let mut choices = schedule.iter().copied();
        self.fixture.faults.weaken(conditions.weakness);
        if conditions.disturbed {
            disturbances::begin(&self.fixture, schedule.iter().copied().map(u64::from).sum());
        }
        let choose = |_: &[usize]| usize::from(choices.next().unwrap_or(0));
        self.fixture.faults.clear();
        self.fixture.faults.scheduler().run(tasks.collect(), choose).await;
        let order = self.fixture.faults.order();
        self.fixture.faults.weaken(None);
        disturbances::end(&self.fixture);
        let mut trouble = trouble.take();
        let intents = intents.into_inner();
        self.note(order, intents[0].amendments.first().map_or(intents[0].cancelled, |amendment| amendment.accepted));
        trouble.extend(invariants::violations(&self.fixture, &intents, Stage::UnderWay).await?);
        if race.is_of_saturday() {
            self.finish_saturday().await?;
        }
        if conditions.weakness.is_none() {
            if matches!(race, Race::Results) {
                trouble.extend(without_one_finding(&self.fixture, &intents).await?);
            }
            trouble
                .extend(self.fixture.finish(&intents, conditions.disturbed.then(|| Seed(1).source("finish"))).await?);
            let sent = self.fixture.faults.sent();
            disturbances::redeliver_since(&self.fixture, &place, &mut Seed(2).source("redeliveries")).await?;
            trouble.extend((self.fixture.faults.sent() > sent).then(|| "what was over is sent again".to_owned()));
        }
        Ok(trouble)
    }
}

impl Races {
    fn note(&self, order: Vec<(usize, String)>, in_time: bool) {
        let mut seen = self.seen.borrow_mut();
        seen.interleavings.insert(order);
        seen.in_time += usize::from(in_time);
        seen.too_late += usize::from(!in_time);
    }
}

/// The conditions of a race.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    /// Whether reads lag and results repeat.
    disturbed: bool,
    weakness: Option<Weakness>,
}

/// The result of many schedules, and their orders and outcomes.
type Raced = (Result<(), TestError<(bool, Vec<u8>)>>, Seen);

/// Runs a race with many schedules. A failure is the shortest schedule that has it.
fn race(race: Race, weakness: Option<Weakness>) -> Result<Raced> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let races = runtime.block_on(Races::start())?;
    let config = Config { cases: SCHEDULES, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let found = runner.run(&(proptest::bool::ANY, vec(ANY, 0..LONGEST)), |(disturbed, schedule)| {
        let violations = runtime.block_on(races.run(race, Conditions { disturbed, weakness }, &schedule));
        let violations = violations.map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
        if violations.is_empty() { Ok(()) } else { Err(TestCaseError::fail(violations.join("; "))) }
    });
    // Without conditions an amendment leaves heads that nobody can read, so nobody can count them.
    if weakness.is_none() {
        runtime.block_on(races.fixture.assert_counters_exact())?;
    }
    Ok((found, races.seen.into_inner()))
}

fn no_schedule_breaks(this: Race) -> Result<()> {
    let (found, seen) = race(this, None)?;
    found.with_context(|| format!("{this:?}"))?;
    let Seen { interleavings, in_time, too_late } = seen;
    let different = interleavings.len();
    println!("{this:?}: {SCHEDULES} schedules, {different} interleavings, {in_time} in time, {too_late} too late");
    assert!(different > 16, "{this:?}: only {different} interleavings");
    assert!(!this.has_choice() || (in_time > 0 && too_late > 0), "{this:?}: one side always wins");
    Ok(())
}

no_schedule_breaks! {
    a_cancel_against_a_sweep: CancelAgainstSweep,
    two_sweepers: TwoSweepers,
    repeated_contradicting_and_disordered_results: Results,
    a_result_before_its_payment_is_pending: EarlyResult,
    a_redrive_against_a_late_result: RedriveAgainstLateResult,
    an_ingest_retry_against_a_cancel: RetryAgainstCancel,
}

#[test]
fn a_schedule_that_breaks_updates_without_conditions_is_found_and_shrunk() -> Result<()> {
    let redates = [Race::RedateAgainstSweep, Race::RedateAgainstCancel, Race::RedateAgainstAmend];
    for this in
        [Race::CancelAgainstSweep, Race::TwoSweepers, Race::Results, Race::TwoAmendments].into_iter().chain(redates)
    {
        let (Err(TestError::Fail(why, (_, schedule))), _) = race(this, Some(Weakness::Unconditional))? else {
            anyhow::bail!("{this:?}: no schedule breaks it")
        };
        let why: String = why.message().chars().take(120).collect();
        println!("{this:?} without conditions, by {schedule:?}: {why}");
        assert!(schedule.len() < LONGEST / 2, "{this:?}: shrunk to {schedule:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_same_schedule_gives_the_same_interleaving() -> Result<()> {
    let mut random = Seed(7).source("schedules");
    for _ in 0..12 {
        let schedule: Vec<u8> = (0..LONGEST).map(|_| u8::try_from(random.usize(..256)).unwrap_or(0)).collect();
        let mut interleavings = Vec::new();
        for _ in 0..2 {
            let races = Races::start().await?;
            let conditions = Conditions { disturbed: false, weakness: None };
            assert_eq!(races.run(Race::CancelAgainstSweep, conditions, &schedule).await?, [""; 0]);
            interleavings.push(races.seen.take().interleavings);
            races.fixture.assert_counters_exact().await?;
        }
        assert_eq!(interleavings[0], interleavings[1], "by {schedule:?}");
    }
    Ok(())
}
