//! Settlements: the transaction id of a processed payment, or why a payment failed.

use std::str::FromStr;

/// The longest transaction id, in bytes.
pub const MAX_TRANSACTION_ID_BYTES: usize = 64;

/// The longest stored failure reason, in bytes.
pub const MAX_FAILURE_REASON_BYTES: usize = 256;

/// The transaction service's id of a settlement: 1 to [`MAX_TRANSACTION_ID_BYTES`] printable
/// ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransactionId(String);

/// Why a text is not a transaction id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a transaction id has 1 to {MAX_TRANSACTION_ID_BYTES} printable ASCII characters")]
pub struct TransactionIdError;

impl FromStr for TransactionId {
    type Err = TransactionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=MAX_TRANSACTION_ID_BYTES).contains(&text.len());
        let printable = text.bytes().all(|b| matches!(b, b' '..=b'~'));
        if fits && printable { Ok(Self(text.to_owned())) } else { Err(TransactionIdError) }
    }
}

/// Why a payment failed, in the transaction service's words: at most [`MAX_FAILURE_REASON_BYTES`]
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReason(String);

as_text!(TransactionId, FailureReason);

impl FailureReason {
    /// Cuts a reason after the last whole character within [`MAX_FAILURE_REASON_BYTES`].
    #[must_use]
    pub fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(MAX_FAILURE_REASON_BYTES)].to_owned())
    }

    /// Cuts it after the last whole character within `most` bytes.
    #[must_use]
    pub(crate) fn within(&self, most: usize) -> Self {
        Self(self.0[..self.0.floor_char_boundary(most)].to_owned())
    }
}

/// How a payment ended at the transaction service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The money moved.
    Processed(TransactionId),
    /// The money did not move, and never will.
    Failed(FailureReason),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_ids_are_short_and_printable() {
        let longest = "t".repeat(64);
        for text in ["t", "TX 1#2~", longest.as_str()] {
            assert_eq!(text.parse::<TransactionId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "a\tb", "é", "t".repeat(65).as_str()] {
            assert_eq!(text.parse::<TransactionId>(), Err(TransactionIdError), "{text:?}");
        }
    }

    #[test]
    fn reasons_are_cut_between_characters() {
        assert_eq!(FailureReason::cut("no funds").as_str(), "no funds");
        assert_eq!(FailureReason::cut(&"é".repeat(200)).as_str().len(), 256);
        assert_eq!(FailureReason::cut(&format!("x{}", "é".repeat(200))).as_str().len(), 255);
    }
}
