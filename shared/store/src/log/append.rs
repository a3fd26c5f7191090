//! Appending: a segment is put and the log's head moves, in the transaction of the commit that the events come from.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use payments_model::UtcSecond;

use super::{LogHead, log_key, number, segment};
use crate::conditional::equations;
use crate::{Item, Store, StoreError};

impl Store {
    /// The actions that append events to the log: 2 write units for each KB of the compressed segment, and 2 for the log's head.
    pub(crate) fn append_to_log(
        &self,
        head: &LogHead,
        events: &[String],
        now: UtcSecond,
    ) -> Result<[Result<TransactWriteItem, BuildError>; 2], StoreError> {
        let put = self.put_segment(segment::segment_of(head.epoch, head.next, events, now));
        let update = self.move_log_head(head, &head.after_append(now).item()?);
        Ok([
            put.map(|put| TransactWriteItem::builder().put(put).build()),
            update.map(|update| TransactWriteItem::builder().update(update).build()),
        ])
    }

    fn put_segment(&self, segment: Item) -> Result<Put, BuildError> {
        Put::builder()
            .table_name(&self.tables.log)
            .set_item(Some(segment))
            .condition_expression("attribute_not_exists(pk)")
            .build()
    }

    /// Moves the log's head from `from`, as it was read. Attributes that this version does not know stay.
    fn move_log_head(&self, from: &LogHead, to: &Item) -> Result<Update, BuildError> {
        let (assignments, names, values) = equations(to, ", ");
        let update = Update::builder()
            .table_name(&self.tables.log)
            .set_key(Some(log_key()))
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        if *from == LogHead::first(&from.source) {
            return update.condition_expression("attribute_not_exists(pk)").build();
        }
        update
            .condition_expression("#epoch = :epoch AND #next = :next AND #source = :source")
            .expression_attribute_names("#epoch", "epoch")
            .expression_attribute_names("#next", "next")
            .expression_attribute_names("#source", "source")
            .expression_attribute_values(":epoch", number(from.epoch))
            .expression_attribute_values(":next", number(from.next))
            .expression_attribute_values(":source", AttributeValue::S(from.source.clone()))
            .build()
    }
}
