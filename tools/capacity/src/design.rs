//! The designs that are compared: this one, by the store's own methods, and the fixtures beside it.

use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use payments_model::{Event, Head, Status};
use payments_store::schema::{HISTORY, Index, PAYMENTS, create_tables};
use payments_store::{DueRange, DueUntil, Moved, PutDetails, PutHead, Removed, Store, TableNames, UnreportedSort};

use crate::life::{Act, Look, PENDING, Payment, SETTLED, by};
use crate::other_designs::Layout;

/// A data model for payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Design {
    /// This one.
    Ours,
    /// Another.
    Fixture(Layout),
}

/// The partition and sort attribute of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexKeys {
    pub(crate) name: &'static str,
    pub(crate) partition: &'static str,
    pub(crate) sort: Option<&'static str>,
}

/// A table and the keys of its indexes.
pub(crate) type Keys = (String, Vec<IndexKeys>);

/// A design over an engine.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    design: Design,
    pub(crate) client: Client,
    pub(crate) tables: TableNames,
}

impl Design {
    /// What its tables are called.
    pub(crate) fn tables(self) -> TableNames {
        let name = match self {
            Self::Ours => "payments",
            Self::Fixture(layout) => layout.name,
        };
        TableNames { payments: name.to_owned(), history: format!("{name}-history") }
    }

    /// The keys of its tables' indexes.
    pub(crate) fn keys(self) -> [Keys; 2] {
        let tables = self.tables();
        let of = |indexes: &[Index]| {
            let keys = |index: &Index| IndexKeys {
                name: index.name,
                partition: index.partition.name(),
                sort: index.sort.map(|sort| sort.name()),
            };
            indexes.iter().map(keys).collect()
        };
        match self {
            Self::Ours => [(tables.payments, of(PAYMENTS.indexes)), (tables.history, of(HISTORY.indexes))],
            Self::Fixture(layout) => [
                (tables.payments, of(&[layout.due()])),
                (tables.history, of(&[layout.due(), payments_store::schema::TRANSACTION])),
            ],
        }
    }

    /// The writes of a life until it is settled, and how many seconds each comes after the one before.
    pub(crate) fn acts(self) -> &'static [(Act, u64)] {
        match self {
            Self::Fixture(Layout { whole: true, .. }) => &[(Act::Head, 0), (Act::Pending, 1), (Act::Settled, 1)],
            _ => &[(Act::Details, 0), (Act::Head, 0), (Act::Pending, 1), (Act::Settled, 1)],
        }
    }

    /// Opens it over a client.
    pub(crate) async fn open(self, client: Client) -> Result<Bench> {
        let tables = self.tables();
        match self {
            Self::Ours => create_tables(&client, &tables).await?,
            Self::Fixture(layout) => layout.create_tables(&client, &tables).await?,
        }
        Ok(Bench { design: self, client, tables })
    }
}

impl Bench {
    fn store(&self) -> Store {
        Store::new(self.client.clone(), self.tables.clone())
    }

    /// One write of a payment's life, which has to change something.
    pub(crate) async fn write(&self, payment: &Payment, act: Act) -> Result<()> {
        match self.design {
            Design::Ours => self.write_ours(payment, act).await,
            Design::Fixture(layout) if !layout.whole && act == Act::Details => {
                self.store().put_details(&payment.details).await?;
                Ok(())
            }
            Design::Fixture(layout) => layout.write(&self.client, &self.tables, payment, act).await,
        }
    }

    async fn write_ours(&self, payment: &Payment, act: Act) -> Result<()> {
        let (store, details) = (self.store(), &payment.details);
        let (key, due_date) = (payment.key(), details.due_date);
        let done = match act {
            Act::Details => store.put_details(details).await? == PutDetails::Created,
            Act::Head => store.put_head(&Head::scheduled(details)).await? == PutHead::Created,
            Act::Pending => {
                let step = Head::scheduled(details).transition(&Event::Sweep, PENDING.parse()?, by())?;
                matches!(store.transition(&key, due_date, &step).await?, Moved::Done(_))
            }
            Act::Settled => {
                let event = Event::Settle(payment.processed()?);
                let step = payment.pending_head()?.transition(&event, SETTLED.parse()?, by())?;
                matches!(store.transition(&key, due_date, &step).await?, Moved::Done(_))
            }
            Act::Reported => {
                let unreported = UnreportedSort { settled_at: SETTLED.parse()?, payment_id: details.payment_id };
                store.mark_reported(&key, &unreported).await?
            }
            Act::ArchivePut => store.put_archived_head(&payment.reported_head()?).await? == PutHead::Created,
            Act::ArchiveDelete => store.remove_head(&payment.reported_head()?).await? == Removed::Done,
        };
        ensure!(done, "{act:?} changed nothing");
        Ok(())
    }

    /// What is read of all these payments, as the functions read it: page by page. They are all of
    /// one shard.
    pub(crate) async fn read(&self, payments: &[Payment], look: Look) -> Result<()> {
        let Some(first) = payments.first() else { bail!("no payments") };
        match self.design {
            Design::Ours => self.read_ours(first, payments, look).await,
            Design::Fixture(layout) => layout.read(&self.client, &self.tables, payments, look).await,
        }
    }

    async fn read_ours(&self, first: &Payment, payments: &[Payment], look: Look) -> Result<()> {
        let store = self.store();
        let keys: Vec<_> = payments.iter().map(Payment::key).collect();
        let due = |status| {
            let (shard, until) = (first.details.shard, DueUntil::Date(first.details.due_date));
            DueRange { shard, status, until, after: None }
        };
        let limit = u16::try_from(payments.len())?;
        let found = match look {
            Look::Swept => store.due_page(&due(Status::Scheduled), limit).await?.rows.len(),
            Look::Sent => {
                let ids: Vec<_> = payments.iter().map(|payment| payment.details.payment_id).collect();
                store.hot_heads(&keys).await?.len().min(store.details_of(&ids).await?.len())
            }
            // The result says where its head is; another payment may carry its transaction id.
            Look::Settled => {
                let mut found = 0;
                for payment in payments {
                    found += store.payments_of_transaction(&payment.transaction_id.parse()?).await?.len();
                }
                found
            }
            Look::Reported => {
                let page = store.unreported_page(first.details.shard, None, limit).await?;
                store.hot_heads(&keys).await?.len().min(page.rows.len())
            }
            Look::Archived => {
                let page = store.due_page(&due(Status::Processed), limit).await?;
                store.hot_heads(&keys).await?.len().min(page.rows.len())
            }
        };
        ensure!(found == payments.len(), "{look:?} finds {found} of {}", payments.len());
        Ok(())
    }
}
