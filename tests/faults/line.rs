//! The line between the functions and AWS: every call of theirs, to DynamoDB and to SQS alike, in
//! one sequence, which a test can break at any place, hold up, and look back on.
//!
//! It sits below the SDKs, so that retries and error types are the real ones. DynamoDB's calls go
//! on over a [`Wire`] to the engine; SQS's are answered here, from a queue in this process, so that
//! what is tested is the path through SendMessageBatch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use chrono::TimeDelta;
use payments_local::wire::Wire;
use payments_queue::Queue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::gate::Gate;
use crate::staleness::Staleness;
use crate::time::Time;
use crate::weakness::Weakness;

/// One try of a call, before it is made.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The call's number since the line was last told what to do, from 0. The SDK's retries of a
    /// call have its number.
    pub(crate) number: usize,
    /// Which try of the call this is, from 0.
    pub(crate) tried: usize,
    /// The operation, such as `PutItem` or `SendMessageBatch`.
    pub(crate) operation: String,
    /// Its input.
    pub(crate) input: Value,
}

/// What happens to a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes through.
    Pass,
    /// It is answered with this status and error code, and not done.
    Refuse(u16, &'static str),
    /// It is a transaction, and cancelled for this reason of its first action.
    Cancel(&'static str),
    /// It is done, and its answer never arrives.
    LoseReply,
    /// SQS takes all messages but the first, and says so.
    RefuseFirstEntry,
    /// The process is killed when it is about to be made.
    KillBefore,
    /// The process is killed when it has just been done.
    KillAfter,
}

/// Decides the fate of each try.
pub(crate) type Decide = dyn Fn(&Call) -> Fate + Send + Sync;

/// A message that the transaction service's queue took.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// What it says.
    pub(crate) request: Value,
    /// How many changes of the hot table there had been by then.
    pub(crate) after_changes: usize,
}

/// The line of one task; all tasks of a rig share what goes over it.
#[derive(Clone)]
pub(crate) struct Line {
    shared: Arc<Shared>,
    task: usize,
}

struct Shared {
    wire: Wire,
    time: Time,
    requests: Queue,
    staleness: Staleness,
    gate: Gate,
    killed: Notify,
    /// One try at a time, so that a process that is killed between two calls has no third under way.
    one_at_a_time: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// What the line knows of a call it has seen.
struct Known {
    number: usize,
    tries: usize,
}

struct State {
    decide: Arc<Decide>,
    weakness: Option<Weakness>,
    call_takes: TimeDelta,
    /// The calls by the SDK's names of them.
    calls: HashMap<String, Known>,
    /// The tries, each by its task and operation.
    tries: Vec<(usize, String)>,
    sent: Vec<Sent>,
}

impl Line {
    pub(crate) fn new(wire: Wire, time: Time, requests: Queue, staleness: Staleness) -> Self {
        let state = State {
            decide: Arc::new(|_| Fate::Pass),
            weakness: None,
            call_takes: TimeDelta::zero(),
            calls: HashMap::new(),
            tries: Vec::new(),
            sent: Vec::new(),
        };
        let (gate, killed, one_at_a_time) = (Gate::default(), Notify::new(), tokio::sync::Mutex::new(()));
        let shared = Shared { wire, time, requests, staleness, gate, killed, one_at_a_time, state: Mutex::new(state) };
        Self { shared: Arc::new(shared), task: 0 }
    }

    /// The line as another task has it.
    pub(crate) fn of_task(&self, task: usize) -> Self {
        Self { shared: Arc::clone(&self.shared), task }
    }

    /// From now on `decide` decides, over calls that are numbered from 0.
    pub(crate) fn break_with(&self, decide: impl Fn(&Call) -> Fate + Send + Sync + 'static) {
        let mut state = self.state();
        state.decide = Arc::new(decide);
        (state.calls, state.tries) = (HashMap::new(), Vec::new());
    }

    /// From now on every call goes through.
    pub(crate) fn mend(&self) {
        self.break_with(|_| Fate::Pass);
    }

    /// Makes the store behind the line weaker than DynamoDB is asked to be.
    pub(crate) fn weaken(&self, weakness: Option<Weakness>) {
        self.state().weakness = weakness;
    }

    /// Lets time pass with each try.
    pub(crate) fn calls_take(&self, time: TimeDelta) {
        self.state().call_takes = time;
    }

    /// How many calls there were since the line was last told what to do.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls.len()
    }

    /// The tries since then, by operation.
    pub(crate) fn tries_of(&self, operation: &str) -> usize {
        self.state().tries.iter().filter(|(_, known)| known == operation).count()
    }

    /// The tries since then in their order, each by its task and operation.
    pub(crate) fn order(&self) -> Vec<(usize, String)> {
        self.state().tries.clone()
    }

    /// How many messages were ever sent to the transaction service.
    pub(crate) fn sent(&self) -> usize {
        self.state().sent.len()
    }

    /// Those of one account.
    pub(crate) fn sent_for(&self, account: &str) -> Vec<Sent> {
        let state = self.state();
        state.sent.iter().filter(|sent| sent.request["accountId"] == account).cloned().collect()
    }

