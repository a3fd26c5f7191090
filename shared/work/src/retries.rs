//! Waits between tries, each longer than the one before, and their end.

use std::time::Duration;

use payments_boot::Deadline;
use payments_model::{Outage, OutageKind};

use crate::halt::Halt;

/// The waits between tries that fail in a row, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// The wait after the first failure. It doubles with each further one.
    pub first: Duration,
    /// The most doublings.
    pub doublings: u32,
    /// The most waits.
    pub most: u32,
}

/// Counts failures in a row. Start anew after progress.
#[derive(Debug, Clone)]
pub struct Retries {
    waits: Waits,
    failures: u32,
}

impl Waits {
    /// The waits after calls that the SDK has retried: 100 ms to 1.6 s, 3.1 s in all.
    const OF_CALLS: Self = Self { first: Duration::from_millis(100), doublings: 4, most: 5 };

    /// Returns the wait after this many failures in a row. `None` ends the tries.
    #[must_use]
    pub fn after(self, failures: u32) -> Option<Duration> {
        let doublings = failures.saturating_sub(1).min(self.doublings);
        (failures <= self.most).then(|| self.first * 2_u32.saturating_pow(doublings))
    }

    /// Counts from no failure on.
    #[must_use]
    pub fn begin(self) -> Retries {
        Retries { waits: self, failures: 0 }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Waits::OF_CALLS.begin()
    }
}

impl Retries {
    /// Counts a failure, and returns the wait before the next try. `None` ends the tries.
    pub fn next_wait(&mut self) -> Option<Duration> {
        self.failures += 1;
        self.waits.after(self.failures)
    }

    /// Waits before the next try, but not past the deadline.
    ///
    /// # Errors
    /// [`Halt`] if the tries end.
    pub(crate) async fn wait<E: Outage>(&mut self, error: E, deadline: &Deadline) -> Result<(), Halt<E>> {
        if error.kind() == OutageKind::Broken {
            return Err(Halt::Broken(error));
        }
        let Some(wait) = self.next_wait() else { return Err(Halt::GivenUp(error)) };
        if deadline.has_come() {
            return Err(Halt::OutOfTime);
        }
        deadline.sleep(wait).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_so_many_times_and_end() {
        let waits = |waits: Waits| (1..=7).map(|failures| waits.after(failures)).collect::<Vec<_>>();
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits(Waits::OF_CALLS), [ms(100), ms(200), ms(400), ms(800), ms(1_600), None, None]);
        let some = Waits { first: Duration::from_millis(25), doublings: 2, most: 6 };
        assert_eq!(waits(some), [ms(25), ms(50), ms(100), ms(100), ms(100), ms(100), None]);
    }
}
