//! Account ids: the bank's own identifiers of accounts, which appear in paths and keys.

use std::str::FromStr;

/// The longest account id, in bytes. An IBAN has at most 34 characters and a UUID 36. The limit
/// keeps a head within 1 KB, as a test of `payments_store` computes.
pub const MAX_ACCOUNT_ID_BYTES: usize = 48;

/// An account id: 1 to [`MAX_ACCOUNT_ID_BYTES`] ASCII letters, digits, `.`, `_` or `-`, but neither `.` nor `..`.
///
/// `#` is not allowed, because it separates the parts of a key. `.` and `..` are not, because clients remove such a
/// segment from a path, with the segment before, and send the request to another route.
///
/// ```
/// # use payments_model::AccountId;
/// assert!("GB33BUKB20201555555555".parse::<AccountId>().is_ok());
/// assert!("tenant#7".parse::<AccountId>().is_err());
/// assert!("..".parse::<AccountId>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(String);

as_text!(AccountId);

/// Why a text is not an account id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccountIdError {
    /// The text is empty.
    #[error("an account id has at least 1 character")]
    Empty,
    /// The text is longer than [`MAX_ACCOUNT_ID_BYTES`].
    #[error("an account id has at most {MAX_ACCOUNT_ID_BYTES} characters, but this one has {0}")]
    TooLong(usize),
    /// The text has a character that is not allowed.
    #[error("an account id has only ASCII letters, digits, '.', '_' and '-', but this one has {0:?}")]
    Character(char),
    /// The text is `.` or `..`.
    #[error("an account id is neither \".\" nor \"..\", which paths use for a folder and its parent")]
    Dots,
}

impl FromStr for AccountId {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => return Err(AccountIdError::Empty),
            "." | ".." => return Err(AccountIdError::Dots),
            _ => {}
        }
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match text.chars().find(|c| !allowed(c)) {
            Some(other) => Err(AccountIdError::Character(other)),
            None if text.len() > MAX_ACCOUNT_ID_BYTES => Err(AccountIdError::TooLong(text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_keys_and_paths_cannot_carry_is_rejected() {
        use AccountIdError::{Character, Dots, Empty, TooLong};
        let long = "a".repeat(MAX_ACCOUNT_ID_BYTES + 1);
        for (text, want) in [
            ("", Empty),
            (long.as_str(), TooLong(49)),
            ("A#1", Character('#')),
            ("A/1", Character('/')),
            ("A 1", Character(' ')),
            ("A\n1", Character('\n')),
            ("A\u{0}1", Character('\u{0}')),
            ("Zoë", Character('ë')),
            (".", Dots),
            ("..", Dots),
        ] {
            assert_eq!(text.parse::<AccountId>(), Err(want), "{text:?}");
        }
    }

    #[test]
    fn the_usual_forms_are_accepted() {
        let longest = "z".repeat(MAX_ACCOUNT_ID_BYTES);
        for text in ["1", "GB29NWBK60161331926819", "acc_1.2-3", "...", ".a", "..-", "a..", longest.as_str()] {
            assert_eq!(text.parse::<AccountId>().map(|id| id.to_string()), Ok(text.to_owned()));
        }
    }
}
