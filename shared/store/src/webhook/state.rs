//! The state of a webhook endpoint's deliveries: its position in the log, its lease, and its failures.

use payments_model::{Actor, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::item::{Fault, Item};
use crate::log::position::LogPosition;
use crate::webhook::as_text;

/// The deliveries, and the skipped events, that a consumer remembers: the last ones. With about 200 bytes each they are 2 KB.
pub const REMEMBERED: usize = 5;

/// The cause of an endpoint's being off. Only the last two are in a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisabledBy {
    /// Its operator.
    Operator,
    /// The endpoint: it answered 410.
    Gone,
    /// Its failures, which took too long.
    Failing,
}

/// A delivery of one or several bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The time of its answer.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// The id of the first message, or of the first that failed.
    pub message_id: String,
    /// The events.
    pub events: u32,
    /// The bodies.
    pub bodies: u32,
    /// The time until the last answer, in milliseconds.
    pub took_ms: u64,
    /// The outcome.
    pub outcome: DeliveryEnd,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryEnd {
    /// The outcome in a word of the API: `accepted`, or the kind of an error.
    pub kind: String,
    /// The HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// An error of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryError {
    /// The time.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// The outcome of the delivery.
    pub outcome: DeliveryEnd,
}

/// The event that is next, and was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingEvent {
    /// Its id.
    pub event_id: String,
    /// The place after it.
    #[serde(with = "as_text")]
    pub after: LogPosition,
}

/// An event that an operator skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedEvent {
    /// The time.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// Its id.
    pub event_id: String,
    /// The operator.
    #[serde(with = "as_text")]
    pub by: Actor,
}

/// Events that the log no longer had when it was their turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedEvents {
    /// The time at which the loss was seen.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// Start position.
    #[serde(with = "as_text")]
    pub from: LogPosition,
    /// End position.
    #[serde(with = "as_text")]
    pub to: LogPosition,
}

/// The memory of `publish` about an endpoint between its runs, besides the place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The failed tries since a body was accepted.
    #[serde(default)]
    pub failures: u32,
    /// The time of the first of them.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<UtcSecond>,
    /// The time before which nothing is tried.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<UtcSecond>,
    /// The number of events that are sent at once, less one: one event after a failure, and then
    /// twice as many each time.
    #[serde(default)]
    pub more_at_once: u16,
    /// The event that was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking: Option<BlockingEvent>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<DeliveryError>,
    /// The last deliveries, the newest first.
    #[serde(default)]
    pub deliveries: Vec<Delivery>,
    /// The last events that were missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedEvents>,
}

/// The state of an endpoint's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    /// The position up to which the log was delivered.
    #[serde(with = "as_text")]
    pub position: LogPosition,
    /// The version of the endpoint's settings: each change raises it, and a later endpoint of the same id begins higher.
    pub version: u64,
    /// The number of the lease, which rises each time it is taken or changed.
    #[serde(default)]
    pub lease: u64,
    /// Lease expiry.
    #[serde(default, with = "as_text::optional")]
    pub lease_until: Option<UtcSecond>,
    /// The time at which `publish` switched the endpoint off.
    #[serde(default, with = "as_text::optional")]
    pub disabled_at: Option<UtcSecond>,
    /// The reason.
    pub disabled_by: Option<DisabledBy>,
    /// The time at which an operator asked for a test that is not sent yet.
    #[serde(default, with = "as_text::optional")]
    pub test_at: Option<UtcSecond>,
    /// The events that operators skipped, the newest first.
    #[serde(default)]
    pub skipped: Vec<SkippedEvent>,
    /// The memory of `publish`.
    #[serde(skip)]
    pub progress: Progress,
}

/// The result of a run that has delivered something, or has failed to.
#[derive(Debug, Clone)]
pub struct WebhookCommit<'c> {
    /// The position up to which the log is delivered.
    pub to: LogPosition,
    /// The new memory.
    pub progress: &'c Progress,
    /// The new lease expiry; `None` ends the lease.
    pub lease_until: Option<UtcSecond>,
    /// The reason and time of switching the endpoint off, if it is.
    pub disabled: Option<(DisabledBy, UtcSecond)>,
}

impl DisabledBy {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

impl Progress {
    /// Remembers a delivery.
    pub fn remember(&mut self, delivery: Delivery) {
        self.deliveries.insert(0, delivery);
        self.deliveries.truncate(REMEMBERED);
    }
}

impl WebhookState {
    /// The attributes that a new endpoint's consumer does not have, for an expression.
    pub(crate) const MEMORY: &str = "leaseUntil, heldAs, disabledAt, disabledBy, testAt, skipped, failures, failingSince, \
                                     nextTryAt, moreAtOnce, blocking, lastError, deliveries, missed";

    /// The state of a new endpoint.
    #[must_use]
    pub fn new(position: LogPosition) -> Self {
        Self {
            position,
            version: 0,
            lease: 0,
            lease_until: None,
            disabled_at: None,
            disabled_by: None,
            test_at: None,
            skipped: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// Whether a run may take the endpoint at `now` if the log continues beyond the place: no run
    /// has the lease, and it is time.
    #[must_use]
    pub fn can_be_taken(&self, now: UtcSecond) -> bool {
        let is_over = |until: Option<UtcSecond>| until.is_none_or(|until| until <= now);
        is_over(self.lease_until) && (self.test_at.is_some() || self.may_send(now))
    }

    /// Whether events may be sent at `now`.
    #[must_use]
    pub fn may_send(&self, now: UtcSecond) -> bool {
        self.disabled_at.is_none() && self.progress.next_try_at.is_none_or(|next| next <= now)
    }

    /// The event with this id, if the endpoint fails at it. An event that it has passed, for example with another filter,
    /// no longer blocks it.
    #[must_use]
    pub fn blocked_by(&self, event_id: &str) -> Option<&BlockingEvent> {
        self.progress.blocking.as_ref().filter(|it| it.event_id == event_id && it.after > self.position)
    }

    /// Whether the event is among those skipped last.
    #[must_use]
    pub fn has_skipped(&self, event_id: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped.event_id == event_id)
    }

    pub(super) fn parse(item: &Item) -> Result<Self, Fault> {
        let state: Self = serde_dynamo::from_item(item.clone())?;
        Ok(Self { progress: serde_dynamo::from_item(item.clone())?, ..state })
    }
}
