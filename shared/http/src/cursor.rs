//! The cursors of lists: opaque to clients, bound to the list that made them.
//!
//! A cursor is neither secret nor signed. It holds only what its owner has seen. A forged one is harmless: it is
//! read only within the account that the request itself names.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use payments_model::{AccountId, BusinessDate, PaymentId, Place, Reference, Status, Statuses, UtcSecond};

use crate::problem::{Problem, ProblemKind};

payments_model::kinds! {
    /// A kind of cursors. Its name is a cursor's first part, and changes whenever the cursor's parts change.
    CursorKind {
        /// The cursor of an account's list.
        Account = "a1",
        /// The cursor of a date's list.
        Due = "d1",
    }
}

const ACCOUNT_FORMAT: &str = CursorKind::Account.as_str();
const DUE_FORMAT: &str = CursorKind::Due.as_str();

/// The longest cursor that is decoded, in characters: the parts below have at most 316 bytes, 422 in base64.
const MAX_CURSOR_CHARS: usize = 448;

/// A cursor of an account's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCursor {
    /// The account.
    pub account: AccountId,
    /// The first day.
    pub from: BusinessDate,
    /// The last day, inclusive.
    pub to: BusinessDate,
    /// The statuses listed.
    pub statuses: Statuses,
    /// The only payee listed, if not all.
    pub payee: Option<AccountId>,
    /// The only reference listed, if not all.
    pub reference: Option<Reference>,
    /// Whether the latest come first.
    pub is_descending: bool,
    /// The place of the last payment seen.
    pub after: Place,
}

impl AccountCursor {
    /// Encodes the cursor for the client.
    pub fn encode(&self) -> String {
        let Self { account, from, to, statuses, payee, reference, is_descending, after } = self;
        let Place { due_at, payment_id } = after;
        let payee = payee.as_ref().map_or("", AccountId::as_str);
        let reference = reference.as_ref().map_or("", Reference::as_str);
        let order = if *is_descending { "desc" } else { "asc" };
        let list = format!("{account}#{from}#{to}#{statuses}#{payee}#{reference}#{order}");
        URL_SAFE_NO_PAD.encode(format!("{ACCOUNT_FORMAT}#{list}#{due_at}#{payment_id}"))
    }

    /// Decodes a cursor that a client sent.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidCursor`] for a text that [`AccountCursor::encode`] cannot have made.
    pub fn decode(text: &str) -> Result<Self, Problem> {
        decode(text, Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('#').collect();
        let [ACCOUNT_FORMAT, account, from, to, statuses, payee, reference, order, at, payment_id] = *parts.as_slice()
        else {
            return None;
        };
        let is_descending = match order {
            "asc" => false,
            "desc" => true,
            _ => return None,
        };
        Some(Self {
            account: account.parse().ok()?,
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            statuses: listed(statuses)?,
            payee: optional(payee)?,
            reference: optional(reference)?,
            is_descending,
            after: Place { due_at: at.parse().ok()?, payment_id: payment_id.parse().ok()? },
        })
    }
}

/// A cursor of the list of a date, across accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCursor {
    /// The date.
    pub due_date: BusinessDate,
    /// The statuses listed.
    pub statuses: Statuses,
    /// The only shard listed, if not all.
    pub only_shard: Option<u16>,
    /// The status and shard to continue in.
    pub at: (Status, u16),
    /// The due time and the id of the last payment seen there.
    pub after: Option<(UtcSecond, PaymentId)>,
}

impl DueCursor {
    /// Encodes the cursor for the client.
    pub fn encode(&self) -> String {
        let Self { due_date, statuses, only_shard, at: (status, shard), after } = self;
        let only_shard = only_shard.map(|shard| shard.to_string()).unwrap_or_default();
        let after = after.map_or("#".to_owned(), |(due_at, payment_id)| format!("{due_at}#{payment_id}"));
        URL_SAFE_NO_PAD.encode(format!("{DUE_FORMAT}#{due_date}#{statuses}#{only_shard}#{status}#{shard}#{after}"))
    }

