//! Other designs for the same payments, as small as possible: a whole item of up to 8 KB, an index by shard or by date.
//!
//! They have no reports and no idempotency record, and find a transaction only in the long-term table. All of that would
//! cost them more.

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use payments_model::Status;
use payments_store::key::{account_partition, head_sort};
use payments_store::schema::{DUE, Index, KeyAttribute, TRANSACTION, Table, create_table};
use payments_store::{DueSort, Item, TableNames, item_bytes};

use crate::life::{CREATED, DAY, PENDING, Payment, Read, SETTLED, Write};

/// A design.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The name of the hot table.
    pub(crate) name: &'static str,
    /// Whether the item that changes has the data. Otherwise there are details, as in this project's design.
    pub(crate) whole: bool,
    /// The attributes that the index by status holds besides keys.
    includes: &'static [&'static str],
    /// Whether the partition key of the index is the date, not the shard.
    by_date: bool,
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
    "transactionId",
];

/// The whole item, and an index of everything by shard, with the status in its sort key.
pub(crate) const TEXTBOOK: Layout = Layout { name: "textbook", whole: true, includes: ALL, by_date: false };

/// The same with an index of keys only.
pub(crate) const KEYS_ONLY: Layout = Layout { name: "keys-only", whole: true, includes: &[], by_date: false };

/// The two items of this project's design, with an index by date.
pub(crate) const BY_DATE: Layout = Layout { name: "by-date", whole: false, includes: DUE.includes, by_date: true };

/// The maximum size of a whole item.
const MAX_BYTES: usize = 8_192;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

impl Layout {
    /// Returns the index by status.
    pub(crate) fn due(&self) -> Index {
        let partition = if self.by_date { KeyAttribute::Text("dueDate") } else { DUE.partition };
        Index { partition, includes: self.includes, ..DUE }
    }

    pub(crate) async fn create_tables(&self, client: &Client, names: &TableNames) -> Result<()> {
        let transaction = Index { includes: self.includes, ..TRANSACTION };
        for (name, indexes) in [(&names.payments, vec![self.due()]), (&names.history, vec![self.due(), transaction])] {
            let table = Table { stream: false, time_to_live: None, indexes: Vec::leak(indexes) };
            create_table(client, name, &table).await?;
        }
        Ok(())
    }

    /// Returns how many bytes the item of a payment exceeds 8 KB by, at its largest.
    pub(crate) fn excess(&self, payment: &Payment) -> usize {
        item_bytes(&self.item(payment, Status::Processed)).saturating_sub(MAX_BYTES)
    }

    fn due_key(payment: &Payment, status: Status) -> String {
        DueSort { status, due_date: payment.details.due_date, head: payment.key().sort }.to_string()
    }

    fn key(payment: &Payment) -> Item {
        let pk = account_partition(&payment.details.instruction.account);
        HashMap::from([("pk".to_owned(), text(&pk)), ("sk".to_owned(), text(&head_sort(payment.key().sort)))])
    }

    /// Returns the item of a payment in a status.
    fn item(&self, payment: &Payment, status: Status) -> Item {
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
        if self.by_date {
            set("dueDate", text(DAY));
        }
        if let (true, Some(data)) = (self.whole, &order.data) {
            set("data", text(data.as_str()));
        }
        if status == Status::Processed {
            set("transactionId", text(&payment.transaction_id));
        }
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
        let put = |table, status| client.put_item().table_name(table).set_item(Some(self.item(payment, status)));
        match write {
            Write::Head => {
                let put = put(&tables.payments, Status::Scheduled);
                put.condition_expression("attribute_not_exists(pk)").send().await?;
            }
            Write::Pending => self.update(client, tables, payment, Status::Pending, PENDING).await?,
            Write::Settled => self.update(client, tables, payment, Status::Processed, SETTLED).await?,
            Write::ArchivePut => drop(put(&tables.history, Status::Processed).send().await?),
            Write::ArchiveDelete => {
                let delete = client.delete_item().table_name(&tables.payments).set_key(Some(Self::key(payment)));
                delete.condition_expression("attribute_exists(pk)").send().await?;
            }
            _ => bail!("a {} has no {write:?}", self.name),
        }
        Ok(())
    }

    async fn update(
        &self,
        client: &Client,
        tables: &TableNames,
        payment: &Payment,
        to: Status,
        at: &str,
    ) -> Result<()> {
        let processed = to == Status::Processed;
        let from = if processed { Status::Pending } else { Status::Scheduled };
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
        update = if processed {
            update
                .update_expression("SET #status = :to, due = :due, updatedAt = :at, transactionId = :id")
                .expression_attribute_values(":id", text(&payment.transaction_id))
        } else {
            update.update_expression("SET #status = :to, due = :due, updatedAt = :at")
        };
        update.send().await?;
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
        match read {
            Read::Swept => self.page(client, tables, payments, Status::Scheduled).await,
            Read::Archived => {
                self.page(client, tables, payments, Status::Processed).await?;
                if !self.includes.contains(&"data") {
                    self.whole_items(client, tables, payments).await?;
                }
                Ok(())
            }
            Read::Dispatched | Read::Settled | Read::Reported => Ok(()),
        }
    }

    /// Reads the payments of a status from the index.
    async fn page(&self, client: &Client, tables: &TableNames, payments: &[Payment], status: Status) -> Result<()> {
        let shard = payments.first().map_or(0, |payment| payment.details.shard.get());
        let partition = if self.by_date { text(DAY) } else { AttributeValue::N(shard.to_string()) };
        let query = client
            .query()
            .table_name(&tables.payments)
            .index_name(DUE.name)
            .key_condition_expression("#partition = :partition AND begins_with(due, :status)")
            .expression_attribute_names("#partition", self.due().partition.name())
            .expression_attribute_values(":partition", partition)
            .expression_attribute_values(":status", text(&DueSort::start_of_status(status)))
            .limit(i32::try_from(payments.len())?);
        let found = query.send().await?.items.unwrap_or_default().len();
        ensure!(found == payments.len(), "{found} of {} are {status}", payments.len());
        Ok(())
    }

    async fn whole_items(&self, client: &Client, tables: &TableNames, payments: &[Payment]) -> Result<()> {
        let keys = payments.iter().map(Self::key).collect();
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build()?;
        let answer = client.batch_get_item().request_items(&tables.payments, keys).send().await?;
        let found = answer.responses.unwrap_or_default().into_values().map(|items| items.len()).sum::<usize>();
        ensure!(found == payments.len(), "{found} of {} were read", payments.len());
        Ok(())
    }
}
