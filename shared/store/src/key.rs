//! The keys of both tables and their encodings, which are nowhere else.
//!
//! Keys are ASCII. `#` separates their parts and is in no part. Instants have a fixed width, so the
//! byte order of the text is the order of the values. Ranges are half-open on the encoded text: the
//! upper bound is the first instant or date *after* the range, and is never a key itself.

use std::fmt;
use std::str::FromStr;

use payments_model::{AccountId, BusinessDate, DuePayment, Head, HeadKey, PaymentId, Slot, Status, UtcSecond};

/// The sort key of every details item.
pub(crate) const DETAILS_SORT: &str = "DETAILS";

/// A text that is not a key of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a {1} key")]
pub struct KeyError(String, &'static str);

/// The partition key of an account's heads: `ACCT#<accountId>`.
pub fn account_partition(account: &AccountId) -> String {
    format!("ACCT#{account}")
}

/// Parses [`account_partition`].
pub(crate) fn parse_account_partition(text: &str) -> Result<AccountId, KeyError> {
    parse_partition(text, "ACCT#", "account partition", |account| AccountId::from_stored(account).ok())
}

/// The partition key of a payment's details: `PAY#<paymentId>`.
pub(crate) fn payment_partition(payment_id: PaymentId) -> String {
    format!("PAY#{payment_id}")
}

/// Parses [`payment_partition`].
pub(crate) fn parse_payment_partition(text: &str) -> Result<PaymentId, KeyError> {
    parse_partition(text, "PAY#", "payment partition", |payment_id| payment_id.parse().ok())
}

fn parse_partition<T>(
    text: &str,
    prefix: &str,
    kind: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, KeyError> {
    let parsed = text.strip_prefix(prefix).and_then(parse);
    parsed.ok_or_else(|| KeyError(text.to_owned(), kind))
}

/// The partition key of a function's checkpoints: `CHECKPOINT#<function>`. Their sort key is a stream
/// shard, a job or a date.
pub(crate) fn checkpoint_partition(consumer: &str) -> String {
    format!("CHECKPOINT#{consumer}")
}

/// The partition key of the log's head and of the segments of an epoch: `LOG#HEAD` and `LOG#<epoch>`. A segment's sort key is its
/// number.
pub(crate) fn log_partition(what: impl fmt::Display) -> String {
    format!("LOG#{what}")
}

/// The partition key of the counters of one lane: `COUNTS#<lane>`. Their sort key is the date.
pub(crate) fn counts_partition(lane: Lane) -> String {
    format!("COUNTS#{}", lane.0)
}

/// The number of lanes. Each has its own partition key, so stream shards rarely wait for each other.
pub const LANES: usize = 8;

/// One of the [`LANES`] counters of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(u8);

impl Lane {
    /// Every lane, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(LANES).map(Self)
    }

    /// The lane of a stream shard: a stable hash (FNV-1a) of its id.
    pub fn of_stream_shard(shard: &str) -> Self {
        let hash = shard
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // The lower bits of a product depend little on the upper ones, so both are combined.
        let folded = hash ^ (hash >> 32);
        Self(folded.to_le_bytes()[0] % 8)
    }

    /// Its place among all lanes.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The sort key of a head, which is its slot: `<slotAt>#<paymentId>`.
pub fn head_sort(slot: Slot) -> String {
    format!("{}#{}", slot.at, slot.payment_id)
}

/// A text that sorts after `slot` and before every later head's key.
pub(crate) fn after_head_sort(slot: Slot) -> String {
    format!("{}#", head_sort(slot))
}

/// A text that sorts before `slot` and after every earlier head's key.
pub(crate) fn before_head_sort(slot: Slot) -> String {
    let mut key = head_sort(slot);
    // An id ends with a hexadecimal digit, so there is an ASCII character before it, and "~" sorts after all digits.
    let last = key.pop().map_or('~', |last| char::from(u8::try_from(last).unwrap_or(b'1') - 1));
    format!("{key}{last}~")
}

/// Parses [`head_sort`].
pub(crate) fn parse_head_sort(text: &str) -> Result<Slot, KeyError> {
    let parse = || {
        let (at, payment_id) = text.split_once('#')?;
        Some(Slot { at: at.parse().ok()?, payment_id: payment_id.parse().ok()? })
    };
    parse().ok_or_else(|| KeyError(text.to_owned(), "head sort"))
}

/// Parses a head's partition key and sort key.
pub fn parse_head_key(partition: &str, sort: &str) -> Result<HeadKey, KeyError> {
    Ok(HeadKey { account: parse_account_partition(partition)?, slot: parse_head_sort(sort)? })
}

/// The payment of a head with this key and this due key. If the due key cannot be read, or is another payment's, it counts
/// as due as at first.
pub(crate) fn due_payment(key: &HeadKey, due: &str) -> DuePayment {
    let guessed = key.guessed_due();
    match due.parse::<DueSort>() {
        Ok(due) if due.payment_id == guessed.payment_id => DuePayment { due_at: due.due_at, ..guessed },
        _ => guessed,
    }
}

/// The sort key of the `due` index: `<STATUS>#<dueDate>#<dueAt>#<paymentId>`. Only within one status
/// is its order that of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueSort {
    /// The payment's status.
    pub status: Status,
    /// The business date it falls due on.
    pub due_date: BusinessDate,
    /// When it falls due, which its head's slot does not say.
    pub due_at: UtcSecond,
    /// Which payment.
    pub payment_id: PaymentId,
}

impl DueSort {
    /// The due key of a head.
    pub fn of(head: &Head) -> Self {
        let Head { due_date, due_at, payment_id, .. } = *head;
        Self { status: head.state.status(), due_date, due_at, payment_id }
    }

    /// The due key of the same payment in another status.
    #[must_use]
    pub fn in_status(self, status: Status) -> Self {
        Self { status, ..self }
    }

    /// The lower bound of the keys of `status` on `date`.
    pub fn start_of(status: Status, date: BusinessDate) -> String {
        format!("{status}#{date}")
    }

    /// The upper bound of the keys of `status` on `date`.
    pub fn end_of(status: Status, date: BusinessDate) -> String {
        // "~" sorts after "#", so after every key of the date.
        format!("{status}#{date}~")
    }

    /// The lower bound of the keys of `status`.
    pub fn start_of_status(status: Status) -> String {
        format!("{status}#")
    }

    /// The upper bound of the keys of `status` on `date` that are due until `at`, included.
    pub fn end_at(status: Status, date: BusinessDate, at: UtcSecond) -> String {
        // "~" sorts after "#", so after every key of the second.
        format!("{status}#{date}#{at}~")
    }

    /// A text that sorts after this key and before every later one.
    pub fn just_after(&self) -> String {
        format!("{self}#")
    }
}

impl fmt::Display for DueSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}#{}#{}", self.status, self.due_date, self.due_at, self.payment_id)
    }
}

