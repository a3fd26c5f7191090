//! An event bus, which notes the events that it accepts.
//!
//! The bus drops events as EventBridge does: while it is missing, it accepts events and loses them.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use publish::{BusError, BusEvent, EventBus, MAX_BUS_EVENTS, Put};
use serde_json::{Value, json};

/// Says, by the number of the call and the id of an event, with which code it is rejected.
type Rejects = Box<dyn Fn(usize, &str) -> Option<&'static str> + Send + Sync>;

/// A bus. It accepts every event until [`reject`](Self::reject) says otherwise.
pub struct Bus {
    name: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    accepted: Vec<Value>,
    calls: usize,
    is_missing: bool,
    rejects: Option<Rejects>,
}

impl Bus {
    /// The consumer of the default bus in the log.
    pub const CONSUMER: &str = "bus#payments";

    /// A bus of this name.
    pub fn named(name: &'static str) -> Self {
        Self { name, state: Mutex::default() }
    }

    /// From now on, throttles the events that a closure selects.
    pub fn reject(&self, rejects: impl Fn(usize, &str) -> bool + Send + Sync + 'static) {
        self.reject_as("ThrottlingException", rejects);
    }

    /// From now on, rejects with this code the events that a closure selects.
    pub fn reject_as(&self, code: &'static str, rejects: impl Fn(usize, &str) -> bool + Send + Sync + 'static) {
        self.state().rejects = Some(Box::new(move |call, event| rejects(call, event).then_some(code)));
    }

    /// Deletes the bus, or creates it again.
    pub fn set_missing(&self, is_missing: bool) {
        self.state().is_missing = is_missing;
    }

    /// The accepted events, in the form of CloudEvents.
    pub fn accepted(&self) -> Vec<Value> {
        self.state().accepted.clone()
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self::named("payments")
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bus")
    }
}

#[async_trait]
impl EventBus for Bus {
    fn name(&self) -> &str {
        self.name
    }

    async fn check(&self) -> Result<(), BusError> {
        if self.state().is_missing { Err(BusError::Missing(self.name.to_owned())) } else { Ok(()) }
    }

    async fn put(&self, events: Vec<BusEvent>) -> Put {
        assert!((1..=MAX_BUS_EVENTS).contains(&events.len()), "{} events", events.len());
        let (mut state, mut put) = (self.state(), Put::default());
        state.calls += 1;
        if state.is_missing {
            return put;
        }
        for event in events {
            if let Some(code) = state.rejects.as_ref().and_then(|rejects| rejects(state.calls, &event.id)) {
                put.reject(event, code, "slower");
            } else {
                state.accepted.push(serde_json::from_str(&event.detail).unwrap_or(json!("not JSON")));
            }
        }
        put
    }
}
