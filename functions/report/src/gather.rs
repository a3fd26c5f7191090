//! Gathers unreported settlements, oldest first: merges the shards' pages and checks each entry by its head.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use futures::{StreamExt as _, TryStreamExt as _};
use payments_boot::Deadline;
use payments_files::SettledHead;
use payments_model::{Head, HeadKey, Shard, ShardCount};
use payments_store::{MAX_BATCH_GET, Store, StoreError, UnreportedEnd, UnreportedRow, UnreportedSort};

use crate::retry::retried;

/// The index entries in memory over all shards: 5 MB at about 250 bytes. A page has 1,000 with ten shards
/// and 20 with a thousand. (DynamoDB's page ends at 1 MB, about 4,700 entries.)
const MAX_ENTRIES: u16 = 20_000;

/// The most entries of one page.
const LARGEST_PAGE: u16 = 1_000;

/// The most shards read at once at the start.
const SHARDS_AT_ONCE: usize = 32;

/// The most batches of heads read at once: 800 KB, with 100 heads of at most 1 KB each.
const BATCHES_AT_ONCE: usize = 8;

/// The most entries checked together.
pub(crate) const ENTRIES_AT_ONCE: usize = MAX_BATCH_GET * BATCHES_AT_ONCE;

/// A walk over the index from the oldest to the newest settlement.
#[derive(Debug)]
pub(crate) struct Gather<'s> {
    store: &'s Store,
    deadline: &'s Deadline,
    page: u16,
    shards: Vec<ShardWalk>,
    /// The first entry of each shard that has one.
    firsts: BinaryHeap<Reverse<(UnreportedSort, usize)>>,
    last: Option<UnreportedSort>,
    /// Entries of payments that were reported before.
    pub(crate) skipped: u64,
    /// Entries and heads that cannot be read.
    pub(crate) failed: u64,
}

/// The walk over one shard.
#[derive(Debug)]
struct ShardWalk {
    shard: Shard,
    entries: VecDeque<UnreportedRow>,
    next: Next,
}

/// The start of a shard's next page.
#[derive(Debug)]
enum Next {
    Beginning,
    After(UnreportedEnd),
    Nowhere,
}

/// The next settlements.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// The settlements; empty if all entries were reported before.
    Some(Vec<SettledHead>),
    /// There are no more entries.
    End,
    /// DynamoDB failed for now.
    NotNow,
}

impl<'s> Gather<'s> {
    /// Reads the first page of every shard. Returns `None` if DynamoDB fails for now.
    pub(crate) async fn begin(
        store: &'s Store,
        shards: ShardCount,
        deadline: &'s Deadline,
    ) -> Result<Option<Self>, StoreError> {
        let page = (MAX_ENTRIES / shards.get()).clamp(1, LARGEST_PAGE);
        let walk = |shard| ShardWalk { shard, entries: VecDeque::new(), next: Next::Beginning };
        let shards = shards.all().map(walk).collect();
        let firsts = BinaryHeap::new();
        let mut gather = Self { store, deadline, page, shards, firsts, last: None, skipped: 0, failed: 0 };
        Ok(gather.fill_all().await?.then_some(gather))
    }

    async fn fill_all(&mut self) -> Result<bool, StoreError> {
        let store = self.store;
        let deadline = self.deadline;
        let page = self.page;
        let shards = std::mem::take(&mut self.shards).into_iter().map(|mut walk| async move {
            let failed = walk.fill(store, page, deadline).await?;
            Ok::<_, StoreError>((walk, failed))
        });
        let filled: Vec<_> = futures::stream::iter(shards).buffered(SHARDS_AT_ONCE).try_collect().await?;
        for (at, (walk, failed)) in filled.into_iter().enumerate() {
            let Some(failed) = failed else { return Ok(false) };
            self.failed += failed;
            self.shards.push(walk);
            self.offer(at);
        }
        Ok(true)
    }

    fn offer(&mut self, at: usize) {
        if let Some(first) = self.shards[at].entries.front() {
            self.firsts.push(Reverse((first.unreported, at)));
        }
    }

    /// Whether there are no more entries.
    pub(crate) fn is_at_end(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Returns the settlements of at most `limit` next entries.
    pub(crate) async fn next(&mut self, limit: usize) -> Result<Gathered, StoreError> {
        let mut rows = Vec::with_capacity(limit.min(ENTRIES_AT_ONCE));
        while rows.len() < limit.min(ENTRIES_AT_ONCE) {
            let Some(Reverse((_, at))) = self.firsts.pop() else { break };
            let walk = &mut self.shards[at];
            let row = walk.entries.pop_front();
            if walk.entries.is_empty() {
                let Some(failed) = walk.fill(self.store, self.page, self.deadline).await? else {
                    return Ok(Gathered::NotNow);
                };
                self.failed += failed;
            }
            self.offer(at);
            // An index that lags may show an entry on two pages.
            match row.filter(|row| self.last < Some(row.unreported)) {
                Some(row) => {
                    self.last = Some(row.unreported);
                    rows.push(row);
                }
                None => self.skipped += 1,
            }
        }
        if rows.is_empty() && self.is_at_end() { Ok(Gathered::End) } else { self.verified(rows).await }
    }

    /// Reads the heads of these entries. Returns the settlements that are still unreported, in order.
    async fn verified(&mut self, rows: Vec<UnreportedRow>) -> Result<Gathered, StoreError> {
        let (store, deadline) = (self.store, self.deadline);
        let reads = rows.chunks(MAX_BATCH_GET).map(|rows| {
            let keys: Vec<HeadKey> = rows.iter().map(|row| row.head.clone()).collect();
            async move { retried(deadline, async || store.hot_heads(&keys).await).await }
        });
        let mut heads: HashMap<HeadKey, Result<Head, StoreError>> = HashMap::with_capacity(rows.len());
        for read in futures::future::join_all(reads).await {
            let Some(found) = read? else { return Ok(Gathered::NotNow) };
            heads.extend(found);
        }
        let mut settlements = Vec::with_capacity(rows.len());
        for row in rows {
            match heads.remove(&row.head) {
                Some(Ok(head)) => match SettledHead::verified(head, &row.unreported) {
                    Some(settlement) => settlements.push(settlement),
                    None => self.skipped += 1,
                },
                Some(Err(error)) => {
                    log_unreadable(&error);
                    self.failed += 1;
                }
                // Reported and archived.
                None => self.skipped += 1,
            }
        }
        Ok(Gathered::Some(settlements))
    }
}

fn log_unreadable(error: &StoreError) {
    tracing::error!(%error, "a settlement cannot be read and is not reported");
}

impl ShardWalk {
    /// Reads pages until there is an entry or the shard ends. Returns how many entries cannot be read, or
    /// `None` if DynamoDB fails for now.
    async fn fill(&mut self, store: &Store, page: u16, deadline: &Deadline) -> Result<Option<u64>, StoreError> {
        let mut failed = 0;
        while self.entries.is_empty() {
            let after = match &self.next {
                Next::Beginning => None,
                Next::After(end) => Some(end),
                Next::Nowhere => break,
            };
            let shard = self.shard;
            let Some(read) = retried(deadline, async || store.unreported_page(shard, after, page).await).await? else {
                return Ok(None);
            };
            self.next = read.end.map_or(Next::Nowhere, Next::After);
            for row in read.rows {
                match row {
                    Ok(row) => self.entries.push_back(row),
                    Err(error) => {
                        log_unreadable(&error);
                        failed += 1;
                    }
                }
            }
        }
        Ok(Some(failed))
    }
}
