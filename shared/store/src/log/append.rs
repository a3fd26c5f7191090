//! Appending: a segment is put and the log's head moves, in the transaction of the commit that the events come from.

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use payments_model::UtcSecond;

use super::{Log, LogHead, log_key, number, segment};
use crate::StoreError;
use crate::conditional::equations;
use crate::error::incomplete;

/// The most bytes of a segment's events: an item has at most 400 KB, and not every event can be compressed.
pub const MAX_SEGMENT_BYTES: usize = 350 * 1024;

/// One segment to append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogAppend<'a> {
    /// The log.
    pub(crate) log: &'a Log,
    /// Its head, as it was read.
    pub(crate) head: &'a LogHead,
    /// The events, in order: JSON without line breaks, 1 to [`MAX_SEGMENT_BYTES`] bytes with a line break after each.
    pub(crate) events: &'a [String],
}

impl LogAppend<'_> {
    /// The actions of the transaction: 2 write units for each KB of the compressed segment, and 2 for the log's head. Attributes of
    /// the head that this version does not know stay.
    pub(crate) fn actions(&self, now: UtcSecond) -> Result<[TransactWriteItem; 2], StoreError> {
        const OPERATION: &str = "TransactWriteItems";
        let LogHead { epoch, next, .. } = *self.head;
        let put = Put::builder()
            .table_name(&self.log.table)
            .set_item(Some(segment::encode(epoch, next, self.events, now)))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(incomplete(OPERATION))?;
        let (assignments, names, values) = equations(&self.head.after_append(now).item()?, ", ");
        let update = Update::builder()
            .table_name(&self.log.table)
            .set_key(Some(log_key()))
            .update_expression(format!("SET {assignments}"))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values));
        let update = if *self.head == LogHead::first(&self.head.source) {
            update.condition_expression("attribute_not_exists(pk)")
        } else {
            let update = update.condition_expression("#epoch = :epoch AND #next = :next AND #source = :source");
            let update = ["epoch", "next", "source"]
                .into_iter()
                .fold(update, |update, name| update.expression_attribute_names(format!("#{name}"), name));
            update
                .expression_attribute_values(":epoch", number(epoch))
                .expression_attribute_values(":next", number(next))
                .expression_attribute_values(":source", AttributeValue::S(self.head.source.clone()))
        };
        let update = update.build().map_err(incomplete(OPERATION))?;
        Ok([TransactWriteItem::builder().put(put).build(), TransactWriteItem::builder().update(update).build()])
    }
}
