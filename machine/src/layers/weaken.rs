//! The layer that weakens functions: they get something wrong in their calls, to show that a checker finds it.

mod first_details;
mod lanes;
mod replies;
mod reservations;
mod row;
mod table;
mod take_out;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use fastrand::Rng;
use payments_boot::Clock;
use serde_json::json;

use super::call::{Answer, Call, Layer, Next, Reply};
use super::random::happens;
use crate::engine::Direct;
use row::{Held, Row, Seen};

pub use replies::CHANGED;
pub use table::Weakness;

/// The number of swallowed calls in a thousand.
const SWALLOWED: u16 = 60;

/// The layer. Clones share the weakness and the random source.
#[derive(Clone)]
pub struct Weaken {
    state: Arc<Mutex<(Option<Weakness>, Rng)>>,
    function: Option<&'static str>,
    clock: Clock,
    engine: Direct,
}

/// The layer behind it that swallows calls: they are answered as done, and are not.
pub struct Swallow(pub Weaken);

impl Weaken {
    /// Creates a layer that weakens whoever calls.
    pub fn new(weakness: Option<Weakness>, random: Rng, clock: &Clock, engine: &Direct) -> Self {
        let (clock, engine) = (clock.clone(), engine.clone());
        Self { state: Arc::new(Mutex::new((weakness, random))), function: None, clock, engine }
    }

    /// Returns the layer of a function's calls: they are weakened if the weakness is about that function.
    pub fn for_function(&self, function: &'static str) -> Self {
        Self { function: Some(function), ..self.clone() }
    }

    /// Changes the weakness.
    pub fn set(&self, weakness: Option<Weakness>) {
        self.state().0 = weakness;
    }

    fn state(&self) -> MutexGuard<'_, (Option<Weakness>, Rng)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row(&self) -> Option<&'static Row> {
        let row = self.state().0?.row()?;
        let is_about = row.functions.is_empty() || self.function.is_none_or(|name| row.functions.contains(&name));
        is_about.then_some(row)
    }
}

#[async_trait]
impl Layer for Weaken {
    async fn carry(&self, mut call: Call, next: Next) -> Answer {
        let Some(row) = self.row() else { return next.send(call).await };
        let (operation, mut input) = (call.operation.clone(), call.input().clone());
        let (now, engine) = (self.clock.instant(), &self.engine);
        let mut seen = Seen { operation: &operation, input: &mut input, now, engine, held: None };
        (row.input)(&mut seen);
        let held = seen.held;
        if input != *call.input() {
            call.set_input(input);
        }
        let mut reply = next.send(call).await?;
        let engine = self.engine.clone();
        match held.filter(|_| reply.status == 200) {
            Some(Held::Segment(segment)) => drop(tokio::spawn(lanes::append_later(engine, segment))),
            Some(Held::Reservation(update)) => drop(tokio::spawn(reservations::reserve_later(engine, update))),
            None => {}
        }
        (row.answer)(&operation, &mut reply);
        Ok(reply)
    }
}

#[async_trait]
impl Layer for Swallow {
    async fn carry(&self, call: Call, next: Next) -> Answer {
        let is_swallowed = self.0.row().is_some_and(|row| {
            (row.swallows)(&call.operation, call.input()) && happens(&mut self.0.state().1, SWALLOWED)
        });
        if is_swallowed { Ok(Reply::from_json(200, json!({}))) } else { next.send(call).await }
    }
}
