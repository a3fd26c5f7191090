//! The invocations of `publish`: by its schedule, and by the stream of the log's table.
//!
//! In the background they run beside the rest: a webhook endpoint that hangs holds nothing up.

use std::mem;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use payments_boot::Clock;
use payments_delivery::{Filter, StreamMapping, StreamSettings};
use payments_model::causes;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::function::Function;
use crate::functions::Functions;
use crate::invocation::context;
use crate::stack::Stack;

/// The changes of the log's table that wake `publish`: new segments, whose sort keys are numbers of twelve digits, and not its own writes.
pub const PUBLISH_FILTER: &str = r#"{"eventName":["INSERT"],"dynamodb":{"Keys":{"sk":{"S":[{"prefix":"0"}]}}}}"#;

/// The most stream records of one invocation of `publish`, which reads none of them.
pub const PUBLISH_BATCH: usize = 1_000;

/// Returns the stream mapping of `publish`. What fails is not repeated: the schedule does it.
pub fn publish_settings() -> Result<StreamSettings> {
    Ok(StreamSettings {
        batch_size: PUBLISH_BATCH,
        filter: Some(Filter::parse(PUBLISH_FILTER)?),
        maximum_retry_attempts: Some(0),
        ..StreamSettings::of("publish")
    })
}

/// What invokes `publish`.
pub(super) struct Publishing {
    functions: Functions,
    clock: Clock,
    timeout: TimeDelta,
    /// None if the log's table has no stream.
    stream: Option<StreamMapping>,
    is_in_background: bool,
    next: Option<Value>,
    running: Option<JoinHandle<Result<(), String>>>,
}

impl Publishing {
    pub(super) async fn of(stack: &Stack, functions: Functions, timeout: TimeDelta) -> Result<Self> {
        let stream = match stack.log_stream().await {
            Ok(stream) => Some(StreamMapping::new(publish_settings()?, stream)?),
            Err(_) => None,
        };
        let clock = stack.clock.clone();
        Ok(Self { functions, clock, timeout, stream, is_in_background: false, next: None, running: None })
    }

    /// Lets invocations run beside the rest from now on.
    pub(super) fn in_background(&mut self) {
        self.is_in_background = true;
    }

    /// Invokes the function, or lets it be invoked after the invocation that runs.
    pub(super) async fn invoke(&mut self, input: Value) -> Result<(), String> {
        if !self.is_in_background {
            return run(&self.functions, input, self.deadline()).await;
        }
        // A tick does what a waking would do.
        let is_tick = |input: &Value| input.get("action").is_some();
        if !self.next.as_ref().is_some_and(is_tick) {
            self.next = Some(input);
        }
        self.go_on().await
    }

    /// Looks whether the log has a new segment, and invokes the function if it has.
    pub(super) async fn wake(&mut self, now: DateTime<Utc>) -> Result<(), String> {
        self.go_on().await?;
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut is_woken = false;
        loop {
            let step = stream.step(now, |_| async { Ok(Value::Null) }).await;
            let deliveries = step.map_err(|error| causes(&error).join(": "))?;
            if deliveries.is_empty() {
                break;
            }
            is_woken = true;
        }
        if is_woken { self.invoke(json!({ "Records": [] })).await } else { Ok(()) }
    }

    /// Waits until no invocation runs.
    pub(super) async fn end(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.await);
        }
    }

    /// Begins the next invocation, if none runs. Returns the failure of one that has ended.
    async fn go_on(&mut self) -> Result<(), String> {
        let mut ended = Ok(());
        if let Some(running) = &mut self.running {
            let Some(done) = running.now_or_never() else { return Ok(()) };
            self.running = None;
            ended = done.unwrap_or_else(|error| Err(error.to_string()));
        }
        if let Some(input) = mem::take(&mut self.next) {
            let (runtime, functions, deadline) = (Handle::current(), self.functions.clone(), self.deadline());
            // On a thread of its own, as in Lambda.
            self.running = Some(spawn_blocking(move || runtime.block_on(run(&functions, input, deadline))));
        }
        ended
    }

    fn deadline(&self) -> DateTime<Utc> {
        self.clock.instant() + self.timeout
    }
}

async fn run(functions: &Functions, input: Value, deadline: DateTime<Utc>) -> Result<(), String> {
    // Boxed: the chain of calls is deeper than the compiler follows in one type.
    functions.scheduled(Function::Publish, input, context(deadline)).await.map(drop)
}
