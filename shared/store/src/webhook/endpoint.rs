//! Webhook endpoints: the settings of their operators. The position of each in the log is in the endpoint's consumer.
//!
//! | item | table | pk | sk |
//! |---|---|---|---|
//! | endpoint | `payment-history` | `WEBHOOK#ENDPOINTS` | its id |
//! | number of endpoints that were created | `payment-history` | `WEBHOOK#ENDPOINTS` | `#CREATED` |
//! | consumer | `payments-log` | `LOG#CONSUMERS` | `webhook#` and the id |
//!
//! An endpoint and its consumer are created and deleted in one transaction. A restore can lose one
//! of them. A consumer without an endpoint gets nothing. An endpoint without a consumer gets a new
//! one, which begins where the restored log's readers continue ([`LogHead::start_after_loss`]).
//!
//! The number of created endpoints orders creates, so that concurrent ones do not exceed [`MAX_ENDPOINTS`]. A create
//! counts the endpoints, and raises the number in the same transaction, on condition that it is as before the count.
//! Nothing else depends on the number, so it cannot be wrong.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, TransactWriteItem, Update};
use chrono::{DateTime, Utc};
use payments_model::event_filter::{event_type, status_of_type};
use payments_model::webhook::{EndpointId, EndpointUrl, SecretGeneration};
use payments_model::{EventFilter, UtcSecond};
use serde::Deserialize;

use crate::conditional::{conditional, is_conflict_from};
use crate::error::StoreError;
use crate::item::{Fault, Item, item_key, key_of, number, text, text_of};
use crate::key::webhook_partition;
use crate::log::consumer::{first_lease, webhook_key};
use crate::log::position::LogPosition;
use crate::store::Store;
use crate::webhook::state::{DisabledBy, WebhookState};

/// The end of the partition key of endpoints.
pub(crate) const ENDPOINTS: &str = "ENDPOINTS";

/// The sort key of the number of created endpoints. It sorts before all ids.
pub(crate) const CREATED: &str = "#CREATED";

/// The most endpoints. `publish` serves them at the same time: 20 with 8 bodies of 256 KB are 40 MB.
pub const MAX_ENDPOINTS: usize = 20;

/// The result of creating an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateEndpoint {
    /// The endpoint is new.
    Created,
    /// An endpoint with this id exists. Nothing was written.
    Existing,
    /// Another endpoint was created since the endpoints were counted. Nothing was written.
    Overtaken,
}

/// The number of created endpoints, as it is stored.
#[derive(Debug, Clone)]
pub struct EndpointsCreated(Option<AttributeValue>);

/// A webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    /// The id, which its operator chose.
    pub id: EndpointId,
    /// The settings of its operator.
    pub chosen: EndpointChoice,
    /// The generation of its secret.
    pub generation: SecretGeneration,
    /// The end of the time in which the generation before also signs.
    pub previous_until: Option<UtcSecond>,
    /// The time of its creation.
    pub created_at: UtcSecond,
    /// The time of its operator's last change.
    pub updated_at: UtcSecond,
    /// The time at which its operator switched it off.
    pub disabled_at: Option<UtcSecond>,
}

/// The settings that an operator chooses for an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointChoice {
    /// The target of the bodies.
    pub url: EndpointUrl,
    /// The operator's description; empty if there is none.
    pub description: String,
    /// The filter of the events.
    pub filter: EventFilter,
}

/// The attributes of an endpoint.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointItem {
    sk: String,
    url: String,
    description: String,
    types: Vec<String>,
    accounts: Vec<String>,
    generation: u32,
    previous_until: Option<String>,
    created_at: String,
    updated_at: String,
    disabled_at: Option<String>,
}

impl WebhookEndpoint {
    /// The generations of the secret that sign at `now`, the newest first.
    pub fn signing(&self, now: UtcSecond) -> impl Iterator<Item = SecretGeneration> {
        let previous = self.generation.previous().filter(|_| self.previous_until.is_some_and(|until| until > now));
        [self.generation].into_iter().chain(previous)
    }

    /// The reason why the endpoint is off, and since when: its operator, or `publish`, as its consumer's state says.
    #[must_use]
    pub fn disabled(&self, state: &WebhookState) -> Option<(DisabledBy, UtcSecond)> {
        self.disabled_at.map(|at| (DisabledBy::Operator, at)).or(state.disabled_by.zip(state.disabled_at))
    }

