//! The definition of the tables, as data.
//!
//! Embedded tables are created from it, and a test compares `template.yaml` with it. So the tested
//! schema is the deployed one.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, StreamSpecification, StreamViewType, TimeToLiveSpecification, TimeToLiveStatus,
};

use crate::error::{StoreError, failed, incomplete};
use crate::store::TableNames;

/// The attribute with the time at which DynamoDB may delete an item of the hot table, in seconds since 1970.
pub const EXPIRES_AT: &str = "expires_at";

/// The attribute with the time at which DynamoDB may delete an item of the long-term table, in seconds since 1970. Its
/// name differs from the hot table's, and copies of items have neither: a payment's record would be deleted with it.
pub const KEPT_UNTIL: &str = "keptUntil";

/// A key attribute and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAttribute {
    /// A string.
    Text(&'static str),
    /// A number.
    Number(&'static str),
}

impl KeyAttribute {
    /// The attribute's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::Number(name) => name,
        }
    }

    /// The attribute's type in DynamoDB.
    pub fn scalar_type(self) -> ScalarAttributeType {
        match self {
            Self::Text(_) => ScalarAttributeType::S,
            Self::Number(_) => ScalarAttributeType::N,
        }
    }
}

/// A global secondary index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its partition key.
    pub partition: KeyAttribute,
    /// Its sort key, if it has one.
    pub sort: Option<KeyAttribute>,
    /// The attributes it holds besides all keys.
    pub includes: &'static [&'static str],
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The images in its stream, if it has one.
    pub stream: Option<StreamViewType>,
    /// The attribute with the time at which an item expires.
    pub time_to_live: Option<&'static str>,
    /// Its indexes.
    pub indexes: &'static [Index],
}

/// The partition key of all tables.
pub const PARTITION: KeyAttribute = KeyAttribute::Text("pk");
/// The sort key of all tables.
pub const SORT: KeyAttribute = KeyAttribute::Text("sk");

/// All payments of the table by shard, then by status, date and instant.
pub const DUE: Index = Index {
    name: "due",
    partition: KeyAttribute::Number("shard"),
    sort: Some(KeyAttribute::Text("due")),
    includes: &["amountMinor", "currency", "payeeAccountId", "reference", "version", "settledAt", "failureCode"],
};

/// Sparse: settled payments that are in no report yet.
pub const UNREPORTED: Index = Index {
    name: "unreported",
    partition: KeyAttribute::Number("shard"),
    sort: Some(KeyAttribute::Text("unreported")),
    includes: &[],
};

/// Sparse: processed payments by transaction id. A payment is in the long-term table since its settlement.
pub const TRANSACTION: Index =
    Index { name: "transaction", partition: KeyAttribute::Text("transactionId"), sort: None, includes: &[] };

/// Sparse: an account's payments that are not due as at first, by due time.
pub const MOVED: Index = Index {
    name: "moved",
    partition: KeyAttribute::Text("pk"),
    sort: Some(KeyAttribute::Text("moved")),
    includes: &[],
};

/// The hot table: heads that have not expired and are not archived, counters, checkpoints.
pub const PAYMENTS: Table = Table {
    stream: Some(StreamViewType::NewAndOldImages),
    time_to_live: Some(EXPIRES_AT),
    indexes: &[DUE, UNREPORTED, MOVED],
};

/// The long-term table: details of all payments, heads of settled and archived ones, the audit
/// trail, webhook endpoints. Its time to live is for later: no item has an end of retention yet.
pub const HISTORY: Table = Table { stream: None, time_to_live: Some(KEPT_UNTIL), indexes: &[DUE, TRANSACTION, MOVED] };

/// The log of changes of payments. Its stream announces new segments.
pub const LOG: Table = Table { stream: Some(StreamViewType::KeysOnly), time_to_live: Some(EXPIRES_AT), indexes: &[] };

/// Creates all tables in an embedded or test engine, unless they exist. On AWS the stack creates them.
pub async fn create_tables(client: &Client, names: &TableNames) -> Result<(), StoreError> {
    create_table(client, &names.payments, &PAYMENTS).await?;
    create_table(client, &names.history, &HISTORY).await?;
    create_table(client, &names.log, &LOG).await
}

