//! The aggregators of all stream shards, on a virtual clock. They append to one log, which is on one partition.
//!
//! The model is unkind where AWS promises nothing: calls are slow, and one in a hundred takes half
//! a second; a try that fails is charged in full; consumers of the log write to the same partition.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use payments_store::key::Lane;
use stream_aggregator::{CONFLICT_WAITS, LOG_WAITS};

use super::segments::{Segment, Segments};

/// All times are microseconds.
pub(crate) const MILLISECOND: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MILLISECOND;

/// The simulated time, in seconds.
pub(crate) const SECONDS: u64 = 10 * 60;

/// The time from one read of a stream shard by Lambda to the next.
const POLL: u64 = 250 * MILLISECOND;

/// The milliseconds of an invocation by Lambda, and of calls to DynamoDB. AWS promises no times; these are slow.
const INVOKE: RangeInclusive<u64> = 5..=50;
const READ: RangeInclusive<u64> = 5..=15;
const TRANSACTION: RangeInclusive<u64> = 20..=60;

/// One call in so many takes as long as this.
const SLOW_ONE_IN: u32 = 100;
const SLOW: u64 = 500 * MILLISECOND;

/// The function's work on a record: once to read it, and in each try for its event and the segment.
/// docs/performance.md, Counting, has 14 and 1.2 µs with a whole core, built for speed. 512 MB are
/// 0.29 of a core, and the function is built for size.
const READING: u64 = 100;
const FOLDING: u64 = 10;

/// The write units a second of a partition.
pub(crate) const PARTITION: u64 = 1_000;

/// The units of the log's head: it has at most 1 KB, as a test of the store says, and a transaction doubles it.
pub(crate) const HEAD: u64 = 2;

/// The units a second that consumers write to the log's table at most: 20 webhook endpoints two units for each round of 1,000 events, and
/// the event bus one for 160 events; of 2,778 events a second.
const CONSUMERS: u64 = 20 * 3 * 2 + 18;

/// Two transactions that share several items and begin within this time may cancel each other.
const BOTH_LOSE: u64 = 5 * MILLISECOND;

/// The changes that come, and to how many stream shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) shards: usize,
    pub(crate) changes_per_second: u64,
}

/// The outcome of the simulation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// The wait of each segment's oldest change until it was in the log, and the time of that.
    pub(crate) lags: Vec<(u64, u64)>,
    pub(crate) commits: u64,
    /// Tries that another stream shard was quicker than, that conflicted at a counter, or that were throttled.
    pub(crate) lost: u64,
    /// Commits that gave up.
    pub(crate) exhausted: u64,
    /// The write units of each second on the log's partition.
    pub(crate) units: Vec<u64>,
    /// Changes that were made and are not in the log in the end.
    pub(crate) waiting: u64,
}

/// Why a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    LogMoved,
    Conflict,
    Throttled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A batch may be complete.
    Poll,
    /// The function begins a try.
    Begin,
    /// The log's head is read.
    ReadHead,
    /// A transaction is sent, and arrives.
    Send,
    Arrive(u64),
    /// A transaction is committed, unless another one cancelled it.
    Apply(u64),
    /// The function learns the outcome.
    Done,
    Lost(Loss),
}

/// A stream shard and its function.
struct Shard {
    /// Thousandths of changes a second.
    rate: u64,
    lane: Lane,
    /// The changes that were taken.
    taken: u64,
    batch: VecDeque<Segment>,
    head: u64,
    tries: u32,
    log_tries: u32,
}

impl Shard {
    /// Returns how many changes were made.
    fn made(&self, now: u64) -> u64 {
        self.rate * now / (1_000 * SECOND)
    }

    /// Returns when a change is made, by its number from 0.
    fn made_at(&self, change: u64) -> u64 {
        ((change + 1) * 1_000 * SECOND).div_ceil(self.rate)
    }

    fn left(&self) -> u64 {
        self.batch.iter().map(|segment| segment.events as u64).sum()
    }
}

/// The units that the partition still accepts, in millionths. It gains evenly, and saves those of one second.
#[derive(Debug, Default)]
struct Bucket {
    left: i64,
    filled_at: u64,
}

