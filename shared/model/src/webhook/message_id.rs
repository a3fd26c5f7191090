//! Ids of webhook messages, by which receivers recognise repeated messages.

use std::str::FromStr;

use crate::webhook::endpoint_id::is_id_char;

/// The longest id of a message, in characters: a place in the log with an endpoint's id fits.
pub const MAX_MESSAGE_ID_CHARS: usize = 128;

/// The id of a webhook message: 1 to [`MAX_MESSAGE_ID_CHARS`] ASCII letters, digits, `-` or `_`.
///
/// Dots are not allowed, because they separate the parts of the signed text: `<id>.<timestamp>.<body>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageId(String);

as_text!(MessageId);

/// Why a text is not the id of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageIdError {
    /// The text is empty, or longer than [`MAX_MESSAGE_ID_CHARS`].
    #[error("the id of a message must have 1 to {MAX_MESSAGE_ID_CHARS} characters, but this one has {0}")]
    Length(usize),
    /// The text has a character that is not allowed.
    #[error("the id of a message can have only ASCII letters, digits, '-' and '_', but this one has {0:?}")]
    Character(char),
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.chars().find(|&c| !is_id_char(c)) {
            Some(other) => Err(MessageIdError::Character(other)),
            None if text.is_empty() || text.len() > MAX_MESSAGE_ID_CHARS => Err(MessageIdError::Length(text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_no_dot_because_dots_separate_what_is_signed() {
        assert_eq!("7-3-0_erp".parse::<MessageId>().map(|id| id.to_string()), Ok("7-3-0_erp".to_owned()));
        for (text, want) in [
            ("", MessageIdError::Length(0)),
            ("a".repeat(129).as_str(), MessageIdError::Length(129)),
            ("7.3.0", MessageIdError::Character('.')),
            ("a\r\nb: c", MessageIdError::Character('\r')),
        ] {
            assert_eq!(text.parse::<MessageId>(), Err(want), "{text:?}");
        }
    }
}
