//! What the functions add to the calls they make: each pair does the same work twice, through a function's
//! handler and in a bare loop of the same calls with the same client, in turns and against the same engine.
//! `cargo compare` measures them, `cargo sweep-rate` how fast much that is due is swept.

pub mod bank;
mod calls;
pub mod check;
mod ingest;
mod list;
pub mod round;
mod settle;
mod sweep;
pub mod table;

use anyhow::Result;
use futures::future::LocalBoxFuture;

use bank::Bank;

/// Work that is all prepared: what its future does is what is measured.
pub(crate) type Work<'b> = LocalBoxFuture<'b, Result<()>>;

/// How many requests or calls are under way at once, on either side.
pub(crate) const AT_ONCE: usize = 32;

/// Two ways to do the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// One payment a request, beside the two PutItems.
    Ingest,
    /// A hundred payments a request, beside one.
    Batch,
    /// What has fallen due becomes pending, beside the queries and updates of that.
    Sweep,
    /// Ten reports a batch, beside the update and the two queries of each.
    Settle,
    /// An account's first hundred payments, beside the query.
    List,
}

/// One side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is looked at: the handler, or the batch.
    Handler,
    /// What it is held against: the bare loop, or single payments.
    Against,
}

impl Pair {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ingest, Self::Batch, Self::Sweep, Self::Settle, Self::List];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Batch => "batch",
            Self::Sweep => "sweep",
            Self::Settle => "settle",
            Self::List => "list",
        }
    }

    /// What its two sides do.
    #[must_use]
    pub fn sides(self) -> [&'static str; 2] {
        match self {
            Self::Ingest => ["a request per payment", "its two PutItems"],
            Self::Batch => ["100 payments a request", "a request per payment"],
            Self::Sweep => ["a sweep of ten shards", "its queries and updates"],
            Self::Settle => ["batches of ten reports", "their updates and queries"],
            Self::List => ["pages of 100 payments", "their queries"],
        }
    }

    /// The least that the handler's throughput may be beside that of the bare loop, in thousandths.
    #[must_use]
    pub fn bar(self) -> Option<u64> {
        match self {
            Self::Ingest | Self::Sweep | Self::Settle => Some(850),
            Self::List => Some(800),
            Self::Batch => None,
        }
    }

    /// How many payments, or pages of them, are one measurement: a tenth of a second or more.
    #[must_use]
    pub fn size(self) -> u64 {
        match self {
            Self::Ingest | Self::Batch => 200,
            Self::Sweep => 500,
            Self::Settle => 300,
            Self::List => 128,
        }
    }

    /// Puts in what all rounds find.
    ///
    /// # Errors
    /// Where the engine does not answer.
    pub async fn begin(self, bank: &Bank) -> Result<()> {
        match self {
            Self::List => list::begin(bank).await,
            _ => Ok(()),
        }
    }

    /// Prepares work of this size, so that nothing but the work is left to do.
    ///
    /// # Errors
    /// Where the engine does not answer.
    pub async fn prepare(self, bank: &Bank, side: Side, size: u64) -> Result<Work<'_>> {
        match (self, side) {
            (Self::Ingest, Side::Handler) | (Self::Batch, Side::Against) => ingest::singly(bank, size),
            (Self::Ingest, Side::Against) => ingest::barely(bank, size).await,
            (Self::Batch, Side::Handler) => ingest::in_batches(bank, size),
            (Self::Sweep, Side::Handler) => sweep::by_handler(bank, size).await,
            (Self::Sweep, Side::Against) => sweep::barely(bank, size).await,
            (Self::Settle, Side::Handler) => settle::by_handler(bank, size).await,
            (Self::Settle, Side::Against) => settle::barely(bank, size).await,
            (Self::List, Side::Handler) => list::by_handler(bank, size),
            (Self::List, Side::Against) => list::barely(bank, size).await,
        }
    }
}
