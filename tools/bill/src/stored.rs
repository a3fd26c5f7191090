//! The bytes that DynamoDB stores and charges for: items, and their entries in indexes.

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use payments_store::schema::{HISTORY, Index, KeyAttribute, LOG, PARTITION, PAYMENTS, SORT};
use payments_store::{Item, TableNames, item_bytes};

use crate::quantities::Quantities;
use crate::sealed::{cleared, units};

/// The bytes that DynamoDB stores beside each item and each index entry: "DynamoDB item sizes and
/// formats" in the Developer Guide.
const OVERHEAD: usize = 100;

/// The bytes of items, which are backed up, and those of their entries in indexes, which are not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// The bytes of items.
    pub items: u64,
    /// The bytes of entries.
    pub entries: u64,
}

impl Stored {
    /// Adds an item of a table with these indexes.
    pub fn add(&mut self, item: &Item, indexes: &[Index]) {
        let charged = |item: &Item| u64::try_from(item_bytes(item) + OVERHEAD).unwrap_or(u64::MAX);
        self.items += charged(item);
        self.entries += indexes.iter().filter_map(|index| entry(item, index)).map(|entry| charged(&entry)).sum::<u64>();
    }
}

/// Returns the entry of an item in an index, if it has one.
fn entry(item: &Item, index: &Index) -> Option<Item> {
    let of_index = std::iter::once(index.partition).chain(index.sort).map(KeyAttribute::name);
    let keys: Vec<&str> = of_index.chain([PARTITION.name(), SORT.name()]).collect();
    let copy = |name: &str| item.get(name).map(|value| (name.to_owned(), value.clone()));
    let mut entry = keys.into_iter().map(copy).collect::<Option<Item>>()?;
    entry.extend(index.includes.iter().filter_map(|name| copy(name)));
    Some(entry)
}

/// Adds what the tables store.
pub(crate) async fn add_stored(client: &Client, tables: &TableNames, quantities: &mut Quantities) -> Result<()> {
    let all = [(&tables.payments, PAYMENTS.indexes), (&tables.history, HISTORY.indexes), (&tables.log, LOG.indexes)];
    for (table, indexes) in all {
        let pages = client.scan().table_name(table).into_paginator();
        let items: Vec<Item> = pages.items().send().collect::<Result<_, _>>().await?;
        let mut stored = Stored::default();
        items.iter().for_each(|item| stored.add(item, indexes));
        quantities.add(format!("{table}, bytes"), stored.items + stored.entries);
        quantities.add(format!("{table}, bytes backed up"), stored.items);
        if *table == tables.history {
            add_cleared(&items, quantities)?;
        }
    }
    Ok(())
}

/// Adds what the long-term table stores once all payments are cleared, and the clear.
fn add_cleared(items: &[Item], quantities: &mut Quantities) -> Result<()> {
    let mut left = Stored::default();
    for item in items {
        let after = cleared(item)?;
        left.add(after.as_ref().unwrap_or(item), HISTORY.indexes);
        quantities.add("payments cleared", u64::from(item.contains_key("due")));
        let Some(after) = after else { continue };
        quantities.add("payment-history, writes of the clear", units(item, &after));
    }
    quantities.add("payment-history, bytes once cleared", left.items + left.entries);
    quantities.add("payment-history, bytes backed up once cleared", left.items);
    Ok(())
}
