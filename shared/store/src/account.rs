//! An account's payments in both tables, by their heads' slots.

use std::cmp::Reverse;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{AccountId, Head, Reference, Slot, Statuses, UtcSecond};

use crate::error::failed;
use crate::item::{decode_head, key_of, text_of};
use crate::key::{account_partition, after_head_sort, before_head_sort, parse_head_sort};
use crate::merge::{Merged, Stretch, merge};
use crate::{Item, Store, StoreError};

/// A query for some of an account's payments.
#[derive(Debug, Clone)]
pub struct AccountQuery<'a> {
    /// Whose.
    pub account: &'a AccountId,
    /// Due at first at this instant or later.
    pub from: UtcSecond,
    /// Due at first before this instant.
    pub to: UtcSecond,
    /// Only payments that follow this one in the order.
    pub after: Option<Slot>,
    /// Which payments.
    pub filter: &'a AccountFilter,
    /// In which order.
    pub order: ListOrder,
    /// How many payments to read before filtering.
    pub limit: u16,
    /// Whether to read history too: heads of past days may be there alone.
    pub with_history: bool,
}

/// Which of an account's payments a list has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFilter {
    /// Those in these statuses.
    pub statuses: Statuses,
    /// Those to this account.
    pub payee: Option<AccountId>,
    /// Those with this reference.
    pub reference: Option<Reference>,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// The earliest slot first.
    #[default]
    Ascending,
    /// The latest slot first.
    Descending,
}

impl AccountFilter {
    /// Whether it leaves nothing out.
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
            && payee.is_none_or(|payee| text_of(item, "payeeAccountId") == payee)
            && reference.is_none_or(|reference| text_of(item, "reference") == reference)
    }
}

/// A page of heads, in order.
#[derive(Debug, Default)]
pub struct AccountPage {
    /// The payments. An unreadable one does not hide the others.
    pub heads: Vec<(Slot, Result<Head, StoreError>)>,
    /// Items whose sort keys cannot be read. They have no place in the order, so the next page can show them again.
    pub without_key: Vec<StoreError>,
    /// Where the next page begins, if there may be more.
    pub next: Option<Slot>,
    /// How many payments were read, before filtering.
    pub read: usize,
}

impl Store {
    /// Returns a page of an account's payments, strongly consistent: 1 read unit per 4 KB and table.
    ///
    /// The hot table is read before history: a head is in history before it leaves the hot table. While
    /// it is in both, the hot table's counts, so the status is compared only after the merge. A page may
    /// be shorter than the limit, or empty, and still have a `next`.
    pub async fn account_page(&self, query: &AccountQuery<'_>) -> Result<AccountPage, StoreError> {
        let mut without_key = Vec::new();
        let read = async {
            let mut stretches = vec![self.stretch(&self.tables.payments, query, &mut without_key).await?];
            if query.with_history {
                stretches.push(self.stretch(&self.tables.history, query, &mut without_key).await?);
            }
            Ok(stretches)
        };
        let Merged { rows, next } = merged(self.bounded("Query", read).await?, query);
        let read = rows.len();
        let decode = |(slot, (table, item)): (Slot, (&str, Item))| (slot, decode_head(table, item));
        let heads = rows.into_iter().filter(|(_, (_, item))| query.filter.has(item)).map(decode).collect();
        Ok(AccountPage { heads, without_key, next, read })
    }

    /// Returns one table's part of a page, and adds the items whose sort keys cannot be read to `without_key`.
    async fn stretch<'t>(
        &self,
        table: &'t str,
        query: &AccountQuery<'_>,
        without_key: &mut Vec<StoreError>,
    ) -> Result<Stretch<Slot, (Slot, (&'t str, Item))>, StoreError> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let request = self.account_query(table, query).set_exclusive_start_key(after);
            let answer = request.send().await.map_err(failed("Query"))?;
            for item in answer.items.unwrap_or_default() {
                match slot_of(table, &item) {
                    Ok(slot) => rows.push((slot, (slot, (table, item)))),
                    Err(error) => without_key.push(error),
                }
            }
            // If the last key cannot be read, the page ends at the last one that can. If none can be read, this page
            // goes on.
            let last = rows.last().map(|(slot, _)| *slot);
            match answer.last_evaluated_key.as_ref().map(|key| slot_of(table, key).ok().or(last)) {
                None => return Ok(Stretch { rows, end: None }),
                Some(Some(end)) => return Ok(Stretch { rows, end: Some(end) }),
                Some(None) => after = answer.last_evaluated_key,
            }
        }
    }

    fn account_query(&self, table: &str, query: &AccountQuery<'_>) -> QueryFluentBuilder {
        // Neither bound is a key, so BETWEEN is half-open.
        let (from, to) = (query.from.to_string(), query.to.to_string());
        let (from, to) = match (query.after, query.order) {
            (None, _) => (from, to),
            (Some(after), ListOrder::Ascending) => (after_head_sort(after), to),
            (Some(after), ListOrder::Descending) => (from, before_head_sort(after)),
        };
        let text = |text: String| AttributeValue::S(text);
        self.client
            .query()
            .table_name(table)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", text(account_partition(query.account)))
            .expression_attribute_values(":from", text(from))
            .expression_attribute_values(":to", text(to))
            .scan_index_forward(query.order == ListOrder::Ascending)
            .consistent_read(true)
            .limit(query.limit.into())
    }
}

/// Merges the tables' parts in the order of the query.
fn merged<V>(stretches: Vec<Stretch<Slot, V>>, query: &AccountQuery<'_>) -> Merged<Slot, V> {
    let limit = query.limit.into();
    if query.order == ListOrder::Ascending {
        return merge(stretches, limit);
    }
    let turned = |Stretch { rows, end }: Stretch<Slot, V>| Stretch {
        rows: rows.into_iter().map(|(slot, row)| (Reverse(slot), row)).collect(),
        end: end.map(Reverse),
    };
    let Merged { rows, next } = merge(stretches.into_iter().map(turned).collect(), limit);
    Merged { rows, next: next.map(|Reverse(slot)| slot) }
}

fn slot_of(table: &str, item: &Item) -> Result<Slot, StoreError> {
    let slot = parse_head_sort(text_of(item, "sk"));
    slot.map_err(|_| StoreError::unreadable(table, key_of(item), "not a head's sort key"))
}
