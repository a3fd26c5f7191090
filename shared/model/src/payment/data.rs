//! The client's own data: its text, or the place of a sealed row that has it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::calendar::instant::BusinessDate;
use crate::json_text::JsonText;

/// The bytes of a SHA-256 hash.
const HASH_BYTES: usize = 32;

/// The client's own data, which the bank does not read.
///
/// Two of them are equal if the client sent the same bytes, wherever they are kept.
#[derive(Debug, Clone)]
pub enum PaymentData {
    /// The text, byte for byte as the client sent it.
    Text(JsonText),
    /// A sealed row has the text.
    Sealed(SealedData),
}

/// Data whose text is in a sealed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedData {
    /// The row.
    pub place: SealedPlace,
    /// The SHA-256 hash of the text.
    pub hash: DataHash,
}

/// The SHA-256 hash of the text of a payment's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHash([u8; HASH_BYTES]);

/// The place of a sealed row. Its text is `2026-11-20/1/57`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedPlace {
    /// The due date of the payment, which names the folder of the part.
    pub date: BusinessDate,
    /// The number of the part, from 1 on.
    pub part: u32,
    /// The number of the row in the part, from 0 on.
    pub row: u32,
}

/// A text that is not the place of a sealed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the place of a sealed row is a date, the number of a part and that of a row, such as 2026-11-20/1/57")]
pub struct SealedPlaceError;

impl PaymentData {
    /// The text, or the row that has it.
    ///
    /// # Errors
    /// The place of the sealed row, if that has the text.
    pub fn text(&self) -> Result<&JsonText, &SealedData> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Sealed(sealed) => Err(sealed),
        }
    }

    /// The hash of the text.
    #[must_use]
    pub fn hash(&self) -> DataHash {
        match self {
            Self::Text(text) => DataHash::new(text.as_str()),
            Self::Sealed(sealed) => sealed.hash,
        }
    }
}

impl From<JsonText> for PaymentData {
    fn from(text: JsonText) -> Self {
        Self::Text(text)
    }
}

impl PartialEq for PaymentData {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), Self::Text(other)) => text == other,
            _ => self.hash() == other.hash(),
        }
    }
}

impl Eq for PaymentData {}

impl DataHash {
    /// The hash of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// A stored hash. `None` if it has not 32 bytes.
    #[must_use]
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for SealedPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}/{}", self.date, self.part, self.row)
    }
}

impl FromStr for SealedPlace {
    type Err = SealedPlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (date, rest) = text.split_once('/')?;
            let (part, row) = rest.split_once('/')?;
            let place = Self { date: date.parse().ok()?, part: part.parse().ok()?, row: row.parse().ok()? };
            (place.part > 0 && place.to_string() == text).then_some(place)
        };
        parse().ok_or(SealedPlaceError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> PaymentData {
        JsonText::from_stored(text.to_owned()).unwrap().into()
    }

    fn sealed(place: &str, text: &str) -> PaymentData {
        PaymentData::Sealed(SealedData { place: place.parse().unwrap(), hash: DataHash::new(text) })
    }

    #[test]
    fn data_is_equal_if_the_client_sent_the_same_bytes() {
        assert_eq!(text("{}"), sealed("2026-11-20/1/0", "{}"));
        assert_eq!(sealed("2026-11-20/1/0", "{}"), sealed("2026-11-21/2/7", "{}"));
        assert_ne!(text("{ }"), sealed("2026-11-20/1/0", "{}"));
        assert_ne!(sealed("2026-11-20/1/0", "[]"), sealed("2026-11-20/1/0", "{}"));
    }

    #[test]
    fn a_place_has_one_text() {
        let place: SealedPlace = "2026-11-20/1/57".parse().unwrap();
        assert_eq!((place.part, place.row, place.to_string()), (1, 57, "2026-11-20/1/57".to_owned()));
        for other in
            ["2026-11-20/0/57", "2026-11-20/01/57", "2026-11-20/1", "2026-11-20/1/57/", "1/57", "2026-11-31/1/1"]
        {
            assert_eq!(other.parse::<SealedPlace>(), Err(SealedPlaceError), "{other}");
        }
    }
}
