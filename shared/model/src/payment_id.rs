//! Payment ids, the idempotency keys they are made of, and the shards they fall into.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use uuid::Uuid;

use crate::AccountId;

/// The longest idempotency key, in bytes.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// The most shards an index can have. 1,000 shards take a million write units a second, far above
/// what an account's default table quota of 40,000 allows.
pub const MAX_SHARDS: u16 = 1_000;

/// The namespace of this system's payment ids (RFC 9562, name-based version 5). Never change it:
/// every stored idempotency record hangs on it.
const NAMESPACE: Uuid = Uuid::from_u128(0x9e0f_4f3a_6b0d_4c0e_8a57_2f5d_31c1_b7e4);

/// What a client calls one intended payment, so that its retries are recognised: 1 to
/// [`MAX_IDEMPOTENCY_KEY_BYTES`] visible ASCII characters but the comma, unique per account.
///
/// API Gateway joins repeated headers by commas: were one allowed, a client that sends its key twice
/// would make a second payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

/// Why a text is not an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdempotencyKeyError {
    /// Nothing there.
    #[error("an idempotency key has at least 1 character")]
    Empty,
    /// Longer than [`MAX_IDEMPOTENCY_KEY_BYTES`].
    #[error("an idempotency key has at most {MAX_IDEMPOTENCY_KEY_BYTES} characters, this one has {0} bytes")]
    TooLong(usize),
    /// A comma, a space, a control character or something outside ASCII.
    #[error("an idempotency key is made of visible ASCII characters, without commas, and is sent once")]
    Character,
}

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(IdempotencyKeyError::Empty);
        }
        if text.len() > MAX_IDEMPOTENCY_KEY_BYTES {
            return Err(IdempotencyKeyError::TooLong(text.len()));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b',') {
            return Err(IdempotencyKeyError::Character);
        }
        Ok(Self(text.to_owned()))
    }
}

/// A payment's id: the version 5 UUID of its account and idempotency key. A retry therefore names
/// the payment that the first try named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentId(Uuid);

/// Why a text is not a payment id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment id is a UUID in lower case with hyphens")]
pub struct PaymentIdError;

impl PaymentId {
    /// The id of the payment that `account` calls `key`.
    ///
    /// Both parts carry their length, so that no two pairs run into the same name.
    #[must_use]
    pub fn derive(account: &AccountId, key: &IdempotencyKey) -> Self {
        let (account, key) = (account.as_str(), key.0.as_str());
        let name = format!("{}:{account}{}:{key}", account.len(), key.len());
        Self(Uuid::new_v5(&NAMESPACE, name.as_bytes()))
    }

    /// The shard of this payment among `shards`: a stable hash, so that a retry lands where the
    /// first try did. The last 48 bits of a version 5 UUID are all taken from a SHA-1.
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
        // One spelling only: ids are parts of keys.
        if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(PaymentIdError) }
    }
}

impl fmt::Display for PaymentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// How many shards an index has: 1 to [`MAX_SHARDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardCount(NonZeroU16);

/// Why a number is not a shard count.
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
}

/// One shard of an index: its partition key, 0 to N-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u16);

impl Shard {
    /// The shard that a stored number names. Shards above the configured count are possible after
    /// the count was lowered, so any number up to [`MAX_SHARDS`] is one.
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
        // Written down once: if this row ever differs, every stored payment loses its retries.
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
