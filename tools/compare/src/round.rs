//! One round of a pair: handler, bare loop, bare loop, handler, so that what changes meanwhile falls on
//! both alike.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::bank::Bank;
use crate::{Pair, Side};

/// What the two sides took, the handler first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// From begin to end.
    pub took: [Duration; 2],
    /// Of this thread's processor, where the system tells: the engine, in its own process, is not in it.
    pub spent: [Duration; 2],
}

impl Round {
    /// Does a round; each side does so much twice.
    ///
    /// # Errors
    /// Where a side does not do all of its work.
    pub async fn of(pair: Pair, bank: &Bank, size: u64) -> Result<Self> {
        let mut round = Self { took: Default::default(), spent: Default::default() };
        for side in [Side::Handler, Side::Against, Side::Against, Side::Handler] {
            let work = pair.prepare(bank, side, size).await?;
            let (spent, began) = (on_processor(), Instant::now());
            work.await.with_context(|| format!("{} of {}", pair.sides()[side as usize], pair.name()))?;
            round.took[side as usize] += began.elapsed();
            round.spent[side as usize] += on_processor().saturating_sub(spent);
        }
        Ok(round)
    }

    /// The handler's throughput beside the other's, in thousandths.
    #[must_use]
    pub fn ratio(&self) -> u64 {
        permille(self.took)
    }
}

/// How much faster the first of two is than the second, in thousandths.
pub(crate) fn permille([first, second]: [Duration; 2]) -> u64 {
    u64::try_from(second.as_nanos() * 1_000 / first.as_nanos().max(1)).unwrap_or(u64::MAX)
}

/// How long this thread has been on a processor, where the system is Linux.
fn on_processor() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
