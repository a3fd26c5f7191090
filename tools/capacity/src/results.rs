//! The queue of settlement results and `settle`: so many invocations, each at its pace. An invocation tries throttled
//! results again while it has time. Then they are received again later, and the receive is burnt.
//!
//! A settlement is two writes, one in each table. If the second is throttled, the next try repeats the first in vain.

use std::collections::BTreeMap;

use crate::creates::{add, any, minus, share};

/// The seconds until a result that was received but not settled is received again.
const VISIBILITY: u64 = 180;

/// The receives after which a result becomes a dead letter.
const RECEIVES: u32 = 30;

/// The most invocations of `settle` and what each does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling {
    pub(crate) invocations: i64,
    /// The results that an invocation settles a second.
    pub(crate) per_second: i64,
    /// For how many seconds it tries a throttled result.
    pub(crate) tries_for: u32,
}

/// The writes of a settlement. A first try needs the first and the last, a later try the second and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettleWrite {
    Decide,
    DecideAgain,
    Follow,
}

/// Results that are at the same point.
#[derive(Debug, Clone)]
struct Batch {
    /// Whether the payment was settled before: after a redrive, each result comes twice. Such a result writes nothing.
    repeats: bool,
    /// Whether the long-term table has the settlement.
    decided: bool,
    receives: u32,
    tried_for: u32,
    by_shard: Vec<i64>,
}

/// The results on their way.
#[derive(Debug, Clone)]
pub(crate) struct Results {
    shards: usize,
    settling: Settling,
    coming: BTreeMap<u64, Vec<Batch>>,
    waiting: Vec<Batch>,
    in_hand: Vec<Batch>,
    /// Receives that settled nothing, in thousandths.
    pub(crate) burnt: i64,
    /// Dead letters, in thousandths.
    pub(crate) dead: i64,
    /// The seconds until the last was settled.
    pub(crate) done_after: u64,
}

impl Results {
    /// Creates an empty queue.
    pub(crate) fn new(settling: Settling, shards: usize) -> Self {
        let coming = BTreeMap::new();
        let waiting = Vec::new();
        let in_hand = Vec::new();
        Self { shards, settling, coming, waiting, in_hand, burnt: 0, dead: 0, done_after: 0 }
    }

