//! Reads of several calls, bounded by the time that one call may take.

use std::time::Duration;

use aws_sdk_dynamodb::Client;

use crate::{Store, StoreError};

/// The timeout of one call, with all its attempts and the waits between them, and so the most time that one read or one write of the
/// store takes. Functions of the API give their calls less. Methods that may write again say so: [`Store::put_archived_head`] and
/// [`Store::mark_reported`] twice, [`Store::cancel_payment`] three times.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

impl Store {
    /// Ends a read of several calls after the time of one. A read can stop anywhere; a write cannot.
    ///
    /// The read is put into a box at once: it has the SDK's large futures, and whoever waits for it would have it three times.
    pub(crate) fn bounded<T>(
        &self,
        operation: &'static str,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> impl Future<Output = Result<T, StoreError>> {
        let bounded = tokio::time::timeout(timeout_of(&self.client), Box::pin(read));
        async move {
            match bounded.await {
                Ok(read) => read,
                Err(late) => Err(StoreError::Unavailable { operation, source: Box::new(late) }),
            }
        }
    }
}

/// The timeout that a client gives its calls.
fn timeout_of(client: &Client) -> Duration {
    let timeouts = client.config().timeout_config();
    timeouts.and_then(|timeouts| timeouts.operation_timeout()).unwrap_or(CALL_TIMEOUT)
}
