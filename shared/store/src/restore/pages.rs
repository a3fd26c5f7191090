//! Pages that only a restore reads: payments that ended, dates with payments, and all details.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{BusinessDate, Details, DuePayment, HeadKey, Shard, Status, UtcSecond};

use crate::error::{StoreError, failed};
use crate::index::due::{DUE_KEYS, due_of};
use crate::item::{Item, text_of};
use crate::key::DETAILS_SORT;
use crate::key::due::{DueSort, due_payment};
use crate::payment::details_item::decode_details;
use crate::payment::head_item::head_key_of;
use crate::store::Store;

/// The index entries that one query reads: 300 KB.
const PAGE: i32 = 1_000;

/// The end of a page, as DynamoDB's own key.
#[derive(Debug, Clone, PartialEq)]
pub struct PageEnd(Item);

/// A page of payments that ended.
#[derive(Debug)]
pub struct EndedPage {
    /// The keys of their heads, and their due times. An unreadable one does not hide the others.
    pub heads: Vec<Result<(HeadKey, DuePayment), StoreError>>,
    /// The start of the next page, if there may be more.
    pub end: Option<PageEnd>,
}

/// A page of details.
#[derive(Debug)]
pub struct DetailsPage {
    /// The details. Unreadable ones do not hide the others.
    pub details: Vec<Result<Details, StoreError>>,
    /// The start of the next page, if there may be more.
    pub end: Option<PageEnd>,
}

impl Store {
    /// Returns a page of the heads in history that have this status, are due from a date on, and were not settled
    /// before an instant: half a read unit per 4 KB of the entries from that date on.
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

    /// Returns a page of one of `segments` parts of history with the details that were accepted
    /// since an instant: half a read unit for each 4 KB of the whole table, so it takes hours and
    /// costs as much as reading it. Functions must not call it.
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
