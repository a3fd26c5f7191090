//! Other designs for the same payments, as small as possible: a whole item of up to 8 KB, an index by shard.
//!
//! These designs have this one's features in their cheapest form: their data are compressed in the same way, an
//! idempotency record is one small item, a report marks a payment with one write that also sets its expiry, and
//! `unreported` holds keys only. They find a transaction only in the long-term table.

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use payments_model::{Head, Status};
use payments_store::key::{account_partition, head_sort};
use payments_store::schema::{DUE, Index, TRANSACTION, Table, UNREPORTED, create_table};
use payments_store::{DueSort, Item, TableNames, UnreportedSort, compress, item_bytes};

use crate::life::{CREATED, PENDING, Payment, Read, SETTLED, Write};

/// A design.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The name of the hot table.
    pub(crate) name: &'static str,
    /// The attributes that the index by status holds besides keys.
    includes: &'static [&'static str],
}

/// All attributes besides keys.
const ALL: &[&str] = &[
    "status",
    "payeeAccountId",
    "amountMinor",
    "currency",
    "scheduledFor",
    "createdAt",
    "updatedAt",
    "data",
    "codec",
    "frame",
    "dataBytes",
    "transactionId",
    "failureReason",
];

/// The whole item, and an index of everything by shard, with the status in its sort key.
pub(crate) const TEXTBOOK: Layout = Layout { name: "textbook", includes: ALL };

/// The same with an index of keys only.
pub(crate) const KEYS_ONLY: Layout = Layout { name: "keys-only", includes: &[] };

/// The maximum size of a whole item.
const MAX_BYTES: usize = 8_192;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

impl Layout {
    /// Returns the index by status.
    pub(crate) fn due(&self) -> Index {
        Index { includes: self.includes, ..DUE }
    }

    /// Returns the indexes of the hot table.
    pub(crate) fn hot_indexes(&self) -> Vec<Index> {
        vec![self.due(), UNREPORTED]
    }

    /// Returns the indexes of the long-term table.
    pub(crate) fn history_indexes(&self) -> Vec<Index> {
        vec![self.due(), Index { includes: self.includes, ..TRANSACTION }]
    }

    pub(crate) async fn create_tables(&self, client: &Client, names: &TableNames) -> Result<()> {
        for (name, indexes) in [(&names.payments, self.hot_indexes()), (&names.history, self.history_indexes())] {
            let table = Table { stream: None, time_to_live: None, indexes: Vec::leak(indexes) };
            create_table(client, name, &table).await?;
        }
        Ok(())
    }

    /// Returns how many bytes the item of a payment exceeds 8 KB by, with its data as it came, at its largest: settled, and
    /// not yet reported.
    pub(crate) fn excess(&self, payment: &Payment) -> Result<usize> {
        let mut item = self.raw_item(payment, Status::Processed);
        item.insert("unreported".to_owned(), text(&Self::unreported_key(payment)?));
        Ok(item_bytes(&item).saturating_sub(MAX_BYTES))
    }

    fn due_key(payment: &Payment, status: Status) -> String {
        DueSort::from_head(&Head::scheduled(&payment.details)).in_status(status).to_string()
    }

    fn key(payment: &Payment) -> Item {
        let pk = account_partition(&payment.details.instruction.account);
        HashMap::from([("pk".to_owned(), text(&pk)), ("sk".to_owned(), text(&head_sort(payment.key().slot)))])
    }

    /// Returns the item of a payment in a status.
    fn item(&self, payment: &Payment, status: Status) -> Item {
        let mut item = self.raw_item(payment, status);
        compress(&mut item);
        item
    }

    fn raw_item(&self, payment: &Payment, status: Status) -> Item {
        let (details, order) = (&payment.details, &payment.details.instruction);
        let mut item = Self::key(payment);
        let mut set = |name: &str, value| item.insert(name.to_owned(), value);
        set("shard", AttributeValue::N(details.shard.get().to_string()));
        set("due", text(&Self::due_key(payment, status)));
        set("status", text(status.as_str()));
        set("payeeAccountId", text(&order.payee.to_string()));
        set("amountMinor", AttributeValue::N(order.money.amount.get().to_string()));
        set("currency", text(&order.money.currency.to_string()));
        set("scheduledFor", text(&order.scheduled_for.to_string()));
        set("createdAt", text(CREATED));
        set("updatedAt", text(CREATED));
        if let Some(data) = order.data.as_ref().and_then(|data| data.text().ok()) {
            set("data", text(data.as_str()));
        }
        match status {
            Status::Processed => set("transactionId", text(&payment.transaction_id)),
            Status::Failed => set("failureReason", text("insufficient funds")),
            _ => None,
        };
        item
    }

