//! The event bus, and events in the form that it takes.

use std::fmt::Debug;

use async_trait::async_trait;
use payments_store::LogEntry;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The source of the events, on the bus and in themselves.
pub const BUS_SOURCE: &str = "scheduled-payments";

/// The most events of one call. EventBridge takes no more.
pub const MAX_BUS_EVENTS: usize = 10;

/// The most bytes of an event. A call takes 256 KB, so ten events always fit. The log's events have some KB at most.
const MAX_EVENT_BYTES: usize = 256 * 1024 / MAX_BUS_EVENTS;

/// The codes of events that EventBridge never accepts, because their content is invalid. With any
/// other code an event may be accepted later: at a lower load, or once a permission is granted.
const NEVER_ACCEPTED: [&str; 3] = ["InvalidArgument", "MalformedDetail", "RedactionFailure"];

/// An event as the bus takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEvent {
    /// Its id in the log, which stays the same when it is put again.
    pub id: String,
    /// Its type, such as `payment.processed`.
    pub kind: String,
    /// The time at which it happened: an instant of RFC 3339.
    pub at: String,
    /// The event in the form of CloudEvents 1.0, as JSON.
    pub detail: String,
}

/// The reason why the bus did not accept an event, or does not exist.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The bus rejected this event.
    #[error("the event bus rejects the event {event}: {code}: {message}")]
    Rejected {
        /// The event's id.
        event: String,
        /// EventBridge's code.
        code: String,
        /// EventBridge's words.
        message: String,
    },
    /// The bus answered without a result for this event.
    #[error("the event bus says nothing of the event {0}")]
    Unmentioned(String),
    /// There is no such bus. EventBridge accepts events for it all the same, and drops them.
    #[error("there is no event bus {0}; see docs/alarms.md, BusBehind")]
    Missing(String),
    /// The call failed.
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
        /// Its size.
        bytes: usize,
    },
}

/// An event bus.
#[async_trait]
pub trait EventBus: Debug + Send + Sync {
    /// Its name, which is in the name of its consumer.
    fn name(&self) -> &str;

    /// Checks that the bus exists. [`put`](Self::put) does not show it: events for a missing bus
    /// are accepted, and lost.
    ///
    /// # Errors
    /// [`BusError::Missing`] if the bus does not exist, [`BusError::Call`] if that is unknown.
    async fn check(&self) -> Result<(), BusError>;

    /// Puts at most [`MAX_BUS_EVENTS`] events. An event that the result does not name is on the
    /// bus.
    async fn put(&self, events: Vec<BusEvent>) -> Put;
}

/// The outcome of a call.
#[derive(Debug, Default)]
pub struct Put {
    /// The events that were not accepted, and may be later.
    pub left: Vec<BusEvent>,
    /// The reason for the first of them.
    pub why: Option<BusError>,
    /// The reasons why the other events are never accepted.
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
        // EventBridge counts 14 bytes for the time.
        let bytes = detail.len() + r#type.len() + BUS_SOURCE.len() + 14;
        if bytes > MAX_EVENT_BYTES {
            return Err(BusError::TooLarge { event: id, bytes });
        }
        Ok(Self { id, kind: r#type, at, detail })
    }
}
