//! Values of payments: their status, their requested time, and their data.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, FixedOffset, NaiveDate, SecondsFormat};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The status of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Status {
    /// The payment is not due yet, and can be amended or cancelled.
    Scheduled,
    /// The bank has claimed the payment, and the transaction service has it.
    Pending,
    /// The money moved.
    Processed,
    /// The transaction service rejected the payment.
    Failed,
    /// A client cancelled the payment.
    Cancelled,
    /// A status that this client does not know. The payment is neither yours to change nor settled.
    #[serde(other)]
    Unknown,
}

impl Status {
    /// Returns the status as the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "SCHEDULED",
            Self::Pending => "PENDING",
            Self::Processed => "PROCESSED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The rule for a payment whose date is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateRule {
    /// The payment is due on that date.
    None,
    /// The payment is due on the next open date.
    Following,
    /// The payment is due on the last open date before, or on the next one if that date or its cut-off has passed.
    Preceding,
    /// The payment is rejected.
    Refuse,
}

/// The requested time of a payment: a date of the bank, or a time, whose offset is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledFor {
    /// The beginning of this date at the bank.
    Date(NaiveDate),
    /// At this time, in whole seconds.
    Time(DateTime<FixedOffset>),
}

impl From<NaiveDate> for ScheduledFor {
    fn from(date: NaiveDate) -> Self {
        Self::Date(date)
    }
}

impl From<DateTime<FixedOffset>> for ScheduledFor {
    fn from(time: DateTime<FixedOffset>) -> Self {
        Self::Time(time)
    }
}

impl fmt::Display for ScheduledFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(date) => date.fmt(f),
            Self::Time(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
        }
    }
}

impl FromStr for ScheduledFor {
    type Err = chrono::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(date) => Ok(Self::Date(date)),
            Err(_) => DateTime::parse_from_rfc3339(text).map(Self::Time),
        }
    }
}

impl Serialize for ScheduledFor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ScheduledFor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The data of a payment: JSON, to the byte as it was sent. Data is equal if its bytes are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Data(Box<RawValue>);

impl Data {
    /// Creates data of a value.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn from_value(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Returns the JSON.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Reads the JSON as a value of some type.
    ///
    /// # Errors
    /// If the JSON has another shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Data {}

impl From<Box<RawValue>> for Data {
    fn from(json: Box<RawValue>) -> Self {
        Self(json)
    }
}

/// Reads present data, even if it is null: only absent data is `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Data>, D::Error> {
    Data::deserialize(deserializer).map(Some)
}

/// Returns the header that sends a key. A key that begins with a double quote is sent as a string
/// in quotes, which the bank removes.
pub(crate) fn key_header(key: &str) -> Cow<'_, str> {
    if key.starts_with('"') {
        return format!("\"{}\"", key.replace('\\', r"\\").replace('"', r#"\""#)).into();
    }
    key.into()
}