    /// Does a write of a payment's life.
    pub(crate) async fn write(
        &self,
        client: &Client,
        tables: &TableNames,
        payment: &Payment,
        write: Write,
    ) -> Result<()> {
        let settled = if payment.fails { Status::Failed } else { Status::Processed };
        let put = |table, item| {
            let put = client.put_item().table_name(table).set_item(Some(item));
            put.condition_expression("attribute_not_exists(pk)")
        };
        match write {
            Write::Idempotency => drop(put(&tables.history, Self::idempotency_record(payment)).send().await?),
            Write::Head => drop(put(&tables.payments, self.item(payment, Status::Scheduled)).send().await?),
            Write::Pending => self.update(client, tables, payment, Status::Pending).await?,
            Write::Settled | Write::Followed => self.update(client, tables, payment, settled).await?,
            Write::Decided | Write::ArchivePut => {
                put(&tables.history, self.item(payment, settled)).send().await?;
            }
            Write::Reported => {
                let update = client.update_item().table_name(&tables.payments).set_key(Some(Self::key(payment)));
                update
                    .condition_expression("unreported = :unreported")
                    .update_expression("REMOVE unreported SET expires_at = :expires")
                    .expression_attribute_values(":unreported", text(&Self::unreported_key(payment)?))
                    .expression_attribute_values(":expires", AttributeValue::N("1795309200".to_owned()))
                    .send()
                    .await?;
            }
            _ => bail!("a {} has no {write:?}", self.name),
        }
        Ok(())
    }

    /// Returns the record that a payment's idempotency key was used.
    fn idempotency_record(payment: &Payment) -> Item {
        let id = payment.details.payment_id.to_string();
        HashMap::from([("pk".to_owned(), text(&format!("KEY#{id}"))), ("sk".to_owned(), text("KEY"))])
    }

    fn unreported_key(payment: &Payment) -> Result<String> {
        let key = UnreportedSort { settled_at: SETTLED.parse()?, payment_id: payment.details.payment_id };
        Ok(key.to_string())
    }

    async fn update(&self, client: &Client, tables: &TableNames, payment: &Payment, to: Status) -> Result<()> {
        let settles = to != Status::Pending;
        let (from, at) = if settles { (Status::Pending, SETTLED) } else { (Status::Scheduled, PENDING) };
        let mut update = client
            .update_item()
            .table_name(&tables.payments)
            .set_key(Some(Self::key(payment)))
            .condition_expression("#status = :from")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":from", text(from.as_str()))
            .expression_attribute_values(":to", text(to.as_str()))
            .expression_attribute_values(":due", text(&Self::due_key(payment, to)))
            .expression_attribute_values(":at", text(at));
        let mut expression = "SET #status = :to, due = :due, updatedAt = :at".to_owned();
        if settles {
            let item = self.raw_item(payment, to);
            let ends = ["transactionId", "failureReason"].into_iter();
            for (name, value) in ends.filter_map(|name| Some((name, item.get(name)?.clone()))) {
                expression += &format!(", {name} = :end, unreported = :unreported");
                update = update.expression_attribute_values(":end", value);
            }
            update = update.expression_attribute_values(":unreported", text(&Self::unreported_key(payment)?));
        }
        update.update_expression(expression).send().await?;
        Ok(())
    }

    /// Reads these payments. What is dispatched is in the stream's image.
    pub(crate) async fn read(
        &self,
        client: &Client,
        tables: &TableNames,
        payments: &[Payment],
        read: Read,
    ) -> Result<()> {
        let settled = if payments.iter().all(|payment| payment.fails) { Status::Failed } else { Status::Processed };
        match read {
            Read::Swept => self.page(client, &tables.payments, payments, Status::Scheduled).await,
            Read::Reported => {
                let query = client.query().table_name(&tables.payments).index_name(UNREPORTED.name);
                self.page_of(query.key_condition_expression("#partition = :partition"), payments).await?;
                self.whole_items(client, &tables.payments, payments, payments.len()).await
            }
            Read::Archived => {
                self.page(client, &tables.payments, payments, settled).await?;
                if !self.includes.contains(&"data") {
                    self.whole_items(client, &tables.payments, payments, payments.len()).await?;
                }
                Ok(())
            }
            Read::Sealed | Read::Compared => {
                if read == Read::Sealed {
                    self.page(client, &tables.history, payments, settled).await?;
                }
                self.whole_items(client, &tables.history, payments, payments.len()).await?;
                self.whole_items(client, &tables.payments, payments, 0).await
            }
            Read::Dispatched | Read::Pending | Read::Transaction => Ok(()),
        }
    }

    /// Reads the payments of a status from the index.
    async fn page(&self, client: &Client, table: &str, payments: &[Payment], status: Status) -> Result<()> {
        let query = client
            .query()
            .table_name(table)
            .index_name(DUE.name)
            .key_condition_expression("#partition = :partition AND begins_with(due, :status)")
            .expression_attribute_values(":status", text(&DueSort::start_of_status(status)));
        self.page_of(query, payments).await
    }

    /// Reads a page of an index, which must have all of these payments.
    async fn page_of(&self, query: QueryFluentBuilder, payments: &[Payment]) -> Result<()> {
        let shard = payments.first().map_or(0, |payment| payment.details.shard.get());
        let query = query
            .expression_attribute_names("#partition", self.due().partition.name())
            .expression_attribute_values(":partition", AttributeValue::N(shard.to_string()))
            .limit(i32::try_from(payments.len())?);
        let found = query.send().await?.items.unwrap_or_default().len();
        ensure!(found == payments.len(), "{found} of {} are in the index", payments.len());
        Ok(())
    }

    /// Reads the items of payments, of which the table has so many.
    async fn whole_items(&self, client: &Client, table: &str, payments: &[Payment], want: usize) -> Result<()> {
        let keys = payments.iter().map(Self::key).collect();
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build()?;
        let answer = client.batch_get_item().request_items(table, keys).send().await?;
        let found = answer.responses.unwrap_or_default().into_values().map(|items| items.len()).sum::<usize>();
        ensure!(found == want, "{table} has {found} of {} payments", payments.len());
        Ok(())
    }
}
