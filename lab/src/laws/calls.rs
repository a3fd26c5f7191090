//! The layer that looks for what no call may be.

use std::sync::{Arc, Mutex, PoisonError};

use payments_machine::Call;
use payments_machine::layers::{Answer, Layer, Next};

use crate::laws::conditions::check_write;
use crate::laws::one_content::check_batch;

/// The violations of laws on calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    /// Adds a violation.
    pub fn add(&self, wrong: impl IntoIterator<Item = String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(wrong);
    }

    /// Returns the complaints so far.
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
