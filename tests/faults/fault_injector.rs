//! An interceptor between the functions and AWS, which injects faults. All calls, to DynamoDB and to SQS, are one
//! sequence that a test can break, order and inspect.
//!
//! It sits below the SDKs, so that retries and error types are the real ones. DynamoDB's calls go over a [`Recorder`]
//! to the engine. SQS's calls are answered here from a queue in this process, so that SendMessageBatch is tested.
//!
//! The month's network draws what fails, and lets calls overlap; here a test decides over each call, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::TimeDelta;
use payments_lab::Weakness;
use payments_lab::laws::check_write;
use payments_lab::world::requests::accept;
use payments_machine::interceptor::{Answer, Next, Process, read_whole, respond};
use payments_machine::{Call, Fate, Interceptor, Recorder, SimulatedTime};
use payments_queue::Queue;
use serde_json::Value;

use crate::staleness::{Lag, Staleness};
use crate::task_scheduler::TaskScheduler;

/// Decides the fate of each try.
pub(crate) type Decide = dyn Fn(&Call) -> Fate + Send + Sync;

/// A message that the transaction service's queue has accepted.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// The request.
    pub(crate) request: Value,
    /// How many changes the hot table had by then.
    pub(crate) after_changes: usize,
}

/// The injector of one task's calls. All tasks share the sequence.
#[derive(Clone)]
pub(crate) struct FaultInjector {
    shared: Arc<Shared>,
    task: usize,
}

struct Shared {
    recorder: Recorder,
    time: SimulatedTime,
    requests: Queue,
    staleness: Staleness,
    scheduler: TaskScheduler,
    process: Process,
    /// One try at a time, so that no other call is under way when the process is killed.
    one_at_a_time: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

struct State {
    decide: Arc<Decide>,
    weakness: Option<Weakness>,
    call_takes: TimeDelta,
    /// The numbers of the calls by their invocation ids.
    calls: HashMap<String, usize>,
    /// The tries, each by task and operation.
    tries: Vec<(usize, String)>,
    sent: Vec<Sent>,
    /// What calls were that no call may be.
    complaints: Vec<String>,
}

impl FaultInjector {
    pub(crate) fn new(recorder: Recorder, time: SimulatedTime, requests: Queue, staleness: Staleness) -> Self {
        let state = State {
            decide: Arc::new(|_| Fate::Pass),
            weakness: None,
            call_takes: TimeDelta::zero(),
            calls: HashMap::new(),
            tries: Vec::new(),
            sent: Vec::new(),
            complaints: Vec::new(),
        };
        let (scheduler, process, one_at_a_time) =
            (TaskScheduler::default(), Process::default(), tokio::sync::Mutex::new(()));
        let shared =
            Shared { recorder, time, requests, staleness, scheduler, process, one_at_a_time, state: Mutex::new(state) };
        Self { shared: Arc::new(shared), task: 0 }
    }

    /// The injector of another task's calls.
    pub(crate) fn of_task(&self, task: usize) -> Self {
        Self { shared: Arc::clone(&self.shared), task }
    }

    /// Lets `decide` choose the fate of each try from now on. Calls are numbered from 0 again.
    pub(crate) fn inject(&self, decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) {
        let mut state = self.state();
        state.decide = Arc::new(decide);
        (state.calls, state.tries) = (HashMap::new(), Vec::new());
    }

    /// Lets every call pass from now on.
    pub(crate) fn clear(&self) {
        self.inject(|_| Fate::Pass);
    }

    /// Weakens the store: see [`Weakness`].
    pub(crate) fn weaken(&self, weakness: Option<Weakness>) {
        self.state().weakness = weakness;
    }

    /// Lets this time pass with each try.
    pub(crate) fn calls_take(&self, time: TimeDelta) {
        self.state().call_takes = time;
    }

    /// How many calls were made since the last injection.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls.len()
    }