impl Bucket {
    /// Whether nothing is left. A call may overdraw it.
    fn is_empty(&mut self, now: u64) -> bool {
        let gained = i64::try_from((now - self.filled_at) * PARTITION).unwrap_or(i64::MAX);
        let most = i64::try_from(SECOND * PARTITION).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(gained).min(most);
        self.filled_at = now;
        self.left <= 0
    }
}

/// The transaction that holds the log's head.
struct Holder {
    shard: usize,
    since: u64,
    is_cancelled: bool,
}

pub(crate) struct Log<'s> {
    shards: Vec<Shard>,
    segments: &'s mut Segments,
    random: Rng,
    next: BinaryHeap<Reverse<(u64, u64, usize, Step)>>,
    order: u64,
    head: u64,
    holder: Option<Holder>,
    bucket: Bucket,
    outcome: Outcome,
}

impl<'s> Log<'s> {
    pub(crate) fn new(load: Load, segments: &'s mut Segments, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        // Stream shards differ: the busiest has up to half as much again as the idlest.
        let parts: Vec<u64> = (0..load.shards).map(|_| random.u64(80..=120)).collect();
        let all: u64 = parts.iter().sum();
        let shard = |part: &u64| {
            let id = format!("shardId-{:020}-{:08x}", 1_795_136_400_000 + random.u64(0..1_000_000), random.u32(..));
            let (rate, lane) = (load.changes_per_second * 1_000 * part / all, Lane::for_stream_shard(&id));
            Shard { rate, lane, taken: 0, batch: VecDeque::new(), head: 0, tries: 0, log_tries: 0 }
        };
        let shards = parts.iter().map(shard).collect();
        let (next, outcome) = (BinaryHeap::new(), Outcome { units: vec![CONSUMERS; 1], ..Outcome::default() });
        Self { shards, segments, random, next, order: 0, head: 1, holder: None, bucket: Bucket::default(), outcome }
    }

    /// Plays the minutes.
    pub(crate) fn play(mut self) -> Result<Outcome> {
        for shard in 0..self.shards.len() {
            let first = self.random.u64(0..POLL);
            self.at(first, shard, Step::Poll);
        }
        while let Some(Reverse((now, _, shard, step))) = self.next.pop() {
            if now >= SECONDS * SECOND {
                break;
            }
            self.pass_seconds(now)?;
            self.step(now, shard, step)?;
        }
        let end = SECONDS * SECOND;
        let waiting = |shard: &Shard| shard.made(end).saturating_sub(shard.taken - shard.left());
        self.outcome.waiting = self.shards.iter().map(waiting).sum();
        Ok(self.outcome)
    }

    fn at(&mut self, time: u64, shard: usize, step: Step) {
        self.order += 1;
        self.next.push(Reverse((time, self.order, shard, step)));
    }

    /// Charges what consumers write in each second.
    fn pass_seconds(&mut self, now: u64) -> Result<()> {
        while u64::try_from(self.outcome.units.len())? <= now / SECOND {
            self.outcome.units.push(0);
            self.charge(CONSUMERS)?;
        }
        Ok(())
    }

    fn charge(&mut self, units: u64) -> Result<()> {
        self.bucket.left -= i64::try_from(units * SECOND)?;
        *self.outcome.units.last_mut().context("no second")? += units;
        Ok(())
    }

    /// Returns how long a call takes.
    fn call(&mut self, milliseconds: RangeInclusive<u64>) -> u64 {
        let time = self.random.u64(milliseconds) * MILLISECOND;
        if self.random.u32(0..SLOW_ONE_IN) == 0 { SLOW } else { time }
    }

    /// Returns a wait as the function waits.
    fn jitter(&mut self, longest: Duration) -> u64 {
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        self.random.u64(longest / 2..=longest)
    }

