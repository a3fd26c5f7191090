//! Calls to DynamoDB that are retried before they are left to the next run.

use payments_boot::Deadline;
use payments_model::causes;
use payments_store::StoreError;
use payments_work::Halt;

/// Makes a call unless the deadline has come, and retries it if that can help. Returns `None` if it keeps
/// failing or the deadline comes.
pub(crate) async fn retried<T>(
    deadline: &Deadline,
    call: impl AsyncFnMut() -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    match payments_work::retried(deadline, call).await {
        Ok(answer) => Ok(Some(answer)),
        Err(Halt::OutOfTime) => Ok(None),
        Err(Halt::Broken(error)) => Err(error),
        Err(Halt::GivenUp(error)) => {
            tracing::warn!(causes = ?causes(&error), "DynamoDB kept failing; the next run continues the report");
            Ok(None)
        }
    }
}
