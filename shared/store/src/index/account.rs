//! An account's payments in both tables, by due time.
//!
//! Heads are in the order of their slots. Payments that are due at another time are left out there,
//! and are found by the `moved` index, which is up to date within moments.

use std::cmp::Reverse;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join;
use payments_model::{AccountId, Currency, Head, HeadKey, Place, Reference, Slot, Statuses, TypedAmount, UtcSecond};

use crate::error::{StoreError, failed};
use crate::index::merge::{Merged, Stretch, merge};
use crate::item::{Item, key_of, text_of};
use crate::key::{
    account_partition, after_place_sort, before_place_sort, parse_head_sort, parse_place_sort, place_sort,
};
use crate::payment::head_item::{decode_head, head_key_of};
use crate::read::MAX_BATCH_GET;
use crate::schema::MOVED;
use crate::store::Store;

/// The most payments that one list reads: at 1 KB at most they are the megabyte of one query.
const MAX_READ: usize = 1_000;

/// The payments that each read of a list with a filter takes, at least.
const FILTERED: u16 = 100;

/// A query for some of an account's payments.
#[derive(Debug, Clone)]
pub struct AccountQuery<'a> {
    /// The account.
    pub account: &'a AccountId,
    /// Due at this instant or later.
    pub from: UtcSecond,
    /// Due before this instant.
    pub to: UtcSecond,
    /// Only payments that follow this one in the order.
    pub after: Option<Place>,
    /// The filter of the list.
    pub filter: &'a AccountFilter,
    /// The order of the list.
    pub order: ListOrder,
    /// The number of payments to read before filtering.
    pub limit: u16,
    /// Whether to read history too: heads of past days may be there alone.
    pub with_history: bool,
}

/// The filter of a list of an account's payments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFilter {
    /// The statuses of the payments.
    pub statuses: Statuses,
    /// The payee, if only its payments are listed.
    pub payee: Option<AccountId>,
    /// The reference, if only payments with it are listed.
    pub reference: Option<Reference>,
    /// The amount, if only payments of it are listed.
    pub amount: Option<TypedAmount>,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// Earliest due time first.
    #[default]
    Ascending,
    /// Latest due time first.
    Descending,
}

impl AccountFilter {
    /// Whether the filter passes all payments.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the list has this head.
    fn has(&self, item: &Item) -> bool {
        // A status that this version does not know is unreadable, and an unreadable head is shown as such.
        let has_status = text_of(item, "status").parse().map_or(true, |status| self.statuses.has(status));
        let payee = self.payee.as_ref().map(AccountId::as_str);
        let reference = self.reference.as_ref().map(Reference::as_str);
        has_status
            && self.amount.is_none_or(|amount| is_of(amount, item))
            && payee.is_none_or(|payee| text_of(item, "payeeAccountId") == payee)
            && reference.is_none_or(|reference| text_of(item, "reference") == reference)
    }
}

/// Whether a head has this amount. An amount that cannot be read is shown as such.
fn is_of(amount: TypedAmount, item: &Item) -> bool {
    let minor = item.get("amountMinor").and_then(|minor| minor.as_n().ok()).and_then(|minor| minor.parse::<i64>().ok());
    match (Currency::from_stored(text_of(item, "currency")), minor) {
        (Ok(currency), Some(minor)) => amount.minor(currency) == Some(minor),
        _ => true,
    }
}

/// A page of heads, in order.
#[derive(Debug, Default)]
pub struct AccountPage {
    /// The payments. An unreadable one does not hide the others.
    pub heads: Vec<(Place, Result<Head, StoreError>)>,
    /// Items whose sort keys cannot be read. They have no place in the order, so the next page can show them again.
    pub without_key: Vec<StoreError>,
    /// The start of the next page, if there may be more.
    pub next: Option<Place>,
    /// The number of payments that were read, before filtering.
    pub read: usize,
}

/// An item, with its place and table.
type Row<'t> = (Place, (&'t str, Item));

