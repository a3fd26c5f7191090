//! Where a list goes on: opaque to clients, bound to the list that made it.
//!
//! A cursor is not secret and not signed. It holds no more than its owner has seen, and whatever
//! somebody puts into one, it is only ever read within the account that the request itself names.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use payments_model::{AccountId, BusinessDate, PaymentId, Status, UtcSecond};

use crate::{Kind, Problem};

/// The first part of every cursor, raised when the parts change.
const FORMAT: &str = "1";

/// The longest cursor looked at, in characters: the parts below have at most 190 bytes, which
/// base64 makes 254.
const MAX_CURSOR_CHARS: usize = 256;

/// The continuation of an account's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountCursor {
    /// Whose list.
    pub account: AccountId,
    /// From which day.
    pub from: BusinessDate,
    /// To which day, inclusive.
    pub to: BusinessDate,
    /// Of which status only.
    pub status: Option<Status>,
    /// The last payment seen: when it is due, and its id.
    pub after: (UtcSecond, PaymentId),
}

impl AccountCursor {
    /// The cursor as a client gets it.
    #[must_use]
    pub fn encode(&self) -> String {
        let status = self.status.map_or("", Status::as_str);
        let (due_at, payment_id) = &self.after;
        URL_SAFE_NO_PAD
            .encode(format!("{FORMAT}#{}#{}#{}#{status}#{due_at}#{payment_id}", self.account, self.from, self.to))
    }

    /// Reads a cursor that a client sent back.
    ///
    /// # Errors
    /// [`Kind::InvalidCursor`] for anything that [`AccountCursor::encode`] did not make.
    pub fn decode(text: &str) -> Result<Self, Problem> {
        Self::parse(text).ok_or_else(|| foreign("It was not made by this API, or it was altered."))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_CURSOR_CHARS {
            return None;
        }
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let parts: Vec<&str> = text.split('#').collect();
        let [FORMAT, account, from, to, status, due_at, payment_id] = parts.as_slice() else { return None };
        Some(Self {
            account: account.parse().ok()?,
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            status: if status.is_empty() { None } else { Some(status.parse().ok()?) },
            after: (due_at.parse().ok()?, payment_id.parse().ok()?),
        })
    }
}

/// A cursor that does not belong to the list it was sent to.
#[must_use]
pub fn foreign(why: &str) -> Problem {
    Problem::new(
        Kind::InvalidCursor,
        format!("This cursor does not continue this list. {why} Start again without a cursor."),
    )
    .at("cursor")
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
            status: Some(Status::Scheduled),
            after: ("2026-12-01T00:00:00Z".parse().unwrap(), payment_id),
        }
    }

    #[test]
    fn the_longest_cursor_is_read_back() {
        let encoded = cursor().encode();
        assert!(encoded.len() <= MAX_CURSOR_CHARS, "{}", encoded.len());
        assert_eq!(AccountCursor::decode(&encoded).unwrap(), cursor());
        let any_status = AccountCursor { status: None, ..cursor() };
        assert_eq!(AccountCursor::decode(&any_status.encode()).unwrap(), any_status);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_refused_or_a_cursor(text in ".{0,300}") {
            if let Ok(cursor) = AccountCursor::decode(&text) {
                prop_assert_eq!(cursor.encode(), text);
            }
        }

        #[test]
        fn an_altered_cursor_is_refused_or_another(at in 0_usize..200, byte in prop::sample::select(b"ABCxyz019-_".to_vec())) {
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