/// The indexes of a table; `None` if it has none, because DynamoDB rejects an empty list.
fn indexes_of(table: &Table) -> Option<Vec<GlobalSecondaryIndex>> {
    let indexes: Vec<_> = table.indexes.iter().map(global_index).collect();
    (!indexes.is_empty()).then_some(indexes)
}

/// Creates a table if it does not exist.
///
/// # Errors
/// [`StoreError`] if the engine rejects it or does not answer.
pub async fn create_table(client: &Client, name: &str, table: &Table) -> Result<(), StoreError> {
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(PARTITION, Some(SORT))))
        .set_attribute_definitions(Some(attribute_definitions(table)))
        .set_global_secondary_indexes(indexes_of(table));
    if let Some(view) = &table.stream {
        let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view.clone());
        request = request.stream_specification(stream.build().map_err(incomplete("CreateTable"))?);
    }
    let is_new = match request.send().await {
        Ok(_) => true,
        Err(error) if error.code() == Some("ResourceInUseException") => false,
        Err(error) => return Err(failed("CreateTable")(error)),
    };
    // A process that was killed after it created the table has not set the time to live.
    if let Some(attribute) = table.time_to_live
        && (is_new || !expires_items(client, name).await?)
    {
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(attribute);
        let ttl = ttl.build().map_err(incomplete("UpdateTimeToLive"))?;
        client
            .update_time_to_live()
            .table_name(name)
            .time_to_live_specification(ttl)
            .send()
            .await
            .map_err(failed("UpdateTimeToLive"))?;
    }
    Ok(())
}

/// Whether a table's items expire.
async fn expires_items(client: &Client, name: &str) -> Result<bool, StoreError> {
    let found = client.describe_time_to_live().table_name(name).send().await.map_err(failed("DescribeTimeToLive"))?;
    let status = found.time_to_live_description.and_then(|found| found.time_to_live_status);
    Ok(matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)))
}

fn projection(index: &Index) -> Projection {
    if index.includes.is_empty() {
        Projection::builder().projection_type(ProjectionType::KeysOnly)
    } else {
        let includes = index.includes.iter().map(|&name| name.to_owned()).collect();
        Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(includes))
    }
    .build()
}

fn global_index(index: &Index) -> GlobalSecondaryIndex {
    GlobalSecondaryIndex::builder()
        .index_name(index.name)
        .set_key_schema(Some(key_schema(index.partition, index.sort)))
        .projection(projection(index))
        .build()
        .unwrap_or_else(|_| unreachable!("an index with a name and a key schema is complete"))
}

fn key_schema(partition: KeyAttribute, sort: Option<KeyAttribute>) -> Vec<KeySchemaElement> {
    let element = |attribute: KeyAttribute, role| {
        KeySchemaElement::builder()
            .attribute_name(attribute.name())
            .key_type(role)
            .build()
            .unwrap_or_else(|_| unreachable!("a key element with a name and a role is complete"))
    };
    std::iter::once(element(partition, KeyType::Hash)).chain(sort.map(|sort| element(sort, KeyType::Range))).collect()
}

/// The attributes of all keys, each once, as `CreateTable` needs them.
pub fn attribute_definitions(table: &Table) -> Vec<AttributeDefinition> {
    let of_indexes = table.indexes.iter().flat_map(|index| std::iter::once(index.partition).chain(index.sort));
    let mut attributes: Vec<KeyAttribute> = vec![PARTITION, SORT];
    for attribute in of_indexes {
        if !attributes.contains(&attribute) {
            attributes.push(attribute);
        }
    }
    let define = |attribute: KeyAttribute| {
        AttributeDefinition::builder()
            .attribute_name(attribute.name())
            .attribute_type(attribute.scalar_type())
            .build()
            .unwrap_or_else(|_| unreachable!("an attribute with a name and a type is complete"))
    };
    attributes.into_iter().map(define).collect()
}
