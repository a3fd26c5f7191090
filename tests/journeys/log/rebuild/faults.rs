//! Changes by a fault of a client or a program are left out, and nothing else: never a sent or settled payment.

use object_store::ObjectStoreExt as _;
use payments_restore::stages::{lost, scheduled};
use payments_restore::{Change, Finding, Rebuild, Source};
use payments_store::TableNames;
use payments_store::schema::{PAYMENTS, Table, create_table};

use super::super::*;
use super::bank::{BEGINNING, Bank, TODAY, attribute};
use crate::report::settlements;

#[tokio::test]
async fn what_the_fault_did_is_left_out_and_what_was_sent_is_kept_and_listed() -> Result<()> {
    let bank = Bank::new().await?;
    // A program cancels payments, and creates some that nobody wants. One of them is sent before anybody notices.
    for (name, date) in [("k", "2026-12-01"), ("l", TODAY)] {
        bank.create(name, date).await?;
    }
    bank.sweep().await?;
    bank.cancel("g").await?;
    bank.count().await?;
    bank.lose().await?;
    let done = bank.apply_except(&[
        "actor=client:local-development,from=2026-11-20T09:30:00Z,type=payment.cancelled",
        "actor=client:local-development,from=2026-11-20T09:55:00Z,type=payment.scheduled",
    ]);
    // The cancellations of a and g, and the creation of k. The creation of l is kept.
    let done = done.await?.found([(Finding::LeftOut, 3), (Finding::Kept, 1)])?;
    assert_eq!(done.line("kept")?["paymentId"], json!(bank.id("l")));
    let statuses = [("a", Some("SCHEDULED")), ("g", Some("SCHEDULED")), ("k", None), ("l", Some("PENDING"))];
    bank.assert_statuses(&statuses).await?;
    assert_eq!(done.changed(Change::Built), 2, "{:?}", done.changes);
    // Readers of the log learn the changes that were left out.
    bank.open().await?;
    let told = |event: &Value| ["type", "paymentId", "version"].map(|name| event[name].clone());
    let mut told: Vec<_> = bank.news().await?.iter().map(told).collect();
    let mut want = vec![[json!("log.restored"), Value::Null, Value::Null]];
    for (name, version) in [("a", 1), ("g", 1), ("k", 0)] {
        want.push([json!("payment.restored"), json!(bank.id(name)), json!(version)]);
    }
    for events in [&mut told, &mut want] {
        events.sort_by_key(|[_, id, _]| id.to_string());
    }
    assert_eq!(told, want);
    // The tables are lost once more. Changes that were left out stay out, without being named again.
    bank.lose().await?;
    bank.apply().await?.found([])?;
    bank.assert_statuses(&statuses).await
}

#[tokio::test]
async fn a_fault_from_before_the_restored_instant_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose().await?;
    let done = bank.apply_except(&["type=payment.cancelled,to=2026-11-20T09:25:00Z"]).await?;
    done.found([(Finding::LeftOut, 1), (Finding::Kept, 1)])?;
    bank.assert_statuses(&[("f", Some("CANCELLED"))]).await
}

/// An invocation of before that is still alive changes neither counters nor log, before the new epoch and in it.
#[tokio::test]
async fn a_late_delivery_of_the_old_stream_is_refused() -> Result<()> {
    let bank = Bank::new().await?;
    let late = bank.delivery().await?;
    bank.lose().await?;
    bank.apply().await?;
    bank.assert_refused(&late, "A new epoch of the log").await;
    bank.assert_done().await.context("counters and checkpoints are as they were")?;
    bank.open().await?;
    let end = bank.end().await?;
    bank.assert_refused(&late, "another stream").await;
    assert_eq!(bank.end().await?, end);
    bank.recount().await
}

/// The run was committed, and nobody could read it: the next report has its payments.
#[tokio::test]
async fn a_report_that_was_committed_and_never_published_does_not_count() -> Result<()> {
    let bank = Bank::new().await?;
    bank.settle(&[("c", Ok("TX-c"))]).await?;
    bank.count().await?;
    settlements::run(&bank).await?;
    for file in settlements::files(&bank).await?.into_keys().filter(|name| name.contains("run-000003")) {
        bank.outside.reports.delete(&file.into()).await?;
    }
    bank.lose().await?;
    assert_eq!(bank.apply().await?.found([])?.report_run, Some(2));
    bank.go_on(&["c"]).await
}

/// The long-term table and the reports know how payments ended. They know nothing of the rest, which is in docs/restore.md.
#[tokio::test]
async fn without_any_log_what_the_long_term_table_knows_is_there() -> Result<()> {
    let bank = Bank::new().await?;
    let wanted = bank.hot().await?;
    bank.lose().await?;
    let refused = bank.apply_with(|rebuild| rebuild.source = Source::Nowhere).await;
    assert_fails(refused, "neither log nor journal was read");
    let accepted = |rebuild: &mut Rebuild| (rebuild.source, rebuild.accepts_gaps) = (Source::Nowhere, true);
    assert_eq!(bank.apply_with(accepted).await?.found([(Finding::Gap, 2)])?.events, 0);
    let now = bank.hot().await?;
    for name in ["b", "d", "e", "f", "h", "j"] {
        assert_eq!(bank.head_in(name, &now), bank.head_in(name, &wanted), "{name}");
    }
    bank.assert_statuses(&[("a", Some("SCHEDULED")), ("c", Some("SCHEDULED")), ("g", None)]).await?;
    bank.recount().await
}

