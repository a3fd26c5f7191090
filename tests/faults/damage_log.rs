//! The log of damage: every line about a damaged item names its table and its key, because docs/alarms.md says so.
//!
//! A month's items are never damaged.

use anyhow::{Context as _, Result, ensure};
use daily_due_sweeper::Action;
use payments_lab::facts::results::processed;
use payments_store::Item;
use payments_tests::LogLines;
use payments_tests::tables::{details_key, number, text};
use serde_json::Value;

use crate::kit::fixture::Fixture;
use crate::night::{UNTIL_NIGHT, invoke};

/// Takes the lines with this text.
fn take(log: &LogLines, about: &str) -> Result<Vec<String>> {
    Ok(log.take()?.iter().map(Value::to_string).filter(|line| line.contains(about)).collect())
}

/// Fails unless there are lines about this, and each names the table and the item.
fn assert_names(log: &LogLines, about: &str, table: &str, item: &Item) -> Result<()> {
    let part = |name: &str| item[name].as_s().map_or("", String::as_str);
    let lines = take(log, about)?;
    ensure!(!lines.is_empty(), "no line says {about:?}");
    let key = format!("{} / {}", part("pk"), part("sk"));
    for line in lines {
        ensure!(line.contains(table) && line.contains(&key), "no {key} of {table}: {line}");
    }
    Ok(())
}

/// The only head of a new account's payment.
async fn head_of(fixture: &Fixture, account: &str) -> Result<Item> {
    fixture.world.heads(account).await?.pop().context("no head")
}

#[tokio::test]
async fn the_sweep_the_redrive_and_dispatch_name_what_they_cannot_read() -> Result<()> {
    let (log, _guard) = LogLines::start();
    let fixture = Fixture::start().await?;
    let (hot, history) = (&fixture.tables().payments, &fixture.tables().history);
    // An index entry without an attribute, and one with a wrong one.
    for (name, value) in
        [("version", None), ("amountMinor", Some(number(0))), ("due", Some(text("SCHEDULED#2026-11-20")))]
    {
        let intents = fixture.due(1).await?;
        let head = head_of(&fixture, &intents[0].account).await?;
        fixture.world.set(hot, &head, name, value).await?;
        drop(log.take()?);
        fixture.tick(Action::Sweep).await?;
        assert_names(&log, "is not claimed", hot, &head)?;
        fixture.world.set(hot, &head, name, Some(head[name].clone())).await?;
        fixture.tick(Action::Sweep).await?;
    }
    // A head, its details, and both when they disagree.
    for (name, value, in_details, about) in [
        ("trail", text("gone"), false, "cannot be read and is not dispatched"),
        ("dueAt", text("some day"), true, "details cannot be read"),
        ("payeeAccountId", text("somebody-else"), false, "disagrees with its details"),
    ] {
        let intents = fixture.pending(1).await?;
        let head = head_of(&fixture, &intents[0].account).await?;
        let details = details_key(intents[0].id()?);
        let (table, item) = if in_details { (history, &details) } else { (hot, &head) };
        fixture.world.set(table, item, name, Some(value)).await?;
        drop(log.take()?);
        fixture.dispatch_all().await?;
        assert_names(&log, about, table, item)?;
        fixture.redrive_later().await?;
        if name == "trail" {
            assert_names(&log, "is not redriven", hot, &head)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_aggregator_the_report_the_archive_and_the_recount_name_what_they_cannot_read() -> Result<()> {
    let (log, _guard) = LogLines::start();
    let fixture = Fixture::start().await?;
    let hot = &fixture.tables().payments;
    let intents = fixture.created(1).await?;
    fixture.assert_finishes(&intents).await?;
    let head = head_of(&fixture, &intents[0].account).await?;
    fixture.world.set(hot, &head, "unreported", Some(text("202611200900#nobody"))).await?;
    drop(log.take()?);
    invoke(&fixture, &fixture.functions, "report").await?;
    assert_names(&log, "is not reported", hot, &head)?;
    fixture.world.set(hot, &head, "unreported", None).await?;
    fixture.world.set(hot, &head, "amountMinor", Some(text("lots"))).await?;
    fixture.aggregate_all().await?;
    assert_names(&log, "a head is invalid", hot, &head)?;

    fixture.time.pass(UNTIL_NIGHT);
    invoke(&fixture, &fixture.functions, "archive").await?;
    assert_names(&log, "cannot be archived", hot, &head)?;
    let day = &intents[0].scheduled_for[..10];
    fixture.recount(day).await?;
    assert_names(&log, "an index entry cannot be read", hot, &head)?;
    Ok(())
}

#[tokio::test]
async fn a_shared_transaction_id_is_in_the_log() -> Result<()> {
    let (log, _guard) = LogLines::start();
    let fixture = Fixture::start().await?;
    for intent in fixture.pending(2).await? {
        fixture.send_result(&processed(&intent.transfer(), "T/same"))?;
        fixture.settle_step().await;
    }
    let lines = take(&log, "another payment has this transaction id")?;
    ensure!(lines.len() == 1 && lines[0].contains("T/same"), "{lines:?}");
    fixture.assert_counters_exact().await
}
