//! Single calls that are retried before they are left to the next run.

use payments_boot::{Deadline, Retries};
use payments_model::Outage;

use crate::halt::Halt;

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
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if let Err(stop) = retries.wait(&error, deadline).await {
            return Err(Halt::new(stop, error));
        }
    }
    Err(Halt::OutOfTime)
}
