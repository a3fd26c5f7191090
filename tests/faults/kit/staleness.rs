//! Stale reads by so many changes, for every read at a chosen moment; a simulated month has them now and then.
//!
//! The long-term table has no stream; a stale read of it finds nothing, which is as old as an answer can be.

use std::collections::BTreeMap;

use fastrand::Rng;
use payments_machine::layers::attributes::is_of_head;
use payments_machine::layers::lag::{Changes, Past, Read};
use payments_machine::layers::random::Seed;
use serde_json::Value;

/// The lags of reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lag {
    /// The most changes that reads of each index lag behind.
    pub(crate) indexes: BTreeMap<&'static str, usize>,
    /// The most changes that reads without consistency lag behind.
    pub(crate) reads: usize,
    /// Whether such reads of the long-term table lag too.
    pub(crate) details_too: bool,
    /// Draws each lag; without it, each is the longest.
    pub(crate) random: Option<Rng>,
}

impl Lag {
    /// Every index and every inconsistent read lags behind by up to `most` changes.
    pub(crate) fn up_to(most: usize, seed: u64) -> Self {
        let indexes = [("due", most), ("transaction", most), ("unreported", most)].into();
        Self { indexes, reads: most, details_too: true, random: Some(Seed(seed).source("lag")) }
    }

    /// Every read that can lag does, by this many changes.
    pub(crate) fn always(changes: usize) -> Self {
        Self { random: None, ..Self::up_to(changes, 0) }
    }

    /// Makes an answer as old as its read lags. Returns whether it changed.
    pub(crate) fn age(&mut self, read: Read<'_>, hot: &str, changes: &Changes, answer: &mut Value) -> bool {
        let lagging = self.draw(read);
        if lagging == 0 || changes.follow().is_err() {
            return false;
        }
        let log = changes.log();
        let of_heads = log.iter().rev().filter(|change| is_of_head(&change.key.0));
        Past::before(of_heads.take(lagging).cloned()).age(read, hot, self.details_too, answer)
    }

    /// Draws how many changes a read lags behind.
    fn draw(&mut self, (operation, input): Read<'_>) -> usize {
        let most = match (operation, input["IndexName"].as_str()) {
            ("Query", Some(index)) => self.indexes.get(index).copied().unwrap_or(0),
            ("Query" | "GetItem", None) if input["ConsistentRead"] != true => self.reads,
            ("BatchGetItem", _) => self.reads,
            _ => 0,
        };
        match &mut self.random {
            Some(random) if most > 0 => random.usize(..=most),
            _ => most,
        }
    }
}
