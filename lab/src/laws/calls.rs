//! The layer that checks each call against the laws on calls.

use std::sync::{Arc, Mutex, PoisonError};

use payments_machine::Call;
use payments_machine::layers::{Answer, Layer, Next};

use crate::laws::conditions::check_write;
use crate::laws::one_content::check_batch;

/// The layer, with the violations that it has found. Clones share the violations.
#[derive(Debug, Clone, Default)]
pub struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    /// Adds violations.
    pub fn add(&self, wrong: impl IntoIterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(wrong);
    }

    /// Returns the violations so far.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
