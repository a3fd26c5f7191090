//! The `due` index of either table: a shard's payments by status, date and instant.

use std::collections::{BTreeSet, HashSet};

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};
use payments_model::{
    AccountId, BusinessDate, FailureCode, HeadKey, Money, PaymentId, Reference, Shard, Status, UtcSecond,
};
use serde::Deserialize;

use crate::error::{StoreError, failed};
use crate::index::merge::{Merged, Stretch, merge};
use crate::item::{Fault, Item, key_of, parse_money, parse_reference, text_of};
use crate::key::due::DueSort;
use crate::key::{KeyError, parse_head_key};
use crate::payment::head_item::head_key_of;
use crate::schema::DUE;
use crate::store::Store;

/// The attributes of an entry of the `due` index that only identify the payment.
pub(crate) const DUE_KEYS: &str = "pk, sk, due";

/// An entry of the `due` index: eventually consistent, with only some attributes of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRow {
    /// The key of its head.
    pub head: HeadKey,
    /// Its status, due date, due time and id.
    pub due: DueSort,
    /// The account that is paid.
    pub payee: AccountId,
    /// The amount.
    pub money: Money,
    /// The client's reference.
    pub reference: Option<Reference>,
    /// Its version.
    pub version: u32,
    /// The time of its settlement, if it was settled.
    pub settled_at: Option<UtcSecond>,
    /// The code of its failure, if it failed.
    pub failure_code: Option<FailureCode>,
}

/// A page of rows.
#[derive(Debug)]
pub struct DuePage {
    /// The payments, earliest due first. An unreadable one does not hide the others.
    pub rows: Vec<Result<DueRow, StoreError>>,
    /// The ids of the unreadable ones, as far as their keys can be read.
    pub unreadable: Vec<PaymentId>,
    /// The key after which the next page begins, if there may be more.
    pub next: Option<DueSort>,
}

/// A row, or the reason why it cannot be read, and the id of its payment, as far as its keys can be read.
type KeyedRow = (PaymentId, Result<DueRow, StoreError>);

impl DuePage {
    /// Creates a page of rows, and of entries whose keys cannot be read.
    fn from_rows(
        keyed: impl Iterator<Item = KeyedRow>,
        without_key: impl IntoIterator<Item = StoreError>,
        next: Option<DueSort>,
    ) -> Self {
        let mut page = Self { rows: Vec::new(), unreadable: Vec::new(), next };
        for (payment_id, row) in keyed {
            page.unreadable.extend(row.is_err().then_some(payment_id));
            page.rows.push(row);
        }
        page.rows.extend(without_key.into_iter().map(Err));
        page
    }
}

/// A range of one shard and status of the `due` index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRange {
    /// The shard.
    pub shard: Shard,
    /// The status.
    pub status: Status,
    /// The dates.
    pub until: DueUntil,
    /// Only keys after this one.
    pub after: Option<DueSort>,
}

/// The dates of a [`DueRange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueUntil {
    /// From the earliest date to this date and instant, included.
    Instant(BusinessDate, UtcSecond),
    /// From the first date to the second date and this instant, included.
    InstantFrom(BusinessDate, BusinessDate, UtcSecond),
    /// From the earliest date to this date, excluded.
    Before(BusinessDate),
    /// All of this date.
    Date(BusinessDate),
    /// Of this date alone, after this instant.
    LaterOf(BusinessDate, UtcSecond),
    /// Of this date and instant alone, the payments whose ids begin with these eight digits.
    Ids(BusinessDate, UtcSecond, u32),
}

