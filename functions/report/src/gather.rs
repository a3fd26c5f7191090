//! What is unreported, over all shards, oldest settlement first: a merge of the shards' own orders, page
//! by page, and each entry checked against its head.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use futures::{StreamExt as _, TryStreamExt as _};
use payments_boot::Deadline;
use payments_model::{Head, HeadKey, Shard, ShardCount};
use payments_store::{MAX_BATCH_GET, Store, StoreError, UnreportedEnd, UnreportedRow, UnreportedSort};

use crate::patience::patiently;
use crate::rows::Settlement;

/// How many index entries are in hand, all shards together: at some 250 bytes, 5 MB. A page of one of
/// ten shards is 1,000 of them (DynamoDB's page ends at 1 MB, some 4,700), of one of a thousand, 20.
const IN_HAND: u16 = 20_000;

/// The most entries of one page.
const LARGEST_PAGE: u16 = 1_000;

/// How many shards are read at once in the beginning.
const SHARDS_AT_ONCE: usize = 32;

/// How many batches of heads are read at once: with 100 heads of at most 1 KB each, 800 KB.
const BATCHES_AT_ONCE: usize = 8;

/// How many entries are checked together.
pub(crate) const ENTRIES_AT_ONCE: usize = MAX_BATCH_GET * BATCHES_AT_ONCE;

/// What came of walking the index.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Entries of payments that had been reported.
    pub(crate) skipped: u64,
    /// Entries and heads that cannot be read.
    pub(crate) failed: u64,
}

/// The index on its way from its oldest to its newest settlement.
#[derive(Debug)]
pub(crate) struct Gather<'s> {
    store: &'s Store,
    deadline: &'s Deadline,
    page: u16,
    shards: Vec<ShardWalk>,
    /// The first entry in hand of each shard that has one.
    firsts: BinaryHeap<Reverse<(UnreportedSort, usize)>>,
    last: Option<UnreportedSort>,
    pub(crate) walked: Walked,
}

/// One shard of it.
#[derive(Debug)]
struct ShardWalk {
    shard: Shard,
    in_hand: VecDeque<UnreportedRow>,
    next: Next,
}

/// Where a shard's next page begins.
#[derive(Debug)]
enum Next {
    Beginning,
    After(UnreportedEnd),
    Nowhere,
}

/// The next settlements, as far as there are any.
#[derive(Debug)]
pub(crate) enum Gathered {
    /// These; all may have turned out to be reported already.
    Some(Vec<Settlement>),
    /// There are no more entries.
    End,
    /// DynamoDB asks to be left alone for now.
    NotNow,
}

impl<'s> Gather<'s> {
    /// At the beginning of every shard; `None` where DynamoDB asks to be left alone for now.
    pub(crate) async fn begin(
        store: &'s Store,
        shards: ShardCount,
        deadline: &'s Deadline,
    ) -> Result<Option<Self>, StoreError> {
        let page = (IN_HAND / shards.get()).clamp(1, LARGEST_PAGE);
        let walk = |shard| ShardWalk { shard, in_hand: VecDeque::new(), next: Next::Beginning };
        let shards = shards.all().map(walk).collect();
        let (firsts, walked) = (BinaryHeap::new(), Walked::default());
        let mut gather = Self { store, deadline, page, shards, firsts, last: None, walked };
        Ok(gather.fill_all().await?.then_some(gather))
    }

    async fn fill_all(&mut self) -> Result<bool, StoreError> {
        let (store, deadline, page) = (self.store, self.deadline, self.page);
        let shards = std::mem::take(&mut self.shards).into_iter().map(|mut walk| async move {
            let failed = walk.fill(store, page, deadline).await?;
            Ok::<_, StoreError>((walk, failed))
        });
        let filled: Vec<_> = futures::stream::iter(shards).buffered(SHARDS_AT_ONCE).try_collect().await?;
        for (at, (walk, failed)) in filled.into_iter().enumerate() {
            let Some(failed) = failed else { return Ok(false) };
            self.walked.failed += failed;
            self.shards.push(walk);
            self.offer(at);
        }
        Ok(true)
    }

