//! Functions that operators start in the console, until something invokes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::function::Function;

/// What was started: when, which function, and its input.
type Start = (DateTime<Utc>, Function, String);

/// Functions that operators started and nobody has invoked yet, the oldest first.
#[derive(Debug, Clone, Default)]
pub struct Started(Arc<Mutex<VecDeque<Start>>>);

/// How long a start waits for the one before it. Then it is dropped, as the template's `MaximumEventAgeInSeconds` says.
const STARTS_WAIT: TimeDelta = TimeDelta::seconds(300);

impl Started {
    /// Adds a function with its input.
    pub fn add(&self, now: DateTime<Utc>, function: Function, input: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((now, function, input.to_owned()));
    }

    /// Takes the oldest one that has not waited for too long.
    pub fn take(&self, now: DateTime<Utc>) -> Option<(Function, String)> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = std::iter::from_fn(|| started.pop_front()).find(|(at, ..)| now - *at < STARTS_WAIT);
        next.map(|(_, function, input)| (function, input))
    }
}
