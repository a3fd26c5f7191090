//! The event bus, and events in the form that the bus takes.

use std::fmt::Debug;

use async_trait::async_trait;
use payments_store::LogEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The source that the bus shows for the events. The events themselves name the same source.
pub const BUS_SOURCE: &str = "scheduled-payments";

/// The most events that EventBridge takes in one call.
pub const MAX_BUS_EVENTS: usize = 10;

/// The most bytes of an event. A call takes 256 KB, so ten events always fit. The log's events have some KB at most.
const MAX_EVENT_BYTES: usize = 256 * 1024 / MAX_BUS_EVENTS;

/// EventBridge's error codes for events that it never accepts, because their content is invalid. An
/// event with any other code may be accepted later: at a lower load, or once a permission is granted.
const NEVER_ACCEPTED: [&str; 3] = ["InvalidArgument", "MalformedDetail", "RedactionFailure"];

/// An event as the bus takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEvent {
    /// The event's id in the log. A repeated event keeps its id.
    pub id: String,
    /// The event's type, such as `payment.processed`.
    pub kind: String,
    /// The time of the event: an instant of RFC 3339.
    pub at: String,
    /// The event in the form of CloudEvents 1.0, as JSON.
    pub detail: String,
}

/// The reason why the bus did not accept an event.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The bus rejected this event.
    #[error("the event bus rejects the event {event}: {code}: {message}")]
    Rejected {
        /// The event's id.
        event: String,
        /// EventBridge's code.
        code: String,
        /// EventBridge's error message.
        message: String,
    },
    /// The bus answered without a result for this event.
    #[error("the event bus says nothing of the event {0}")]
    Unmentioned(String),
    /// The bus does not exist. EventBridge accepts events for a missing bus, and drops them.
    #[error("there is no event bus {0}; see docs/alarms.md, BusBehind")]
    Missing(String),
    /// A call to EventBridge failed.
    #[error("the event bus rejected a call or did not answer it")]
    Call(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The log's event has no id, type or time.
    #[error("an event of the log cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// The log's event is too large for a call.
    #[error("the event {event} has {bytes} bytes, and the event bus takes {MAX_EVENT_BYTES} at most")]
    TooLarge {
        /// The event's id.
        event: String,
        /// The event's size.
        bytes: usize,
    },
}

/// An event bus.
#[async_trait]
pub trait EventBus: Debug + Send + Sync {
    /// The name of the bus. The bus's consumer in the log is named after it.
    fn name(&self) -> &str;

    /// Checks that the bus exists. [`put`](Self::put) cannot show that a bus is missing: events for a
    /// missing bus are accepted, and lost.
    ///
    /// # Errors
    /// [`BusError::Missing`] if the bus does not exist, [`BusError::Call`] if the check failed.
    async fn check(&self) -> Result<(), BusError>;

    /// Puts at most [`MAX_BUS_EVENTS`] events. An event that the result does not name is on the bus.
    async fn put(&self, events: Vec<BusEvent>) -> Put;
}

/// The outcome of a call.
#[derive(Debug, Default)]
pub struct Put {
    /// The events that were not accepted, but may be accepted later.
    pub left: Vec<BusEvent>,
    /// The reason why the first event of `left` was not accepted.
    pub why: Option<BusError>,
    /// The reason for each event that is never accepted.
    pub never: Vec<BusError>,
}

impl Put {
    /// Notes that the bus rejected an event with a code.
    pub fn reject(&mut self, event: BusEvent, code: &str, message: &str) {
        let is_never_accepted = NEVER_ACCEPTED.contains(&code);
        let why = BusError::Rejected { event: event.id.clone(), code: code.to_owned(), message: message.to_owned() };
        if is_never_accepted {
            self.never.push(why);
        } else {
            self.leave(event, why);
        }
    }

    /// Notes an event that was not accepted, but may be accepted later.
    pub fn leave(&mut self, event: BusEvent, why: BusError) {
        self.why.get_or_insert(why);
        self.left.push(event);
    }
}

/// The fields of an event that a CloudEvent needs.
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
    /// Builds the bus's event from an entry of the log.
    ///
    /// # Errors
    /// [`BusError::Unreadable`] if the entry is not an event, [`BusError::TooLarge`] if no call can take
    /// the event.
    pub(crate) fn from_entry(entry: &LogEntry) -> Result<Self, BusError> {
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
        // EventBridge counts 14 bytes for the time.
        let bytes = detail.len() + r#type.len() + BUS_SOURCE.len() + 14;
        if bytes > MAX_EVENT_BYTES {
            return Err(BusError::TooLarge { event: id, bytes });
        }
        Ok(Self { id, kind: r#type, at, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_at_most_a_tenth_of_the_bytes_of_a_call() {
        let event = |filling: usize| {
            let data = "x".repeat(filling);
            let json = format!(r#"{{"id":"7-1-1","type":"log.gap","at":"2026-11-20T09:00:00Z","data":"{data}"}}"#);
            BusEvent::from_entry(&LogEntry { json, after: "7.1.1".parse().unwrap() })
        };
        // EventBridge counts the detail, its type, the source, and 14 bytes for the time.
        let counted = event(0).unwrap().detail.len() + "log.gap".len() + "scheduled-payments".len() + 14;
        let room = 26_214 - counted;
        assert!(event(room).is_ok());
        assert!(matches!(event(room + 1), Err(BusError::TooLarge { bytes: 26_215, .. })));
    }
}