impl Store {
    /// Returns the next payments of an account that pass the filter, at most `query.limit`. A filter may leave out much of what is
    /// read, so pages are read until that many pass, the list ends, `has_time` returns false, or a megabyte was read.
    pub async fn account_list(
        &self,
        query: &AccountQuery<'_>,
        has_time: impl Fn() -> bool,
    ) -> Result<AccountPage, StoreError> {
        let most = usize::from(query.limit);
        let limit = if query.filter.is_all() { query.limit } else { query.limit.max(FILTERED) };
        let mut page = AccountPage { next: query.after, ..AccountPage::default() };
        loop {
            let query = AccountQuery { after: page.next, limit, ..query.clone() };
            let AccountPage { heads, without_key, next, read } = self.account_page(&query).await?;
            page.heads.extend(heads);
            page.without_key.extend(without_key);
            (page.next, page.read) = (next, page.read + read);
            let is_full = query.filter.is_all() || page.heads.len() >= most;
            if is_full || page.read + usize::from(limit) > MAX_READ || page.next.is_none() || !has_time() {
                break;
            }
        }
        if page.heads.len() > most {
            page.heads.truncate(most);
            page.next = page.heads.last().map(|(place, _)| *place);
        }
        Ok(page)
    }

    /// Returns a page of an account's payments, strongly consistent but for payments that moved: 1 read unit per 4 KB and table, half
    /// a unit per table for its `moved` index, and 1 for each payment that moved.
    ///
    /// The hot table is read before history: a head is in history before it leaves the hot table. While
    /// it is in both, the hot table's counts, so the status is compared only after the merge. A page may
    /// be shorter than the limit, or empty, and still have a `next`.
    pub async fn account_page(&self, query: &AccountQuery<'_>) -> Result<AccountPage, StoreError> {
        let mut without_key = Vec::new();
        let both = [self.tables.payments.as_str(), self.tables.history.as_str()];
        let tables = if query.with_history { &both[..] } else { &both[..1] };
        let read = async {
            // Both reads run at once: each leaves out what the other shows, whichever is first.
            let slots = async {
                let mut stretches = Vec::new();
                for table in tables {
                    stretches.push(self.stretch(table, query, &mut without_key).await?);
                }
                Ok(stretches)
            };
            let (moved, mut stretches) = try_join(self.moved_stretch(tables, query), slots).await?;
            stretches.insert(0, moved);
            Ok(stretches)
        };
        let Merged { rows, next } = merged(self.bounded("Query", read).await?, query);
        let read = rows.len();
        let decode = |(place, (table, item)): Row<'_>| (place, decode_head(table, item));
        // A head that is due at another time has its place there.
        let rows = rows.into_iter().filter(|(place, (_, item))| place_of(item).is_none_or(|own| own == *place));
        let heads = rows.filter(|(_, (_, item))| query.filter.has(item)).map(decode).collect();
        Ok(AccountPage { heads, without_key, next, read })
    }

