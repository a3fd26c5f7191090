//! An event bus, which notes what it accepts.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use publish::{BusError, BusEvent, EventBus, MAX_BUS_EVENTS, Put};
use serde_json::{Value, json};

/// Says, by the number of the call and the id of an event, whether it is rejected.
type Rejects = Box<dyn Fn(usize, &str) -> bool + Send + Sync>;

/// A bus. It accepts every event until [`reject`](Self::reject) says otherwise.
#[derive(Default)]
pub struct Bus(Mutex<State>);

#[derive(Default)]
struct State {
    accepted: Vec<Value>,
    calls: usize,
    rejects: Option<Rejects>,
}

impl Bus {
    /// Lets a closure say what is rejected from now on.
    pub fn reject(&self, rejects: impl Fn(usize, &str) -> bool + Send + Sync + 'static) {
        self.state().rejects = Some(Box::new(rejects));
    }

    /// The accepted events, in the form of CloudEvents.
    pub fn accepted(&self) -> Vec<Value> {
        self.state().accepted.clone()
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bus")
    }
}

#[async_trait]
impl EventBus for Bus {
    async fn put(&self, events: Vec<BusEvent>) -> Put {
        assert!((1..=MAX_BUS_EVENTS).contains(&events.len()), "{} events", events.len());
        let (mut state, mut put) = (self.state(), Put::default());
        state.calls += 1;
        for event in events {
            if state.rejects.as_ref().is_some_and(|rejects| rejects(state.calls, &event.id)) {
                let (id, code) = (event.id.clone(), "ThrottlingException".to_owned());
                put.why.get_or_insert(BusError::Rejected { event: id, code, message: "slower".to_owned() });
                put.left.push(event);
            } else {
                state.accepted.push(serde_json::from_str(&event.detail).unwrap_or(json!("not JSON")));
            }
        }
        put
    }
}
