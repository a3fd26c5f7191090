//! The capacity use of a page of payments in a design, as the engine reports it, and the bytes that
//! are kept in the end.

use anyhow::{Result, ensure};
use payments_bill::Stored;
use payments_machine::Recorder;

use crate::design::Tables;
use crate::life::{Payment, Read, Write};

/// The payments that share a page, and the cost of reading it.
pub(crate) const PAGE: u32 = 50;

/// The capacity use of a page of payments, in half units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) hot: u64,
    pub(crate) history: u64,
}

impl Used {
    pub(crate) fn all(self) -> u64 {
        self.hot + self.history
    }

    /// Returns the units of each payment of a page, if all payments cost the same.
    pub(crate) fn each(self) -> Result<u64> {
        let page = 2 * u64::from(PAGE);
        ensure!(self.all().is_multiple_of(page), "payments of one size cost differently: {} half units", self.all());
        Ok(self.all() / page)
    }

    /// Returns the mean units of each payment, in hundredths.
    pub(crate) fn hundredths(self) -> u64 {
        (self.all() * 100 + u64::from(PAGE)) / u64::from(2 * PAGE)
    }
}

impl std::iter::Sum for Used {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { hot: a.hot + b.hot, history: a.history + b.history })
    }
}

/// The capacity use of a page of payments in a design.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) writes: Vec<(Write, Used)>,
    pub(crate) reads: Vec<(Read, Used)>,
    pub(crate) stored: Stored,
}

impl Measured {
    pub(crate) fn writes(&self) -> Used {
        self.writes.iter().map(|(_, used)| *used).sum()
    }

    pub(crate) fn reads(&self) -> Used {
        self.reads.iter().map(|(_, used)| *used).sum()
    }

    /// Runs the lives of a page of payments in empty tables.
    pub(crate) async fn measure(
        tables: &Tables,
        recorder: &Recorder,
        writes: &[Write],
        payments: &[Payment],
    ) -> Result<Self> {
        let mut measured = Self::default();
        drop(recorder.take_capacity_use());
        for &write in writes {
            for &read in write.reads_before() {
                tables.read(payments, read).await?;
                measured.reads.push((read, used(recorder, tables)));
            }
            for payment in payments {
                tables.write(payment, write).await?;
            }
            measured.writes.push((write, used(recorder, tables)));
            if write == Write::Followed && !payments.iter().any(|payment| payment.fails) {
                tables.read(payments, Read::Transaction).await?;
                measured.reads.push((Read::Transaction, used(recorder, tables)));
            }
        }
        measured.stored = stored(tables).await?;
        Ok(measured)
    }
}

/// Returns what was used since the last time.
pub(crate) fn used(recorder: &Recorder, tables: &Tables) -> Used {
    let mut used = Used::default();
    for ((_, place), half_units) in recorder.take_capacity_use() {
        if place.starts_with(&tables.names.history) { used.history += half_units } else { used.hot += half_units }
    }
    used
}

/// Returns what the long-term table and its indexes store.
pub(crate) async fn stored(tables: &Tables) -> Result<Stored> {
    let (items, indexes) = tables.history().await?;
    let mut stored = Stored::default();
    items.iter().for_each(|item| stored.add(item, &indexes));
    Ok(stored)
}
