//! Encodes and parses the keys of items: their partition keys, and the sort keys of heads and details.
//!
//! Keys are ASCII. `#` separates the parts of a key, and no part contains `#`. Instants have a fixed width, so the
//! byte order of the text is the order of the values. Ranges are half-open on the encoded text: the
//! upper bound is the first instant or date *after* the range, and is never a key itself.

use std::fmt;

use payments_model::{AccountId, AmendmentName, Head, HeadKey, PaymentId, Place, Slot};

pub(crate) mod audit;
pub(crate) mod due;
pub(crate) mod finding;
pub(crate) mod unreported;

/// The sort key of a payment's first details.
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
    parse_partition(text, "ACCT#", "account partition", |account| account.parse().ok())
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

/// The sort key of details: `DETAILS`, and of an amendment's `DETAILS#<version>#<amendmentId>`.
pub(crate) fn details_sort(amendment: Option<AmendmentName>) -> String {
    amendment.map_or_else(|| DETAILS_SORT.to_owned(), |name| format!("{DETAILS_SORT}#{name}"))
}

/// Parses [`details_sort`].
pub(crate) fn parse_details_sort(text: &str) -> Result<Option<AmendmentName>, KeyError> {
    let wrong = || KeyError(text.to_owned(), "details sort");
    match text.strip_prefix(DETAILS_SORT).ok_or_else(wrong)? {
        "" => Ok(None),
        rest => rest.strip_prefix('#').and_then(|name| name.parse().ok()).map(Some).ok_or_else(wrong),
    }
}

/// The partition key of the stored progress and findings of runs: `CHECKPOINT#counts`,
/// `CHECKPOINT#report` or `CHECKPOINT#recount`. The sort key is a stream shard, a job or a date.
pub(crate) fn checkpoint_partition(what: &str) -> String {
    format!("CHECKPOINT#{what}")
}

/// The partition key of the log's head and of the segments of an epoch: `LOG#HEAD` and `LOG#<epoch>`. A segment's sort key is its
/// number.
pub(crate) fn log_partition(what: impl fmt::Display) -> String {
    format!("LOG#{what}")
}

/// The partition key of all webhook endpoints: `WEBHOOK#ENDPOINTS`. An endpoint's sort key is its id.
/// The first item of the partition has the number of endpoints that were ever created.
pub(crate) fn webhook_partition(what: impl fmt::Display) -> String {
    format!("WEBHOOK#{what}")
}

/// The partition key of the marks of all open findings: `FINDINGS#OPEN`. A mark's sort key is its payment's id and its hash.
pub(crate) fn findings_partition(what: impl fmt::Display) -> String {
    format!("FINDINGS#{what}")
}

/// The partition key of the last runs of all jobs, `RUNS#LAST`, and of the figures of all days, `RUNS#FIGURES`. The sort key is a
/// job or a due date.
pub(crate) fn runs_partition(what: &str) -> String {
    format!("RUNS#{what}")
}

/// The partition key of the notes of cleared parts. The sort key is a due date, or that of the instant before which nothing is cleared.
pub(crate) fn cleared_partition() -> String {
    "CLEARED".to_owned()
}

/// The partition key of the reserved claims of all dates. The sort key is a due date.
pub(crate) fn claims_partition() -> String {
    "CLAIMS".to_owned()
}

/// The partition key of the switch, and of the releases of due dates.
pub(crate) fn control_partition() -> String {
    "CONTROL".to_owned()
}

/// The partition key of undos, and of the ids of the open ones.
pub(crate) fn undo_partition() -> String {
    "UNDO".to_owned()
}

/// The partition key of the counters of one lane: `COUNTS#<lane>`. The sort key is the date.
pub(crate) fn counts_partition(lane: Lane) -> String {
    format!("COUNTS#{}", lane.0)
}

/// The number of lanes. Each lane has its own partition key, so stream shards rarely wait for each other.
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
    pub fn for_stream_shard(shard: &str) -> Self {
        let hash = shard
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // The lower bits of a product depend little on the upper ones, so both are combined.
        let folded = hash ^ (hash >> 32);
        Self(folded.to_le_bytes()[0] % 8)
    }

    /// The lane's place among all lanes, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The sort key of a head, which is its slot: `<slotAt>#<paymentId>`.
pub fn head_sort(slot: Slot) -> String {
    format!("{}#{}", slot.at, slot.payment_id)
}

/// The sort key of a payment's place among its account's payments: `<dueAt>#<paymentId>`. This key has the form of
/// [`head_sort`], so payments with their first due time and payments with another due time have one order.
pub(crate) fn place_sort(place: Place) -> String {
    format!("{}#{}", place.due_at, place.payment_id)
}

/// The sort key of a head in the `moved` index: the payment's place. `None` if the payment has its first due time:
/// the index has only payments with another due time.
pub(crate) fn moved_sort(head: &Head) -> Option<String> {
    (!head.is_due_as_at_first()).then(|| place_sort(head.place()))
}

/// Parses [`place_sort`].
pub(crate) fn parse_place_sort(text: &str) -> Result<Place, KeyError> {
    parse_head_sort(text).map(Slot::first_place)
}

/// A text that sorts after the key of `place` and before the key of every later place.
pub(crate) fn after_place_sort(place: Place) -> String {
    format!("{}#", place_sort(place))
}

/// A text that sorts before the key of `place` and after the key of every earlier place.
pub(crate) fn before_place_sort(place: Place) -> String {
    let mut key = place_sort(place);
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

#[cfg(test)]
mod tests;
