//! Functions that operators start in the console, until something invokes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::template::Template;

/// A start: its time, the function, and its input.
type Start = (DateTime<Utc>, &'static str, String);

/// Functions that operators started and nobody has invoked yet, the oldest first.
#[derive(Debug, Clone, Default)]
pub struct Started(Arc<Mutex<VecDeque<Start>>>);

impl Started {
    /// Adds a function with its input.
    pub fn add(&self, now: DateTime<Utc>, function: &'static str, input: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((now, function, input.to_owned()));
    }

    /// Takes the oldest one that has not waited for longer than the template permits.
    pub fn take(&self, now: DateTime<Utc>) -> Option<(&'static str, String)> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in_time = |(at, package, _): &Start| {
            let function = Template::ours().and_then(|template| template.function(package));
            function.is_ok_and(|it| it.longest_wait().is_none_or(|wait| now - *at < wait))
        };
        let next = std::iter::from_fn(|| started.pop_front()).find(is_in_time);
        next.map(|(_, function, input)| (function, input))
    }
}
