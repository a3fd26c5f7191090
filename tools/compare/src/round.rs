//! One round of a pair: handler, bare loop, bare loop, handler, so that a change on the machine affects both alike.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::fixture::Fixture;
use crate::pair::{Pair, Side};

/// The times of the two sides, the handler first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// The elapsed time.
    pub took: [Duration; 2],
    /// The processor time of this thread, on Linux. The engine has its own process, so its time is not included.
    pub processor: [Duration; 2],
}

impl Round {
    /// Does a round. Each side works on `size` payments twice.
    pub async fn of(pair: Pair, fixture: &Fixture, size: u64) -> Result<Self> {
        let mut round = Self { took: Default::default(), processor: Default::default() };
        for side in [Side::Handler, Side::Against, Side::Against, Side::Handler] {
            let work = pair.prepare(fixture, side, size).await?;
            let (before, start) = (processor_time(), Instant::now());
            work.await.with_context(|| pair.properties().sides[side as usize])?;
            round.took[side as usize] += start.elapsed();
            round.processor[side as usize] += processor_time().saturating_sub(before);
        }
        Ok(round)
    }

    /// Returns the ratio of the handler's throughput to the other side's, in thousandths.
    pub fn ratio(&self) -> u64 {
        thousandths(self.took)
    }
}

/// Returns how much faster the first of two is than the second, in thousandths.
pub(crate) fn thousandths([first, second]: [Duration; 2]) -> u64 {
    u64::try_from(second.as_nanos() * 1_000 / first.as_nanos().max(1)).unwrap_or(u64::MAX)
}

/// Returns the processor time of this thread so far, on Linux.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}