    fn offer(&mut self, at: usize) {
        if let Some(first) = self.shards[at].in_hand.front() {
            self.firsts.push(Reverse((first.unreported, at)));
        }
    }

    /// Whether there are no more entries after those that came last.
    pub(crate) fn is_at_end(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The settlements of the next entries, of at most `limit`.
    pub(crate) async fn next(&mut self, limit: usize) -> Result<Gathered, StoreError> {
        let mut rows = Vec::with_capacity(limit.min(ENTRIES_AT_ONCE));
        while rows.len() < limit.min(ENTRIES_AT_ONCE) {
            let Some(Reverse((_, at))) = self.firsts.pop() else { break };
            let walk = &mut self.shards[at];
            let row = walk.in_hand.pop_front();
            if walk.in_hand.is_empty() {
                let Some(failed) = walk.fill(self.store, self.page, self.deadline).await? else {
                    return Ok(Gathered::NotNow);
                };
                self.walked.failed += failed;
            }
            self.offer(at);
            // An index that lags may show an entry on two of its pages.
            match row.filter(|row| self.last < Some(row.unreported)) {
                Some(row) => {
                    self.last = Some(row.unreported);
                    rows.push(row);
                }
                None => self.walked.skipped += 1,
            }
        }
        if rows.is_empty() && self.is_at_end() { Ok(Gathered::End) } else { self.verified(rows).await }
    }

    /// The settlements behind these entries, in their order.
    async fn verified(&mut self, rows: Vec<UnreportedRow>) -> Result<Gathered, StoreError> {
        let (store, deadline) = (self.store, self.deadline);
        let reads = rows.chunks(MAX_BATCH_GET).map(|rows| {
            let keys: Vec<HeadKey> = rows.iter().map(|row| row.head.clone()).collect();
            async move { patiently(deadline, || store.hot_heads(&keys)).await }
        });
        let mut heads: HashMap<HeadKey, Result<Head, StoreError>> = HashMap::with_capacity(rows.len());
        for read in futures::future::join_all(reads).await {
            let Some(found) = read? else { return Ok(Gathered::NotNow) };
            heads.extend(found);
        }
        let mut settlements = Vec::with_capacity(rows.len());
        for row in rows {
            match heads.remove(&row.head) {
                Some(Ok(head)) => match Settlement::verified(head, &row.unreported) {
                    Some(settlement) => settlements.push(settlement),
                    None => self.walked.skipped += 1,
                },
                Some(Err(error)) => self.walked.fail(&error),
                // Reported, and archived since.
                None => self.walked.skipped += 1,
            }
        }
        Ok(Gathered::Some(settlements))
    }
}

impl Walked {
    fn fail(&mut self, error: &StoreError) {
        log_unreadable(error);
        self.failed += 1;
    }
}

fn log_unreadable(error: &StoreError) {
    tracing::error!(%error, "a settlement cannot be reported");
}

impl ShardWalk {
    /// Reads on until there is an entry in hand or the shard has ended. Says how many entries could not
    /// be read; `None` where DynamoDB asks to be left alone for now.
    async fn fill(&mut self, store: &Store, page: u16, deadline: &Deadline) -> Result<Option<u64>, StoreError> {
        let mut failed = 0;
        while self.in_hand.is_empty() {
            let after = match &self.next {
                Next::Beginning => None,
                Next::After(end) => Some(end),
                Next::Nowhere => break,
            };
            let shard = self.shard;
            let Some(read) = patiently(deadline, || store.unreported_page(shard, after, page)).await? else {
                return Ok(None);
            };
            self.next = read.end.map_or(Next::Nowhere, Next::After);
            for row in read.rows {
                match row {
                    Ok(row) => self.in_hand.push_back(row),
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
