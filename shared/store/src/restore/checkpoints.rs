//! The checkpoints of counted stream shards, which only a restore reads as a whole and forgets.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::counters::checkpoint::{CONSUMER, checkpoint_key};
use crate::error::{StoreError, failed};
use crate::item::text_of;
use crate::key::checkpoint_partition;
use crate::store::Store;

impl Store {
    /// Whether the hot table has a stream.
    pub async fn has_stream(&self) -> Result<bool, StoreError> {
        let describe = self.client.describe_table().table_name(&self.tables.payments);
        let table = describe.send().await.map_err(failed("DescribeTable"))?.table;
        let stream = table.and_then(|table| table.stream_specification);
        Ok(stream.is_some_and(|stream| stream.stream_enabled))
    }

    /// Returns the stream shards with counted records: 1 read unit per 4 KB, about 20 of them.
    pub async fn checkpoints(&self) -> Result<Vec<String>, StoreError> {
        let (mut shards, mut after) = (Vec::new(), None);
        loop {
            let query = self
                .client
                .query()
                .table_name(&self.tables.payments)
                .key_condition_expression("pk = :pk")
                .expression_attribute_values(":pk", AttributeValue::S(checkpoint_partition(CONSUMER)))
                .set_exclusive_start_key(after)
                .consistent_read(true);
            let answer = query.send().await.map_err(failed("Query"))?;
            let items = answer.items.unwrap_or_default();
            shards.extend(items.iter().map(|item| text_of(item, "sk").to_owned()));
            after = answer.last_evaluated_key;
            if after.is_none() {
                return Ok(shards);
            }
        }
    }

    /// Forgets the checkpoint of a stream shard: 1 write unit. Only for a stream that nobody reads any more.
    pub async fn drop_checkpoint(&self, stream_shard: &str) -> Result<(), StoreError> {
        let delete =
            self.client.delete_item().table_name(&self.tables.payments).set_key(Some(checkpoint_key(stream_shard)));
        delete.send().await.map(drop).map_err(failed("DeleteItem"))
    }
}
