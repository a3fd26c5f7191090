//! The layer that checks each call against the laws on calls.

use std::sync::{Arc, Mutex, PoisonError};

use payments_boot::Clock;
use payments_machine::Call;
use payments_machine::layers::{Answer, Layer, Next};

use crate::laws::conditions::check_write;
use crate::laws::one_content::check_batch;

/// The layer, with the violations that it has found, each with its time. Clones share the violations.
#[derive(Debug, Clone)]
pub struct Complaints {
    clock: Clock,
    all: Arc<Mutex<Vec<String>>>,
}

impl Complaints {
    /// Returns an empty list of complaints.
    #[must_use]
    pub fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), all: Arc::default() }
    }

    /// Adds violations with the time now.
    pub fn add(&self, wrong: impl IntoIterator<Item = String>) {
        let told = wrong.into_iter().map(|wrong| format!("{}: {wrong}", self.clock.instant()));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
    }

    /// Returns the violations so far.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait::async_trait]
impl Layer for Complaints {
    async fn carry(&self, call: Call, next: Next) -> Answer {
        let (operation, input) = (&call.operation, call.input());
        self.add([check_write(operation, input), check_batch(operation, input)].into_iter().flatten());
        next.send(call).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_has_the_time_of_its_call() {
        let complaints = Complaints::new(&Clock::simulated(|| "2026-03-12T01:02:03Z".parse().unwrap(), |_| {}));
        complaints.add(["an unconditional write".to_owned()]);
        assert_eq!(complaints.all(), ["2026-03-12 01:02:03 UTC: an unconditional write"]);
    }
}
