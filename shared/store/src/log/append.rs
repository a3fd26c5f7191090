//! Appends events: a segment is put and the log's head moves, in the transaction of the events' commit.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use payments_model::UtcSecond;

use crate::conditional::{conditional, equations};
use crate::error::StoreError;
use crate::item::{Item, number, text};
use crate::log::head::{LogHead, Missed, log_key};
use crate::log::segment;
use crate::store::Store;

/// The most tries to note a loss, if other writers note one at the same moment.
const MAX_NOTES: usize = 20;

impl Store {
    /// The actions that append events to the log: 2 write units for each KB of the compressed segment, and 2 for the log's head.
    pub(crate) fn append_to_log(
        &self,
        head: &LogHead,
        events: &[String],
        now: UtcSecond,
    ) -> Result<[Result<TransactWriteItem, BuildError>; 2], StoreError> {
        self.append_as(head, head, events, now)
    }

    /// The actions that append events to the log as the next segment of `next`, if the log's head is `head`.
    pub(super) fn append_as(
        &self,
        head: &LogHead,
        next: &LogHead,
        events: &[String],
        now: UtcSecond,
    ) -> Result<[Result<TransactWriteItem, BuildError>; 2], StoreError> {
        let put = self.put_segment(segment::segment_of(next.epoch, next.next, events, now));
        let update = self.move_log_head(head, &next.after_append(now).item()?);
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
    pub(super) fn move_log_head(&self, from: &LogHead, to: &Item) -> Result<Update, BuildError> {
        let (assignments, mut names, mut values) = equations(to, ", ");
        let key = |name: &str| (format!("#{name}"), format!(":{name}"));
        let is_told = from.missed.is_some() && !to.contains_key("missedUntil");
        let removal = if is_told { " REMOVE missedSince, missedUntil" } else { "" };
        let condition = if from.is_unwritten() {
            "attribute_not_exists(pk)"
        } else {
            for (name, value) in [
                ("epoch", number(from.epoch)),
                ("next", number(from.next)),
                ("source", AttributeValue::S(from.source.clone())),
            ] {
                names.insert(key(name).0, name.to_owned());
                values.insert(key(name).1, value);
            }
            match from.missed {
                None => "#epoch = :epoch AND #next = :next AND #source = :source AND attribute_not_exists(missedUntil)",
                Some(missed) => {
                    values.insert(":until".to_owned(), text(missed.until));
                    "#epoch = :epoch AND #next = :next AND #source = :source AND missedUntil = :until"
                }
            }
        };
        Update::builder()
            .table_name(&self.tables.log)
            .set_key(Some(log_key()))
            .update_expression(format!("SET {assignments}{removal}"))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .build()
    }

    /// Notes a loss in the head of the log, if there is one: 1 read unit, and if there is a head 1
    /// write unit. The next append reports it in the log.
    pub async fn note_missed(&self, missed: Missed) -> Result<(), StoreError> {
        for _ in 0..MAX_NOTES {
            if self.try_to_note(missed).await? {
                return Ok(());
            }
        }
        let source = "others noted something at each try".into();
        Err(StoreError::Throttled { operation: "UpdateItem", source })
    }

    /// Returns whether no other writer noted a loss meanwhile.
    async fn try_to_note(&self, missed: Missed) -> Result<bool, StoreError> {
        let Some(head) = self.log_head().await? else { return Ok(true) };
        let (mut since, mut until) = (missed.since, missed.until);
        if let Some(before) = head.missed {
            (since, until) = (since.zip(before.since).map(|(one, other)| one.min(other)), until.max(before.until));
        }
        let update = self.client.update_item().table_name(&self.tables.log).set_key(Some(log_key()));
        let update = match since {
            Some(since) => update
                .update_expression("SET missedUntil = :until, missedSince = :since")
                .expression_attribute_values(":since", text(since)),
            None => update.update_expression("SET missedUntil = :until REMOVE missedSince"),
        };
        let same = |name: &str, value: Option<UtcSecond>| match value {
            Some(_) => format!("{name} = :{name}"),
            None => format!("attribute_not_exists({name})"),
        };
        let known = [
            ("missedSince", head.missed.and_then(|before| before.since)),
            ("missedUntil", head.missed.map(|before| before.until)),
        ];
        let mut update = update
            .condition_expression(format!(
                "attribute_exists(pk) AND {}",
                known.map(|(name, value)| same(name, value)).join(" AND ")
            ))
            .expression_attribute_values(":until", text(until));
        for (name, value) in known {
            if let Some(value) = value {
                update = update.expression_attribute_values(format!(":{name}"), text(value));
            }
        }
        Ok(conditional("UpdateItem", update.send().await)?.is_ok())
    }
}
