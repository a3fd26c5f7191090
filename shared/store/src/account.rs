//! An account's payments in both tables, by due time.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{AccountId, Head, HeadSort, Status, UtcSecond};

use crate::error::failed;
use crate::item::{decode_head, text_of};
use crate::key::{account_partition, after_head_sort, parse_head_sort};
use crate::merge::{Stretch, merge};
use crate::{Item, Store, StoreError};

/// A query for some of an account's payments.
#[derive(Debug, Clone)]
pub struct AccountQuery<'a> {
    /// Whose.
    pub account: &'a AccountId,
    /// Due at this instant or later.
    pub from: UtcSecond,
    /// Due before this instant.
    pub to: UtcSecond,
    /// Only payments after this one.
    pub after: Option<HeadSort>,
    /// Only payments in this status.
    pub status: Option<Status>,
    /// How many payments to read before filtering by status.
    pub limit: u16,
    /// Whether to read history too: payments of past days may be archived.
    pub with_history: bool,
}

/// A page of heads, in order.
#[derive(Debug, Clone, Default)]
pub struct AccountPage {
    /// The payments.
    pub heads: Vec<Head>,
    /// Where the next page begins, if there may be more.
    pub next: Option<HeadSort>,
}

impl Store {
    /// Returns a page of an account's payments, strongly consistent: 1 read unit per 4 KB and table.
    ///
    /// The hot table is read before history: a payment that is being archived is in history before
    /// it leaves the hot table. A page may be shorter than the limit, or empty, and still have a
    /// `next`.
    pub async fn account_page(&self, query: &AccountQuery<'_>) -> Result<AccountPage, StoreError> {
        let mut stretches = vec![self.stretch(&self.tables.payments, query).await?];
        if query.with_history {
            stretches.push(self.stretch(&self.tables.history, query).await?);
        }
        let page = merge(stretches, query.limit.into());
        let heads = page.rows.into_iter().map(decode_head).collect::<Result<_, _>>()?;
        Ok(AccountPage { heads, next: page.next })
    }

    async fn stretch(&self, table: &str, query: &AccountQuery<'_>) -> Result<Stretch<HeadSort, Item>, StoreError> {
        // Neither bound is a key, so BETWEEN is half-open.
        let from = query.after.map_or_else(|| query.from.to_string(), after_head_sort);
        let text = |text: String| AttributeValue::S(text);
        let mut request = self
            .client
            .query()
            .table_name(table)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", text(account_partition(query.account)))
            .expression_attribute_values(":from", text(from))
            .expression_attribute_values(":to", text(query.to.to_string()))
            .consistent_read(true)
            .limit(query.limit.into());
        if let Some(status) = query.status {
            request = request
                .filter_expression("#status = :status")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":status", text(status.to_string()));
        }
        let answer = request.send().await.map_err(failed("Query"))?;
        let end = answer.last_evaluated_key.as_ref().map(sort_of).transpose()?;
        let keyed = |item: Item| Ok((sort_of(&item)?, item));
        let rows = answer.items.unwrap_or_default().into_iter().map(keyed).collect::<Result<_, _>>()?;
        Ok(Stretch { rows, end })
    }
}

fn sort_of(item: &Item) -> Result<HeadSort, StoreError> {
    let sk = text_of(item, "sk");
    parse_head_sort(sk).map_err(|_| StoreError::unreadable(sk, "not a head's sort key"))
}
