//! Calls to DynamoDB that are retried before they are left to the next run.

use payments_boot::{Deadline, Retries, Stop};
use payments_model::causes;
use payments_store::StoreError;

/// Makes a call unless the deadline has come, and retries it if that can help. Returns `None` if it keeps
/// failing or the deadline comes.
pub(crate) async fn retried<T, F>(deadline: &Deadline, call: impl Fn() -> F) -> Result<Option<T>, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut retries = Retries::default();
    while !deadline.has_come() {
        let error = match call().await {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => error,
        };
        match retries.wait(&error, deadline).await {
            Ok(()) => {}
            Err(Stop::Broken) => return Err(error),
            Err(Stop::GivenUp | Stop::OutOfTime) => {
                tracing::warn!(causes = ?causes(&error), "DynamoDB kept failing; the next run continues the report");
                return Ok(None);
            }
        }
    }
    Ok(None)
}
