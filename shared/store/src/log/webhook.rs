//! The consumer of a webhook endpoint: how far its events were delivered, by whom, and what went wrong.
//!
//! Taking the lease, renewing it and committing are one conditional write each. A lease is a number that rises each time the consumer is
//! taken, and each time an operator changes the endpoint: who has a lower one writes nothing any more. Each side writes its own attributes,
//! so neither takes back what the other one wrote:
//!
//! | attributes | written by |
//! |---|---|
//! | `leaseUntil`, `heldAs` (the number with which the lease was taken), and those of [`Progress`] | `publish` |
//! | `skipped`, `testAt` | the API |
//! | `lease`, which only rises | both |
//! | `position`, `disabledAt`, `disabledBy` | both, under conditions |
//!
//! A place is one of this log, so it is lost or restored with it. What an operator chose is in the endpoint, and is not.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use payments_model::webhook::EndpointId;
use payments_model::{Actor, UtcSecond};
use serde::{Deserialize, Serialize};

use super::consumer::{WEBHOOK, webhook_key};
use super::{LogPosition, as_text, number, text};
use crate::attributes::Fault;
use crate::conditional::{conditional, equations};
use crate::item::{key_of, text_of};
use crate::{Item, Store, StoreError};

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

/// The attributes of [`Progress`] that can be absent.
const ABSENT: [&str; 5] = ["failingSince", "nextTryAt", "blocking", "lastError", "missed"];

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

    fn parse(item: &Item) -> Result<Self, Fault> {
        let state: Self = serde_dynamo::from_item(item.clone())?;
        Ok(Self { progress: serde_dynamo::from_item(item.clone())?, ..state })
    }
}