    /// Decodes a cursor that a client sent.
    ///
    /// # Errors
    /// [`ProblemKind::InvalidCursor`] for a text that [`DueCursor::encode`] cannot have made.
    pub fn decode(text: &str) -> Result<Self, Problem> {
        decode(text, Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('#').collect();
        let [DUE_FORMAT, due_date, statuses, only_shard, status, shard, due_at, payment_id] = parts.as_slice() else {
            return None;
        };
        let cursor = Self {
            due_date: due_date.parse().ok()?,
            statuses: listed(statuses)?,
            only_shard: optional(only_shard)?,
            at: (status.parse().ok()?, shard.parse().ok()?),
            after: optional(due_at)?.zip(optional(payment_id)?),
        };
        let fits = due_at.is_empty() == payment_id.is_empty()
            && cursor.statuses.has(cursor.at.0)
            && cursor.only_shard.is_none_or(|only| only == cursor.at.1);
        fits.then_some(cursor)
    }
}

/// The statuses of a list, which have one spelling.
fn listed(part: &str) -> Option<Statuses> {
    let parsed: Statuses = optional(part)?.unwrap_or_default();
    (parsed.to_string() == part).then_some(parsed)
}

/// A part that may be empty.
fn optional<T: FromStr>(part: &str) -> Option<Option<T>> {
    if part.is_empty() { Some(None) } else { part.parse().ok().map(Some) }
}

/// Decodes a cursor's text and parses it.
fn decode<Cursor>(text: &str, parse: fn(&str) -> Option<Cursor>) -> Result<Cursor, Problem> {
    let decoded = if text.len() <= MAX_CURSOR_CHARS { URL_SAFE_NO_PAD.decode(text).ok() } else { None };
    let cursor = decoded.and_then(|decoded| parse(std::str::from_utf8(&decoded).ok()?));
    cursor.ok_or_else(|| invalid_cursor("it is not a cursor of this list"))
}

/// A problem for a cursor that cannot continue its list; `why` is a clause without a full stop.
pub fn invalid_cursor(why: &str) -> Problem {
    let detail = format!("The cursor is invalid: {why}; start the list again without a cursor.");
    Problem::new(ProblemKind::InvalidCursor, detail).at("cursor")
}

#[cfg(test)]
mod tests {
    use payments_model::IdempotencyKey;
    use proptest::prelude::*;

    use super::*;

    fn cursor() -> AccountCursor {
        let account: AccountId = "a".repeat(48).parse().unwrap();
        let key: IdempotencyKey = "k".parse().unwrap();
        let payment_id = PaymentId::derive(&account, &key);
        AccountCursor {
            account,
            from: "2026-11-20".parse().unwrap(),
            to: "2027-02-18".parse().unwrap(),
            statuses: "SCHEDULED,PENDING,PROCESSED,FAILED".parse().unwrap(),
            payee: Some("p".repeat(48).parse().unwrap()),
            reference: Some("R".repeat(35).parse().unwrap()),
            is_descending: true,
            after: Place { due_at: "2026-12-01T00:00:00Z".parse().unwrap(), payment_id },
        }
    }

    #[test]
    fn the_longest_cursor_is_read_back() {
        let encoded = cursor().encode();
        assert!(encoded.len() <= MAX_CURSOR_CHARS, "{}", encoded.len());
        assert_eq!(AccountCursor::decode(&encoded).unwrap(), cursor());
        let plain = AccountCursor {
            statuses: Statuses::default(),
            payee: None,
            reference: None,
            is_descending: false,
            ..cursor()
        };
        assert_eq!(AccountCursor::decode(&plain.encode()).unwrap(), plain);
    }

    #[test]
    fn a_cursor_of_a_date_is_read_back() {
        let last: (UtcSecond, PaymentId) = ("2026-12-01T00:00:00Z".parse().unwrap(), cursor().after.payment_id);
        for (statuses, only_shard, after) in
            [("", None, None), ("CANCELLED", Some(999), Some(last)), ("SCHEDULED,CANCELLED", Some(999), Some(last))]
        {
            let parsed: Statuses = if statuses.is_empty() { Statuses::default() } else { statuses.parse().unwrap() };
            let at = (Status::Cancelled, 999);
            let cursor = DueCursor { due_date: "2026-11-20".parse().unwrap(), statuses: parsed, only_shard, at, after };
            assert_eq!(DueCursor::decode(&cursor.encode()).unwrap(), cursor);
            let elsewhere = DueCursor { at: (Status::Pending, 3), ..cursor };
            assert_eq!(DueCursor::decode(&elsewhere.encode()).is_ok(), statuses.is_empty());
        }
        assert!(DueCursor::decode(&cursor().encode()).is_err(), "a date's list rejects an account's cursor");
    }

    proptest! {
        #[test]
        fn any_text_is_rejected_or_decodes_to_a_cursor_that_encodes_to_it(text in ".{0,300}") {
            if let Ok(cursor) = AccountCursor::decode(&text) {
                prop_assert_eq!(cursor.encode(), text);
            }
        }

        #[test]
        fn an_altered_cursor_is_rejected_or_decodes_to_another(at in 0_usize..200, byte in prop::sample::select(b"ABCxyz019-_".to_vec())) {
            let mut text = cursor().encode().into_bytes();
            let at = at % text.len();
            text[at] = byte;
            let text = String::from_utf8(text)?;
            if let Ok(cursor) = AccountCursor::decode(&text) {
                prop_assert_eq!(cursor.encode(), text);
            }
        }
    }
}