    /// Waits at the gate as a call does, without making one.
    pub(crate) async fn pause(&self) {
        drop(self.shared.gate.pass(self.task).await);
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.shared.wire
    }

    pub(crate) fn staleness(&self) -> &Staleness {
        &self.shared.staleness
    }

    /// Runs a handler as a process that is killed where the line says so: then it has no answer.
    pub(crate) async fn until_killed<T>(&self, handler: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.shared.killed.notified() => None,
            done = handler => Some(done),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(self, inner: SharedHttpConnector, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default().to_owned();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let _pass = self.shared.gate.pass(self.task).await;
        let _turn = self.shared.one_at_a_time.lock().await;
        let input = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or(Value::Null);
        let name = request.headers().get("amz-sdk-invocation-id").unwrap_or_default().to_owned();
        let (call, decide, weakness) = self.note(&name, operation, input);
        match decide(&call) {
            Fate::Refuse(status, code) => answer(status, &json!({ "__type": code, "message": "injected" })),
            Fate::Cancel(reason) => answer(400, &cancellation(&call, reason)),
            Fate::KillBefore => self.be_killed().await,
            fate => {
                let reply = if target.starts_with("AmazonSQS.") {
                    self.take_messages(&call, fate).await
                } else {
                    self.ask_dynamodb(inner, request, &call, weakness).await
                };
                match fate {
                    Fate::LoseReply => Err(ConnectorError::io("the connection was lost".into())),
                    Fate::KillAfter => self.be_killed().await,
                    _ => reply,
                }
            }
        }
    }

    fn note(&self, name: &str, operation: String, input: Value) -> (Call, Arc<Decide>, Option<Weakness>) {
        let mut state = self.state();
        self.shared.time.pass(state.call_takes);
        let next = state.calls.len();
        let known = state.calls.entry(name.to_owned()).or_insert(Known { number: next, tries: 0 });
        known.tries += 1;
        let (number, tried) = (known.number, known.tries - 1);
        state.tries.push((self.task, operation.clone()));
        (Call { number, tried, operation, input }, Arc::clone(&state.decide), state.weakness)
    }

    async fn be_killed(&self) -> Result<HttpResponse, ConnectorError> {
        self.shared.killed.notify_one();
        std::future::pending().await
    }

    async fn ask_dynamodb(
        &self,
        inner: SharedHttpConnector,
        mut request: HttpRequest,
        call: &Call,
        weakness: Option<Weakness>,
    ) -> Result<HttpResponse, ConnectorError> {
        let mut input = call.input.clone();
        if let Some(weakness) = weakness {
            weakness.weaken(&mut input);
            let body = input.to_string();
            request.headers_mut().insert("content-length", body.len().to_string());
            *request.body_mut() = SdkBody::from(body);
        }
        let response = inner.call(request).await?;
        let status = response.status().as_u16();
        let body = ByteStream::new(response.into_body()).collect().await;
        let body = body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
        let mut reply = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status == 200 {
            let aged = self.shared.staleness.age(&call.operation, &input, &mut reply).await;
            aged.map_err(|error| ConnectorError::other(error.into(), None))?;
        }
        answer(status, &reply)
    }

    async fn take_messages(&self, call: &Call, fate: Fate) -> Result<HttpResponse, ConnectorError> {
        let changes = self.shared.staleness.changes().await;
        let after_changes = changes.map_err(|error| ConnectorError::other(error.into(), None))?.len();
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for (place, entry) in call.input["Entries"].as_array().into_iter().flatten().enumerate() {
            let (id, body) = (&entry["Id"], entry["MessageBody"].as_str().unwrap_or_default());
            if fate == Fate::RefuseFirstEntry && place == 0 {
                failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false }));
                continue;
            }
            let taken = self.shared.requests.send(body, self.shared.time.now());
            let taken = taken.map_err(|error| ConnectorError::other(error.into(), None))?;
            let request = serde_json::from_str(body).unwrap_or_default();
            self.state().sent.push(Sent { request, after_changes });
            successful.push(json!({ "Id": id, "MessageId": taken.to_string(), "MD5OfMessageBody": "" }));
        }
        answer(200, &json!({ "Successful": successful, "Failed": failed }))
    }
}

/// What DynamoDB answers to a transaction that it cancels: a reason for each action, in their order.
fn cancellation(call: &Call, reason: &str) -> Value {
    let actions = call.input["TransactItems"].as_array().map_or(0, Vec::len);
    let of_action = |place| json!({ "Code": if place == 0 { reason } else { "None" } });
    let reasons: Vec<Value> = (0..actions).map(of_action).collect();
    json!({ "__type": "TransactionCanceledException", "Message": "injected", "CancellationReasons": reasons })
}

fn answer(status: u16, body: &Value) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().map_err(|_| ConnectorError::other("no such status".into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line of task {}", self.task)
    }
}

impl HttpClient for Line {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.shared.wire.http_connector(settings, components);
        SharedHttpConnector::new(Tap { line: self.clone(), inner })
    }
}

#[derive(Debug)]
struct Tap {
    line: Line,
    inner: SharedHttpConnector,
}

impl HttpConnector for Tap {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.line.clone().carry(self.inner.clone(), request))
    }
}
