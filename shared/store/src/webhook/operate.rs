//! Actions of operators on the deliveries of a webhook endpoint, and the start of its consumer after a loss of the log.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, Update};
use payments_model::UtcSecond;
use payments_model::webhook::EndpointId;

use crate::conditional::conditional;
use crate::error::StoreError;
use crate::item::{Item, number, text};
use crate::log::consumer::{first_lease, webhook_key};
use crate::log::head::LogHead;
use crate::log::position::LogPosition;
use crate::store::Store;
use crate::webhook::endpoint::{FORGIVEN, actions, endpoint_key};
use crate::webhook::state::{BlockingEvent, REMEMBERED, SkippedEvent, WebhookState};

/// The result of enabling an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnableWebhook {
    /// The endpoint is enabled.
    Done,
    /// The endpoint does not exist.
    Missing,
    /// The endpoint has another place or another version, or no place. Nothing was written.
    Elsewhere,
}

impl WebhookState {
    /// The state of an endpoint whose consumer a restore of the log lost: it begins where the log's readers continue.
    #[must_use]
    pub fn after_loss(head: Option<&LogHead>, now: UtcSecond) -> Self {
        Self::new(head.map_or(LogPosition::BEGINNING, |head| head.start_after_loss(now)))
    }
}

impl Store {
    /// Creates the consumer of an endpoint after a restore of the log lost it: 1 write unit. It
    /// begins where the log's readers continue. Returns its state, or that of an existing one.
    pub async fn begin_webhook(
        &self,
        id: &EndpointId,
        head: Option<&LogHead>,
        now: UtcSecond,
    ) -> Result<WebhookState, StoreError> {
        let from = WebhookState::after_loss(head, now).position;
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("attribute_not_exists(pk)")
            .update_expression("SET #position = :from, lease = :lease, version = :lease")
            .expression_attribute_names("#position", "position")
            .expression_attribute_values(":from", AttributeValue::S(from.to_string()))
            .expression_attribute_values(":lease", number(first_lease(now.as_chrono())))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let state = match conditional("UpdateItem", update.send().await)? {
            Ok(begun) => begun.attributes,
            // Another call was faster.
            Err(existing) => existing,
        };
        self.parse_webhook_state(state.unwrap_or_default())
    }

    /// Enables an endpoint that is at a place and has the version that an operator saw, which stays: at least 4 write
    /// units. It is tried at once, and continues from there. Attributes that this version does not know stay.
    pub async fn enable_webhook(
        &self,
        id: &EndpointId,
        (place, seen): (LogPosition, u64),
        now: UtcSecond,
    ) -> Result<EnableWebhook, StoreError> {
        let endpoint = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(endpoint_key(id)))
            .condition_expression("attribute_exists(pk)")
            .update_expression("SET updatedAt = :now REMOVE disabledAt")
            .expression_attribute_values(":now", text(now))
            .build();
        let consumer = Update::builder()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("#position = :place AND version = :seen")
            .update_expression(format!("{FORGIVEN}ADD lease :one"))
            .expression_attribute_names("#position", "position")
            .expression_attribute_values(":place", AttributeValue::S(place.to_string()))
            .expression_attribute_values(":seen", number(seen))
            .expression_attribute_values(":one", number(1))
            .build();
        Ok(match self.transact(actions([endpoint, consumer])).await? {
            Ok(()) => EnableWebhook::Done,
            Err(0) => EnableWebhook::Missing,
            Err(_) => EnableWebhook::Elsewhere,
        })
    }

    /// Moves an endpoint to a place, back or ahead: 1 write unit for each KB. Returns whether the endpoint exists, with
    /// the version that an operator saw, if one did. A run that is delivering can no longer write, unless the place is
    /// the same.
    pub async fn replay_webhook(
        &self,
        id: &EndpointId,
        from: LogPosition,
        seen: Option<u64>,
    ) -> Result<bool, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .update_expression("SET #position = :from REMOVE blocking, failures, failingSince, nextTryAt")
            .expression_attribute_names("#position", "position")
            .expression_attribute_values(":from", AttributeValue::S(from.to_string()));
        Ok(conditional("UpdateItem", as_seen(update, "attribute_exists(pk)", seen).send().await)?.is_ok())
    }

    /// Moves an endpoint over the event that it does not accept, if the place is still that of `found` and the version
    /// the one that an operator saw, if one did, and notes the operator: 1 write unit for each KB. Returns whether it
    /// was moved.
    pub async fn skip_webhook_event(
        &self,
        id: &EndpointId,
        found: &WebhookState,
        blocking: &BlockingEvent,
        skipped: SkippedEvent,
        seen: Option<u64>,
    ) -> Result<bool, StoreError> {
        let mut all = found.skipped.clone();
        all.insert(0, skipped);
        all.truncate(REMEMBERED);
        let all = serde_dynamo::to_attribute_value(&all);
        let all: AttributeValue = all.map_err(|error| StoreError::unreadable(&self.tables.log, "(new)", error))?;
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .update_expression("SET #position = :to, skipped = :all REMOVE blocking, failures, failingSince, nextTryAt")
            .expression_attribute_names("#position", "position")
            .expression_attribute_values(":from", AttributeValue::S(found.position.to_string()))
            .expression_attribute_values(":to", AttributeValue::S(blocking.after.to_string()))
            .expression_attribute_values(":all", all.clone())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        // A call whose reply was lost has written it.
        let is_same = |existing: &Item| existing.get("skipped") == Some(&all);
        match conditional("UpdateItem", as_seen(update, "#position = :from", seen).send().await)? {
            Ok(_) => Ok(true),
            Err(existing) => Ok(existing.as_ref().is_some_and(is_same)),
        }
    }

    /// Asks for a test of an endpoint, which the next run sends: 1 write unit for each KB. Returns whether the endpoint
    /// exists, with the version that an operator saw, if one did.
    pub async fn ask_webhook_test(
        &self,
        id: &EndpointId,
        now: UtcSecond,
        seen: Option<u64>,
    ) -> Result<bool, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .update_expression("SET testAt = :now")
            .expression_attribute_values(":now", text(now));
        Ok(conditional("UpdateItem", as_seen(update, "attribute_exists(pk)", seen).send().await)?.is_ok())
    }
}

/// Adds a condition, and the one that the endpoint has the version that an operator saw, if one did.
fn as_seen(update: UpdateItemFluentBuilder, condition: &str, seen: Option<u64>) -> UpdateItemFluentBuilder {
    let Some(seen) = seen else { return update.condition_expression(condition) };
    let update = update.condition_expression(format!("{condition} AND version = :seen"));
    update.expression_attribute_values(":seen", number(seen))
}