impl DueRange {
    /// Both bounds. Neither is a key, so BETWEEN is half-open.
    pub(crate) fn bounds(&self) -> (String, String) {
        let (from, to) = match self.until {
            DueUntil::Instant(date, at) => {
                (DueSort::start_of_status(self.status), DueSort::end_at(self.status, date, at))
            }
            DueUntil::InstantFrom(from, date, at) => {
                (DueSort::start_of(self.status, from), DueSort::end_at(self.status, date, at))
            }
            DueUntil::Before(date) => (DueSort::start_of_status(self.status), DueSort::start_of(self.status, date)),
            DueUntil::Date(date) => (DueSort::start_of(self.status, date), DueSort::end_of(self.status, date)),
            DueUntil::LaterOf(date, at) => (DueSort::end_at(self.status, date, at), DueSort::end_of(self.status, date)),
            DueUntil::Ids(date, at, digits) => DueSort::bounds_of_ids(self.status, date, at, digits),
        };
        (self.after.map_or(from, |after| after.just_after()), to)
    }
}

/// The attributes that the index projects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Projected {
    pk: String,
    sk: String,
    due: String,
    payee_account_id: String,
    amount_minor: i64,
    currency: String,
    reference: Option<String>,
    version: u32,
    settled_at: Option<String>,
    failure_code: Option<String>,
}

impl Store {
    /// Returns a page of the hot table's `due` index, eventually consistent: half a read unit per
    /// 4 KB, about 12 entries.
    pub async fn due_page(&self, range: &DueRange, limit: u16) -> Result<DuePage, StoreError> {
        let read = self.due_stretch(&self.tables.payments, range, limit);
        let (Stretch { rows, end }, unreadable) = self.bounded("Query", read).await?;
        Ok(DuePage::from_rows(rows.into_iter().map(|(_, row)| row), unreadable, end))
    }

    /// Returns the same page of both tables, with each payment once. A settlement that only history
    /// has yet is left out: its payment is still pending. For that, the pending payments between
    /// the page's first and last are read, too, 1 MB of them at most: the page ends where they do.
    pub async fn due_page_of_both(&self, range: &DueRange, limit: u16) -> Result<DuePage, StoreError> {
        let read = async {
            let hot = self.due_stretch(&self.tables.payments, range, limit).await?;
            let mut history = self.due_stretch(&self.tables.history, range, limit).await?;
            let pending = if range.status.is_settled() {
                self.leave_out_pending(range, &hot.0.rows, &mut history.0.rows).await?
            } else {
                Stretch { rows: Vec::new(), end: None }
            };
            Ok((hot, history, pending))
        };
        let ((hot, unreadable), (history, more_unreadable), pending) = self.bounded("Query", read).await?;
        let Merged { rows, next } = merge(vec![hot, history, pending], limit.into());
        Ok(DuePage::from_rows(rows.into_iter(), unreadable.into_iter().chain(more_unreadable), next))
    }

    /// Counts the payments in a range of the hot table's `due` index with one read of 1 MB, which
    /// holds about 3,000. Also returns whether there may be more.
    pub async fn due_count(&self, range: &DueRange) -> Result<(u64, bool), StoreError> {
        let query = self.due_query(&self.tables.payments, range.shard, range.bounds()).select(Select::Count);
        let answer = query.send().await.map_err(failed("Query"))?;
        Ok((u64::try_from(answer.count).unwrap_or(0), answer.last_evaluated_key.is_some()))
    }

    /// Removes settled payments from history's rows that are pending in the hot table, if only
    /// history has any. Returns how far the pending ones were read, as a stretch without rows.
    async fn leave_out_pending(
        &self,
        range: &DueRange,
        hot: &[(DueSort, KeyedRow)],
        history: &mut Vec<(DueSort, KeyedRow)>,
    ) -> Result<Stretch<DueSort, KeyedRow>, StoreError> {
        let hot: BTreeSet<DueSort> = hot.iter().map(|(due, _)| *due).collect();
        let mut only = history.iter().map(|(due, _)| *due).filter(|due| !hot.contains(due));
        let Some(first) = only.next() else { return Ok(Stretch { rows: Vec::new(), end: None }) };
        let last = only.next_back().unwrap_or(first);
        let pending = |due: DueSort| due.in_status(Status::Pending).to_string();
        let (mut found, mut after) = (HashSet::new(), None);
        let end = loop {
            let query = self.due_query(&self.tables.payments, range.shard, (pending(first), pending(last)));
            let query = query.projection_expression(DUE_KEYS).set_exclusive_start_key(after);
            let answer = query.send().await.map_err(failed("Query"))?;
            found.extend(answer.items.unwrap_or_default().iter().map(|entry| text_of(entry, "due").to_owned()));
            let Some(key) = answer.last_evaluated_key else { break None };
            match due_of(&self.tables.payments, &key) {
                Ok(end) => break Some(end.in_status(range.status)),
                // A page cannot end at a key that cannot be read.
                Err(_) => after = Some(key),
            }
        };
        history.retain(|(due, _)| hot.contains(due) || !found.contains(&pending(*due)));
        Ok(Stretch { rows: Vec::new(), end })
    }

