//! Consumers: the position of each in the log.
//!
//! | item | pk | sk | `position` |
//! |---|---|---|---|
//! | consumer | `LOG#CONSUMERS` | `journal`, `webhook#` and an endpoint's id, or `bus#` and an event bus's name | the place up to which it has done its work |

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::{DateTime, Utc};
use payments_model::webhook::EndpointId;

use crate::conditional::conditional;
use crate::error::StoreError;
use crate::item::{Item, item_key, text_of};
use crate::key::log_partition;
use crate::log::position::LogPosition;
use crate::store::Store;

/// The end of the partition key of consumers.
pub(crate) const CONSUMERS: &str = "CONSUMERS";

/// The prefix of the sort keys of endpoints' consumers.
pub(crate) const WEBHOOK: &str = "webhook#";

const POSITION: &str = "position";

impl Store {
    /// Returns the position of a consumer, strongly consistent: 1 read unit. `None` if it has not read yet.
    pub async fn log_consumer(&self, name: &str) -> Result<Option<LogPosition>, StoreError> {
        let Some(item) = self.get(&self.tables.log, consumer_key(name)).await? else { return Ok(None) };
        let position = text_of(&item, POSITION).parse();
        position.map(Some).map_err(|error| StoreError::unreadable(&self.tables.log, format!("consumer {name}"), error))
    }

    /// Returns the consumers of all endpoints, strongly consistent: 1 read unit for each 4 KB.
    pub(crate) async fn webhook_items(&self) -> Result<Vec<Item>, StoreError> {
        self.items_between(&self.tables.log, log_partition(CONSUMERS), WEBHOOK, "webhook#~").await
    }

    /// Moves a consumer, if its position is as it was read: 1 write unit. Returns whether this call
    /// moved it; false also if its reply was lost and the SDK sent it again, since another run may
    /// have moved it to the same place. Attributes that this version does not know stay.
    pub async fn move_log_consumer(
        &self,
        name: &str,
        from: Option<LogPosition>,
        to: LogPosition,
    ) -> Result<bool, StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.tables.log)
            .set_key(Some(consumer_key(name)))
            .update_expression("SET #position = :to")
            .expression_attribute_names("#position", POSITION)
            .expression_attribute_values(":to", AttributeValue::S(to.to_string()));
        let update = match from {
            None => update.condition_expression("attribute_not_exists(#position)"),
            Some(from) => update
                .condition_expression("#position = :from")
                .expression_attribute_values(":from", AttributeValue::S(from.to_string())),
        };
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}

fn consumer_key(name: &str) -> Item {
    item_key(log_partition(CONSUMERS), name.to_owned())
}

/// The key of an endpoint's consumer.
pub(crate) fn webhook_key(id: &EndpointId) -> Item {
    item_key(log_partition(CONSUMERS), format!("{WEBHOOK}{id}"))
}

/// The number before the first lease of a consumer that is created at an instant: its microseconds. An earlier consumer
/// of the same name never reached it, because each change that raised its number took longer than a microsecond.
#[must_use]
pub fn first_lease(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_micros()).unwrap_or_default()
}
