//! The event bus, and events in the form that it takes.

#[cfg(feature = "aws")]
mod event_bridge;

use std::fmt::Debug;

use async_trait::async_trait;
use payments_store::LogEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "aws")]
pub use event_bridge::EventBridge;

/// What the events name as their source, on the bus and in themselves.
pub const BUS_SOURCE: &str = "scheduled-payments";

/// The most events of one call. EventBridge takes no more.
pub const MAX_BUS_EVENTS: usize = 10;

/// An event as the bus takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEvent {
    /// Its id in the log, which is the same however often it is put.
    pub id: String,
    /// Its type, such as `payment.processed`.
    pub kind: String,
    /// When it happened: an instant of RFC 3339.
    pub at: String,
    /// The event in the form of CloudEvents 1.0, as JSON.
    pub detail: String,
}

/// Why the bus did not accept an event.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// It answered, and rejects this event.
    #[error("the event bus rejects the event {event}: {code}: {message}")]
    Rejected {
        /// The event's id.
        event: String,
        /// EventBridge's code.
        code: String,
        /// EventBridge's words.
        message: String,
    },
    /// It answered, and says nothing of this event.
    #[error("the event bus says nothing of the event {0}")]
    Unmentioned(String),
    /// The call failed.
    #[error("the event bus rejected a call or did not answer it")]
    Call(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The log's event has no id, type or time.
    #[error("an event of the log cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

/// What takes events.
#[async_trait]
pub trait EventBus: Debug + Send + Sync {
    /// Puts at most [`MAX_BUS_EVENTS`] events. Returns those that were not accepted, with the first reason; an event that is not among
    /// them is on the bus.
    async fn put(&self, events: Vec<BusEvent>) -> Put;
}

/// What came of a call.
#[derive(Debug, Default)]
pub struct Put {
    /// The events that were not accepted.
    pub left: Vec<BusEvent>,
    /// Why the first of them was not.
    pub why: Option<BusError>,
}

/// What a CloudEvent needs of an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    id: String,
    r#type: String,
    at: String,
    payment_id: Option<String>,
}

/// The JSON of a CloudEvent.
#[derive(Serialize)]
struct CloudEvent<'e> {
    specversion: &'static str,
    id: &'e str,
    source: &'static str,
    r#type: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'e str>,
    time: &'e str,
    datacontenttype: &'static str,
    data: &'e RawValue,
}

impl BusEvent {
    /// The event of an entry of the log.
    pub(crate) fn of(entry: &LogEntry) -> Result<Self, BusError> {
        let data: &RawValue = serde_json::from_str(&entry.json).map_err(BusError::Unreadable)?;
        let Fields { id, r#type, at, payment_id } = serde_json::from_str(data.get()).map_err(BusError::Unreadable)?;
        let event = CloudEvent {
            specversion: "1.0",
            id: &id,
            source: BUS_SOURCE,
            r#type: &r#type,
            subject: payment_id.as_deref(),
            time: &at,
            datacontenttype: "application/json",
            data,
        };
        let detail = serde_json::to_string(&event).map_err(BusError::Unreadable)?;
        Ok(Self { id, kind: r#type, at, detail })
    }
}
