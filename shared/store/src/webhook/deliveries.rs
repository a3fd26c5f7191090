//! The deliveries to a webhook endpoint: one run at a time takes its consumer, renews, commits and releases it.
//!
//! Taking the lease, renewing it and committing are one conditional write each. A lease is a number that rises each
//! time the consumer is taken, and each time an operator changes the endpoint: the holder of an older lease can no
//! longer write. Each side writes its own attributes, so neither reverts a write of the other:
//!
//! | attributes | written by |
//! |---|---|
//! | `leaseUntil`, `heldAs` (the number with which the lease was taken), and those of [`Progress`] | `publish` |
//! | `skipped`, `testAt`, `version` (of the endpoint's settings, which only rises) | the API |
//! | `lease`, which only rises | both |
//! | `position`, `disabledAt`, `disabledBy` | both, under conditions |
//!
//! A place belongs to this log, so it is lost or restored with it. The operator's settings are in
//! the endpoint, and are not.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use payments_model::UtcSecond;
use payments_model::webhook::EndpointId;

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Item, key_of, number, text, text_of};
use crate::log::consumer::{WEBHOOK, webhook_key};
use crate::store::Store;
use crate::webhook::state::{Progress, WebhookCommit, WebhookState};

/// The attributes of [`Progress`] that can be absent.
const ABSENT: [&str; 5] = ["failingSince", "nextTryAt", "blocking", "lastError", "missed"];

impl Store {
    /// Takes an endpoint's consumer until `until`, if [`can_be_taken`](WebhookState::can_be_taken):
    /// 1 write unit for each KB. Returns its state, with the number of the lease. If the reply is
    /// lost, no run has the consumer until then.
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
                // Test: a_lease_is_one_runs_alone_until_it_ends
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

    /// Writes the result of a run, if it still has the lease of `taken` and the place is still that
    /// one: 1 write unit for each KB. Returns the state afterwards; `None` if another run has the
    /// lease, or an operator moved the place. Attributes that this version does not know stay.
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
            // Test: a_replay_is_not_undone_by_a_run_that_delivers
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

    /// Ends a lease that was taken with this number, after which the run sends nothing more: 1 write unit for each KB.
    /// The lease may have another number since an operator changed the endpoint, and cannot be taken before it ends.
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

    /// Notes that the test that an operator asked for was sent: 1 write unit for each KB.
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

    /// Returns the states of all endpoints' consumers by the endpoints' ids, strongly consistent: 1 read unit for each
    /// 4 KB. An unreadable state is an error in its place, and does not hide the others.
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
