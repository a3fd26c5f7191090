//! `seal` alone over the machine: finished payments are sealed once their date is old, and no others are.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use object_store::ObjectStoreExt as _;
use payments_machine::given::Given;
use payments_model::{Actor, DayCounts, Details, Status};
use payments_sealed::read_all;
use seal::{Config, Seal, SealOutcome};
use serde_json::json;

const DAY: &str = "2026-11-20";

async fn run(given: &Given) -> Result<SealOutcome> {
    let files = Arc::clone(&given.stack.reports);
    let new = |config, store, clock, metrics| Seal::new(config, store, files, clock, metrics);
    let seal = given.function("seal", Config::read, new)?;
    seal.handle(given.scheduled_event(json!({ "action": "seal" }))?).await.map_err(anyhow::Error::from_boxed)
}

/// Cancels a payment, archives it, and counts it as the only one of its date.
async fn archived(given: &Given, key: &str, date: &str) -> Result<Details> {
    let details = given.scheduled(key, date).await?;
    given.store.cancel_payment(&details, given.stack.clock.now(), &Actor::client("test")).await?;
    let head = given.store.stored_head(&details.key()).await?.context("a head")?;
    given.store.put_archived_head(&head).await?;
    given.store.remove_head(&head).await?;
    let mut counts = DayCounts::default();
    counts.shift(Status::Cancelled, 1);
    given.counted(date.parse()?, counts).await?;
    Ok(details)
}

#[tokio::test]
async fn an_archived_payment_is_sealed_once_its_date_is_old_and_no_other_is() -> Result<()> {
    let given = Given::at("2026-11-20T09:00:00Z", |environment| environment.seal_after_days = 5).await?;
    let payment = archived(&given, "archived", DAY).await?;
    given.scheduled("scheduled", DAY).await?;
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

#[tokio::test]
async fn a_damaged_part_stops_no_other_date() -> Result<()> {
    let given = Given::at("2026-11-20T09:00:00Z", |environment| environment.seal_after_days = 5).await?;
    archived(&given, "one", DAY).await?;
    archived(&given, "other", "2026-11-21").await?;
    given.pass(TimeDelta::days(6));
    assert_eq!(run(&given).await?.sealed, 1);
    let (files, path) = (&given.stack.reports, format!("sealed/date={DAY}/000001.parquet"));
    files.put(&path.as_str().into(), "PAR1".into()).await?;
    given.pass(TimeDelta::days(1));
    let error = run(&given).await.err().context("a damaged part is believed")?;
    assert!(error.to_string().contains(&path), "{error}");
    // That date is sealed, and the part belongs to its date alone.
    let other = files.get(&"sealed/date=2026-11-21/000001.parquet".into()).await?.bytes().await?;
    files.put(&path.as_str().into(), other.into()).await?;
    let error = run(&given).await.err().context("the part of another date is believed")?;
    assert!(error.to_string().contains(&path), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_part_that_is_missing_is_noticed() -> Result<()> {
    let given = Given::at("2026-11-20T09:00:00Z", |environment| {
        (environment.seal_after_days, environment.max_part_rows) = (5, 1);
    });
    let given = given.await?;
    for key in ["one", "other"] {
        archived(&given, key, DAY).await?;
    }
    given.pass(TimeDelta::days(6));
    assert_eq!(run(&given).await?.parts, 2);
    let path = format!("sealed/date={DAY}/000001.parquet");
    given.stack.reports.delete(&path.as_str().into()).await?;
    let error = run(&given).await.err().context("nobody misses the part")?;
    assert!(error.to_string().contains(&path), "{error}");
    Ok(())
}
