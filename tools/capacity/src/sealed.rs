//! The sealing of a page of payments, as `seal` does it: its reads and writes, and what the table and the part keep.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use payments_bill::{Stored, parts_archived_after};
use payments_http::PaymentView;
use payments_machine::Recorder;
use payments_sealed::{MAX_PART_BYTES, MAX_PART_ROWS, PartName, SealedRow, encode};
use payments_store::Item;

use crate::design::Tables;
use crate::life::{DAY, Payment, Read};
use crate::measured::{Used, stored, used};

/// The days after which a payment's row is in a part, and after which its data leaves the table.
pub(crate) const SEALED_AFTER: u64 = seal::SEAL_AFTER_DAYS as u64;
pub(crate) const CLEARED_AFTER: u64 = SEALED_AFTER + 36;

/// The least bytes of stored data that are cleared. Fewer stay, because a record would hardly be smaller.
const LEAST_CLEARED: usize = 256;

/// The cost of the sealing of a page of payments.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) reads: Used,
    /// The record, and the expiry of items that stay.
    pub(crate) writes: Used,
    /// The write units of the record alone, in half units.
    pub(crate) record: u64,
    pub(crate) stored: Stored,
    pub(crate) part: PartSize,
}

/// The size of a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartSize {
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// The rows that a whole part has.
    pub(crate) most_rows: u64,
    /// The days after which S3 archives it.
    pub(crate) archived_after: u64,
}

/// The part of these payments.
pub(crate) fn part(payments: &[Payment]) -> Result<PartSize> {
    let row = |payment: &Payment| -> Result<SealedRow> {
        let details = &payment.details;
        let view = PaymentView::new(&payment.settled_head()?).with_dates(details);
        let view = view.with_data(details.instruction.data.as_ref()).ok().context("its data is not JSON")?;
        Ok(SealedRow::new(&serde_json::to_string(&view)?, None)?)
    };
    let rows: Vec<SealedRow> = payments.iter().map(row).collect::<Result<_>>()?;
    let largest = rows.iter().map(SealedRow::bytes).max().context("no rows")?;
    let file = encode(&PartName { due_date: DAY.to_owned(), number: 1, rows_before: 0 }, &rows)?;
    let (bytes, rows) = (file.len().try_into()?, rows.len().try_into()?);
    let most_rows = u64::from(MAX_PART_ROWS).min((MAX_PART_BYTES / largest).try_into()?);
    Ok(PartSize { bytes, rows, most_rows, archived_after: parts_archived_after()? })
}

/// The bytes of an item's stored data.
fn data_bytes(item: &Item) -> usize {
    match (item.get("frame"), item.get("data")) {
        (Some(AttributeValue::B(frame)), _) => frame.as_ref().len(),
        (_, Some(AttributeValue::S(text))) => text.len(),
        _ => 0,
    }
}

impl Tables {
    /// Deletes all heads of the hot table, as they expire.
    async fn expire(&self) -> Result<()> {
        let items: Vec<Item> = {
            let pages = self.client.scan().table_name(&self.names.payments).into_paginator();
            pages.items().send().collect::<Result<_, _>>().await?
        };
        for item in items {
            self.client.delete_item().table_name(&self.names.payments).set_key(Some(key_of(&item)?)).send().await?;
        }
        Ok(())
    }

    /// Replaces an item's data by the place of the row. An item with little data expires with its part instead.
    async fn clear(&self, item: &Item) -> Result<()> {
        let update = self.client.update_item().table_name(&self.names.history).set_key(Some(key_of(item)?));
        let update = update.expression_attribute_values(":until", AttributeValue::N("2111356800".to_owned()));
        let update = if data_bytes(item) < LEAST_CLEARED {
            update.update_expression("SET keptUntil = :until")
        } else {
            update
                .update_expression(
                    "REMOVE frame, dataBytes, #data \
                     SET codec = :codec, part = :part, #row = :row, sha256 = :sha256, keptUntil = :until",
                )
                .expression_attribute_names("#data", "data")
                .expression_attribute_names("#row", "row")
                .expression_attribute_values(":codec", AttributeValue::S("file".to_owned()))
                .expression_attribute_values(":part", AttributeValue::S(format!("{DAY}/000001")))
                .expression_attribute_values(":row", AttributeValue::N("9999".to_owned()))
                .expression_attribute_values(":sha256", AttributeValue::B(vec![0; 32].into()))
        };
        update.condition_expression("attribute_exists(pk)").send().await?;
        Ok(())
    }

    /// Seals a page of payments that are settled and reported.
    pub(crate) async fn seal(&self, recorder: &Recorder, payments: &[Payment]) -> Result<Sealed> {
        self.expire().await?;
        let (items, _) = self.history().await?;
        drop(recorder.take_capacity_use());
        for read in [Read::Sealed, Read::Compared] {
            self.read(payments, read).await?;
        }
        let reads = used(recorder, self);
        let (with_data, others): (Vec<_>, Vec<_>) = items.iter().partition(|item| data_bytes(item) >= LEAST_CLEARED);
        for item in &with_data {
            self.clear(item).await?;
        }
        let records = used(recorder, self);
        for item in others {
            self.clear(item).await?;
        }
        let writes = [records, used(recorder, self)].into_iter().sum();
        let stored = stored(self).await?;
        Ok(Sealed { reads, writes, record: records.all(), stored, part: part(payments)? })
    }
}

fn key_of(item: &Item) -> Result<Item> {
    let part = |name: &str| Ok((name.to_owned(), item.get(name).with_context(|| format!("no {name}"))?.clone()));
    ["pk", "sk"].into_iter().map(part).collect()
}
