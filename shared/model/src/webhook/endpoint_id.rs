//! Ids of webhook endpoints, chosen by the creator of an endpoint.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest id of an endpoint, in characters: a UUID with a prefix fits.
pub const MAX_ENDPOINT_ID_CHARS: usize = 64;

/// The id of a webhook endpoint: 1 to [`MAX_ENDPOINT_ID_CHARS`] ASCII letters, digits, `-` or `_`. It appears in paths and keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EndpointId(String);

as_text!(EndpointId);

/// Why a text is not the id of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointIdError {
    /// The text is empty.
    #[error("the id of an endpoint must have at least 1 character")]
    Empty,
    /// The text is longer than [`MAX_ENDPOINT_ID_CHARS`].
    #[error("the id of an endpoint can have at most {MAX_ENDPOINT_ID_CHARS} characters, but this one has {0}")]
    TooLong(usize),
    /// The text has a character that is not allowed.
    #[error("the id of an endpoint can have only ASCII letters, digits, '-' and '_', but this one has {0:?}")]
    Character(char),
}

impl FromStr for EndpointId {
    type Err = EndpointIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(EndpointIdError::Empty);
        }
        match text.chars().find(|&c| !is_id_char(c)) {
            Some(other) => Err(EndpointIdError::Character(other)),
            None if text.len() > MAX_ENDPOINT_ID_CHARS => Err(EndpointIdError::TooLong(text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for EndpointId {
    type Error = EndpointIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<EndpointId> for String {
    fn from(id: EndpointId) -> Self {
        id.0
    }
}

/// Whether ids of endpoints and messages may have this character.
pub(super) fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_keys_and_paths_cannot_carry_is_rejected() {
        use EndpointIdError::{Character, Empty, TooLong};
        let long = "a".repeat(65);
        for (text, want) in [
            ("", Empty),
            (long.as_str(), TooLong(65)),
            ("a#b", Character('#')),
            ("a/b", Character('/')),
            ("a.b", Character('.')),
            ("a b", Character(' ')),
            ("é", Character('é')),
        ] {
            assert_eq!(text.parse::<EndpointId>(), Err(want), "{text:?}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<EndpointId>(&json).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_usual_forms_are_accepted() {
        let longest = "z".repeat(64);
        for text in ["1", "erp", "ERP_prod-2", longest.as_str()] {
            let id: EndpointId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<EndpointId>(&json).unwrap(), id);
        }
    }
}
