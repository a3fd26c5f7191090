//! Settlements: the transaction id of a processed payment, or the code and the reason of a failed one.

use std::str::FromStr;

/// The longest transaction id, in bytes.
pub const MAX_TRANSACTION_ID_BYTES: usize = 64;

/// The longest stored failure reason, in bytes: the length of ISO 20022's additional information, `Max105Text`. With a code beside it,
/// each head fits into 1 KB, with a reference and after an amendment too.
pub const MAX_FAILURE_REASON_BYTES: usize = 105;

/// The most bytes of an unlisted code that a reason shows: the length of ISO 20022's proprietary codes, `Max35Text`.
const MAX_SHOWN_CODE_BYTES: usize = 35;

/// The transaction service's id of a settlement: 1 to [`MAX_TRANSACTION_ID_BYTES`] printable ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransactionId(String);

/// A text that is not a transaction id.
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

as_text!(TransactionId, FailureCode);

/// A four-character code of ISO 20022's external status reasons: a code of [`FailureCode::LISTED`], or a code that a
/// later release lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailureCode(String);

/// A text that is not a failure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a failure code has 4 capital letters and digits")]
pub struct FailureCodeError;

impl FailureCode {
    /// The code of a failure that the reason alone explains.
    pub const NARRATIVE: &str = "NARR";

    /// The codes that a new settlement can have, in alphabetical order: the codes with which a bank's own credit
    /// transfers can fail. The list may grow.
    pub const LISTED: [&str; 27] = [
        "AB08",
        "AC01",
        "AC02",
        "AC03",
        "AC04",
        "AC05",
        "AC06",
        "AC07",
        "AC14",
        "AG01",
        "AG03",
        "AM02",
        "AM03",
        "AM04",
        "AM05",
        "AM14",
        "AM21",
        "BE01",
        "BE06",
        "ED05",
        "MD07",
        "MS02",
        "MS03",
        Self::NARRATIVE,
        "RC01",
        "RC04",
        "RR04",
    ];
}

/// Parses a stored code, which need not be listed here.
impl FromStr for FailureCode {
    type Err = FailureCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_code = text.len() == 4 && text.bytes().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9'));
        if is_code { Ok(Self(text.to_owned())) } else { Err(FailureCodeError) }
    }
}

/// The cause of a payment's failure: a code, and a reason in the transaction service's words. The
/// reason has at most [`MAX_FAILURE_REASON_BYTES`] bytes.
///
/// ```
/// # use payments_model::Failure;
/// let listed = Failure::new(Some("AM04"), "insufficient funds");
/// assert_eq!((listed.code().as_str(), listed.reason()), ("AM04", "insufficient funds"));
///
/// // A code that ISO 20022 does not list goes before the reason.
/// let other = Failure::new(Some("LIMIT-1"), "the limit of the day is reached");
/// assert_eq!((other.code().as_str(), other.reason()), ("NARR", "LIMIT-1: the limit of the day is reached"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    code: FailureCode,
    reason: String,
}

impl Failure {
    /// Creates a failure from the transaction service's code and reason. For an unlisted code, the failure
    /// has the code `NARR`, and the unlisted code stands before the reason. A long reason is cut after
    /// the last whole character that fits.
    #[must_use]
    pub fn new(code: Option<&str>, reason: &str) -> Self {
        let code = code.filter(|code| !code.is_empty());
        match code.filter(|code| FailureCode::LISTED.contains(code)) {
            Some(listed) => {
                Self { code: FailureCode(listed.to_owned()), reason: cut(reason, MAX_FAILURE_REASON_BYTES) }
            }
            None => Self::narrative(code, reason),
        }
    }