impl Store {
    /// Takes an endpoint's consumer until `until`, if [`can_be_taken`](WebhookState::can_be_taken): 1 write unit for each KB. Returns its
    /// state, with the number of the lease. If the reply is lost, nobody has it until then.
    pub async fn take_webhook(
        &self,
        id: &EndpointId,
        now: UtcSecond,
        until: UtcSecond,
    ) -> Result<Option<WebhookState>, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(leaseUntil) OR leaseUntil <= :now) \
                 AND (attribute_exists(testAt) OR (attribute_not_exists(disabledAt) \
                 AND (attribute_not_exists(nextTryAt) OR nextTryAt <= :now)))",
            )
            .update_expression("SET leaseUntil = :until, heldAs = lease + :one ADD lease :one")
            .expression_attribute_values(":now", text(now))
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":one", number(1))
            .return_values(ReturnValue::AllNew);
        match conditional("UpdateItem", update.send().await)? {
            Ok(taken) => self.parse_webhook_state(taken.attributes.unwrap_or_default()).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Writes what a run did, if it still has the lease of `taken` and the place is still that one: 1 write unit for each KB. Returns the
    /// state afterwards; none if another run has the lease, or an operator moved the place. Attributes that this version does not know stay.
    pub async fn commit_webhook(
        &self,
        id: &EndpointId,
        taken: &WebhookState,
        commit: &WebhookCommit<'_>,
    ) -> Result<Option<WebhookState>, StoreError> {
        let item = serde_dynamo::to_item(commit.progress);
        let mut item: Item = item.map_err(|error| StoreError::unreadable(&self.tables.log, "(new)", error))?;
        let mut removed: Vec<&str> = ABSENT.into_iter().filter(|name| !item.contains_key(*name)).collect();
        item.insert("position".to_owned(), AttributeValue::S(commit.to.to_string()));
        match commit.lease_until {
            Some(until) => drop(item.insert("leaseUntil".to_owned(), text(until))),
            None => removed.extend(["leaseUntil", "heldAs"]),
        }
        let (assignments, mut names, mut values) = equations(&item, ", ");
        let mut expression = format!("SET {assignments}");
        if let Some((by, at)) = commit.disabled {
            expression.push_str(
                ", disabledAt = if_not_exists(disabledAt, :disabledAt), \
                 disabledBy = if_not_exists(disabledBy, :disabledBy)",
            );
            values.insert(":disabledAt".to_owned(), text(at));
            values.insert(":disabledBy".to_owned(), AttributeValue::S(by.as_str().to_owned()));
        }
        if !removed.is_empty() {
            expression = format!("{expression} REMOVE {}", removed.join(", "));
        }
        names.insert("#from".to_owned(), "position".to_owned());
        values.insert(":from".to_owned(), AttributeValue::S(taken.position.to_string()));
        values.insert(":lease".to_owned(), number(taken.lease));
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("lease = :lease AND #from = :from")
            .update_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match conditional("UpdateItem", update.send().await)? {
            Ok(written) => self.parse_webhook_state(written.attributes.unwrap_or_default()).map(Some),
            // A call whose reply was lost has written it.
            Err(Some(existing)) => {
                let found = self.parse_webhook_state(existing)?;
                let is_done =
                    found.lease == taken.lease && found.position == commit.to && found.progress == *commit.progress;
                Ok(is_done.then_some(found))
            }
            Err(None) => Ok(None),
        }
    }

    /// Ends a lease that was taken with this number, and sends nothing any more: 1 write unit for each KB. It may have another number since an
    /// operator changed the endpoint, and nobody can take it before it ends.
    pub async fn release_webhook(&self, id: &EndpointId, lease: u64) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("heldAs = :lease")
            .update_expression("REMOVE leaseUntil, heldAs")
            .expression_attribute_values(":lease", number(lease));
        conditional("UpdateItem", update.send().await).map(drop)
    }

    /// Notes that the test for which an operator asked was sent: 1 write unit for each KB.
    pub async fn finish_webhook_test(
        &self,
        id: &EndpointId,
        taken: &WebhookState,
        progress: &Progress,
    ) -> Result<(), StoreError> {
        let Some(test_at) = taken.test_at else { return Ok(()) };
        let item = serde_dynamo::to_item(progress);
        let item: Item = item.map_err(|error| StoreError::unreadable(&self.tables.log, "(new)", error))?;
        let deliveries = item.get("deliveries").cloned().unwrap_or_else(|| AttributeValue::L(Vec::new()));
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("lease = :lease AND testAt = :test")
            .update_expression("SET deliveries = :deliveries REMOVE testAt")
            .expression_attribute_values(":lease", number(taken.lease))
            .expression_attribute_values(":test", text(test_at))
            .expression_attribute_values(":deliveries", deliveries);
        conditional("UpdateItem", update.send().await).map(drop)
    }

    /// Returns the states of all endpoints' consumers by the endpoints' ids, strongly consistent: 1 read unit for each 4 KB. One that cannot
    /// be read is an error in its place, and keeps nobody from the others.
    pub async fn webhook_states(&self) -> Result<HashMap<String, Result<WebhookState, StoreError>>, StoreError> {
        let mut states = HashMap::new();
        for item in self.webhook_items().await? {
            let id = text_of(&item, "sk").strip_prefix(WEBHOOK).unwrap_or_default().to_owned();
            states.insert(id, self.parse_webhook_state(item));
        }
        Ok(states)
    }

    /// Returns the state of an endpoint's consumer, strongly consistent: 1 read unit for each 4 KB.
    pub async fn webhook_state(&self, id: &EndpointId) -> Result<Option<WebhookState>, StoreError> {
        let item = self.get(&self.tables.log, webhook_key(id)).await?;
        item.map(|item| self.parse_webhook_state(item)).transpose()
    }

    pub(super) fn parse_webhook_state(&self, item: Item) -> Result<WebhookState, StoreError> {
        let key = key_of(&item);
        WebhookState::parse(&item).map_err(|fault| StoreError::unreadable(&self.tables.log, key, fault))
    }
}
