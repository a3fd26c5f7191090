//! Payment ids, the idempotency keys from which they are derived, and the shards of indexes.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use chrono::TimeDelta;
use uuid::Uuid;

use crate::account::AccountId;
use crate::calendar::instant::UtcSecond;

/// The longest idempotency key, in bytes.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// The most shards of an index. 1,000 shards take a million write units a second, far more than the
/// default quota of 40,000 per table.
pub const MAX_SHARDS: u16 = 1_000;

/// The namespace of payment ids (RFC 9562, name-based version 5). Never change it: all stored
/// idempotency records depend on it.
const NAMESPACE: Uuid = Uuid::from_u128(0x9e0f_4f3a_6b0d_4c0e_8a57_2f5d_31c1_b7e4);

/// A client's name for one payment and its retries, unique per account: 1 to
/// [`MAX_IDEMPOTENCY_KEY_BYTES`] visible ASCII characters without a comma.
///
/// API Gateway joins repeated headers with commas. With commas allowed, a client that sends its key
/// twice would create a second payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// The reason why a text is not an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdempotencyKeyError {
    /// The text is empty.
    #[error("an idempotency key has at least 1 character")]
    Empty,
    /// The text is longer than [`MAX_IDEMPOTENCY_KEY_BYTES`].
    #[error("an idempotency key has at most {MAX_IDEMPOTENCY_KEY_BYTES} characters, but this one has {0}")]
    TooLong(usize),
    /// The text has a comma, a space, a control character or a character outside ASCII.
    #[error("an idempotency key has only visible ASCII characters and no comma")]
    Character,
}

