//! What only a restore reads and writes: heads as their events say, and what was counted where.
//!
//! Nobody else writes meanwhile. All the same, each write has a condition: that the item is as it was read. So a step that is repeated
//! changes nothing more.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{
    Amended, AmendmentName, BusinessDate, Details, DuePayment, HeadKey, Shard, Status, Transition, UtcSecond,
};

use crate::archive::{EXPIRES_AT, item_of, whole_item};
use crate::checkpoint::{CONSUMER, checkpoint_key};
use crate::conditional::{conditional, equations};
use crate::details_item::decode_details;
use crate::due::{DUE_KEYS, due_of};
use crate::error::failed;
use crate::insert::AMENDED;
use crate::item::{encode_head, head_key, head_key_of, key_of, text_of};
use crate::key::{DETAILS_SORT, DueSort, UnreportedSort, checkpoint_partition, due_payment};
use crate::settlement::item_after;
use crate::{Item, Store, StoreError, StoredHead};

/// How many entries of an index one query reads: 300 KB.
const PAGE: i32 = 1_000;

/// The end of a page, as DynamoDB's own key.
#[derive(Debug, Clone, PartialEq)]
pub struct PageEnd(Item);

/// A page of payments that ended.
#[derive(Debug)]
pub struct EndedPage {
    /// The keys of their heads, and when they are due. An unreadable one does not hide the others.
    pub heads: Vec<Result<(HeadKey, DuePayment), StoreError>>,
    /// Where the next page begins, if there may be more.
    pub end: Option<PageEnd>,
}

/// A page of details.
#[derive(Debug)]
pub struct DetailsPage {
    /// The details. Unreadable ones do not hide the others.
    pub details: Vec<Result<Details, StoreError>>,
    /// Where the next page begins, if there may be more.
    pub end: Option<PageEnd>,
}

impl StoredHead {
    /// The head after a transition, with its other attributes as they were read. A settled one is as the long-term table has it.
    pub fn moved_by(&self, step: &Transition) -> Result<Self, StoreError> {
        let key = || key_of(&head_key(&self.known().key()));
        let item = item_after(self, step).map_err(|fault| StoreError::unreadable("(none)", key(), fault))?;
        Self::read("(none)", item)
    }

    /// The head after an amendment, with its other attributes as they were read.
    pub fn amended_by(&self, name: AmendmentName, details: &Details, amended: Amended) -> Result<Self, StoreError> {
        let amended = encode_head(&self.known().amended(name, details, amended))?;
        let mut item = whole_item(self);
        for attribute in AMENDED {
            match amended.get(attribute) {
                Some(value) => drop(item.insert(attribute.to_owned(), value.clone())),
                None => drop(item.remove(attribute)),
            }
        }
        Self::read("(none)", item)
    }

    /// A settled head as the long-term table has it, whether it waits for a report or not.
    pub fn in_history_table(&self) -> Result<Self, StoreError> {
        let mut item = item_of(self);
        item.remove("unreported");
        Self::read("(none)", item)
    }

    /// A settled head as the hot table has it while the long-term table has it, too: waiting for a report, or reported and expiring then.
    pub fn in_hot_table(&self, reported_until: Option<UtcSecond>) -> Result<Self, StoreError> {
        let head = self.known();
        let mut item = item_of(self);
        item.remove("unreported");
        match (reported_until, head.settled_at()) {
            (Some(expires), _) => {
                let seconds = expires.as_chrono().timestamp().to_string();
                item.insert(EXPIRES_AT.to_owned(), AttributeValue::N(seconds));
            }
            (None, Some(settled_at)) => {
                let unreported = UnreportedSort { settled_at, payment_id: head.payment_id };
                item.insert("unreported".to_owned(), AttributeValue::S(unreported.to_string()));
            }
            (None, None) => {
                let why = "the payment is not settled, so no report waits for it";
                return Err(StoreError::unreadable("(none)", key_of(&head_key(&head.key())), why));
            }
        }
        Self::read("(none)", item)
    }
}

impl Store {
    /// Puts a head into the hot table in the place of the one that was read, or of none, if that is unchanged: 1 write unit, and up to 2
    /// in `due` and 2 in `unreported`. Returns whether it was.
    pub async fn put_restored_head(&self, read: Option<&StoredHead>, new: &StoredHead) -> Result<bool, StoreError> {
        let put = self.client.put_item().table_name(&self.tables.payments).set_item(Some(whole_item(new)));
        let put = match read.map(|read| equations(&whole_item(read), " AND ")) {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some((condition, names, values)) => put
                .condition_expression(condition)
                .set_expression_attribute_names(Some(names))
                .set_expression_attribute_values(Some(values)),
        };
        Ok(conditional("PutItem", put.send().await)?.is_ok())
    }