    /// Returns one table's part of a page, and the entries whose keys cannot be read. Such entries
    /// have no place in the order, and must not hide the others.
    async fn due_stretch(
        &self,
        table: &str,
        range: &DueRange,
        limit: u16,
    ) -> Result<(Stretch<DueSort, KeyedRow>, Vec<StoreError>), StoreError> {
        let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
        let mut after = None;
        loop {
            let query = self.due_query(table, range.shard, range.bounds());
            let query = query.limit(limit.into()).set_exclusive_start_key(after);
            let answer = query.send().await.map_err(failed("Query"))?;
            for item in answer.items.unwrap_or_default() {
                match due_of(table, &item) {
                    Ok(due) => {
                        let own = head_key_of(table, &item).map_or(due.payment_id, |key| key.slot.payment_id);
                        rows.push((due, (own, decode_row(table, item))));
                    }
                    Err(error) => unreadable.push(error),
                }
            }
            // If the last key cannot be read, the page ends at the last readable one, and the next
            // page shows the unreadable ones again. If none is readable, this page continues.
            let last = rows.last().map(|(due, _)| *due);
            let end = answer.last_evaluated_key.as_ref().map(|key| due_of(table, key).ok().or(last));
            match end {
                None => return Ok((Stretch { rows, end: None }, unreadable)),
                Some(Some(end)) => return Ok((Stretch { rows, end: Some(end) }, unreadable)),
                Some(None) => after = answer.last_evaluated_key,
            }
        }
    }

    pub(crate) fn due_query(&self, table: &str, shard: Shard, (from, to): (String, String)) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(table)
            .index_name(DUE.name)
            .key_condition_expression("#shard = :shard AND due BETWEEN :from AND :to")
            // SHARD is one of DynamoDB's reserved words.
            .expression_attribute_names("#shard", "shard")
            .expression_attribute_values(":shard", AttributeValue::N(shard.get().to_string()))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
    }
}

/// Parses the `due` key of an index entry.
pub(crate) fn due_of(table: &str, entry: &Item) -> Result<DueSort, StoreError> {
    let unreadable = |error: KeyError| StoreError::unreadable(table, key_of(entry), error);
    text_of(entry, "due").parse().map_err(unreadable)
}

fn decode_row(table: &str, entry: Item) -> Result<DueRow, StoreError> {
    let key = key_of(&entry);
    let parse = || -> Result<DueRow, Fault> {
        let row: Projected = serde_dynamo::from_item(entry)?;
        let (head, due): (_, DueSort) = (parse_head_key(&row.pk, &row.sk)?, row.due.parse()?);
        // Otherwise a claim would keep the due key of another payment.
        if head.slot.payment_id != due.payment_id {
            return Err(format!("its due key is that of payment {}, due at {}", due.payment_id, due.due_at).into());
        }
        // A claim raises the version.
        if !(1..u32::MAX).contains(&row.version) {
            return Err(format!("no payment has the version {}", row.version).into());
        }
        Ok(DueRow {
            head,
            due,
            payee: row.payee_account_id.parse()?,
            money: parse_money(row.amount_minor, &row.currency)?,
            reference: parse_reference(row.reference)?,
            version: row.version,
            settled_at: row.settled_at.as_deref().map(str::parse).transpose()?,
            failure_code: row.failure_code.as_deref().map(str::parse).transpose()?,
        })
    };
    parse().map_err(|fault| StoreError::unreadable(table, key, fault))
}
