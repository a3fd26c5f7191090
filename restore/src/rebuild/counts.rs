//! Counters, and claims within limits, are set by the payments in the tables; checkpoints of recounts are deleted.
//!
//! Nobody writes, and the hot table has no stream: so the tables are exact once the indexes have caught up. A repeated
//! step corrects the rest.

use std::collections::BTreeSet;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::{BusinessDate, DayTotal, ShardCount, Status};
use payments_store::{DueRecount, Recounted, Store, StoreError};

use super::outcome::{Finding, Line};

/// The queries that run at once.
const QUERIES: usize = 16;

/// The dates to compare: those of the events, and all from this date on that have counters or payments.
#[derive(Debug)]
pub(crate) struct Dates {
    pub(crate) known: BTreeSet<BusinessDate>,
    pub(crate) from: BusinessDate,
}

/// All dates to compare.
pub(crate) async fn dates(store: &Store, shards: ShardCount, dates: Dates) -> Result<BTreeSet<BusinessDate>> {
    let Dates { known: mut all, from } = dates;
    all.extend(store.counters(from, BusinessDate::MAX).await?.into_keys());
    all.insert(from);
    let ranges = shards.all().flat_map(|shard| Status::ALL.map(|status| (shard, status)));
    let found = futures::stream::iter(ranges).map(async |(shard, status)| {
        let (mut found, mut last) = (Vec::new(), from);
        while let Some(next) = store.next_due_date(shard, status, last).await? {
            found.push(next);
            last = next;
        }
        anyhow::Ok(found)
    });
    let found: Vec<Vec<BusinessDate>> = found.buffer_unordered(QUERIES).try_collect().await?;
    all.extend(found.into_iter().flatten());
    Ok(all)
}

/// Counts the payments of a date in both tables.
async fn recount(store: &Store, shards: ShardCount, date: BusinessDate) -> Result<Recounted> {
    let ranges = shards.all().flat_map(|shard| Status::ALL.map(|status| DueRecount::new(date, shard, status)));
    let counted = futures::stream::iter(ranges).map(async |mut range| {
        while store.recount_next(&mut range).await? {}
        anyhow::Ok(range.found())
    });
    let counted = counted.buffer_unordered(QUERIES);
    counted
        .try_fold(Recounted::default(), async |mut all, one| {
            all.add(one);
            Ok(all)
        })
        .await
}

/// Compares a date's counters and reserved claims with its payments and, if `is_apply`, sets them. Returns whether they differed.
pub(crate) async fn set(
    store: &Store,
    shards: ShardCount,
    date: BusinessDate,
    is_apply: bool,
    tell: &impl Fn(&Line),
) -> Result<bool> {
    let seen = store.counters(date, date).await?.remove(&date).unwrap_or_default();
    let found = recount(store, shards, date).await?;
    if found.unreadable > 0 {
        let examples: Vec<String> = found.examples.iter().map(ToString::to_string).collect();
        let why = format!("{date} cannot be counted: {} entries, such as {}", found.unreadable, examples.join("; "));
        tell(&Line::place(Finding::Unreadable, why));
        // The counters stay, and claims that were made without them count at least.
        let raised = |known: &DayTotal| known.raised_to(&DayTotal::claimed(&found.counts));
        return set_claims(store, date, &raised, is_apply, tell).await;
    }
    let differ = seen.counts != found.counts;
    if differ && is_apply && !store.correct_counters(date, &seen, &found.counts).await? {
        anyhow::bail!("the counters of {date} change meanwhile: does something still count?");
    }
    let claimed = DayTotal::claimed(&found.counts);
    // Without a limit nothing is reserved.
    let right = |known: &DayTotal| if *known == DayTotal::default() { known.clone() } else { claimed.clone() };
    Ok(set_claims(store, date, &right, is_apply, tell).await? || differ)
}

/// Compares the claims that a limit reserved on a date with those that were made and, if `is_apply`, sets them: the table's past lacks
/// some, and has some that were reserved and never made. Without a limit there are none. Returns whether they differed.
async fn set_claims(
    store: &Store,
    date: BusinessDate,
    right: &impl Fn(&DayTotal) -> DayTotal,
    is_apply: bool,
    tell: &impl Fn(&Line),
) -> Result<bool> {
    let reserved = match store.day_claims(date).await {
        Err(error @ StoreError::Unreadable { .. }) => {
            tell(&Line::place(Finding::Unreadable, error.to_string()));
            return Ok(false);
        }
        read => read?.1.reserved,
    };
    let claimed = right(&reserved);
    if reserved == claimed {
        return Ok(false);
    }
    if is_apply && !store.correct_claims(date, &reserved, &claimed).await? {
        anyhow::bail!("the claims of {date} change meanwhile: does something still sweep?");
    }
    Ok(true)
}

/// Deletes the checkpoints and the findings of recounts, if `is_apply`. Returns their number.
pub(crate) async fn forget(store: &Store, is_apply: bool) -> Result<u64> {
    let (shards, findings) = (store.checkpoints().await?, store.evidence(BusinessDate::MIN, BusinessDate::MAX).await?);
    let count = shards.len() + findings.len();
    if is_apply {
        for shard in shards {
            store.drop_checkpoint(&shard).await?;
        }
        for date in findings.into_keys() {
            store.drop_evidence(date).await?;
        }
    }
    Ok(u64::try_from(count).unwrap_or(u64::MAX))
}
