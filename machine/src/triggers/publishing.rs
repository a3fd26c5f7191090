//! The invocations of `publish`: by its schedule, and by the stream of the log's table.
//!
//! In the background they run beside the rest: a webhook endpoint that hangs holds nothing up.

use std::mem;
use std::sync::Arc;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::join_all;
use payments_boot::Clock;
use payments_delivery::StreamMapping;
use payments_model::causes;
use payments_store::Store;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::handlers::Handlers;
use crate::handlers::invocation::context;
use crate::stack::Stack;
use crate::triggers::sources::stream_settings;

/// The invocations of `publish`.
pub(super) struct Publishing {
    functions: Arc<dyn Handlers>,
    clock: Clock,
    timeout: TimeDelta,
    /// None if the log's table has no stream.
    stream: Option<StreamMapping>,
    is_in_background: bool,
    store: Store,
    running: Vec<JoinHandle<Result<(), String>>>,
}

/// The most invocations at once. One with a receiver that is slow lasts for some seconds, and nobody else waits for it.
const AT_ONCE: usize = 8;

impl Publishing {
    pub(super) async fn start(stack: &Stack, functions: Arc<dyn Handlers>, timeout: TimeDelta) -> Result<Self> {
        let stream = match stack.log_stream().await {
            Ok(stream) => Some(StreamMapping::new(stream_settings("publish", None)?, stream)?),
            Err(_) => None,
        };
        let (clock, store) = (stack.clock.clone(), stack.store(stack.client()));
        Ok(Self { functions, clock, timeout, stream, is_in_background: false, store, running: Vec::new() })
    }

    /// From now on, invocations run beside the rest.
    pub(super) fn in_background(&mut self) {
        self.is_in_background = true;
    }

    /// Invokes the function. In the background it does not wait for its end. Invocations beyond the
    /// limit are left to the schedule.
    pub(super) async fn invoke(&mut self, input: Value) -> Result<(), String> {
        if !self.is_in_background {
            return run(&*self.functions, input, self.deadline()).await;
        }
        let ended = self.reap();
        if self.running.len() < AT_ONCE {
            let runtime = Handle::current();
            let functions = Arc::clone(&self.functions);
            let deadline = self.deadline();
            // On a thread of its own, as in Lambda.
            self.running.push(spawn_blocking(move || runtime.block_on(run(&*functions, input, deadline))));
        }
        ended
    }

    /// Looks whether the log has a new segment, and invokes the function if it has; in the background also if an operator wants a test.
    pub(super) async fn wake(&mut self, now: DateTime<Utc>) -> Result<(), String> {
        let ended = self.reap();
        let is_woken = self.has_segment(now).await? || (self.is_in_background && self.has_test().await?);
        let invoked = if is_woken { self.invoke(json!({ "Records": [] })).await } else { Ok(()) };
        ended.and(invoked)
    }

    /// Reads the stream of the log's table to its end. Returns whether there was a new segment.
    async fn has_segment(&mut self, now: DateTime<Utc>) -> Result<bool, String> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut has_segment = false;
        loop {
            let step = stream.step(now, |_| async { Ok(Value::Null) }).await;
            let deliveries = step.map_err(|error| causes(&error).join(": "))?;
            if deliveries.is_empty() {
                return Ok(has_segment);
            }
            has_segment = true;
        }
    }

    /// Whether a test is to be sent. On AWS it waits for the schedule.
    async fn has_test(&self) -> Result<bool, String> {
        let (states, now) = (self.store.webhook_states().await, self.clock.now());
        let states = states.map_err(|error| causes(&error).join(": "))?;
        Ok(states.values().flatten().any(|state| state.test_at.is_some() && state.can_be_taken(now)))
    }

    /// Waits until no invocation runs.
    pub(super) async fn end(&mut self) {
        join_all(self.running.drain(..)).await;
    }

    /// Takes ended invocations off the list. Returns the first failure.
    fn reap(&mut self) -> Result<(), String> {
        let mut ended = Ok(());
        self.running.retain_mut(|running| match running.now_or_never() {
            None => true,
            Some(done) => {
                ended = mem::replace(&mut ended, Ok(())).and(done.unwrap_or_else(|error| Err(error.to_string())));
                false
            }
        });
        ended
    }

    fn deadline(&self) -> DateTime<Utc> {
        self.clock.instant() + self.timeout
    }
}

async fn run(functions: &dyn Handlers, input: Value, deadline: DateTime<Utc>) -> Result<(), String> {
    // Boxed: the chain of calls is deeper than the compiler follows in one type.
    functions.scheduled("publish", input, context(deadline)).await.map(drop)
}