impl FromStr for DueSort {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (status, rest) = text.split_once('#')?;
            let (due_date, rest) = rest.split_once('#')?;
            let (due_at, payment_id) = rest.split_once('#')?;
            Some(Self {
                status: status.parse().ok()?,
                due_date: due_date.parse().ok()?,
                due_at: due_at.parse().ok()?,
                payment_id: payment_id.parse().ok()?,
            })
        };
        parse().ok_or_else(|| KeyError(text.to_owned(), "due"))
    }
}

/// The sort key of the `unreported` index: `<quarter-hour>#<settledAt>#<paymentId>`, with the
/// quarter-hour of the settlement as `YYYYMMDDHHMM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnreportedSort {
    /// When the payment was settled.
    pub settled_at: UtcSecond,
    /// Which payment.
    pub payment_id: PaymentId,
}

impl UnreportedSort {
    /// The encoded start of the quarter-hour of `at`.
    pub fn quarter_hour(at: UtcSecond) -> String {
        let encoded = at.to_string();
        // Fixed width: 2026-12-01T09:47:12Z has its minutes at 14..16.
        let minute: u8 = encoded.get(14..16).and_then(|minute| minute.parse().ok()).unwrap_or(0);
        let digits: String = encoded.chars().take(14).filter(char::is_ascii_digit).collect();
        format!("{digits}{:02}", minute - minute % 15)
    }
}

impl fmt::Display for UnreportedSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}#{}", Self::quarter_hour(self.settled_at), self.settled_at, self.payment_id)
    }
}

impl FromStr for UnreportedSort {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (quarter, rest) = text.split_once('#')?;
            let (settled_at, payment_id) = rest.split_once('#')?;
            let key = Self { settled_at: settled_at.parse().ok()?, payment_id: payment_id.parse().ok()? };
            (Self::quarter_hour(key.settled_at) == quarter).then_some(key)
        };
        parse().ok_or_else(|| KeyError(text.to_owned(), "unreported"))
    }
}