    /// How many tries of an operation were made since then.
    pub(crate) fn tries_of(&self, operation: &str) -> usize {
        self.state().tries.iter().filter(|(_, known)| known == operation).count()
    }

    /// The tries since then in order, each by task and operation.
    pub(crate) fn order(&self) -> Vec<(usize, String)> {
        self.state().tries.clone()
    }

    /// How many messages were ever sent to the transaction service.
    pub(crate) fn sent(&self) -> usize {
        self.state().sent.len()
    }

    /// The messages sent for one account.
    pub(crate) fn sent_for(&self, account: &str) -> Vec<Sent> {
        let state = self.state();
        state.sent.iter().filter(|sent| sent.request["accountId"] == account).cloned().collect()
    }

    /// What calls were that no call may be.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.state().complaints.clone()
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

    /// Lets reads lag from now on.
    pub(crate) fn lag(&self, lag: Lag) {
        self.shared.staleness.set(lag);
    }

    /// Ends faults, lag and weakness.
    pub(crate) fn end(&self) {
        self.clear();
        self.weaken(None);
        self.lag(Lag::none());
    }

    pub(crate) fn staleness(&self) -> &Staleness {
        &self.shared.staleness
    }

    /// Runs a handler as a process. Returns nothing if the injector kills it.
    pub(crate) async fn until_killed<T>(&self, handler: impl Future<Output = T>) -> Option<T> {
        self.shared.process.until_killed(handler).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interceptor of this task's calls.
    pub(crate) fn interceptor(&self) -> Interceptor {
        let injector = self.clone();
        Interceptor::over(self.shared.recorder.clone(), move |call, next| injector.clone().carry(call, next))
    }

    async fn carry(self, mut call: Call, next: Next) -> Answer {
        let _pass = self.shared.scheduler.turn(self.task).await;
        let _turn = self.shared.one_at_a_time.lock().await;
        let (decide, weakness) = self.note(&mut call);
        let fate = decide(&call);
        let injector = &self;
        let send = |call: Call| async move {
            match call.service() {
                "AmazonSQS" => injector.take_messages(&call, fate).await,
                _ => injector.ask_dynamodb(call, next, weakness).await,
            }
        };
        fate.carry_out(call, &self.shared.process, send).await
    }

    /// Numbers a call.
    fn note(&self, call: &mut Call) -> (Arc<Decide>, Option<Weakness>) {
        let mut state = self.state();
        self.shared.time.pass(state.call_takes);
        let next = state.calls.len();
        call.number = *state.calls.entry(call.invocation_id().to_owned()).or_insert(next);
        state.tries.push((self.task, call.operation.clone()));
        state.complaints.extend(check_write(&call.operation, call.input()));
        (Arc::clone(&state.decide), state.weakness)
    }

    async fn ask_dynamodb(&self, mut call: Call, next: Next, weakness: Option<Weakness>) -> Answer {
        let (operation, mut input) = (call.operation.clone(), call.input().clone());
        if let Some(weakness) = weakness {
            // Whoever calls is weak.
            let _changed = weakness.weaken(weakness.of_function(), &operation, &mut input);
            call.set_input(input.clone());
        }
        let (status, body) = read_whole(next.send(call).await?).await?;
        let mut reply = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status == 200 {
            let aged = self.shared.staleness.age(&operation, &input, &mut reply).await;
            aged.map_err(|error| ConnectorError::other(error.into(), None))?;
        }
        respond(status, reply.to_string())
    }

    async fn take_messages(&self, call: &Call, fate: Fate) -> Answer {
        let changes = self.shared.staleness.changes().await;
        let after_changes = changes.map_err(|error| ConnectorError::other(error.into(), None))?.log().len();
        let is_rejected = |place| fate == Fate::RefuseFirstEntry && place == 0;
        let (accepted, answer) = accept(&self.shared.requests, call.input(), self.shared.time.now(), is_rejected)?;
        self.state().sent.extend(accepted.into_iter().map(|request| Sent { request, after_changes }));
        respond(200, answer.to_string())
    }
}
