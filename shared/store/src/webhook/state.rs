//! The state of a webhook endpoint's deliveries: how far the log was delivered, by whom, and what went wrong.

use payments_model::{Actor, UtcSecond};
use serde::{Deserialize, Serialize};

use crate::item::{Fault, Item};
use crate::log::position::LogPosition;
use crate::webhook::as_text;

/// The deliveries, and the skipped events, that a consumer remembers: the last ones. With about 200 bytes each they are 2 KB.
pub const REMEMBERED: usize = 5;

/// Who switched an endpoint off. Only the last two are in a consumer.
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
    /// When it was answered.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// The id of the first message, or of the first that failed.
    pub message_id: String,
    /// The events.
    pub events: u32,
    /// The bodies.
    pub bodies: u32,
    /// What came of it.
    pub outcome: DeliveryEnd,
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryEnd {
    /// What happened, in a word of the API: `accepted`, or the kind of an error.
    pub kind: String,
    /// The HTTP status, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// An error of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryError {
    /// When.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// What came of the delivery.
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
    /// When.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// Its id.
    pub event_id: String,
    /// Who.
    #[serde(with = "as_text")]
    pub by: Actor,
}

/// Events that the log no longer had when it was their turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedEvents {
    /// When that was seen.
    #[serde(with = "as_text")]
    pub at: UtcSecond,
    /// From where on.
    #[serde(with = "as_text")]
    pub from: LogPosition,
    /// Up to where.
    #[serde(with = "as_text")]
    pub to: LogPosition,
}

/// What `publish` remembers of an endpoint between its runs, besides the place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The tries since something was accepted.
    #[serde(default)]
    pub failures: u32,
    /// When the first of them was.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<UtcSecond>,
    /// Before when nothing is tried.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<UtcSecond>,
    /// How many events are sent at once, less one: after a failure one, and then twice as many each time.
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

/// What is known of an endpoint's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    /// Up to where the log was delivered.
    #[serde(with = "as_text")]
    pub position: LogPosition,
    /// The number of the lease, which rises each time it is taken or changed.
    #[serde(default)]
    pub lease: u64,
    /// Until when nobody else takes it.
    #[serde(default, with = "as_text::optional")]
    pub lease_until: Option<UtcSecond>,
    /// Since when `publish` sends nothing.
    #[serde(default, with = "as_text::optional")]
    pub disabled_at: Option<UtcSecond>,
    /// Why.
    pub disabled_by: Option<DisabledBy>,
    /// When an operator asked for a test that was not sent yet.
    #[serde(default, with = "as_text::optional")]
    pub test_at: Option<UtcSecond>,
    /// What an operator skipped, the newest first.
    #[serde(default)]
    pub skipped: Vec<SkippedEvent>,
    /// What `publish` remembers.
    #[serde(skip)]
    pub progress: Progress,
}

/// What a run writes when it has delivered something, or has failed to.
#[derive(Debug, Clone)]
pub struct WebhookCommit<'c> {
    /// Up to where the log is delivered.
    pub to: LogPosition,
    /// What is remembered.
    pub progress: &'c Progress,
    /// Until when the lease is renewed. The lease ends if this is none.
    pub lease_until: Option<UtcSecond>,
    /// Why the endpoint is switched off, and when, if it is.
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
            lease: 0,
            lease_until: None,
            disabled_at: None,
            disabled_by: None,
            test_at: None,
            skipped: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// Whether something is to be done at `now` if the log goes on behind the place: nobody has the lease, and it is time.
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

    pub(super) fn parse(item: &Item) -> Result<Self, Fault> {
        let state: Self = serde_dynamo::from_item(item.clone())?;
        Ok(Self { progress: serde_dynamo::from_item(item.clone())?, ..state })
    }
}
