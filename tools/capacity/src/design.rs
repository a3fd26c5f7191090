//! The designs that are compared: this project's, through the store's methods, and others.

use anyhow::{Context as _, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use payments_model::{Event, Head, Status};
use payments_store::schema::{HISTORY, Index, PAYMENTS, create_tables};
use payments_store::{
    Decided, DueRange, DueSort, DueUntil, Item, Marked, Moved, PutDetails, PutHead, Store, StoredHead, TableNames,
    UnreportedSort,
};

use crate::life::{EXPIRES, PENDING, Payment, Read, SETTLED, Write, actor};
use crate::other_designs::Layout;

/// A design of the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Design {
    /// This project's.
    Ours,
    /// Another.
    Other(Layout),
}

/// A table and its indexes.
pub(crate) type Indexes = (String, Vec<Index>);

/// The tables of a design on an engine.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    design: Design,
    pub(crate) client: Client,
    pub(crate) names: TableNames,
}

impl Design {
    pub(crate) fn names(self) -> TableNames {
        let name = match self {
            Self::Ours => "payments",
            Self::Other(layout) => layout.name,
        };
        TableNames { payments: name.to_owned(), history: format!("{name}-history"), log: format!("{name}-log") }
    }

    /// Returns the indexes of both tables.
    pub(crate) fn indexes(self) -> [Indexes; 2] {
        let TableNames { payments, history, .. } = self.names();
        match self {
            Self::Ours => [(payments, PAYMENTS.indexes.to_vec()), (history, HISTORY.indexes.to_vec())],
            Self::Other(layout) => [(payments, layout.hot_indexes()), (history, layout.history_indexes())],
        }
    }

    /// Creates the tables.
    pub(crate) async fn create(self, client: Client) -> Result<Tables> {
        let names = self.names();
        match self {
            Self::Ours => create_tables(&client, &names).await?,
            Self::Other(layout) => layout.create_tables(&client, &names).await?,
        }
        Ok(Tables { design: self, client, names })
    }
}

impl Tables {
    /// Returns all items of the long-term table, and its indexes.
    pub(crate) async fn history(&self) -> Result<(Vec<Item>, Vec<Index>)> {
        let pages = self.client.scan().table_name(&self.names.history).into_paginator();
        let items: Vec<Item> = pages.items().send().collect::<Result<_, _>>().await?;
        let [_, (_, indexes)] = self.design.indexes();
        Ok((items, indexes))
    }

    fn store(&self) -> Store {
        Store::new(self.client.clone(), self.names.clone())
    }

    /// Does a write of a payment's life, after the reads that it needs.
    pub(crate) async fn read_and_write(&self, payment: &Payment, write: Write) -> Result<()> {
        for &read in write.reads_before() {
            self.read(std::slice::from_ref(payment), read).await?;
        }
        self.write(payment, write).await
    }

    /// Does a write of a payment's life. It must change something, unless it comes again.
    pub(crate) async fn write(&self, payment: &Payment, write: Write) -> Result<()> {
        let (store, details) = (self.store(), &payment.details);
        let key = payment.key();
        let changed = match (self.design, write) {
            (Design::Other(layout), write) => {
                return layout.write(&self.client, &self.names, payment, write).await;
            }
            (_, Write::Details) => store.put_details(details).await? == PutDetails::Created,
            (_, Write::DetailsAgain) => {
                matches!(store.put_details(details).await?, PutDetails::Existing(_))
            }
            (_, Write::Head) => store.put_head(&Head::scheduled(details)).await? == PutHead::Created,
            (_, Write::Pending) => {
                let head = Head::scheduled(details);
                let step = head.transition(&Event::Sweep, PENDING.parse()?, actor())?;
                matches!(store.transition(&key, DueSort::from_head(&head), &step).await?, Moved::Done(_))
            }
            (_, Write::Redriven) => store.redrive(&key, 1, 2, PENDING.parse()?).await?,
            (_, Write::Decided | Write::DecidedAgain) => {
                let pending = StoredHead::new(payment.pending_head()?)?;
                let decided = store.decide_settlement(&pending, &payment.settling()?).await?;
                matches!(decided, Decided::Put(_)) == (write == Write::Decided)
            }
            (_, Write::Followed) => {
                let settled = StoredHead::new(payment.settled_head()?)?;
                matches!(store.follow_settlement(&settled).await?, Moved::Done(_))
            }
            (_, Write::Reported) => {
                let unreported = UnreportedSort { settled_at: SETTLED.parse()?, payment_id: details.payment_id };
                store.mark_reported(&key, &unreported, EXPIRES.parse()?).await? == Marked::Done
            }
            (_, Write::Settled | Write::ArchivePut | Write::Idempotency) => bail!("this design has no {write:?}"),
        };
        ensure!(changed, "{write:?} had another effect");
        Ok(())
    }

    /// Whether this project's store reads these details as those of a sealed row, or the design is another one.
    pub(crate) async fn are_records(&self, payments: &[Payment]) -> Result<bool> {
        for payment in payments {
            let sealed = match self.design {
                Design::Ours => {
                    self.store().details(payment.details.payment_id).await?.is_some_and(|it| it.is_sealed())
                }
                Design::Other(_) => true,
            };
            if !sealed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads these payments, which are all of one shard, page by page as the functions do.
    pub(crate) async fn read(&self, payments: &[Payment], read: Read) -> Result<()> {
        if let Design::Other(layout) = self.design {
            return layout.read(&self.client, &self.names, payments, read).await;
        }
        let (store, details) = (self.store(), &payments.first().context("no payments")?.details);
        let (shard, limit) = (details.shard, u16::try_from(payments.len())?);
        let keys: Vec<_> = payments.iter().map(Payment::key).collect();
        let due = |status| DueRange { shard, status, until: DueUntil::Date(details.due_date), after: None };
        let found = match read {
            Read::Swept => store.due_page(&due(Status::Scheduled), limit).await?.rows.len(),
            Read::Dispatched => {
                let wanted: Vec<_> = payments.iter().map(|payment| payment.details.details_key()).collect();
                store.hot_heads(&keys).await?.len().min(store.details_of(&wanted).await?.len())
            }
            // The result says where its head is.
            Read::Pending => {
                let mut found = 0;
                for key in &keys {
                    found += usize::from(store.recent_head(key).await?.is_some());
                }
                found
            }
            Read::Transaction => {
                let mut found = 0;
                for payment in payments {
                    found += store.payments_of_transaction(&payment.transaction_id.parse()?).await?.len();
                }
                found
            }
            Read::Reported => {
                let page = store.unreported_page(shard, None, limit).await?;
                store.hot_heads(&keys).await?.len().min(page.rows.len())
            }
            Read::Archived => bail!("this design has no {read:?}"),
            Read::Sealed | Read::Compared => {
                let mut keys = keys;
                if read == Read::Sealed {
                    let page = store.archived_page(&due(Status::Processed), None).await?;
                    keys = page.keys.into_iter().map(|key| Ok(key?.1)).collect::<Result<_>>()?;
                }
                ensure!(store.hot_heads(&keys).await?.is_empty(), "the hot table has some");
                for payment in payments {
                    ensure!(!store.all_details(payment.details.payment_id).await?.is_empty(), "no details");
                }
                store.archived_heads(&keys).await?.len()
            }
        };
        ensure!(found == payments.len(), "{read:?} finds {found} of {}", payments.len());
        Ok(())
    }
}
