//! A sweep of payments that have fallen due, and the queries and updates of it alone.

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use futures::stream::FuturesUnordered;
use payments_model::{Actor, Event, Shard, Status};
use payments_store::{DueRange, DueUntil};

use crate::Work;
use crate::bank::Bank;
use crate::calls::{Call, send_groups, send_in_turn};

/// How many index entries one query of the sweeper reads.
const PAGE: u16 = 1_000;

/// How many claims of a shard the sweeper has under way at once.
const CLAIMS_AT_ONCE: usize = 16;

/// Who makes payments pending, as the sweeper names itself.
const SWEEPER: &str = "daily-due-sweeper";

pub(crate) async fn by_handler(bank: &Bank, size: u64) -> Result<Work<'_>> {
    bank.fill(size).await?;
    Ok(Box::pin(async move {
        let claimed = bank.sweep().await?;
        ensure!(claimed == size, "the sweep claimed {claimed} of {size}");
        Ok(())
    }))
}

pub(crate) async fn barely(bank: &Bank, size: u64) -> Result<Work<'_>> {
    let heads = bank.due(size)?;
    bank.put(&heads).await?;
    let mut shards = Vec::new();
    for shard in bank.shards().all() {
        let mut claims = Vec::new();
        for head in heads.iter().filter(|head| head.shard == shard) {
            let step = head.transition(&Event::Sweep, bank.now, Actor::named(SWEEPER))?;
            let claim =
                bank.recorder.call(async |store| store.transition(&head.key(), head.due_date, &step).await).await?;
            claims.push([claim]);
        }
        ensure!(claims.len() < usize::from(PAGE), "a shard has more than a page");
        shards.push((query(bank, shard).await?, claims));
    }
    Ok(Box::pin(async move {
        let swept: FuturesUnordered<_> = shards
            .into_iter()
            .map(|(query, claims)| async move {
                send_in_turn(&bank.client, [query]).await?;
                send_groups(&bank.client, claims, CLAIMS_AT_ONCE).await
            })
            .collect();
        swept.try_collect().await
    }))
}

async fn query(bank: &Bank, shard: Shard) -> Result<Call> {
    let until = DueUntil::Instant(bank.zone.date_of(bank.now), bank.now);
    let range = DueRange { shard, status: Status::Scheduled, until, after: None };
    bank.recorder.call(async |store| store.due_page(&range, PAGE).await).await
}