#[cfg(test)]
mod tests {
    use payments_model::{BusinessZone, IdempotencyKey};
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn instants()(day in 0_i64..36_000, second in 0_i64..86_400) -> UtcSecond {
            let delta = std::time::Duration::from_secs(u64::try_from(day * 86_400 + second).unwrap());
            UtcSecond::of(UtcSecond::MIN.as_chrono() + delta).unwrap()
        }
    }

    prop_compose! {
        fn ids()(key in "[a-z]{1,8}") -> PaymentId {
            let account: AccountId = "acc".parse().unwrap();
            let key: IdempotencyKey = key.parse().unwrap();
            PaymentId::derive(&account, &key)
        }
    }

    prop_compose! {
        fn slots()(at in instants(), payment_id in ids()) -> Slot {
            Slot { at: at.to_string().parse().unwrap(), payment_id }
        }
    }

    prop_compose! {
        fn dues()(due_at in instants(), payment_id in ids(), status in prop::sample::select(Status::ALL.to_vec())) -> DueSort {
            let london: BusinessZone = "Europe/London".parse().unwrap();
            DueSort { status, due_date: london.date_of(due_at), due_at, payment_id }
        }
    }

    proptest! {
        #[test]
        fn head_keys_keep_value_and_order(a in slots(), b in slots()) {
            let (encoded_a, encoded_b) = (head_sort(a), head_sort(b));
            prop_assert_eq!(parse_head_sort(&encoded_a)?, a);
            prop_assert_eq!(a.cmp(&b), encoded_a.cmp(&encoded_b));
            prop_assert!(encoded_a < after_head_sort(a));
            prop_assert!(a >= b || after_head_sort(a) < encoded_b);
        }

        #[test]
        fn head_keys_lie_within_their_instants(a in slots(), b in slots()) {
            // The range [from, to) of instants is the range [encode(from), encode(to)) of keys.
            prop_assert_eq!(a.at < b.at, head_sort(a) < b.at.first_due().to_string());
            prop_assert_eq!(a.at >= b.at, head_sort(a) >= b.at.first_due().to_string());
        }

        #[test]
        fn due_keys_keep_value_and_order(a in dues(), b in dues()) {
            prop_assert_eq!(a.to_string().parse::<DueSort>()?, a);
            let value = |k: &DueSort| (k.status.as_str(), k.due_date, k.due_at, k.payment_id);
            prop_assert_eq!(value(&a).cmp(&value(&b)), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn due_keys_lie_within_their_own_day(due in dues()) {
            let key = due.to_string();
            prop_assert!(DueSort::start_of(due.status, due.due_date) <= key);
            prop_assert!(key < DueSort::end_of(due.status, due.due_date));
            prop_assert!(DueSort::end_of(due.status, due.due_date) < DueSort::start_of(due.status, due.due_date.plus_days(1)));
        }

        #[test]
        fn unreported_keys_keep_value_and_order(a in (instants(), ids()), b in (instants(), ids())) {
            let key = |(settled_at, payment_id)| UnreportedSort { settled_at, payment_id };
            let (a, b) = (key(a), key(b));
            prop_assert_eq!(a.to_string().parse::<UnreportedSort>()?, a);
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }

    #[test]
    fn the_first_and_last_second_are_in_their_day() {
        let id = PaymentId::derive(&"acc".parse().unwrap(), &"k".parse().unwrap());
        for at in ["2026-12-01T00:00:00Z", "2026-12-01T00:00:01Z", "2026-12-01T00:59:59Z", "2026-12-01T23:59:59Z"] {
            let (due_date, due_at) = ("2026-12-01".parse().unwrap(), at.parse().unwrap());
            let key = DueSort { status: Status::Scheduled, due_date, due_at, payment_id: id }.to_string();
            assert!("SCHEDULED#2026-12-01" <= key.as_str() && key.as_str() < "SCHEDULED#2026-12-02", "{key}");
        }
    }

    proptest! {
        #[test]
        fn payments_due_by_now_are_before_its_upper_bound(due in dues(), now in instants()) {
            let london: BusinessZone = "Europe/London".parse().unwrap();
            let end = DueSort::end_at(due.status, london.date_of(now), now);
            prop_assert_eq!(due.due_at <= now, due.to_string() < end);
            prop_assert!(DueSort::start_of_status(due.status) < due.to_string());
            prop_assert!(due.to_string() < due.just_after());
        }
    }

    #[test]
    fn lanes_never_change_and_all_are_used() {
        // If a lane changed, it would only spread a shard's counts over two lanes.
        let lane = |shard: &str| Lane::of_stream_shard(shard).index();
        assert_eq!(lane("shardId-00000001796000000000-a1b2c3d4"), 1);
        let mut used: Vec<usize> = (0..200).map(|n| lane(&format!("shardId-0000000179600{n:07}-00000000"))).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, (0..LANES).collect::<Vec<_>>());
        assert_eq!(Lane::all().map(Lane::index).collect::<Vec<_>>(), used);
    }

    #[test]
    fn quarter_hours_start_on_the_quarter() {
        for (at, want) in [
            ("2026-12-01T09:00:00Z", "202612010900"),
            ("2026-12-01T09:14:59Z", "202612010900"),
            ("2026-12-01T09:15:00Z", "202612010915"),
            ("2026-12-01T23:59:59Z", "202612012345"),
        ] {
            assert_eq!(UnreportedSort::quarter_hour(at.parse().unwrap()), want);
        }
    }

    proptest! {
        #[test]
        fn a_due_key_says_when_its_own_payment_is_due(slot in slots(), due in dues()) {
            let head = HeadKey { account: "acc".parse().unwrap(), slot };
            let is_own = due.payment_id == slot.payment_id;
            let want = if is_own { due.due_at } else { slot.at.first_due() };
            prop_assert_eq!(due_payment(&head, &due.to_string()).due_at, want);
        }
    }

    #[test]
    fn other_texts_are_not_keys() {
        for text in ["", "#", "ACCT#", "ACCT#a#b", "PAY#1", "2026-12-01T00:00:00Z#", "x#y#z", "SCHEDULED#2026-12-01"] {
            assert!(parse_account_partition(text).is_err(), "{text}");
            assert!(parse_payment_partition(text).is_err(), "{text}");
            assert!(parse_head_sort(text).is_err(), "{text}");
            assert!(text.parse::<DueSort>().is_err(), "{text}");
            assert!(text.parse::<UnreportedSort>().is_err(), "{text}");
        }
    }
}
