//! The layers of a test: all calls, to DynamoDB and to SQS, are one sequence that it can break, order and inspect.
//!
//! The month's network draws the faults, and its calls overlap; here a test decides over each call, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use payments_lab::Weakness;
use payments_lab::laws::calls::Complaints;
use payments_machine::layers::fault::{Fault, Process};
use payments_machine::layers::lag::{self, Changes};
use payments_machine::layers::random::Seed;
use payments_machine::layers::sqs::{Sent, Sqs};
use payments_machine::layers::weaken::Weaken;
use payments_machine::layers::{Answer, Next};
use payments_machine::{Call, Fate, Layers, Recorder, Time};
use payments_queue::Queue;
use payments_tests::World;

use super::staleness::Lag;
use super::task_scheduler::TaskScheduler;

/// Decides the fate of each try.
pub(crate) type Decide = dyn Fn(&Call) -> Fate + Send + Sync;

/// The injector of one task's calls. All tasks share the sequence.
#[derive(Clone)]
pub(crate) struct FaultInjector {
    shared: Arc<Shared>,
    task: usize,
}

struct Shared {
    recorder: Recorder,
    time: Time,
    hot: String,
    changes: Changes,
    requests: Sqs,
    weaken: Weaken,
    complaints: Complaints,
    scheduler: TaskScheduler,
    process: Process,
    /// One try at a time, so that no other call is under way when the process is killed.
    one_at_a_time: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    decide: Arc<Decide>,
    lag: Lag,
    call_takes: TimeDelta,
    /// The numbers of the calls by their invocation ids.
    calls: HashMap<String, usize>,
    /// The tries, each by task and operation.
    tries: Vec<(usize, String)>,
}

impl FaultInjector {
    pub(crate) fn new(world: &World, time: &Time, requests: &Queue) -> Result<Self> {
        let (engine, clock) = (world.engine().context("the embedded engine")?, time.clock());
        let hot = world.environment.tables.payments.clone();
        let changes = Changes::start(engine, &hot, &clock, |_| Ok(()))?;
        let state = State {
            decide: Arc::new(|_| Fate::Pass),
            lag: Lag::default(),
            call_takes: TimeDelta::zero(),
            calls: HashMap::new(),
            tries: Vec::new(),
        };
        let shared = Shared {
            recorder: world.recorder.clone(),
            time: time.clone(),
            hot,
            requests: Sqs::over(requests, &clock, &changes, || false),
            changes,
            weaken: Weaken::new(None, Seed(0).source("weakness"), &clock, engine),
            complaints: Complaints::new(&clock),
            scheduler: TaskScheduler::default(),
            process: Process::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        };
        Ok(Self { shared: Arc::new(shared), task: 0 })
    }

    /// The injector of another task's calls.
    pub(crate) fn for_task(&self, task: usize) -> Self {
        Self { shared: Arc::clone(&self.shared), task }
    }

    /// From now on, `decide` chooses the fate of each try. Calls are numbered from 0 again.
    pub(crate) fn inject(&self, decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) {
        let mut state = self.state();
        state.decide = Arc::new(decide);
        (state.calls, state.tries) = (HashMap::new(), Vec::new());
    }

    /// From now on, every call passes.
    pub(crate) fn clear(&self) {
        self.inject(|_| Fate::Pass);
    }

    /// Weakens the store: see [`Weakness`].
    pub(crate) fn weaken(&self, weakness: Option<Weakness>) {
        self.shared.weaken.set(weakness);
    }

    /// From now on, each try takes this time.
    pub(crate) fn calls_take(&self, time: TimeDelta) {
        self.state().call_takes = time;
    }

    /// The number of calls since the last injection.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls.len()
    }

    /// The number of tries of an operation since then.
    pub(crate) fn tries_of(&self, operation: &str) -> usize {
        self.state().tries.iter().filter(|(_, known)| known == operation).count()
    }

    /// The tries since then in order, each by task and operation.
    pub(crate) fn order(&self) -> Vec<(usize, String)> {
        self.state().tries.clone()
    }

    /// The number of messages ever sent to the transaction service.
    pub(crate) fn sent(&self) -> usize {
        self.shared.requests.sent().len()
    }

    /// The messages sent for one account.
    pub(crate) fn sent_for(&self, account: &str) -> Vec<Sent> {
        let sent = self.shared.requests.sent();
        sent.iter().filter(|sent| sent.request["accountId"] == account).cloned().collect()
    }

    /// The complaints about calls that are never allowed.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.shared.complaints.all()
    }

    /// Waits for the task's turn as a call does, without a call.
    pub(crate) async fn pause(&self) {
        drop(self.shared.scheduler.turn(self.task).await);
    }

    pub(crate) fn scheduler(&self) -> &TaskScheduler {
        &self.shared.scheduler
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// From now on, reads lag.
    pub(crate) fn lag(&self, lag: Lag) {
        self.state().lag = lag;
    }

    /// Ends faults, lag and weakness.
    pub(crate) fn end(&self) {
        self.clear();
        self.weaken(None);
        self.lag(Lag::default());
    }

    /// Every change in the hot table so far.
    pub(crate) fn changes(&self) -> Result<&Changes> {
        self.shared.changes.follow()?;
        Ok(&self.shared.changes)
    }

    /// Runs a handler as a process. Returns nothing if the injector kills it.
    pub(crate) async fn until_killed<T>(&self, handler: impl Future<Output = T>) -> Option<T> {
        self.shared.process.until_killed(handler).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layers of this task's calls.
    pub(crate) fn layers(&self) -> Layers {
        let [injector, deciding, aged] = [(); 3].map(|()| self.clone());
        let Shared { recorder, complaints, process, requests, weaken, changes, hot, .. } = &*self.shared;
        let (past, hot) = (changes.clone(), hot.clone());
        Layers::over(recorder.clone())
            .with_fn(move |call, next| injector.clone().in_turn(call, next))
            .with(complaints.clone())
            .with(Fault::for_process(process, move |call| {
                let decide = Arc::clone(&deciding.state().decide);
                decide(call)
            }))
            .with(requests.clone())
            .with(weaken.clone())
            .with(lag::Lag::new(changes, move |read, answer| aged.state().lag.age(read, &hot, &past, answer)))
    }

    /// Waits for a call's turn, and numbers it.
    async fn in_turn(self, mut call: Call, next: Next) -> Answer {
        let _pass = self.shared.scheduler.turn(self.task).await;
        let _turn = self.shared.one_at_a_time.lock().await;
        {
            let mut state = self.state();
            self.shared.time.pass(state.call_takes);
            let number = state.calls.len();
            call.number = *state.calls.entry(call.invocation_id().to_owned()).or_insert(number);
            state.tries.push((self.task, call.operation.clone()));
        }
        next.send(call).await
    }
}
