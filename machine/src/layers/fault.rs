//! The layer that injects faults: a closure decides the fate of each try.

use std::sync::Arc;

use async_trait::async_trait;
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::call::{Answer, Call, Fate, Layer, Next, Reply};

/// The layer: what decides, and the process that it kills.
pub struct Fault<Decide> {
    decide: Decide,
    process: Process,
}

/// A process that a [`Fate`] can kill. Clones are the same process.
#[derive(Debug, Clone, Default)]
pub struct Process(Arc<Notify>);

impl<Decide: Fn(&Call) -> Fate + Send + Sync> Fault<Decide> {
    /// Creates a layer of a process that nobody runs.
    pub fn new(decide: Decide) -> Self {
        Self::for_process(&Process::default(), decide)
    }

    /// Creates a layer of a process.
    pub fn for_process(process: &Process, decide: Decide) -> Self {
        Self { decide, process: process.clone() }
    }
}

#[async_trait]
impl<Decide: Fn(&Call) -> Fate + Send + Sync> Layer for Fault<Decide> {
    async fn carry(&self, mut call: Call, next: Next) -> Answer {
        call.fate = (self.decide)(&call);
        let fate = call.fate;
        match fate {
            Fate::Refuse(status, code) => return Ok(Reply::refusal(status, code, "injected")),
            Fate::CancelTransaction(reason) => return Ok(Reply::from_json(400, cancellation(call.input(), reason))),
            Fate::LoseRequest => return Err(lost()),
            Fate::KillBefore => return self.process.kill().await,
            Fate::Pass | Fate::LoseReply | Fate::RefuseFirstEntry | Fate::KillAfter => {}
        }
        let answer = next.send(call).await;
        match fate {
            Fate::LoseReply => Err(lost()),
            Fate::KillAfter => self.process.kill().await,
            _ => answer,
        }
    }
}

impl Process {
    /// Runs a handler in this process. Returns nothing if the process is killed first.
    pub async fn until_killed<T>(&self, handler: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.notified() => None,
            done = handler => Some(done),
        }
    }

    async fn kill(&self) -> Answer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Returns DynamoDB's answer to a transaction that it cancels: a reason for each action, in their order.
fn cancellation(input: &Value, reason: &str) -> Value {
    let actions = input["TransactItems"].as_array().map_or(0, Vec::len);
    let of_action = |index| json!({ "Code": if index == 0 { reason } else { "None" } });
    let reasons: Vec<Value> = (0..actions).map(of_action).collect();
    json!({ "__type": "TransactionCanceledException", "Message": "injected", "CancellationReasons": reasons })
}

fn lost() -> ConnectorError {
    ConnectorError::io("the connection was lost".into())
}
