//! A feed and what follows it, second by virtual second: each payment's writes become due one after
//! the other, and one that is refused waits for the bucket that refused it.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, ensure};

/// The most seconds of a play: a day.
const LAST_SECOND: u64 = 24 * 60 * 60;

/// Where writes are tried.
pub(crate) trait Stage {
    /// Tries a write of a payment. Where it is refused: by which bucket.
    fn attempt(&mut self, payment: u32, write: usize, second: u64) -> Result<Option<usize>>;
}

/// What is played.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Play<'a> {
    pub(crate) payments: u32,
    pub(crate) per_second: u32,
    /// How many seconds each write of a life comes after the one before.
    pub(crate) writes: &'a [u64],
    /// Of these, how many put the payment in.
    pub(crate) put_in: usize,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// After how many seconds all payments were in.
    pub(crate) put_in_after: u64,
    /// After how many seconds nothing was left to do.
    pub(crate) done_after: u64,
    /// How many writes had to wait, by bucket.
    pub(crate) waited: BTreeMap<usize, u64>,
    /// How many writes of each kind were done, second by second.
    pub(crate) done: Vec<Vec<u32>>,
}

impl Outcome {
    /// The bucket that most writes had to wait for.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.waited.iter().max_by_key(|(_, waited)| **waited).map(|(&number, _)| number)
    }
}

/// One write of one payment.
type Job = (u32, usize);

struct Line<'a, S> {
    play: Play<'a>,
    stage: &'a mut S,
    waiting: BTreeMap<usize, VecDeque<Job>>,
    later: VecDeque<Vec<Job>>,
    left: u64,
    outcome: Outcome,
}

/// Plays it to the end.
pub(crate) fn run<S: Stage>(play: Play<'_>, stage: &mut S) -> Result<Outcome> {
    let left = u64::from(play.payments) * u64::try_from(play.writes.len())?;
    let (waiting, later) = (BTreeMap::new(), VecDeque::new());
    let mut line = Line { play, stage, waiting, later, left, outcome: Outcome::default() };
    let mut next = 0;
    for second in 0.. {
        if line.left == 0 {
            break;
        }
        ensure!(second < LAST_SECOND, "{} writes are left after a day", line.left);
        line.outcome.done.push(vec![0; play.writes.len()]);
        let ready = line.later.pop_front().unwrap_or_default();
        line.serve_waiting(second)?;
        let arrived = next..(next + play.per_second).min(play.payments);
        next = arrived.end;
        for job in arrived.map(|payment| (payment, 0)).chain(ready) {
            line.go_on(job, second, None)?;
        }
    }
    Ok(line.outcome)
}

impl<S: Stage> Line<'_, S> {
    /// Lets go on what waits, oldest first, as far as each bucket reaches.
    fn serve_waiting(&mut self, second: u64) -> Result<()> {
        for bucket in self.waiting.keys().copied().collect::<Vec<_>>() {
            while let Some(&job) = self.waiting.get(&bucket).and_then(|queue| queue.front()) {
                if self.go_on(job, second, Some(bucket))? == Some(bucket) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Does a payment's writes from this one on, as long as they follow at once and none is refused. A
    /// first one that waited in a queue leaves it, unless the same bucket refuses it again. Says which
    /// one refused the first.
    fn go_on(&mut self, (payment, first): Job, second: u64, queue: Option<usize>) -> Result<Option<usize>> {
        for write in first..self.play.writes.len() {
            let after = self.play.writes[write];
            if write > first && after > 0 {
                let ahead = usize::try_from(after - 1)?;
                while self.later.len() <= ahead {
                    self.later.push_back(Vec::new());
                }
                self.later[ahead].push((payment, write));
                return Ok(None);
            }
            let refused = self.stage.attempt(payment, write, second)?;
            let waited = queue.filter(|_| write == first);
            if waited.is_some() && refused == waited {
                return Ok(refused);
            }
            if let Some(queue) = waited.and_then(|bucket| self.waiting.get_mut(&bucket)) {
                queue.pop_front();
            }
            if let Some(bucket) = refused {
                self.waiting.entry(bucket).or_default().push_back((payment, write));
                *self.outcome.waited.entry(bucket).or_default() += 1;
                return Ok(refused.filter(|_| write == first));
            }
            self.done(write, second)?;
        }
        Ok(None)
    }

    fn done(&mut self, write: usize, second: u64) -> Result<()> {
        self.left -= 1;
        self.outcome.done[usize::try_from(second)?][write] += 1;
        self.outcome.done_after = second + 1;
        if write + 1 == self.play.put_in {
            self.outcome.put_in_after = second + 1;
        }
        Ok(())
    }
}
