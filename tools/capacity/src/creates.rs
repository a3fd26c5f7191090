//! The feed's client and `ingest`: creates arrive at a rate, the SDK tries throttled writes again, and the client sends
//! creates again that are answered 503.

use std::collections::BTreeMap;

/// The tries of one SDK call. A second apart, they take about as long as the SDK's random waits.
const SDK_TRIES: u32 = 3;

/// The most tries of a client's create. The client waits 1, 2, 4 … seconds, at most a minute:
/// twenty minutes in all. Keys never expire, so it could try for ever.
pub(crate) const SENT_AT_MOST: u32 = 26;

/// The writes of a create, in this order. A create that is sent again repeats both: the details
/// exist, so their condition fails, and is charged for the existing item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreateWrite {
    Details,
    Head,
}

/// Creates that are at the same point.
#[derive(Debug, Clone)]
struct Attempt {
    write: CreateWrite,
    tries: u32,
    sent: u32,
    /// Thousandths of a create, by shard.
    by_shard: Vec<i64>,
}

/// The creates of a client.
#[derive(Debug, Clone)]
pub(crate) struct Creates {
    shards: usize,
    per_second: i64,
    /// Not sent yet, in thousandths.
    left: i64,
    attempts: BTreeMap<u64, Vec<Attempt>>,
    now: Vec<Attempt>,
    /// Answers of 503, in thousandths.
    pub(crate) refused: i64,
    /// Creates that the client gave up, in thousandths.
    pub(crate) lost: i64,
    /// The seconds until the last was created.
    pub(crate) done_after: u64,
}

impl Creates {
    /// Creates a client that sends `count` creates, so many a second.
    pub(crate) fn new(count: u32, per_second: u32, shards: usize) -> Self {
        Self {
            shards,
            per_second: i64::from(per_second) * 1_000,
            left: i64::from(count) * 1_000,
            attempts: BTreeMap::new(),
            now: Vec::new(),
            refused: 0,
            lost: 0,
            done_after: 0,
        }
    }

    /// Whether all are created, or given up.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.attempts.is_empty()
    }

    /// Returns the writes of details and of heads that come in this second, by shard.
    pub(crate) fn wanted(&mut self, second: u64) -> [Vec<i64>; 2] {
        let sent = self.per_second.min(self.left);
        self.left -= sent;
        if sent > 0 {
            let (each, rest) = (sent / self.count(), sent % self.count());
            // The remainder of the division goes to one shard after the other.
            let by_shard = (0..self.count()).map(|shard| each + i64::from(shard < rest)).collect();
            self.push(second, Attempt { write: CreateWrite::Details, tries: 1, sent: 1, by_shard });
        }
        self.now = self.attempts.remove(&second).unwrap_or_default();
        [CreateWrite::Details, CreateWrite::Head].map(|write| {
            let mut wanted = vec![0; self.shards];
            for attempt in self.now.iter().filter(|attempt| attempt.write == write) {
                add(&mut wanted, &attempt.by_shard);
            }
            wanted
        })
    }

    fn count(&self) -> i64 {
        i64::try_from(self.shards).unwrap_or(1)
    }

    /// Takes what was accepted of the writes that came in this second. Returns the payments created, by shard.
    pub(crate) fn take(&mut self, second: u64, wanted: [&[i64]; 2], accepted: [&[i64]; 2]) -> Vec<i64> {
        let mut created = vec![0; self.shards];
        for attempt in std::mem::take(&mut self.now) {
            let number = usize::from(attempt.write == CreateWrite::Head);
            let done = share(&attempt.by_shard, wanted[number], accepted[number]);
            let rejected = minus(&attempt.by_shard, &done);
            match attempt.write {
                CreateWrite::Details if any(&done) => {
                    let next = Attempt { write: CreateWrite::Head, tries: 1, by_shard: done, ..attempt };
                    self.push(second + 1, next);
                }
                CreateWrite::Head if any(&done) => {
                    add(&mut created, &done);
                    self.done_after = second + 1;
                }
                _ => {}
            }
            if any(&rejected) {
                self.reject(second, Attempt { by_shard: rejected, ..attempt });
            }
        }
        created
    }

    fn reject(&mut self, second: u64, attempt: Attempt) {
        let Attempt { tries, sent, .. } = attempt;
        if tries < SDK_TRIES {
            self.push(second + 1, Attempt { tries: tries + 1, ..attempt });
            return;
        }
        let amount: i64 = attempt.by_shard.iter().sum();
        self.refused += amount;
        if sent == SENT_AT_MOST {
            self.lost += amount;
            return;
        }
        let wait = 2_u64.pow(sent - 1).min(60);
        self.push(second + wait, Attempt { write: CreateWrite::Details, tries: 1, sent: sent + 1, ..attempt });
    }

    fn push(&mut self, second: u64, attempt: Attempt) {
        let attempts = self.attempts.entry(second).or_default();
        let point = |it: &Attempt| (it.write, it.tries, it.sent);
        match attempts.iter_mut().find(|known| point(known) == point(&attempt)) {
            Some(known) => add(&mut known.by_shard, &attempt.by_shard),
            None => attempts.push(attempt),
        }
    }
}

/// Adds up, shard by shard.
pub(crate) fn add(sum: &mut [i64], more: &[i64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Subtracts, shard by shard.
pub(crate) fn minus(all: &[i64], some: &[i64]) -> Vec<i64> {
    all.iter().zip(some).map(|(all, some)| all - some).collect()
}

/// Whether there is anything.
pub(crate) fn any(by_shard: &[i64]) -> bool {
    by_shard.iter().any(|&amount| amount > 0)
}

/// Returns the part of `some` that was accepted, if `accepted` of `wanted` was, and `some` is among it.
pub(crate) fn share(some: &[i64], wanted: &[i64], accepted: &[i64]) -> Vec<i64> {
    if wanted == accepted {
        return some.to_vec();
    }
    let part = |((&some, &wanted), &accepted)| if wanted == 0 { 0 } else { some * accepted / wanted };
    some.iter().zip(wanted).zip(accepted).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_create_is_tried_three_times_refused_sent_again_and_given_up() {
        let mut creates = Creates::new(4, 4, 2);
        let (mut details, mut heads) = (Vec::new(), Vec::new());
        // The first try of each head is rejected, and all later writes are.
        for second in 0..1_500 {
            let wanted = creates.wanted(second);
            details.extend(any(&wanted[0]).then_some(second));
            heads.extend(any(&wanted[1]).then_some(second));
            let accepted = [if second == 0 { wanted[0].clone() } else { vec![0; 2] }, vec![0; 2]];
            let created =
                creates.take(second, wanted.each_ref().map(Vec::as_slice), accepted.each_ref().map(Vec::as_slice));
            assert_eq!(created, [0, 0]);
        }
        assert_eq!(heads, [1, 2, 3]);
        assert_eq!(details[..7], [0, 4, 5, 6, 8, 9, 10], "a second, then two: {details:?}");
        assert_eq!(details.len(), 1 + 25 * 3);
        assert_eq!((creates.refused, creates.lost), (104_000, 4_000));
        assert!(creates.is_done());
    }
}
