//! The functions that operators start in the console, one after the other.
//!
//! In the background they run beside the rest, as on AWS: a recount compares counters that
//! still change, and nothing waits for it.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use payments_boot::Clock;
use payments_model::causes;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::handlers::Handlers;
use crate::handlers::Started;
use crate::handlers::invocation::context;
use crate::stack::Stack;

/// The invocations of functions that operators started.
pub(super) struct Starting {
    functions: Arc<dyn Handlers>,
    clock: Clock,
    timeout: TimeDelta,
    started: Started,
    is_in_background: bool,
    running: Option<(&'static str, JoinHandle<Result<Value, String>>)>,
}

impl Starting {
    pub(super) fn new(stack: &Stack, functions: Arc<dyn Handlers>, timeout: TimeDelta) -> Self {
        let (clock, started) = (stack.clock.clone(), stack.started.clone());
        Self { functions, clock, timeout, started, is_in_background: false, running: None }
    }

    /// From now on, invocations run beside the rest.
    pub(super) fn in_background(&mut self) {
        self.is_in_background = true;
    }

    /// Invokes the started functions, or the next one if nothing runs. Returns the failures of
    /// ended ones, one line each.
    pub(super) async fn step(&mut self, now: DateTime<Utc>) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some((function, running)) = &mut self.running {
            let Some(done) = running.now_or_never() else { return failures };
            failures.extend(ended(function, done.unwrap_or_else(|error| Err(error.to_string()))));
            self.running = None;
        }
        while let Some((function, input)) = self.started.take(now) {
            let (functions, deadline) = (Arc::clone(&self.functions), self.clock.instant() + self.timeout);
            if self.is_in_background {
                let runtime = Handle::current();
                // On a thread of its own, as in Lambda.
                let running = spawn_blocking(move || runtime.block_on(run(&*functions, function, &input, deadline)));
                self.running = Some((function, running));
                break;
            }
            failures.extend(ended(function, run(&*functions, function, &input, deadline).await));
        }
        failures
    }

    /// Waits until nothing runs.
    pub(super) async fn end(&mut self) {
        if let Some((function, running)) = self.running.take() {
            drop(running.await.map(|done| ended(function, done)));
        }
    }
}

async fn run(
    functions: &dyn Handlers,
    function: &'static str,
    input: &str,
    until: DateTime<Utc>,
) -> Result<Value, String> {
    let input: Value = serde_json::from_str(input).map_err(|error| causes(&error).join(": "))?;
    functions.scheduled(function, input, context(until)).await
}

/// Logs the answer of a function, which on AWS nobody learns. Returns the reason of a failure.
fn ended(function: &'static str, answer: Result<Value, String>) -> Option<String> {
    match answer {
        Ok(answer) => {
            tracing::info!(%function, %answer, "what an operator started has ended");
            None
        }
        Err(error) => Some(format!("{function}, started by an operator: {error}")),
    }
}
