//! The network between the functions and AWS: every call takes its time, may fail, and is followed.
//!
//! A call goes on even if its caller is killed meanwhile, as on a network.

use std::sync::Arc;

use aws_smithy_runtime_api::client::result::ConnectorError;
use chrono::TimeDelta;
use payments_local::interceptor::{Answer, Next, Process, read_whole, respond};
use payments_local::{Call, Direct, Fate, Interceptor};
use serde_json::{Value, json};

use crate::attributes::text;
use crate::broken::{Broken, Part};
use crate::changes::Changes;
use crate::faults::{FaultKind, Faults};
use crate::lag::Lag;
use crate::metrics::Metrics;
use crate::requests::RequestQueue;
use crate::time::{Time, pause};
use crate::trace::Trace;
use crate::weakness::Weakness;

/// The operations that write.
const WRITES: [&str; 4] = ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"];

/// The network. Clones are the same.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

/// What the network needs.
pub(crate) struct Shared {
    pub(crate) time: Time,
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) changes: Changes,
    pub(crate) lag: Lag,
    pub(crate) requests: RequestQueue,
    pub(crate) weakness: Option<Weakness>,
    pub(crate) broken: Broken,
    pub(crate) metrics: Metrics,
}

impl Network {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Returns an interceptor of a sandbox's calls.
    pub(crate) fn interceptor(&self, engine: Direct, sandbox: usize) -> Interceptor {
        let network = self.clone();
        Interceptor::over(engine, move |call, next| {
            let network = network.clone();
            async move {
                let calls = tokio::spawn(async move { network.carry(call, next, sandbox).await });
                calls.await.map_err(|error| ConnectorError::other(error.into(), None))?
            }
        })
    }

    async fn carry(&self, mut call: Call, next: Next, sandbox: usize) -> Answer {
        let shared = &*self.0;
        let (fate, there, back) = self.fate(&call);
        pause(there).await;
        let (operation, service) = (call.operation.clone(), call.service().to_owned());
        let mut input = call.input().clone();
        if let Some(weakness) = shared.weakness
            && weakness.weaken(&operation, &mut input)
        {
            call.set_input(input.clone());
        }
        let send = |call: Call| async {
            match service.as_str() {
                "AmazonSQS" => shared.requests.take(&input, shared.time.now(), &shared.faults),
                _ => self.ask(call, next, &operation, &input).await,
            }
        };
        let mut answer = fate.carry_out(call, &Process::default(), send).await;
        let (status, body) = match answer {
            Ok(response) => {
                let (status, body) = read_whole(response).await?;
                let shown = serde_json::from_slice(&body).unwrap_or(Value::Null);
                answer = respond(status, body);
                (status, shown)
            }
            Err(error) => {
                answer = Err(error);
                (0, Value::Null)
            }
        };
        shared.trace.add(shared.time.now(), &operation, &[&json!([sandbox, status]), &input, &body]);
        pause(back).await;
        answer
    }

    /// Draws what happens to a try, and how long its way there and back takes.
    fn fate(&self, call: &Call) -> (Fate, TimeDelta, TimeDelta) {
        let faults = &self.0.faults;
        let (there, mut back) = (faults.millis(1..15), faults.millis(1..15));
        if faults.draw(FaultKind::SlowCall, 1) {
            back += faults.millis(2_000..9_000);
        }
        let is_write = WRITES.contains(&call.operation.as_str());
        let is_transaction = call.operation == "TransactWriteItems";
        let is_dynamodb = call.service() != "AmazonSQS";
        let fate = if is_dynamodb && let Some(place) = self.throttled_at(call, is_write) {
            if is_write {
                self.0.metrics.throttled(place);
            }
            if is_transaction {
                Fate::CancelTransaction("ThrottlingError")
            } else {
                Fate::Refuse(400, "ProvisionedThroughputExceededException")
            }
        } else if faults.draw(FaultKind::ServerError, 2) {
            Fate::Refuse(500, "InternalServerError")
        } else if is_write && faults.draw(FaultKind::Conflict, 4) {
            if is_transaction {
                Fate::CancelTransaction("TransactionConflict")
            } else {
                Fate::Refuse(400, "TransactionConflictException")
            }
        } else if faults.draw(FaultKind::RequestLost, 2) {
            Fate::LoseRequest
        } else if faults.draw(FaultKind::ReplyLost, 4) {
            Fate::LoseReply
        } else {
            Fate::Pass
        };
        (fate, there, back)
    }

    /// Returns the table or index that throttles a call, if one does.
    fn throttled_at(&self, call: &Call, is_write: bool) -> Option<&'static str> {
        let (shared, input) = (&*self.0, call.input());
        let of_head = [&input["Key"], &input["Item"]].into_iter().any(|key| text(key, "pk").starts_with("ACCT#"));
        if is_write && of_head && input["TableName"] == "payments" && shared.broken.is(Part::Writes) {
            return Some("payments");
        }
        let place = shared.lag.throttles(input, shared.time.now());
        place.inspect(|_| shared.faults.count(FaultKind::Throttled))
    }

    async fn ask(&self, call: Call, next: Next, operation: &str, input: &Value) -> Answer {
        let shared = &*self.0;
        let (status, body) = read_whole(next.send(call).await?).await?;
        if WRITES.contains(&operation) {
            let followed = shared.changes.follow(shared.time.now()).await;
            followed.map_err(|error| ConnectorError::other(error.into(), None))?;
            return respond(status, body);
        }
        if status != 200 {
            return respond(status, body);
        }
        let mut answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if shared.lag.age(operation, input, &mut answer, shared.time.now(), &shared.changes) {
            return respond(status, answer.to_string());
        }
        respond(status, body)
    }
}
