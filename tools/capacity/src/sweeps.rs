//! The scheduled functions as they are: sweep, redrive and report begin at ticks of their own, keep a pace on each
//! shard, and stop at a deadline. A shard that only throttles is given up until the next run.

use crate::creates::{any, minus};

/// The seconds of an invocation of the report.
pub(crate) const REPORT_SECONDS: u64 = 829;

/// The seconds without progress after which a run gives a shard up: six calls of three tries within about 1.5 s, and the
/// waits of 3.1 s between them.
const GIVES_UP_AFTER: u32 = 12;

/// Work that runs at ticks, shard by shard.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    /// The seconds from one tick to the next, and the second of the first.
    pub(crate) every: u64,
    pub(crate) first: u64,
    /// The seconds of a run.
    pub(crate) seconds: u64,
    /// The most writes of a shard in a second, in thousandths.
    pub(crate) pace: i64,
    /// The waiting work, in thousandths, by shard.
    pub(crate) waiting: Vec<i64>,
    /// The shards that this run works on, with how many seconds they made no progress.
    working: Vec<Option<u32>>,
    ends: u64,
    /// The number of times that a run gave up a shard.
    pub(crate) given_up: u64,
}

impl Runs {
    /// Creates work for which nothing waits.
    pub(crate) fn new(every: u64, first: u64, seconds: u64, pace: i64, shards: usize) -> Self {
        let (waiting, working) = (vec![0; shards], vec![None; shards]);
        Self { every, first, seconds, pace: pace * 1_000, waiting, working, ends: 0, given_up: 0 }
    }

    /// Returns the writes that come in this second.
    pub(crate) fn wanted(&mut self, second: u64) -> Vec<i64> {
        if second >= self.first && (second - self.first).is_multiple_of(self.every) {
            self.ends = second + self.seconds;
            self.working.fill(Some(0));
        }
        if second >= self.ends {
            self.working.fill(None);
        }
        for (working, &waiting) in self.working.iter_mut().zip(&self.waiting) {
            *working = working.filter(|_| waiting > 0);
        }
        let wanted = |(&waiting, working): (&i64, &Option<u32>)| working.map_or(0, |_| waiting.min(self.pace));
        self.waiting.iter().zip(&self.working).map(wanted).collect()
    }

    /// Takes what was accepted.
    pub(crate) fn take(&mut self, wanted: &[i64], accepted: &[i64]) {
        self.waiting = minus(&self.waiting, accepted);
        for ((working, &wanted), &accepted) in self.working.iter_mut().zip(wanted).zip(accepted) {
            let Some(failed) = working.as_mut().filter(|_| wanted > 0) else { continue };
            *failed = if accepted > 0 { 0 } else { *failed + 1 };
            if *failed == GIVES_UP_AFTER {
                self.given_up += 1;
                *working = None;
            }
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_done(&self) -> bool {
        !any(&self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_its_pace_ends_at_its_deadline_and_gives_up_a_shard_that_only_throttles() {
        let mut runs = Runs::new(300, 10, 234, 20, 2);
        runs.waiting = vec![10_000_000, 30_000];
        let mut wanted_at = Vec::new();
        for second in 0..600 {
            let wanted = runs.wanted(second);
            wanted_at.push(wanted.clone());
            // The first shard accepts nothing in the first run.
            let accepted = vec![if second < 300 { 0 } else { wanted[0] }, wanted[1]];
            runs.take(&wanted, &accepted);
        }
        assert_eq!(wanted_at[9], [0, 0]);
        assert_eq!(wanted_at[10], [20_000, 20_000]);
        assert_eq!(wanted_at[11], [20_000, 10_000], "what is left");
        assert_eq!((wanted_at[21][0], wanted_at[22][0], runs.given_up), (20_000, 0, 1));
        assert_eq!((wanted_at[310][0], wanted_at[543][0], wanted_at[544][0]), (20_000, 20_000, 0));
        assert!(!runs.is_done());
    }
}
