//! Retries of failed calls to DynamoDB, beyond those of the SDK.

use std::time::Duration;

use payments_model::{Outage, OutageKind};

use crate::deadline::Deadline;

/// The wait after the first failure in a row. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The most waits in a row: 100 ms to 1.6 s, 3.1 s in all.
const MAX_WAITS: u32 = 5;

/// Counts failures in a row and waits after each. Start anew after progress.
#[derive(Debug, Default)]
pub struct Retries {
    failures: u32,
}

/// Why a failed call is not retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A retry changes nothing.
    Broken,
    /// The call failed too often in a row.
    GivenUp,
    /// The deadline has come.
    OutOfTime,
}

impl Retries {
    /// Waits before the next try, but not past the deadline.
    ///
    /// # Errors
    /// [`Stop`] if there is to be no next try.
    pub async fn wait(&mut self, error: &impl Outage, deadline: &Deadline) -> Result<(), Stop> {
        self.wait_for(error.kind(), deadline).await
    }

    /// Waits before the next try after an outage of this kind, but not past the deadline.
    ///
    /// # Errors
    /// [`Stop`] if there is to be no next try.
    pub async fn wait_for(&mut self, kind: OutageKind, deadline: &Deadline) -> Result<(), Stop> {
        if kind == OutageKind::Broken {
            return Err(Stop::Broken);
        }
        self.failures += 1;
        let wait = wait_after(self.failures).ok_or(Stop::GivenUp)?;
        if deadline.has_come() {
            return Err(Stop::OutOfTime);
        }
        deadline.sleep(wait).await;
        Ok(())
    }
}

fn wait_after(failures: u32) -> Option<Duration> {
    (failures <= MAX_WAITS).then(|| FIRST_WAIT * 2_u32.saturating_pow(failures.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_five_times() {
        let waits: Vec<_> = (1..=6).map(wait_after).collect();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits, [ms(100), ms(200), ms(400), ms(800), ms(1_600), None]);
    }
}
