//! `seal` alone over the machine: finished payments are sealed once their date is old, and no others are.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use object_store::ObjectStoreExt as _;
use payments_machine::given::Given;
use payments_model::{Actor, DayCounts, Details, Status};
use payments_sealed::read_all;
use payments_store::{Committed, CountsCommit, LogHead};
use seal::{Config, Seal, SealOutcome};
use serde_json::json;

const DAY: &str = "2026-11-20";

async fn run(given: &Given) -> Result<SealOutcome> {
    let files = Arc::clone(&given.stack.reports);
    let new = |config, store, clock, metrics| Seal::new(config, store, files, clock, metrics);
    let seal = given.function("seal", Config::read, new)?;
    seal.handle(given.scheduled_event(json!({ "action": "seal" }))?).await.map_err(anyhow::Error::from_boxed)
}

/// Cancels a payment, and archives it.
async fn archived(given: &Given, key: &str) -> Result<Details> {
    let details = given.scheduled(key, DAY).await?;
    given.store.cancel_payment(&details, given.stack.clock.now(), &Actor::client("test")).await?;
    let head = given.store.stored_head(&details.key()).await?.context("a head")?;
    given.store.put_archived_head(&head).await?;
    given.store.remove_head(&head).await?;
    Ok(details)
}

/// Counts so many cancelled payments, as `stream-aggregator` does.
async fn count(given: &Given, cancelled: i64) -> Result<()> {
    let mut counts = DayCounts::default();
    counts.shift(Status::Cancelled, cancelled);
    let deltas = BTreeMap::from([(DAY.parse()?, counts)]);
    let commit = CountsCommit { deltas, unparsed: 0, events: Vec::new(), last: 1_u64.into() };
    let log = LogHead::first("a stream", given.stack.clock.now());
    let done = given.store.commit_counts("a shard", None, &commit, &log, given.stack.clock.now()).await?;
    ensure!(done == Committed::Done, "{done:?}");
    Ok(())
}

#[tokio::test]
async fn an_archived_payment_is_sealed_once_its_date_is_old_and_no_other_is() -> Result<()> {
    let given = Given::at("2026-11-20T09:00:00Z", |environment| environment.seal_after_days = 5).await?;
    let payment = archived(&given, "archived").await?;
    given.scheduled("scheduled", DAY).await?;
    count(&given, 1).await?;
    given.pass(TimeDelta::days(5));
    assert_eq!(run(&given).await?, SealOutcome::default(), "it is too early");
    given.pass(TimeDelta::days(1));
    assert_eq!(run(&given).await?, SealOutcome { sealed: 1, parts: 1, ..SealOutcome::default() });
    assert_eq!(run(&given).await?, SealOutcome::default());
    let path = format!("sealed/date={DAY}/000001.parquet");
    let bytes = given.stack.reports.get(&path.as_str().into()).await?.bytes().await?;
    let (_, rows) = read_all(&bytes)?;
    let ids: Vec<_> = rows.iter().map(|row| row.text("paymentId").map(str::to_owned)).collect();
    assert_eq!(ids, [Some(payment.payment_id.to_string())]);
    Ok(())
}
