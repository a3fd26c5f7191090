//! The `due` index: payments of one shard by status, date and instant, over one table or both.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};
use payments_model::{AccountId, AmountMinor, BusinessDate, Currency, HeadKey, Money, Shard, Status, UtcSecond};
use serde::Deserialize;

use crate::error::failed;
use crate::key::{DueSort, parse_account_partition};
use crate::merge::{Merged, Stretch, merge};
use crate::schema::DUE;
use crate::{Item, Store, StoreError};

/// A payment as the `due` index shows it: eventually, and without what only its head has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// Whose payment.
    pub account: AccountId,
    /// Its status, date, instant and id.
    pub due: DueSort,
    /// Who is paid.
    pub payee: AccountId,
    /// How much.
    pub money: Money,
    /// Its version.
    pub version: u32,
    /// When it was settled, if it was.
    pub settled_at: Option<UtcSecond>,
}

impl DueRow {
    /// Where its head is.
    #[must_use]
    pub fn head_key(&self) -> HeadKey {
        HeadKey { account: self.account.clone(), sort: self.due.head }
    }
}

/// A page of rows, and after which key the next one begins, if there may be more.
#[derive(Debug)]
pub struct DuePage {
    /// The payments, oldest due first. One that cannot be read does not hide the others.
    pub rows: Vec<Result<DueRow, StoreError>>,
    /// Where the next page begins.
    pub next: Option<DueSort>,
}

/// A stretch of one shard of the `due` index: one status, up to an instant or a date, or over one date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRange {
    /// Which shard.
    pub shard: Shard,
    /// Which status.
    pub status: Status,
    /// Which dates.
    pub until: DueUntil,
    /// Only what comes after this key.
    pub after: Option<DueSort>,
}

/// How far a [`DueRange`] reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueUntil {
    /// From the oldest date there is up to this date and instant, included.
    Instant(BusinessDate, UtcSecond),
    /// From the oldest date there is up to the end of the one before this date.
    Before(BusinessDate),
    /// All of this date.
    Date(BusinessDate),
}

impl DueRange {
    /// Both bounds, neither of which is itself a key, so that BETWEEN is half-open.
    fn bounds(&self) -> (String, String) {
        let (from, to) = match self.until {
            DueUntil::Instant(date, at) => {
                (DueSort::start_of_status(self.status), DueSort::end_at(self.status, date, at))
            }
            DueUntil::Before(date) => (DueSort::start_of_status(self.status), DueSort::start_of(self.status, date)),
            DueUntil::Date(date) => (DueSort::start_of(self.status, date), DueSort::end_of(self.status, date)),
        };
        (self.after.map_or(from, |after| after.just_after()), to)
    }
}

/// The attributes that the index projects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Projected {
    pk: String,
    due: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    version: u32,
    settled_at: Option<String>,
}

impl Store {
    /// One page of the hot table's `due` index: half a read unit per 4 KB of index entries, about
    /// 12 of them. Eventually consistent, as indexes are.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or an entry cannot be read.
    pub async fn due_page(&self, range: &DueRange, limit: u16) -> Result<DuePage, StoreError> {
        let (Stretch { rows, end }, unreadable) = self.due_stretch(&self.tables.payments, range, limit).await?;
        let rows = rows.into_iter().map(|(_, row)| row).chain(unreadable.into_iter().map(Err)).collect();
        Ok(DuePage { rows, next: end })
    }

    /// The same over the hot table and history, each payment once.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or an entry cannot be read.
    pub async fn due_page_of_both(&self, range: &DueRange, limit: u16) -> Result<DuePage, StoreError> {
        let (hot, unreadable) = self.due_stretch(&self.tables.payments, range, limit).await?;
        let (history, more_unreadable) = self.due_stretch(&self.tables.history, range, limit).await?;
        let Merged { mut rows, next } = merge(vec![hot, history], limit.into());
        rows.extend(unreadable.into_iter().chain(more_unreadable).map(Err));
        Ok(DuePage { rows, next })
    }

    /// How many payments a range of the hot table's `due` index holds, as far as one read of 1 MB
    /// reaches (some 3,000), and whether there may be more.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails.
    pub async fn due_count(&self, range: &DueRange) -> Result<(u64, bool), StoreError> {
        let query = self.due_query(&self.tables.payments, range).select(Select::Count);
        let answer = query.send().await.map_err(failed("Query"))?;
        Ok((u64::try_from(answer.count).unwrap_or(0), answer.last_evaluated_key.is_some()))
    }

    /// One table's part of a page, and the entries whose very keys cannot be read: they have no
    /// place among the others, and must not hide them.
    async fn due_stretch(
        &self,
        table: &str,
        range: &DueRange,
        limit: u16,
    ) -> Result<(Stretch<DueSort, Result<DueRow, StoreError>>, Vec<StoreError>), StoreError> {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        let mut after = None;
        loop {
            let query = self.due_query(table, range).limit(limit.into()).set_exclusive_start_key(after);
            let answer = query.send().await.map_err(failed("Query"))?;
            for item in answer.items.unwrap_or_default() {
                match due_of(&item) {
                    Ok(due) => rows.push((due, decode_row(item))),
                    Err(error) => unreadable.push(error),
                }
            }
            // Where the last key is such a one, the page ends at the last that is none: the next one
            // begins there, and shows it again. Where there is none at all, the page goes on.
            let last = rows.last().map(|(due, _)| *due);
            let end = answer.last_evaluated_key.as_ref().map(|key| due_of(key).ok().or(last));
            match end {
                None => return Ok((Stretch { rows, end: None }, unreadable)),
                Some(Some(end)) => return Ok((Stretch { rows, end: Some(end) }, unreadable)),
                Some(None) => after = answer.last_evaluated_key,
            }
        }
    }

    fn due_query(&self, table: &str, range: &DueRange) -> QueryFluentBuilder {
        let (from, to) = range.bounds();
        self.client
            .query()
            .table_name(table)
            .index_name(DUE.name)
            .key_condition_expression("#shard = :shard AND due BETWEEN :from AND :to")
            // SHARD is one of DynamoDB's reserved words.
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", AttributeValue::N(range.shard.get().to_string()))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
    }
}

fn due_of(item: &Item) -> Result<DueSort, StoreError> {
    let due = item.get("due").and_then(|due| due.as_s().ok()).map_or("", String::as_str);
    due.parse().map_err(|error: crate::key::KeyError| unreadable(due, &error))
}

fn decode_row(item: Item) -> Result<DueRow, StoreError> {
    let row: Projected = serde_dynamo::from_item(item).map_err(|error| unreadable("(index entry)", &error))?;
    let parse = || -> Result<DueRow, Box<dyn std::error::Error>> {
        Ok(DueRow {
            account: parse_account_partition(&row.pk)?,
            due: row.due.parse()?,
            payee: row.payee_account_id.parse()?,
            money: Money {
                amount: AmountMinor::try_from(row.amount_minor)?,
                currency: Currency::from_stored(&row.currency)?,
            },
            version: row.version,
            settled_at: row.settled_at.as_deref().map(str::parse).transpose()?,
        })
    };
    parse().map_err(|error| unreadable(&row.due, &*error))
}

fn unreadable(key: &str, error: &dyn std::error::Error) -> StoreError {
    StoreError::Unreadable { key: key.to_owned(), why: error.to_string() }
}