    /// Returns one table's part of a page, by slot, and adds the items whose sort keys cannot be read to `without_key`.
    async fn stretch<'t>(
        &self,
        table: &'t str,
        query: &AccountQuery<'_>,
        without_key: &mut Vec<StoreError>,
    ) -> Result<Stretch<Place, Row<'t>>, StoreError> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let request = self.query_by_slot(table, query).set_exclusive_start_key(after);
            let answer = request.send().await.map_err(failed("Query"))?;
            for item in answer.items.unwrap_or_default() {
                match slot_of(table, &item) {
                    Ok(slot) => rows.push((slot.first_place(), (slot.first_place(), (table, item)))),
                    Err(error) => without_key.push(error),
                }
            }
            // If the last key cannot be read, the page ends at the last readable one. If none is
            // readable, this page continues.
            let last = rows.last().map(|(place, _)| *place);
            let end = |key: &Item| slot_of(table, key).ok().map(Slot::first_place);
            match answer.last_evaluated_key.as_ref().map(|key| end(key).or(last)) {
                None => return Ok(Stretch { rows, end: None }),
                Some(Some(end)) => return Ok(Stretch { rows, end: Some(end) }),
                Some(None) => after = answer.last_evaluated_key,
            }
        }
    }

    /// Returns the part of a page that the tables' `moved` indexes know, with the heads as they are now.
    async fn moved_stretch<'t>(
        &'t self,
        tables: &[&'t str],
        query: &AccountQuery<'_>,
    ) -> Result<Stretch<Place, Row<'t>>, StoreError> {
        let (mut keys, mut end) = (Vec::new(), None::<Place>);
        for &table in tables {
            let mut after = None;
            let next = loop {
                let request = self.query_moved(table, query).set_exclusive_start_key(after);
                let answer = request.send().await.map_err(failed("Query"))?;
                // An entry whose key cannot be read is left out, like its slot.
                let entries = answer.items.unwrap_or_default();
                keys.extend(entries.iter().filter_map(|entry| head_key_of(table, entry).ok()));
                match answer.last_evaluated_key.as_ref().map(place_of) {
                    None => break None,
                    Some(Some(place)) => break Some(place),
                    Some(None) => after = answer.last_evaluated_key,
                }
            };
            end = match (end, next, query.order) {
                (Some(one), Some(other), ListOrder::Ascending) => Some(one.min(other)),
                (Some(one), Some(other), ListOrder::Descending) => Some(one.max(other)),
                (one, other, _) => one.or(other),
            };
        }
        let mut rows = Vec::new();
        for some in keys.chunks(MAX_BATCH_GET) {
            let mut left: Vec<HeadKey> = some.to_vec();
            for table in [self.tables.payments.as_str(), self.tables.history.as_str()] {
                let found = if left.is_empty() { Vec::new() } else { self.items_at(table, &left).await? };
                for (key, item) in found {
                    left.retain(|other| *other != key);
                    rows.extend(place_of(&item).map(|place| (place, (place, (table, item)))));
                }
            }
        }
        // A head may have moved since, out of the range or beyond its end.
        let (from, to) = bounds(query);
        rows.retain(|(place, _)| (from.as_str()..to.as_str()).contains(&place_sort(*place).as_str()));
        rows.sort_unstable_by_key(|(place, _)| *place);
        rows.dedup_by_key(|(place, _)| *place);
        Ok(Stretch { rows, end })
    }

    fn query_by_slot(&self, table: &str, query: &AccountQuery<'_>) -> QueryFluentBuilder {
        let (from, to) = bounds(query);
        self.client
            .query()
            .table_name(table)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(account_partition(query.account)))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
            .scan_index_forward(query.order == ListOrder::Ascending)
            .consistent_read(true)
            .limit(query.limit.into())
    }

    fn query_moved(&self, table: &str, query: &AccountQuery<'_>) -> QueryFluentBuilder {
        let (from, to) = bounds(query);
        self.client
            .query()
            .table_name(table)
            .index_name(MOVED.name)
            .key_condition_expression("pk = :pk AND moved BETWEEN :from AND :to")
            .expression_attribute_values(":pk", AttributeValue::S(account_partition(query.account)))
            .expression_attribute_values(":from", AttributeValue::S(from))
            .expression_attribute_values(":to", AttributeValue::S(to))
            .scan_index_forward(query.order == ListOrder::Ascending)
            .limit(query.limit.into())
    }
}

/// The range of keys that a query reads. Neither bound is a key, so BETWEEN is half-open.
fn bounds(query: &AccountQuery<'_>) -> (String, String) {
    let (from, to) = (query.from.to_string(), query.to.to_string());
    match (query.after, query.order) {
        (None, _) => (from, to),
        (Some(after), ListOrder::Ascending) => (after_place_sort(after), to),
        (Some(after), ListOrder::Descending) => (from, before_place_sort(after)),
    }
}

/// Merges the tables' parts in the order of the query.
fn merged<V>(stretches: Vec<Stretch<Place, V>>, query: &AccountQuery<'_>) -> Merged<Place, V> {
    let limit = query.limit.into();
    if query.order == ListOrder::Ascending {
        return merge(stretches, limit);
    }
    let turned = |Stretch { rows, end }: Stretch<Place, V>| Stretch {
        rows: rows.into_iter().map(|(place, row)| (Reverse(place), row)).collect(),
        end: end.map(Reverse),
    };
    let Merged { rows, next } = merge(stretches.into_iter().map(turned).collect(), limit);
    Merged { rows, next: next.map(|Reverse(place)| place) }
}

fn slot_of(table: &str, item: &Item) -> Result<Slot, StoreError> {
    let slot = parse_head_sort(text_of(item, "sk"));
    slot.map_err(|_| StoreError::unreadable(table, key_of(item), "not a head's sort key"))
}

/// The place of a head that is due at another time than its slot's, if it has one that can be read.
fn place_of(item: &Item) -> Option<Place> {
    parse_place_sort(text_of(item, MOVED.name)).ok()
}