    /// Adds results that arrive at a second.
    pub(crate) fn arrive(&mut self, second: u64, by_shard: Vec<i64>, repeats: bool) {
        if any(&by_shard) {
            merge(
                self.coming.entry(second).or_default(),
                Batch { repeats, decided: false, receives: 0, tried_for: 0, by_shard },
            );
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        self.coming.is_empty() && self.waiting.is_empty() && self.in_hand.is_empty()
    }

    /// Returns the first results of payments that are not settled, by shard.
    pub(crate) fn unsettled(&self) -> Vec<i64> {
        let mut sum = vec![0; self.shards];
        let all = self.coming.values().flatten().chain(&self.waiting).chain(&self.in_hand);
        all.filter(|batch| !batch.repeats).for_each(|batch| add(&mut sum, &batch.by_shard));
        sum
    }

    /// Returns the writes that come in this second, each by shard, in the order of [`SettleWrite`].
    pub(crate) fn wanted(&mut self, second: u64) -> [Vec<i64>; 3] {
        for batch in self.coming.remove(&second).unwrap_or_default() {
            merge(&mut self.waiting, batch);
        }
        self.receive();
        let writes = [SettleWrite::Decide, SettleWrite::DecideAgain, SettleWrite::Follow];
        writes.map(|write| {
            let mut wanted = vec![0; self.shards];
            for batch in self.in_hand.iter().filter(|batch| batch.needs(write)) {
                add(&mut wanted, &batch.by_shard);
            }
            wanted
        })
    }

    /// Receives what free invocations take. One throttled result holds its invocation until it is settled.
    fn receive(&mut self) {
        let total = |batches: &[Batch]| batches.iter().flat_map(|batch| &batch.by_shard).sum::<i64>();
        let free = (self.settling.invocations * 1_000 - total(&self.in_hand)).max(0);
        let (received, waiting) = (free * self.settling.per_second, total(&self.waiting));
        for mut batch in std::mem::take(&mut self.waiting) {
            // Waiting results are received in no order.
            let part = |&amount: &i64| if waiting <= received { amount } else { amount * received / waiting };
            let taken: Vec<i64> = batch.by_shard.iter().map(part).collect();
            let left = minus(&batch.by_shard, &taken);
            if any(&left) {
                self.waiting.push(Batch { by_shard: left, ..batch });
            }
            if any(&taken) {
                batch.by_shard = taken;
                batch.receives += 1;
                merge(&mut self.in_hand, batch);
            }
        }
    }

    /// Takes what was accepted. Returns the settlements, by shard.
    pub(crate) fn take(&mut self, second: u64, wanted: [&[i64]; 3], accepted: [&[i64]; 3]) -> Vec<i64> {
        let mut settled = vec![0; self.shards];
        for batch in std::mem::take(&mut self.in_hand) {
            if batch.repeats {
                self.done_after = second + 1;
                continue;
            }
            let first = if batch.decided { SettleWrite::DecideAgain } else { SettleWrite::Decide };
            let through = |some: &[i64], write| share(some, wanted[write as usize], accepted[write as usize]);
            let decided = through(&batch.by_shard, first);
            let done = through(&decided, SettleWrite::Follow);
            if any(&done) {
                self.done_after = second + 1;
            }
            add(&mut settled, &done);
            if batch.decided {
                self.keep(second, Batch { by_shard: minus(&batch.by_shard, &done), ..batch });
            } else {
                let left = minus(&batch.by_shard, &decided);
                self.keep(second, Batch { by_shard: left, ..batch.clone() });
                self.keep(second, Batch { by_shard: minus(&decided, &done), decided: true, ..batch });
            }
        }
        settled
    }

    /// Keeps results that are not settled: in hand while there is time, else in the queue.
    fn keep(&mut self, second: u64, mut batch: Batch) {
        batch.tried_for += 1;
        if !any(&batch.by_shard) {
            return;
        }
        if batch.tried_for < self.settling.tries_for {
            merge(&mut self.in_hand, batch);
            return;
        }
        let amount: i64 = batch.by_shard.iter().sum();
        self.burnt += amount;
        if batch.receives == RECEIVES {
            self.dead += amount;
            return;
        }
        let later = second + VISIBILITY - u64::from(batch.tried_for) + 1;
        merge(self.coming.entry(later).or_default(), Batch { tried_for: 0, ..batch });
    }
}

impl Batch {
    fn needs(&self, write: SettleWrite) -> bool {
        let needs = match write {
            SettleWrite::Decide => !self.decided,
            SettleWrite::DecideAgain => self.decided,
            SettleWrite::Follow => true,
        };
        needs && !self.repeats
    }
}

fn merge(batches: &mut Vec<Batch>, batch: Batch) {
    let point = |it: &Batch| (it.repeats, it.decided, it.receives, it.tried_for);
    match batches.iter_mut().find(|known| point(known) == point(&batch)) {
        Some(known) => add(&mut known.by_shard, &batch.by_shard),
        None => batches.push(batch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLING: Settling = Settling { invocations: 16, per_second: 40, tries_for: 20 };

    /// Plays seconds of one shard in which a part of the writes is accepted. Returns how many were wanted in each.
    fn play(results: &mut Results, seconds: std::ops::Range<u64>, accepted: i64) -> Vec<i64> {
        let second = |second| {
            let wanted = results.wanted(second);
            let done = wanted.each_ref().map(|wanted| wanted.iter().map(|it| it * accepted / 100).collect::<Vec<_>>());
            results.take(second, wanted.each_ref().map(Vec::as_slice), done.each_ref().map(Vec::as_slice));
            wanted[0][0] / 1_000
        };
        seconds.map(second).collect()
    }

    #[test]
    fn a_backlog_is_settled_at_the_pace_of_all_invocations() {
        let mut results = Results::new(SETTLING, 1);
        results.arrive(3, vec![1_300_000], false);
        assert_eq!(play(&mut results, 0..7, 100), [0, 0, 0, 640, 640, 20, 0]);
        assert_eq!((results.burnt, results.done_after, results.is_done()), (0, 6, true));
    }

    #[test]
    fn a_throttled_result_holds_its_invocation_and_burns_one_receive_when_its_time_is_over() {
        let mut results = Results::new(SETTLING, 1);
        results.arrive(0, vec![10_000_000], false);
        let wanted = play(&mut results, 0..20, 0);
        assert_eq!(wanted, [640; 20], "all invocations are held");
        assert_eq!(results.burnt, 640_000);
        assert_eq!(play(&mut results, 20..21, 100), [640]);
        // The results of the first second come again after the queue's visibility timeout.
        let coming: Vec<u64> = results.coming.keys().copied().collect();
        assert_eq!(coming, [180]);
        // Without a retry of its own, an invocation burns receives as fast as it can.
        let mut hasty = Results::new(Settling { tries_for: 1, ..SETTLING }, 1);
        hasty.arrive(0, vec![10_000_000], false);
        play(&mut hasty, 0..10, 0);
        assert_eq!(hasty.burnt, 6_400_000);
    }

    #[test]
    fn what_the_hot_table_rejects_is_decided_and_tried_again_and_a_repeated_result_writes_nothing() {
        let mut results = Results::new(SETTLING, 1);
        results.arrive(0, vec![100_000], false);
        results.arrive(0, vec![7_000], true);
        let mut take = |second, accepted: [i64; 3]| {
            let wanted = results.wanted(second).map(|wanted| wanted[0]);
            let (wanted, accepted) = (wanted.map(|it| vec![it]), accepted.map(|it| vec![it]));
            let settled =
                results.take(second, wanted.each_ref().map(Vec::as_slice), accepted.each_ref().map(Vec::as_slice));
            (wanted.map(|it| it[0]), settled[0])
        };
        assert_eq!(take(0, [80_000, 0, 25_000]), ([100_000, 0, 100_000], 20_000));
        assert_eq!(take(1, [20_000, 60_000, 0]), ([20_000, 60_000, 80_000], 0));
        assert_eq!(take(2, [0, 80_000, 80_000]), ([0, 80_000, 80_000], 80_000));
        assert!(results.is_done());
    }

    #[test]
    fn after_thirty_receives_a_result_is_a_dead_letter() {
        let mut results = Results::new(SETTLING, 1);
        results.arrive(0, vec![1_000], false);
        play(&mut results, 0..6_000, 0);
        assert_eq!((results.burnt, results.dead, results.is_done()), (30_000, 1_000, true));
    }
}