impl IdempotencyKey {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(IdempotencyKeyError::Empty);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b',') {
            return Err(IdempotencyKeyError::Character);
        }
        if text.len() > MAX_IDEMPOTENCY_KEY_BYTES {
            return Err(IdempotencyKeyError::TooLong(text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A payment's id: the version 5 UUID of its account and idempotency key. So a retry has the id of the first try.
///
/// ```
/// # use payments_model::*;
/// let (tenant, landlord): (AccountId, AccountId) = ("tenant".parse()?, "landlord".parse()?);
/// let key: IdempotencyKey = "rent-2026-12".parse()?;
///
/// // A retry finds the payment of the first try.
/// assert_eq!(PaymentId::derive(&tenant, &key), PaymentId::derive(&tenant, &key));
///
/// // A key belongs to its account.
/// assert_ne!(PaymentId::derive(&tenant, &key), PaymentId::derive(&landlord, &key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentId(Uuid);

/// A text that is not a payment id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment id is a UUID in lower case with hyphens")]
pub struct PaymentIdError;

impl PaymentId {
    /// Derives the id from an account and its idempotency key.
    ///
    /// The hashed name contains the lengths of both parts, so no two pairs have the same name.
    #[must_use]
    pub fn derive(account: &AccountId, key: &IdempotencyKey) -> Self {
        let (account, key) = (account.as_str(), key.as_str());
        let name = format!("{}:{account}{}:{key}", account.len(), key.len());
        Self(Uuid::new_v5(&NAMESPACE, name.as_bytes()))
    }

    /// The id as a UUID.
    pub(crate) fn uuid(self) -> Uuid {
        self.0
    }

    /// The shard of this payment among `shards`: a stable hash, so a retry has the shard of the first
    /// try. The last 48 bits of a version 5 UUID come from a SHA-1.
    #[must_use]
    pub fn shard(&self, shards: ShardCount) -> Shard {
        let (_, _, _, tail) = self.0.as_fields();
        let hash = tail[2..].iter().fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
        let shard = hash % u64::from(shards.get());
        Shard(u16::try_from(shard).unwrap_or(0))
    }
}

impl FromStr for PaymentId {
    type Err = PaymentIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = Uuid::try_parse(text).map_err(|_| PaymentIdError)?;
        // Ids are parts of keys, so they have one spelling.
        if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(PaymentIdError) }
    }
}

impl fmt::Display for PaymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The number of shards of an index: 1 to [`MAX_SHARDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardCount(NonZeroU16);

/// A number that is not a shard count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a shard count is a whole number from 1 to {MAX_SHARDS}")]
pub struct ShardCountError;

impl FromStr for ShardCount {
    type Err = ShardCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count: NonZeroU16 = text.parse().map_err(|_| ShardCountError)?;
        if count.get() <= MAX_SHARDS { Ok(Self(count)) } else { Err(ShardCountError) }
    }
}

impl ShardCount {
    /// The number of shards.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Every shard, in order.
    pub fn all(self) -> impl Iterator<Item = Shard> + use<> {
        (0..self.get()).map(Shard)
    }

    /// Every shard, in the order for a run at `now`. Runs begin at intervals of `every`, and work on the
    /// first `at_once` shards of their order at first. Each run begins with the shards after those that
    /// the run before began with, so that no shard always waits for the backlogs of other shards.
    pub fn in_turn(self, now: UtcSecond, every: TimeDelta, at_once: u16) -> impl Iterator<Item = Shard> + use<> {
        let (run, count) = (now.as_chrono().timestamp() / every.num_seconds().max(1), i64::from(self.get()));
        let first = run.rem_euclid(count) * i64::from(at_once) % count;
        let first = u16::try_from(first).unwrap_or(0);
        (first..self.get()).chain(0..first).map(Shard)
    }
}

/// One shard of an index: its partition key, 0 to N-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

impl Shard {
    /// The shard of a stored number; `None` if the number is not below [`MAX_SHARDS`]. A stored number can
    /// be above the configured count, if the count was lowered.
    #[must_use]
    pub fn from_stored(number: u16) -> Option<Self> {
        (number < MAX_SHARDS).then_some(Self(number))
    }

    /// The shard's number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(account: &str, key: &str) -> PaymentId {
        let (Ok(account), Ok(key)) = (account.parse(), key.parse()) else {
            unreachable!("{account} {key} are well-formed")
        };
        PaymentId::derive(&account, &key)
    }

    #[test]
    fn ids_never_change() {
        // If this id ever changes, retries of stored payments create second payments.
        assert_eq!(id("acc-1", "rent-2026-12").to_string(), "626e8292-8e84-575a-b684-0af73927405b");
    }

    #[test]
    fn lengths_keep_pairs_apart() {
        assert_ne!(id("a", "b1:c"), id("ab", "1:c"));
        assert_ne!(id("1", "1"), id("11", "1"));
    }

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        let canonical = id("a", "b").to_string();
        assert!(canonical.parse::<PaymentId>().is_ok());
        for other in [canonical.to_uppercase(), canonical.replace('-', ""), format!("{{{canonical}}}"), "x".into()] {
            assert_eq!(other.parse::<PaymentId>(), Err(PaymentIdError), "{other}");
        }
    }

    #[test]
    fn keys_are_bounded() {
        use IdempotencyKeyError::{Character, Empty, TooLong};
        let long = "k".repeat(256);
        for (key, want) in
            [("", Empty), (long.as_str(), TooLong(256)), ("a b", Character), ("ü", Character), ("k,k", Character)]
        {
            assert_eq!(key.parse::<IdempotencyKey>(), Err(want));
        }
    }

    #[test]
    fn shard_counts_are_bounded() {
        for bad in ["0", "1001", "-1", "x", "", "1.5"] {
            assert_eq!(bad.parse::<ShardCount>(), Err(ShardCountError), "{bad}");
        }
    }

    #[test]
    fn every_shard_has_its_turn_in_few_runs() {
        let begin: UtcSecond = "2026-11-20T00:00:00Z".parse().unwrap();
        let every = TimeDelta::minutes(5);
        for count in [1_u16, 31, 32, 33, 40, 64, 65, 100, MAX_SHARDS] {
            let shards: ShardCount = count.to_string().parse().unwrap();
            let mut reached = vec![false; count.into()];
            for run in 0..i32::from(count.div_ceil(32)) {
                // Runs begin somewhere within a minute.
                let now = begin.saturating_add(every * run + TimeDelta::seconds(i64::from(run * 17 % 60)));
                let mut order: Vec<Shard> = shards.in_turn(now, every, 32).collect();
                order.iter().take(32).for_each(|shard| reached[usize::from(shard.get())] = true);
                order.sort_unstable();
                assert!(order.into_iter().eq(shards.all()), "each once, of {count}");
            }
            assert!(reached.iter().all(|it| *it), "{count}: {reached:?}");
        }
    }

    proptest! {
        #[test]
        fn shards_are_stable_and_in_range(key in "[!-+.-~]{1,40}", count in 1_u16..=MAX_SHARDS) {
            let count: ShardCount = count.to_string().parse()?;
            let shard = id("acc", &key).shard(count);
            prop_assert!(shard.get() < count.get());
            prop_assert_eq!(shard, id("acc", &key).shard(count));
        }
    }

    #[test]
    fn shards_are_even() -> Result<(), ShardCountError> {
        let ten: ShardCount = "10".parse()?;
        let mut per_shard = [0_u32; 10];
        for n in 0..10_000 {
            per_shard[usize::from(id("acc", &n.to_string()).shard(ten).get())] += 1;
        }
        // 1,000 expected on each; six standard deviations are 180.
        assert!(per_shard.iter().all(|n| (820..1_180).contains(n)), "{per_shard:?}");
        Ok(())
    }
}
