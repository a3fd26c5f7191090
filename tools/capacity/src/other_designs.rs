//! Other data models for the same payments, as small as they can be and still take part: a whole item
//! of up to 8 KB, an index by shard or by date. They have no reports, no idempotency record, and find
//! a transaction only in history; all of that would cost them more.

use std::collections::HashMap;

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, KeysAndAttributes, Projection,
    ProjectionType,
};
use payments_model::Status;
use payments_store::key::account_partition;
use payments_store::key::head_sort;
use payments_store::schema::{DUE, Index, KeyAttribute, PARTITION, SORT, TRANSACTION, Table, attribute_definitions};
use payments_store::{DueSort, Item, TableNames, item_bytes};

use crate::life::{Act, DAY, Look, PENDING, PUT_IN, Payment, SETTLED};

/// What an index holds besides keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// All attributes.
    All,
    /// None.
    Keys,
    /// What this design's `due` index holds.
    Some,
}

/// A data model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// What its tables are called.
    pub(crate) name: &'static str,
    /// Whether the item that changes carries the data; otherwise details do, as in this design.
    pub(crate) whole: bool,
    /// What its indexes hold.
    pub(crate) held: Held,
    /// Whether the date is its index's partition key, instead of a shard.
    pub(crate) by_date: bool,
}

/// The whole item, and an index of everything by shard, with the status in its sort key.
pub(crate) const TEXTBOOK: Layout = Layout { name: "textbook", whole: true, held: Held::All, by_date: false };

/// The same with an index of nothing but keys.
pub(crate) const KEYS_ONLY: Layout = Layout { name: "keys-only", whole: true, held: Held::Keys, by_date: false };

/// This design's two items, but the index is by date.
pub(crate) const BY_DATE: Layout = Layout { name: "by-date", whole: false, held: Held::Some, by_date: true };

/// The most bytes of a whole item.
const MAX_BYTES: usize = 8_192;

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

impl Layout {
    /// The index by status.
    pub(crate) fn due(&self) -> Index {
        let partition = if self.by_date { KeyAttribute::Text("dueDate") } else { DUE.partition };
        Index { partition, ..DUE }
    }

    pub(crate) async fn create_tables(&self, client: &Client, tables: &TableNames) -> Result<()> {
        self.create_table(client, &tables.payments, vec![self.due()]).await?;
        self.create_table(client, &tables.history, vec![self.due(), TRANSACTION]).await
    }

    async fn create_table(&self, client: &Client, name: &str, indexes: Vec<Index>) -> Result<()> {
        let element = |attribute: KeyAttribute, role| {
            KeySchemaElement::builder().attribute_name(attribute.name()).key_type(role).build()
        };
        let schema = |partition, sort: Option<KeyAttribute>| {
            let sort = sort.map(|sort| element(sort, KeyType::Range));
            std::iter::once(element(partition, KeyType::Hash)).chain(sort).collect::<Result<Vec<_>, _>>()
        };
        let mut create = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
        for index in &indexes {
            let projection = match self.held {
                Held::All => Projection::builder().projection_type(ProjectionType::All),
                Held::Keys => Projection::builder().projection_type(ProjectionType::KeysOnly),
                Held::Some => {
                    let includes = DUE.includes.iter().map(|&name| name.to_owned()).collect();
                    Projection::builder()
                        .projection_type(ProjectionType::Include)
                        .set_non_key_attributes(Some(includes))
                }
            };
            let index = GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .set_key_schema(Some(schema(index.partition, index.sort)?))
                .projection(projection.build());
            create = create.global_secondary_indexes(index.build()?);
        }
        let table = Table { stream: false, time_to_live: None, indexes: Vec::leak(indexes) };
        let create = create
            .set_key_schema(Some(schema(PARTITION, Some(SORT))?))
            .set_attribute_definitions(Some(attribute_definitions(&table)));
        create.send().await?;
        Ok(())
    }

    /// By how many bytes the item of a payment passes 8 KB when it is at its largest.
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

    /// The item of a payment in a status.
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
        set("createdAt", text(PUT_IN));
        set("updatedAt", text(PUT_IN));
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

    /// One write of a payment's life.
    pub(crate) async fn write(&self, client: &Client, tables: &TableNames, payment: &Payment, act: Act) -> Result<()> {
        let put = |table, status| client.put_item().table_name(table).set_item(Some(self.item(payment, status)));
        match act {
            Act::Head => {
                let put = put(&tables.payments, Status::Scheduled);
                put.condition_expression("attribute_not_exists(pk)").send().await?;
            }
            Act::Pending => self.update(client, tables, payment, Status::Pending, PENDING).await?,
            Act::Settled => self.update(client, tables, payment, Status::Processed, SETTLED).await?,
            Act::ArchivePut => drop(put(&tables.history, Status::Processed).send().await?),
            Act::ArchiveDelete => {
                let delete = client.delete_item().table_name(&tables.payments).set_key(Some(Self::key(payment)));
                delete.condition_expression("attribute_exists(pk)").send().await?;
            }
            Act::Details | Act::Reported => bail!("a {} has no {act:?}", self.name),
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

    /// What is read of all these payments. What is sent is in the stream's image.
    pub(crate) async fn read(
        &self,
        client: &Client,
        tables: &TableNames,
        payments: &[Payment],
        look: Look,
    ) -> Result<()> {
        match look {
            Look::Swept => self.page(client, tables, payments, Status::Scheduled).await,
            Look::Archived => {
                self.page(client, tables, payments, Status::Processed).await?;
                if self.held != Held::All {
                    self.whole_items(client, tables, payments).await?;
                }
                Ok(())
            }
            Look::Sent | Look::Settled | Look::Reported => Ok(()),
        }
    }

    /// As many payments of a status as there are, from the index.
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