    fn step(&mut self, now: u64, shard: usize, step: Step) -> Result<()> {
        match step {
            Step::Poll => return self.poll(now, shard),
            // The checkpoint, then the head, which is read in the middle of its call.
            Step::Begin => {
                let reads = self.call(READ) + self.call(READ) / 2;
                self.at(now + reads, shard, Step::ReadHead);
            }
            Step::ReadHead => {
                self.shards[shard].head = self.head;
                let (answer, work) = (self.call(READ) / 2, self.shards[shard].left() * FOLDING);
                self.at(now + answer + work, shard, Step::Send);
            }
            Step::Send => {
                let time = self.call(TRANSACTION);
                self.at(now + time / 4, shard, Step::Arrive(time));
            }
            Step::Arrive(time) => return self.arrive(now, shard, time),
            Step::Apply(time) => {
                let is_cancelled = self.holder.take().is_some_and(|holder| holder.is_cancelled);
                if !is_cancelled {
                    self.head += 1;
                }
                let learns = if is_cancelled { Step::Lost(Loss::Conflict) } else { Step::Done };
                self.at(now + time / 4, shard, learns);
            }
            Step::Done => self.done(now, shard),
            Step::Lost(loss) => self.lost(now, shard, loss),
        }
        Ok(())
    }

    /// Takes a batch if it is full or its window is over. The window begins when the function is
    /// free and a change waits.
    fn poll(&mut self, now: u64, shard: usize) -> Result<()> {
        let (batch, window) = (self.segments.batch as u64, self.segments.window);
        let it = &self.shards[shard];
        let full = it.made_at(it.taken + batch - 1);
        let complete = full.min(now.max(it.made_at(it.taken)) + window);
        // Lambda sees it when it reads next.
        let seen = now + complete.saturating_sub(now).next_multiple_of(POLL);
        let changes = (it.made(seen) - it.taken).min(batch);
        self.shards[shard].batch = self.segments.of_batch(usize::try_from(changes)?)?.into();
        self.shards[shard].taken += changes;
        let begin = seen + self.random.u64(INVOKE) * MILLISECOND + changes * READING;
        self.at(begin, shard, Step::Begin);
        Ok(())
    }

    fn arrive(&mut self, now: u64, shard: usize, time: u64) -> Result<()> {
        let (lane, known) = (self.shards[shard].lane, self.shards[shard].head);
        let segment = *self.shards[shard].batch.front().context("no segment")?;
        let answer = now + time / 4;
        if self.bucket.is_empty(now) {
            self.at(answer, shard, Step::Lost(Loss::Throttled));
            return Ok(());
        }
        self.charge(segment.units + HEAD)?;
        if let Some(holder) = &mut self.holder {
            // Of one lane they also have the date's counter in common.
            let share_a_counter = self.shards[holder.shard].lane == lane;
            holder.is_cancelled |= share_a_counter && now - holder.since < BOTH_LOSE;
            let loss = if share_a_counter { Loss::Conflict } else { Loss::LogMoved };
            self.at(answer, shard, Step::Lost(loss));
        } else if known != self.head {
            self.at(answer, shard, Step::Lost(Loss::LogMoved));
        } else {
            self.holder = Some(Holder { shard, since: now, is_cancelled: false });
            self.at(now + time / 2, shard, Step::Apply(time));
        }
        Ok(())
    }

    fn done(&mut self, now: u64, shard: usize) {
        let it = &mut self.shards[shard];
        let oldest = it.made_at(it.taken - it.left());
        it.batch.pop_front();
        it.head += 1;
        (it.tries, it.log_tries) = (0, 0);
        let next = if it.batch.is_empty() { Step::Poll } else { Step::Send };
        self.outcome.commits += 1;
        self.outcome.lags.push((now - oldest, now));
        self.at(now, shard, next);
    }

    /// Waits and tries again, as the function does. One that gives up is invoked again after a second.
    fn lost(&mut self, now: u64, shard: usize, loss: Loss) {
        let it = &mut self.shards[shard];
        let longest = if loss == Loss::LogMoved {
            it.log_tries += 1;
            LOG_WAITS.after(it.log_tries)
        } else {
            it.tries += 1;
            CONFLICT_WAITS.after(it.tries)
        };
        let outcome = &mut self.outcome;
        outcome.lost += 1;
        let wait = if let Some(longest) = longest {
            self.jitter(longest)
        } else {
            outcome.exhausted += 1;
            (it.tries, it.log_tries) = (0, 0);
            SECOND
        };
        self.at(now + wait, shard, Step::Begin);
    }
}
