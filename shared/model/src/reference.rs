//! References: the client's name for a payment, which both ends see.

use std::str::FromStr;

/// The longest reference, in characters: that of an end-to-end reference in ISO 20022 (`Max35Text`).
pub const MAX_REFERENCE_CHARS: usize = 35;

/// The characters of a reference beside letters, digits and spaces: those that SEPA's schemes carry without change.
const MARKS: &str = "/-?:().,'+";

/// A client's reference of a payment: 1 to [`MAX_REFERENCE_CHARS`] letters, digits, spaces and `/-?:().,'+`, without a
/// space or a `/` at either end and without `//`, as SEPA's schemes demand. Several payments can have the same.
///
/// ```
/// # use payments_model::Reference;
/// assert!("RENT 2026/12".parse::<Reference>().is_ok());
/// assert!("RENT//12".parse::<Reference>().is_err());
/// assert!("/RENT".parse::<Reference>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(String);

as_text!(Reference);

/// Why a text is not a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text is empty.
    #[error("a reference has at least 1 character; leave the field out if there is none")]
    Empty,
    /// Longer than [`MAX_REFERENCE_CHARS`].
    #[error("a reference has at most {MAX_REFERENCE_CHARS} characters, but this one has {0}")]
    TooLong(usize),
    /// A character that a payment scheme may not carry.
    #[error("a reference has only letters from A to Z, digits, spaces and {MARKS}")]
    Character,
    /// A space at an end, which schemes cut off.
    #[error("a reference neither begins nor ends with a space")]
    Space,
    /// A slash where SEPA's schemes reject one.
    #[error("a reference neither begins nor ends with a slash, and has no two of them in a row")]
    Slash,
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = |c: char| c.is_ascii_alphanumeric() || c == ' ' || MARKS.contains(c);
        match text.chars().count() {
            0 => Err(ReferenceError::Empty),
            count if count > MAX_REFERENCE_CHARS => Err(ReferenceError::TooLong(count)),
            _ if !text.chars().all(is_known) => Err(ReferenceError::Character),
            _ if text.starts_with(' ') || text.ends_with(' ') => Err(ReferenceError::Space),
            _ if text.starts_with('/') || text.ends_with('/') || text.contains("//") => Err(ReferenceError::Slash),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_short_and_plain() {
        let longest = "R".repeat(35);
        for text in ["r", "a/b / c/d", "INV 2026/117-3", "(a).,'+?:", longest.as_str()] {
            assert_eq!(text.parse::<Reference>().map(|reference| reference.to_string()), Ok(text.to_owned()));
        }
        for (text, why) in [
            ("", ReferenceError::Empty),
            ("R".repeat(36).as_str(), ReferenceError::TooLong(36)),
            ("é".repeat(36).as_str(), ReferenceError::TooLong(36)),
            ("caf\u{e9}", ReferenceError::Character),
            ("a#b", ReferenceError::Character),
            ("a\nb", ReferenceError::Character),
            (" a", ReferenceError::Space),
            ("a ", ReferenceError::Space),
            ("/", ReferenceError::Slash),
            ("/a", ReferenceError::Slash),
            ("a/", ReferenceError::Slash),
            ("a//b", ReferenceError::Slash),
        ] {
            assert_eq!(text.parse::<Reference>(), Err(why), "{text:?}");
        }
    }
}
