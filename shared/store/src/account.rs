//! An account's payments in order of due time, over both tables.

use aws_sdk_dynamodb::types::AttributeValue;
use payments_model::{AccountId, Head, HeadSort, Status, UtcSecond};

use crate::error::failed;
use crate::item::decode_head;
use crate::key::{account_partition, after_head_sort, parse_head_sort};
use crate::merge::{Stretch, merge};
use crate::{Item, Store, StoreError};

/// Which of an account's payments to read.
#[derive(Debug, Clone)]
pub struct AccountQuery<'a> {
    /// Whose.
    pub account: &'a AccountId,
    /// Due at this instant or later.
    pub from: UtcSecond,
    /// Due before this instant.
    pub to: UtcSecond,
    /// Only those after this one.
    pub after: Option<HeadSort>,
    /// Only those in this status.
    pub status: Option<Status>,
    /// How many to look at.
    pub limit: u16,
    /// Whether the range reaches into days that may have been archived.
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
    /// One page of an account's payments, strongly consistent: half a read unit per 4 KB and
    /// table would be the eventually consistent price, this is one.
    ///
    /// The hot table is read before history, because a payment that is being archived is in
    /// history before it leaves the hot table. A page may be shorter than the limit, or empty,
    /// while `next` says that there is more.
    ///
    /// # Errors
    /// [`StoreError`] where DynamoDB fails or an item cannot be read.
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
        // Both bounds are texts that are no keys themselves, so BETWEEN is half-open here.
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
    let sk = item.get("sk").and_then(|sk| sk.as_s().ok()).map_or("", String::as_str);
    parse_head_sort(sk)
        .map_err(|_| StoreError::Unreadable { key: sk.to_owned(), why: "not a head's sort key".to_owned() })
}