    /// Creates a failure from its stored code and reason.
    ///
    /// # Errors
    /// [`FailureCodeError`] if the code does not have the form of a failure code.
    pub fn from_stored(code: &str, reason: &str) -> Result<Self, FailureCodeError> {
        Ok(Self { code: code.parse()?, reason: cut(reason, MAX_FAILURE_REASON_BYTES) })
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &FailureCode {
        &self.code
    }

    /// The reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether both failures have the same cause. A code before the reason, from before the code was
    /// listed, equals the listed code. So a repeated result does not contradict the first result.
    #[must_use]
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        self.in_words() == other.in_words()
    }

    /// The failure with its code before the reason, as if the code were not listed.
    pub(crate) fn in_words(&self) -> Self {
        let code = Some(self.code.as_str()).filter(|code| *code != FailureCode::NARRATIVE);
        Self::narrative(code, &self.reason)
    }

    fn narrative(code: Option<&str>, reason: &str) -> Self {
        let code = code.map(|code| cut(code, MAX_SHOWN_CODE_BYTES));
        let words: Vec<&str> = code.as_deref().into_iter().chain((!reason.is_empty()).then_some(reason)).collect();
        let reason = cut(&words.join(": "), MAX_FAILURE_REASON_BYTES);
        Self { code: FailureCode(FailureCode::NARRATIVE.to_owned()), reason }
    }
}

/// Cuts a text after the last whole character within `most` bytes.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// The outcome of a payment at the transaction service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// The money moved.
    Processed(TransactionId),
    /// The money did not move, and never will.
    Failed(Failure),
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
    fn a_code_that_is_not_listed_stands_before_the_reason() {
        for (code, reason, want) in [
            (Some("AM04"), "no funds", "AM04 no funds"),
            (Some("NARR"), "no funds", "NARR no funds"),
            (None, "no funds", "NARR no funds"),
            (Some(""), "no funds", "NARR no funds"),
            (Some("XY99"), "no funds", "NARR XY99: no funds"),
            (Some("am04"), "no funds", "NARR am04: no funds"),
            (Some("XY99"), "", "NARR XY99"),
            (Some("AM04"), "", "AM04 "),
            (Some("c".repeat(99).as_str()), "no", &format!("NARR {}: no", "c".repeat(35))),
        ] {
            let failure = Failure::new(code, reason);
            assert_eq!(format!("{} {}", failure.code(), failure.reason()), want);
            assert_eq!(Failure::from_stored(failure.code().as_str(), failure.reason()), Ok(failure));
        }
    }

    #[test]
    fn reasons_are_cut_between_characters_whatever_their_way() {
        for (code, want) in [(Some("AM04"), 104), (None, 104), (Some("XY99"), 104), (Some("XY9"), 105)] {
            assert_eq!(Failure::new(code, &"é".repeat(200)).reason().len(), want, "{code:?}");
        }
        assert_eq!(Failure::new(None, &format!("x{}", "é".repeat(200))).reason().len(), 105);
        assert_eq!(Failure::from_stored("AM04", &"é".repeat(200)).map(|failure| failure.reason().len()), Ok(104));
    }

    #[test]
    fn a_code_says_the_same_before_and_after_it_is_listed() {
        let long = "r".repeat(300);
        let listed = |reason: &str| Failure::from_stored("XY99", reason).unwrap();
        assert!(Failure::new(Some("XY99"), "no").says_the_same_as(&listed("no")));
        assert!(listed(&long).says_the_same_as(&Failure::new(Some("XY99"), &long)));
        for (code, reason) in [(Some("AM04"), "no"), (None, "no"), (Some("XY99"), "yes")] {
            assert!(!Failure::new(code, reason).says_the_same_as(&listed("no")), "{code:?} {reason}");
        }
    }

    #[test]
    fn codes_have_four_capital_letters_and_digits() {
        assert!(FailureCode::LISTED.is_sorted());
        for code in FailureCode::LISTED {
            assert_eq!(code.parse::<FailureCode>().map(|code| code.to_string()), Ok(code.to_owned()));
        }
        for text in ["", "AM4", "am04", "AM045", "AM-4", "É04"] {
            assert_eq!(text.parse::<FailureCode>(), Err(FailureCodeError), "{text}");
        }
    }
}
