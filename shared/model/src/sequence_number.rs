//! Sequence numbers: the places of records in a shard of the table's stream.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The longest sequence number, in digits (*DynamoDB Streams API Reference*, `StreamRecord`).
pub const MAX_DIGITS: usize = 40;

/// A sequence number: 1 to [`MAX_DIGITS`] decimal digits, too many for an integer type. Ordered as a
/// number, displayed as received.
#[derive(Debug, Clone)]
pub struct SequenceNumber(String);

as_text!(SequenceNumber);

/// Why a text is not a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sequence number has 1 to {MAX_DIGITS} decimal digits")]
pub struct SequenceNumberError;

impl FromStr for SequenceNumber {
    type Err = SequenceNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        if digits && (1..=MAX_DIGITS).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SequenceNumberError)
        }
    }
}

impl From<u64> for SequenceNumber {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl SequenceNumber {
    fn significant(&self) -> &str {
        self.0.trim_start_matches('0')
    }
}

impl Ord for SequenceNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        let (this, that) = (self.significant(), other.significant());
        this.len().cmp(&that.len()).then_with(|| this.cmp(that))
    }
}

impl PartialOrd for SequenceNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SequenceNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SequenceNumber {}

impl Hash for SequenceNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn they_are_ordered_as_numbers() {
        let forty = "9".repeat(40);
        for (less, more) in [("9", "10"), ("0", "1"), ("0099", "100"), ("99999999999999999999", &forty)] {
            let (less, more): (SequenceNumber, SequenceNumber) = (less.parse().unwrap(), more.parse().unwrap());
            assert!(less < more, "{less} {more}");
        }
        assert_eq!("007".parse::<SequenceNumber>(), "7".parse());
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "-1", "1.0", "0x1", "١", &"1".repeat(41)] {
            assert_eq!(text.parse::<SequenceNumber>(), Err(SequenceNumberError), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn order_agrees_with_integers(a in any::<u128>(), b in any::<u128>(), zeros in 0_usize..2) {
            let write = |n: u128| format!("{}{n}", "0".repeat(zeros)).parse::<SequenceNumber>();
            prop_assert_eq!(write(a)?.cmp(&b.to_string().parse()?), a.cmp(&b));
        }
    }
}