/// Without a log, the old table's cancels are listed. A list of fewer shards would miss some, and the sweep would pay them.
#[tokio::test]
async fn cancels_of_the_old_table_are_found_in_every_shard() -> Result<()> {
    let bank = Bank::in_world(World::with(|environment| environment.shards = 4).await?).await?;
    bank.set_clock(BEGINNING)?;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for name in names {
        bank.create(name, "2026-12-01").await?;
    }
    let client = bank.environment.client();
    create_table(&client, "restored", &Table { stream: None, ..PAYMENTS }).await?;
    bank.put_items("restored", bank.copies().await?.hot).await?;
    bank.create("not-in-the-new-table", "2026-12-01").await?;
    for name in names.into_iter().skip(1).chain(["not-in-the-new-table"]) {
        bank.cancel(name).await?;
    }
    let old = bank.store().await;
    let new = Store::new(client, TableNames { payments: "restored".to_owned(), ..old.tables().clone() });
    let found = lost(&old, &new, "4".parse()?).await?;
    let mut wanted: Vec<String> = names.iter().skip(1).map(|name| bank.id(name)).collect();
    wanted.sort();
    let mut ids: Vec<String> = found.iter().map(|lost| lost.payment().to_string()).collect();
    ids.sort_unstable();
    assert_eq!(ids, wanted);
    ensure!(lost(&old, &new, "1".parse()?).await?.len() < wanted.len(), "all are in one shard");
    assert_eq!(scheduled(&new, "4".parse()?).await?, names.len());
    assert_fails(lost(&old, &old, "4".parse()?).await, "the stack still has the old hot table");
    Ok(())
}

/// An archived cancellation decides, whatever the restored table says.
#[tokio::test]
async fn a_payment_that_was_archived_since_leaves_the_hot_table() -> Result<()> {
    let bank = Bank::new().await?;
    bank.put_head(&bank.environment.tables.history, "a", &bank.hot().await?).await?;
    bank.lose().await?;
    assert_eq!(bank.apply().await?.found([])?.changed(Change::Removed), 1);
    bank.assert_statuses(&[("a", None)]).await?;
    bank.go_on(&[]).await
}

/// The table of such an instant is that of an earlier one, in part, and the log does not repeat what is brought back.
#[tokio::test]
async fn an_instant_within_an_earlier_restore_is_refused() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose().await?;
    bank.apply().await?;
    bank.set_clock("2026-11-20T10:20:00Z")?;
    bank.open().await?;
    bank.lose().await?;
    for (time, is_within) in [("09:30", false), ("10:00", true), ("10:20", false)] {
        let applied = bank.apply_to(&format!("2026-11-20T{time}:00Z"), "2026-11-20T10:30:00Z").await;
        let why = applied.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(why.contains("an earlier restore was under way"), is_within, "{time}: {why}");
    }
    Ok(())
}

/// A payment that a restore took back is an old version in a new epoch. A later restore keeps it so, however old that version is.
#[tokio::test]
async fn what_a_restore_took_back_stays_so_after_the_next_one() -> Result<()> {
    // The payment was created at 09:20, more than an hour before the next instant, and cancelled within this hour.
    const NEXT: &str = "2026-11-20T10:25:00Z";
    const NOW: &str = "2026-11-20T10:30:00Z";
    let bank = Bank::new().await?;
    bank.lose().await?;
    bank.apply_except(&["type=payment.cancelled,from=2026-11-20T09:30:00Z"]).await?;
    bank.assert_statuses(&[("a", Some("SCHEDULED"))]).await?;
    bank.open().await?;
    bank.set_clock(NOW)?;
    bank.lose().await?;
    bank.apply_to(NEXT, NOW).await?;
    bank.assert_statuses(&[("a", Some("SCHEDULED"))]).await?;
    // If it is gone now, readers learn that, too: also those who are told of its payee alone.
    let (mut hot, id) = (bank.copies().await?.hot, bank.id("a"));
    let all = hot.len();
    hot.retain(|item| !attribute(item, "sk").ends_with(&id));
    assert_eq!(hot.len() + 1, all);
    bank.lose_hot(&hot).await?;
    bank.open_restored_to(NEXT).await?;
    let told = bank.news_of("payment.restored").await?;
    let gone = told.iter().find(|event| event["paymentId"] == json!(id)).context("no event")?;
    assert_has(gone, &json!({ "version": 0, "payeeAccountId": "shop" }));
    Ok(())
}