    /// Whether the hot table has a stream.
    pub async fn has_stream(&self) -> Result<bool, StoreError> {
        let describe = self.client.describe_table().table_name(&self.tables.payments);
        let table = describe.send().await.map_err(failed("DescribeTable"))?.table;
        let stream = table.and_then(|table| table.stream_specification);
        Ok(stream.is_some_and(|stream| stream.stream_enabled))
    }

    /// Returns the stream shards of which something was counted: 1 read unit per 4 KB, about 20 of them.
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

    /// Forgets what was counted of a stream shard: 1 write unit. Only for a stream that nobody reads any more.
    pub async fn drop_checkpoint(&self, stream_shard: &str) -> Result<(), StoreError> {
        let delete =
            self.client.delete_item().table_name(&self.tables.payments).set_key(Some(checkpoint_key(stream_shard)));
        delete.send().await.map(drop).map_err(failed("DeleteItem"))
    }

    /// Returns a page of the heads in history that have this status, are due from a date on, and were not settled before an instant:
    /// half a read unit per 4 KB of what is due from then on.
    pub async fn ended_page(
        &self,
        shard: Shard,
        status: Status,
        (from, since): (BusinessDate, UtcSecond),
        after: Option<PageEnd>,
    ) -> Result<EndedPage, StoreError> {
        let history = &self.tables.history;
        let range = (DueSort::start_of(status, from), DueSort::end_of(status, BusinessDate::MAX));
        let query = self
            .due_query(history, shard, range)
            .filter_expression("attribute_not_exists(settledAt) OR settledAt >= :since")
            .projection_expression(DUE_KEYS)
            .expression_attribute_values(":since", AttributeValue::S(since.to_string()))
            .set_exclusive_start_key(after.map(|PageEnd(key)| key))
            .limit(PAGE);
        let answer = query.send().await.map_err(failed("Query"))?;
        let entries = answer.items.unwrap_or_default();
        let head = |entry: &Item| {
            let key = head_key_of(history, entry)?;
            let payment = due_payment(&key, text_of(entry, "due"));
            Ok((key, payment))
        };
        let heads = entries.iter().map(head).collect();
        Ok(EndedPage { heads, end: answer.last_evaluated_key.map(PageEnd) })
    }

    /// Returns the first date after `after` for which a shard of either table has payments of a status: half a read unit per table.
    pub async fn next_due_date(
        &self,
        shard: Shard,
        status: Status,
        after: BusinessDate,
    ) -> Result<Option<BusinessDate>, StoreError> {
        let range = || (DueSort::end_of(status, after), DueSort::end_of(status, BusinessDate::MAX));
        let hot = self.first_due_date(&self.tables.payments, shard, range()).await?;
        let history = self.first_due_date(&self.tables.history, shard, range()).await?;
        Ok(hot.into_iter().chain(history).min())
    }

    async fn first_due_date(
        &self,
        table: &str,
        shard: Shard,
        range: (String, String),
    ) -> Result<Option<BusinessDate>, StoreError> {
        let query = self.due_query(table, shard, range).projection_expression(DUE_KEYS).limit(1);
        let answer = query.send().await.map_err(failed("Query"))?;
        answer.items.unwrap_or_default().first().map(|entry| Ok(due_of(table, entry)?.due_date)).transpose()
    }

    /// Returns a page of one of `segments` parts of history with the details that were accepted since an instant: half a read unit
    /// for each 4 KB of the whole table, so it takes hours and costs as much as reading it. No function may call it.
    pub async fn all_details_page(
        &self,
        (segment, segments): (u16, u16),
        since: UtcSecond,
        after: Option<PageEnd>,
    ) -> Result<DetailsPage, StoreError> {
        let history = &self.tables.history;
        let scan = self
            .client
            .scan()
            .table_name(history)
            .segment(segment.into())
            .total_segments(segments.into())
            .filter_expression("sk = :details AND createdAt >= :since")
            .expression_attribute_values(":details", AttributeValue::S(DETAILS_SORT.to_owned()))
            .expression_attribute_values(":since", AttributeValue::S(since.to_string()))
            .set_exclusive_start_key(after.map(|PageEnd(key)| key));
        let answer = scan.send().await.map_err(failed("Scan"))?;
        let details = answer.items.unwrap_or_default().into_iter().map(|item| decode_details(history, item)).collect();
        Ok(DetailsPage { details, end: answer.last_evaluated_key.map(PageEnd) })
    }
}
