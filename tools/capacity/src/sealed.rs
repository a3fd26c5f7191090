//! The sealing of a page of payments, as `seal` does it: its reads and writes, and what the table and the part keep.

use anyhow::{Context as _, Result, ensure};
use payments_bill::{Stored, cleared, parts_archived_after};
use payments_http::PaymentView;
use payments_machine::Recorder;
use payments_sealed::{MAX_PART_BYTES, MAX_PART_ROWS, PartName, SealedRow, encode};
use payments_store::Item;

use crate::design::Tables;
use crate::life::{DAY, Payment, Read};
use crate::measured::{Used, stored, used};

/// The cost of the sealing of a page of payments.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) reads: Used,
    pub(crate) writes: Used,
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
    let file = encode(
        &PartName {
            due_date: DAY.to_owned(),
            number: 1,
            rows_before: 0,
            sealed_at: "2027-01-10T04:10:00Z".parse()?,
            kept_days: 0,
        },
        &rows,
    )?;
    let (bytes, rows) = (file.len().try_into()?, rows.len().try_into()?);
    let most_rows = u64::from(MAX_PART_ROWS).min((MAX_PART_BYTES / largest).try_into()?);
    Ok(PartSize { bytes, rows, most_rows, archived_after: parts_archived_after()? })
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

    /// Puts the item that the clear leaves.
    async fn clear(&self, item: Item) -> Result<()> {
        let put = self.client.put_item().table_name(&self.names.history);
        put.set_item(Some(item)).condition_expression("attribute_exists(pk)").send().await?;
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
        let left: Vec<Item> = items.iter().filter_map(|item| cleared(item).transpose()).collect::<Result<_>>()?;
        let are_records = !left.is_empty();
        for item in left {
            self.clear(item).await?;
        }
        let writes = used(recorder, self);
        ensure!(!are_records || self.are_records(payments).await?, "the store reads a record differently");
        let stored = stored(self).await?;
        Ok(Sealed { reads, writes, stored, part: part(payments)? })
    }
}

fn key_of(item: &Item) -> Result<Item> {
    let part = |name: &str| Ok((name.to_owned(), item.get(name).with_context(|| format!("no {name}"))?.clone()));
    ["pk", "sk"].into_iter().map(part).collect()
}