    fn parse(item: Item) -> Result<Self, Fault> {
        let item: EndpointItem = serde_dynamo::from_item(item)?;
        let statuses = item.types.iter().map(|kind| status_of_type(kind)).collect::<Result<_, _>>()?;
        let accounts = item.accounts.iter().map(|account| account.parse()).collect::<Result<_, _>>()?;
        Ok(Self {
            id: item.sk.parse()?,
            chosen: EndpointChoice {
                url: EndpointUrl::from_stored(&item.url)?,
                description: item.description,
                filter: EventFilter { statuses, accounts },
            },
            generation: SecretGeneration::from_stored(item.generation).ok_or("a generation is at least 1")?,
            previous_until: item.previous_until.map(|until| until.parse()).transpose()?,
            created_at: item.created_at.parse()?,
            updated_at: item.updated_at.parse()?,
            disabled_at: item.disabled_at.map(|at| at.parse()).transpose()?,
        })
    }
}

impl EndpointChoice {
    /// The values of an update that sets all settings, under the names in [`SET_CHOICE`].
    fn values(&self, now: UtcSecond) -> HashMap<String, AttributeValue> {
        let plain = |text: &str| AttributeValue::S(text.to_owned());
        let list = |texts: Vec<String>| AttributeValue::L(texts.into_iter().map(AttributeValue::S).collect());
        let types = self.filter.statuses.iter().map(|status| event_type(*status)).collect();
        let accounts = self.filter.accounts.iter().map(ToString::to_string).collect();
        [
            (":url", plain(self.url.as_str())),
            (":description", plain(&self.description)),
            (":types", list(types)),
            (":accounts", list(accounts)),
            (":now", text(now)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

const SET_CHOICE: &str =
    "SET #url = :url, description = :description, #types = :types, accounts = :accounts, updatedAt = :now";

/// The update of a consumer that is switched on, so that the next run tries it at once.
pub(super) const FORGIVEN: &str = "REMOVE disabledAt, disabledBy, failures, failingSince, nextTryAt ";

impl Store {
    /// Returns all endpoints by their ids, strongly consistent: 1 read unit for each 4 KB. An
    /// unreadable endpoint is an error in its place, and does not hide the others.
    pub async fn webhook_endpoints(&self) -> Result<BTreeMap<String, Result<WebhookEndpoint, StoreError>>, StoreError> {
        let items = self.items_between(&self.tables.history, webhook_partition(ENDPOINTS), "-", "~").await?;
        Ok(items.into_iter().map(|item| (text_of(&item, "sk").to_owned(), self.parse_endpoint(item))).collect())
    }

    /// Returns an endpoint, strongly consistent: 1 read unit for each 4 KB.
    pub async fn webhook_endpoint(&self, id: &EndpointId) -> Result<Option<WebhookEndpoint>, StoreError> {
        let item = self.get(&self.tables.history, endpoint_key(id)).await?;
        item.map(|item| self.parse_endpoint(item)).transpose()
    }

    /// Returns the number of created endpoints, strongly consistent: 1 read unit.
    pub async fn endpoints_created(&self) -> Result<EndpointsCreated, StoreError> {
        let created = self.get(&self.tables.history, created_key()).await?;
        Ok(EndpointsCreated(created.and_then(|mut created| created.remove("created"))))
    }

    /// Creates an endpoint whose consumer begins at a place, unless its id exists: at least 6 write units. `created`
    /// was read before its caller counted the endpoints. `disabled` creates it switched off.
    pub async fn create_webhook_endpoint(
        &self,
        id: &EndpointId,
        chosen: &EndpointChoice,
        from: LogPosition,
        disabled: bool,
        instant: DateTime<Utc>,
        EndpointsCreated(created): EndpointsCreated,
    ) -> Result<CreateEndpoint, StoreError> {
        let now = UtcSecond::new(instant).unwrap_or(UtcSecond::MAX);
        let off = if disabled { ", disabledAt = :now" } else { "" };
        let endpoint = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(endpoint_key(id)))
            .condition_expression("attribute_not_exists(pk)")
            .update_expression(format!("{SET_CHOICE}, createdAt = :now, generation = :first{off}"))
            .set_expression_attribute_names(Some(names_of_choice()))
            .set_expression_attribute_values(Some(chosen.values(now)))
            .expression_attribute_values(":first", number(SecretGeneration::FIRST.get()))
            .build();
        // A restore may have brought back the consumer of a deleted endpoint.
        let consumer = Update::builder()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .update_expression(format!(
                "SET #position = :from, lease = :lease, version = :lease REMOVE {}",
                WebhookState::MEMORY
            ))
            .expression_attribute_names("#position", "position")
            // A run that still has a lease of a deleted endpoint can no longer write here.
            .expression_attribute_values(":lease", number(first_lease(instant)))
            .expression_attribute_values(":from", AttributeValue::S(from.to_string()));
        let counted = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(created_key()))
            .update_expression("ADD created :one")
            .expression_attribute_values(":one", number(1));
        let counted = match created {
            None => counted.condition_expression("attribute_not_exists(created)"),
            Some(seen) => counted.condition_expression("created = :seen").expression_attribute_values(":seen", seen),
        };
        match self.transact(actions([endpoint, consumer.build(), counted.build()])).await {
            Ok(Ok(())) => Ok(CreateEndpoint::Created),
            Ok(Err(0)) => Ok(CreateEndpoint::Existing),
            Ok(Err(_)) => Ok(CreateEndpoint::Overtaken),
            Err(error) if is_conflict_from(&error, 2) => Ok(CreateEndpoint::Overtaken),
            Err(error) => Err(error),
        }
    }

    /// Changes an endpoint, and switches it on or off: at least 4 write units. Returns whether the
    /// endpoint exists and has a consumer. Attributes that this version does not know stay.
    ///
    /// An endpoint that is switched on is tried at once. A run that still delivers by the old settings can no longer
    /// write, and stops. It keeps its lease until it has its answers, so that no other run sends meanwhile.
    pub async fn change_webhook_endpoint(
        &self,
        id: &EndpointId,
        chosen: &EndpointChoice,
        disabled: bool,
        now: UtcSecond,
    ) -> Result<bool, StoreError> {
        let off = if disabled { ", disabledAt = if_not_exists(disabledAt, :now)" } else { " REMOVE disabledAt" };
        let endpoint = Update::builder()
            .table_name(&self.tables.history)
            .set_key(Some(endpoint_key(id)))
            .condition_expression("attribute_exists(pk)")
            .update_expression(format!("{SET_CHOICE}{off}"))
            .set_expression_attribute_names(Some(names_of_choice()))
            .set_expression_attribute_values(Some(chosen.values(now)))
            .build();
        let forgiven = if disabled { "" } else { FORGIVEN };
        let consumer = Update::builder()
            .table_name(&self.tables.log)
            .set_key(Some(webhook_key(id)))
            .condition_expression("attribute_exists(pk)")
            .update_expression(format!("{forgiven}ADD lease :one, version :one"))
            .expression_attribute_values(":one", number(1));
        Ok(self.transact(actions([endpoint, consumer.build()])).await?.is_ok())
    }

    /// Deletes an endpoint and its consumer, even if they cannot be read: at least 4 write units.
    /// Returns whether it existed. A run that is delivering can no longer write, and stops.
    pub async fn delete_webhook_endpoint(&self, id: &EndpointId) -> Result<bool, StoreError> {
        let endpoint = Delete::builder()
            .table_name(&self.tables.history)
            .set_key(Some(endpoint_key(id)))
            .condition_expression("attribute_exists(pk)")
            .build();
        let consumer = Delete::builder().table_name(&self.tables.log).set_key(Some(webhook_key(id))).build();
        let action = |delete| TransactWriteItem::builder().delete(delete).build();
        let actions = [endpoint.map(action), consumer.map(action)].into_iter().collect();
        Ok(self.transact(actions).await?.is_ok())
    }

    /// Raises the generation of an endpoint's secret by one, if it is `from`: at least 1 write
    /// unit. The generation before also signs until `until`. Returns whether it was raised.
    pub async fn rotate_webhook_secret(
        &self,
        id: &EndpointId,
        from: SecretGeneration,
        until: UtcSecond,
        now: UtcSecond,
    ) -> Result<bool, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.history)
            .set_key(Some(endpoint_key(id)))
            .condition_expression("generation = :from")
            .update_expression("SET generation = generation + :one, previousUntil = :until, updatedAt = :now")
            .expression_attribute_values(":from", number(from.get()))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":until", text(until))
            .expression_attribute_values(":now", text(now));
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }

    fn parse_endpoint(&self, item: Item) -> Result<WebhookEndpoint, StoreError> {
        let key = key_of(&item);
        WebhookEndpoint::parse(item).map_err(|fault| StoreError::unreadable(&self.tables.history, key, fault))
    }
}

fn names_of_choice() -> HashMap<String, String> {
    [("#url", "url"), ("#types", "types")].map(|(name, attribute)| (name.to_owned(), attribute.to_owned())).into()
}

pub(super) fn actions<const N: usize>(
    updates: [Result<Update, BuildError>; N],
) -> Result<Vec<TransactWriteItem>, BuildError> {
    let action = |update| TransactWriteItem::builder().update(update).build();
    updates.into_iter().map(|update| update.map(action)).collect()
}

pub(super) fn endpoint_key(id: &EndpointId) -> Item {
    item_key(webhook_partition(ENDPOINTS), id.to_string())
}

fn created_key() -> Item {
    item_key(webhook_partition(ENDPOINTS), CREATED.to_owned())
}
