//! Simulates a feed, second by virtual second. Each payment's writes are due one after another, and one that is
//! throttled waits for the bucket that was empty.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, ensure};

/// The most seconds of a simulation: a day.
const LAST_SECOND: u64 = 24 * 60 * 60;

/// An executor of writes.
pub(crate) trait Backend {
    /// Tries a write of a payment. Returns the bucket that throttles it.
    fn attempt(&mut self, payment: u32, write: usize, second: u64) -> Result<Option<usize>>;
}

/// A feed.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    pub(crate) payments: u32,
    pub(crate) per_second: u32,
    /// The seconds of each write of a life after the one before.
    pub(crate) writes: Vec<u64>,
    /// How many of the writes create the payment.
    pub(crate) creates: usize,
}

/// When the writes of a feed were done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// The seconds until all payments were created.
    pub(crate) created_after: u64,
    /// The seconds until all writes were done.
    pub(crate) done_after: u64,
    /// How many writes had to wait, by bucket.
    pub(crate) waited: BTreeMap<usize, u64>,
    /// How many writes were done in each second, by their place in a life.
    pub(crate) done: Vec<Vec<u32>>,
}

impl Timeline {
    /// Returns the bucket that most writes waited for.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.waited.iter().max_by_key(|(_, waited)| **waited).map(|(&number, _)| number)
    }
}

/// A write of a payment.
type Job = (u32, usize);

struct Simulation<'a, B> {
    feed: &'a Feed,
    backend: &'a mut B,
    waiting: BTreeMap<usize, VecDeque<Job>>,
    later: VecDeque<Vec<Job>>,
    left: u64,
    timeline: Timeline,
}

/// Simulates a feed to its end.
pub(crate) fn simulate<B: Backend>(feed: &Feed, backend: &mut B) -> Result<Timeline> {
    let left = u64::from(feed.payments) * u64::try_from(feed.writes.len())?;
    let (waiting, later) = (BTreeMap::new(), VecDeque::new());
    let mut simulation = Simulation { feed, backend, waiting, later, left, timeline: Timeline::default() };
    let mut next = 0;
    for second in 0.. {
        if simulation.left == 0 {
            break;
        }
        ensure!(second < LAST_SECOND, "{} writes are left after a day", simulation.left);
        simulation.timeline.done.push(vec![0; feed.writes.len()]);
        let ready = simulation.later.pop_front().unwrap_or_default();
        simulation.continue_waiting(second)?;
        let arrived = next..(next + feed.per_second).min(feed.payments);
        next = arrived.end;
        for job in arrived.map(|payment| (payment, 0)).chain(ready) {
            simulation.continue_from(job, second, None)?;
        }
    }
    Ok(simulation.timeline)
}

impl<B: Backend> Simulation<'_, B> {
    /// Continues the jobs that wait, the oldest first, until their buckets are empty again.
    fn continue_waiting(&mut self, second: u64) -> Result<()> {
        for bucket in self.waiting.keys().copied().collect::<Vec<_>>() {
            while let Some(&job) = self.waiting.get(&bucket).and_then(|queue| queue.front()) {
                if self.continue_from(job, second, Some(bucket))? == Some(bucket) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Does a payment's writes from this one on, until one is due later or throttled. The first write leaves the `queue`
    /// in which it waited, unless the same bucket throttles it again. Returns the bucket that throttled the first write.
    fn continue_from(&mut self, (payment, first): Job, second: u64, queue: Option<usize>) -> Result<Option<usize>> {
        for write in first..self.feed.writes.len() {
            let after = self.feed.writes[write];
            if write > first && after > 0 {
                let ahead = usize::try_from(after - 1)?;
                while self.later.len() <= ahead {
                    self.later.push_back(Vec::new());
                }
                self.later[ahead].push((payment, write));
                return Ok(None);
            }
            let throttled = self.backend.attempt(payment, write, second)?;
            let waited = queue.filter(|_| write == first);
            if waited.is_some() && throttled == waited {
                return Ok(throttled);
            }
            if let Some(queue) = waited.and_then(|bucket| self.waiting.get_mut(&bucket)) {
                queue.pop_front();
            }
            if let Some(bucket) = throttled {
                self.waiting.entry(bucket).or_default().push_back((payment, write));
                *self.timeline.waited.entry(bucket).or_default() += 1;
                return Ok(throttled.filter(|_| write == first));
            }
            self.count(write, second)?;
        }
        Ok(None)
    }

    fn count(&mut self, write: usize, second: u64) -> Result<()> {
        self.left -= 1;
        self.timeline.done[usize::try_from(second)?][write] += 1;
        self.timeline.done_after = second + 1;
        if write + 1 == self.feed.creates {
            self.timeline.created_after = second + 1;
        }
        Ok(())
    }
}
