//! Single calls that are retried before they are left to the next run.

use payments_boot::Deadline;
use payments_model::Outage;

use crate::halt::Halt;
use crate::retries::Retries;

/// Makes a call unless the deadline has come, and retries it if that can help.
///
/// # Errors
/// [`Halt`] if the call keeps failing, or the deadline comes.
pub async fn retried<T, E: Outage>(
    deadline: &Deadline,
    mut call: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, Halt<E>> {
    let mut retries = Retries::default();
    while !deadline.has_come() {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => retries.wait(error, deadline).await?,
        }
    }
    Err(Halt::OutOfTime)
}
