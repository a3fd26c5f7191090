//! A sweep of due payments, and only its queries and updates.

use anyhow::{Result, ensure};
use futures::TryStreamExt as _;
use futures::stream::FuturesUnordered;
use payments_model::{Actor, Event, Status};
use payments_store::{DueRange, DueSort, DueUntil};

use crate::calls::{Work, send_groups, send_in_turn};
use crate::fixture::Fixture;

/// The index entries of one query of the sweeper.
const PAGE: u16 = 1_000;

/// The sweeper's claims in flight in each shard.
const CLAIMS_AT_ONCE: usize = 16;

pub(crate) async fn by_handler(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    fixture.fill(size).await?;
    Ok(Box::pin(async move {
        let claimed = fixture.sweep().await?;
        ensure!(claimed == size, "the sweep claimed {claimed} of {size}");
        Ok(())
    }))
}

pub(crate) async fn bare_calls(fixture: &Fixture, size: u64) -> Result<Work<'_>> {
    let (heads, collector, client) = (fixture.due(size)?, &fixture.collector, &fixture.client);
    fixture.put(&heads).await?;
    let until = DueUntil::Instant(fixture.zone.date_of(fixture.now), fixture.now);
    let mut shards = Vec::new();
    for shard in fixture.shards.all() {
        let mut claims = Vec::new();
        for head in heads.iter().filter(|head| head.shard == shard) {
            let step = head.transition(&Event::Sweep, fixture.now, Actor::sweep())?;
            let claim =
                async |store: &payments_store::Store| store.transition(&head.key(), DueSort::of(head), &step).await;
            claims.push([collector.call(claim).await?]);
        }
        ensure!(claims.len() < usize::from(PAGE), "a shard has more than a page");
        let range = DueRange { shard, status: Status::Scheduled, until, after: None };
        shards.push((collector.call(async |store| store.due_page(&range, PAGE).await).await?, claims));
    }
    let swept = shards.into_iter().map(move |(query, claims)| async move {
        send_in_turn(client, [query]).await?;
        send_groups(client, claims, CLAIMS_AT_ONCE).await
    });
    Ok(Box::pin(swept.collect::<FuturesUnordered<_>>().try_collect()))
}
