//! Calls to DynamoDB that are repeated a few times before they are left to the next invocation.

use payments_boot::{Deadline, pace};
use payments_model::{Outage as _, OutageKind, causes};
use payments_store::StoreError;

/// Repeats a call that is throttled or not answered: for 3 s in all, on top of the SDK's own tries,
/// and not past the deadline. `None` where that did not help.
pub(crate) async fn patiently<T, F>(deadline: &Deadline, call: impl Fn() -> F) -> Result<Option<T>, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut failures = 0;
    loop {
        match call().await {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) if error.kind() == OutageKind::Broken => return Err(error),
            Err(error) => {
                failures += 1;
                match pace::backoff(failures) {
                    Some(wait) if !deadline.has_come() => deadline.sleep(wait).await,
                    _ => {
                        tracing::warn!(causes = ?causes(&error), "left to the next invocation");
                        return Ok(None);
                    }
                }
            }
        }
    }
}
