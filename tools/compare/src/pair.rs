//! The pairs, and the work of each side.

use anyhow::Result;

use crate::calls::Work;
use crate::fixture::Fixture;
use crate::{ingest, list, settle, sweep};

/// Two ways to do the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// One payment a request, and the two PutItems of each.
    Ingest,
    /// A hundred payments a request, and one a request.
    Batch,
    /// A sweep of due payments, and its queries and updates.
    Sweep,
    /// Ten settlement results a batch, and the read, the put, the update and the query of each.
    Settle,
    /// An account's first hundred payments, and the query.
    List,
}

/// One side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The measured side: the handler, or the batch.
    Handler,
    /// The other side: the bare loop, or single payments.
    Against,
}

/// The properties of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Properties {
    /// The name.
    pub name: &'static str,
    /// The work of the two sides.
    pub sides: [&'static str; 2],
    /// The least ratio of the handler's throughput to that of the bare loop, in thousandths.
    pub at_least: Option<u64>,
    /// The number of payments, or pages of them, in one measurement. It takes a tenth of a second or more.
    pub size: u64,
}

impl Pair {
    /// All pairs.
    pub const ALL: [Self; 5] = [Self::Ingest, Self::Batch, Self::Sweep, Self::Settle, Self::List];

    /// Returns the properties.
    pub fn properties(self) -> Properties {
        let (name, sides, at_least, size) = match self {
            Self::Ingest => ("ingest", ["a request per payment", "its two PutItems"], Some(850), 200),
            Self::Batch => ("batch", ["100 payments a request", "a request per payment"], None, 200),
            Self::Sweep => ("sweep", ["a sweep of ten shards", "its queries and updates"], Some(850), 500),
            Self::Settle => {
                ("settle", ["batches of ten settlement results", "their reads, writes and queries"], Some(850), 300)
            }
            Self::List => ("list", ["pages of 100 payments", "their queries"], Some(800), 128),
        };
        Properties { name, sides, at_least, size }
    }

    /// Creates what all rounds read.
    pub async fn begin(self, fixture: &Fixture) -> Result<()> {
        match self {
            Self::List => list::begin(fixture).await,
            _ => Ok(()),
        }
    }

    /// Prepares work of this size, so that only the work itself is measured.
    pub async fn prepare(self, fixture: &Fixture, side: Side, size: u64) -> Result<Work<'_>> {
        match (self, side) {
            (Self::Ingest, Side::Handler) | (Self::Batch, Side::Against) => ingest::single(fixture, size),
            (Self::Ingest, Side::Against) => ingest::bare_calls(fixture, size).await,
            (Self::Batch, Side::Handler) => ingest::in_batches(fixture, size),
            (Self::Sweep, Side::Handler) => sweep::by_handler(fixture, size).await,
            (Self::Sweep, Side::Against) => sweep::bare_calls(fixture, size).await,
            (Self::Settle, Side::Handler) => settle::by_handler(fixture, size).await,
            (Self::Settle, Side::Against) => settle::bare_calls(fixture, size).await,
            (Self::List, Side::Handler) => list::by_handler(fixture, size),
            (Self::List, Side::Against) => list::bare_calls(fixture, size).await,
        }
    }
}
