//! Drives work round by round.

use payments_boot::{Clock, Deadline};
use payments_model::Outage;

use crate::halt::Halt;
use crate::retries::Retries;
use crate::round::Round;

/// Work that is done in rounds.
pub trait Work {
    /// The error of its calls.
    type Error: Outage;

    /// Whether nothing is left.
    fn is_done(&self) -> bool;

    /// Makes one round of calls. Entries that were throttled or not answered stay queued.
    fn round(&mut self) -> impl Future<Output = Round<Self::Error>>;
}

/// Makes rounds until nothing is left. Progress resets the retries. The pace holds for each round
/// by itself, so time lost in one does not cause a burst in the next.
///
/// # Errors
/// [`Halt`] if the deadline comes, or calls keep failing.
pub async fn drive<W: Work>(work: &mut W, clock: &Clock, deadline: &Deadline) -> Result<(), Halt<W::Error>> {
    let mut retries = Retries::default();
    while !work.is_done() {
        if deadline.has_come() {
            return Err(Halt::OutOfTime);
        }
        let started = clock.instant();
        let Round { done, per_second, failure } = work.round().await;
        if failure.is_none() || done > 0 {
            retries = Retries::default();
        }
        if let Some(error) = failure {
            retries.wait(error, deadline).await?;
        }
        deadline.keep_rate(done, started, per_second).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
