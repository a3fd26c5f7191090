//! A fault of a client or of a program is left out, and nothing else: never what was sent or settled.

use object_store::ObjectStoreExt as _;
use payments_machine::Handlers as _;
use payments_restore::{Change, Finding, Rebuild, Source};

use super::super::*;
use super::bank::{Bank, TODAY};
use crate::report::settlements;

#[tokio::test]
async fn what_the_fault_did_is_left_out_and_what_was_sent_is_kept_and_listed() -> Result<()> {
    let bank = Bank::new().await?;
    // A program cancels payments, and creates some that nobody wants. One of them is sent before anybody notices.
    for (name, date) in [("k", "2026-12-01"), ("l", TODAY)] {
        bank.create(name, date).await?;
    }
    bank.world.sweep().await?;
    bank.cancel("g").await?;
    bank.count().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let from = |kind: &str, at: &str| format!("actor=client:local-development,from={at},type={kind}").parse();
    let excepts =
        vec![from("payment.cancelled", "2026-11-20T09:30:00Z")?, from("payment.scheduled", "2026-11-20T09:55:00Z")?];
    let (done, lines) = bank.told(|rebuild| rebuild.excepts = excepts).await?;
    // The cancellations of a and g, and the creation of k. The creation of l is kept.
    assert_eq!(done.findings, [(Finding::LeftOut, 3), (Finding::Kept, 1)].into(), "{lines:#?}");
    let kept = lines.iter().find(|line| line["finding"] == "kept").context("no line")?;
    assert_eq!(kept["paymentId"], json!(bank.id("l")));
    let statuses = [("a", Some("SCHEDULED")), ("g", Some("SCHEDULED")), ("k", None), ("l", Some("PENDING"))];
    for (name, status) in statuses {
        assert_eq!(bank.status(name).await?.as_deref(), status, "{name}");
    }
    assert_eq!(done.changes[&Change::Built], 2, "{:?}", done.changes);
    // Readers of the log learn what was left out.
    bank.open().await?;
    let epoch = head(&bank.world).await?.epoch.get();
    let mut told = events(&all(&bank.world, 1_000).await?)?;
    told.retain(|event| event["epoch"] == epoch);
    let mut told: Vec<_> = told
        .iter()
        .map(|event| (event["type"].clone(), event["paymentId"].clone(), event["version"].clone()))
        .collect();
    told.sort_by_key(|(_, id, _)| id.to_string());
    let mut want = vec![(json!("log.restored"), json!(null), json!(null))];
    for (name, version) in [("a", 1), ("g", 1), ("k", 0)] {
        want.push((json!("payment.restored"), json!(bank.id(name)), json!(version)));
    }
    want.sort_by_key(|(_, id, _)| id.to_string());
    assert_eq!(told, want);
    // The tables are lost once more. What was left out stays out, without being named again.
    bank.lose_hot(&bank.at_t.hot).await?;
    let done = bank.apply().await?;
    assert_eq!(done.findings, BTreeMap::new());
    for (name, status) in statuses {
        assert_eq!(bank.status(name).await?.as_deref(), status, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_fault_from_before_the_restored_instant_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let excepts = vec!["type=payment.cancelled,to=2026-11-20T09:25:00Z".parse()?];
    let (done, lines) = bank.told(|rebuild| rebuild.excepts = excepts).await?;
    assert_eq!(done.findings, [(Finding::LeftOut, 1), (Finding::Kept, 1)].into(), "{lines:#?}");
    assert_eq!(bank.status("f").await?.as_deref(), Some("CANCELLED"));
    Ok(())
}

/// An invocation of before that is still alive changes neither counters nor log, before the new epoch and in it.
#[tokio::test]
async fn a_late_delivery_of_the_old_stream_is_refused() -> Result<()> {
    let bank = Bank::new().await?;
    let late = bank.delivery().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.apply().await?;
    let deliver = async || bank.world.functions().deliver("stream-aggregator", late.clone()).await;
    let error = deliver().await.err().context("it was counted")?;
    assert!(error.contains("A new epoch of the log"), "{error}");
    assert!(bank.apply().await?.is_nothing(), "counters and checkpoints are as they were");
    bank.open().await?;
    let end = head(&bank.world).await?.end();
    let error = deliver().await.err().context("it was counted")?;
    assert!(error.contains("another stream"), "{error}");
    assert_eq!(head(&bank.world).await?.end(), end);
    bank.recount().await
}

/// The run was committed, and nobody could read it: the next report has its payments.
#[tokio::test]
async fn a_report_that_was_committed_and_never_published_does_not_count() -> Result<()> {
    let bank = Bank::new().await?;
    bank.settle(&[("c", Ok("TX-c"))]).await?;
    bank.count().await?;
    settlements::run(&bank.world).await?;
    for file in settlements::files(&bank.world).await?.into_keys().filter(|name| name.contains("run-000003")) {
        bank.world.outside.reports.delete(&file.into()).await?;
    }
    bank.lose_hot(&bank.at_t.hot).await?;
    let done = bank.apply().await?;
    assert_eq!((done.report_run, done.findings), (Some(2), BTreeMap::new()));
    bank.go_on(&["c"]).await
}

/// The long-term table and the reports know how payments ended. They know nothing of the rest, which is in docs/restore.md.
#[tokio::test]
async fn without_any_log_what_the_long_term_table_knows_is_there() -> Result<()> {
    let bank = Bank::new().await?;
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let refused = bank.told(|rebuild| rebuild.source = Source::Nowhere).await.err().context("nothing is known")?;
    assert!(refused.to_string().contains("neither log nor journal was read"), "{refused}");
    let accepted = |rebuild: &mut Rebuild| (rebuild.source, rebuild.accepts_gaps) = (Source::Nowhere, true);
    let (done, _) = bank.told(accepted).await?;
    assert_eq!((done.events, done.findings), (0, BTreeMap::from([(Finding::Gap, 2)])));
    let now = bank.hot().await?;
    for name in ["b", "d", "e", "f", "h", "j"] {
        assert_eq!(bank.head_in(name, &now), bank.head_in(name, &wanted), "{name}");
    }
    for (name, status) in [("a", Some("SCHEDULED")), ("c", Some("SCHEDULED")), ("g", None)] {
        assert_eq!(bank.status(name).await?.as_deref(), status, "{name}");
    }
    bank.recount().await
}

/// An archived cancellation decides, whatever the restored table says.
#[tokio::test]
async fn a_payment_that_was_archived_since_leaves_the_hot_table() -> Result<()> {
    let bank = Bank::new().await?;
    let cancelled = payments_tests::tables::item_of(&bank.head_of("a").await?.context("no head")?)?;
    bank.world.put_items(&bank.world.environment.tables.history, [cancelled]).await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let done = bank.apply().await?;
    assert_eq!((done.changes[&Change::Removed], done.findings), (1, BTreeMap::new()));
    assert_eq!(bank.status("a").await?, None);
    bank.go_on(&[]).await
}

/// The table of such an instant is that of an earlier one, in part, and the log does not repeat what is brought back.
#[tokio::test]
async fn an_instant_within_an_earlier_restore_is_refused() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.apply().await?;
    bank.world.set_clock("2026-11-20T10:20:00Z")?;
    bank.open().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    for (to, is_within) in
        [("2026-11-20T09:30:00Z", false), ("2026-11-20T10:00:00Z", true), ("2026-11-20T10:20:00Z", false)]
    {
        let (instant, later) = (to.parse()?, "2026-11-20T10:30:00Z".parse()?);
        let applied = bank.told(|rebuild| (rebuild.to, rebuild.now) = (instant, later)).await;
        let why = applied.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(why.contains("an earlier restore was under way"), is_within, "{to}: {why}");
    }
    Ok(())
}

/// A payment that a restore took back is an old version in a new epoch. A later restore keeps it so, however old that version is.
#[tokio::test]
async fn what_a_restore_took_back_stays_so_after_the_next_one() -> Result<()> {
    let bank = Bank::new().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let excepts = vec!["type=payment.cancelled,from=2026-11-20T09:30:00Z".parse()?];
    bank.told(|rebuild| rebuild.excepts = excepts).await?;
    assert_eq!(bank.status("a").await?.as_deref(), Some("SCHEDULED"));
    bank.open().await?;
    // It was created at 09:20, which is more than an hour before the next instant, and cancelled within this hour.
    let (to, now) = ("2026-11-20T10:25:00Z", "2026-11-20T10:30:00Z");
    bank.world.set_clock(now)?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let (instant, later) = (to.parse()?, now.parse()?);
    bank.told(|rebuild| (rebuild.to, rebuild.now) = (instant, later)).await?;
    assert_eq!(bank.status("a").await?.as_deref(), Some("SCHEDULED"));
    // If it is gone now, readers learn that, too: also those who are told of its payee alone.
    let mut hot = bank.copies().await?.hot;
    let (all, id) = (hot.len(), bank.id("a"));
    hot.retain(|item| !item["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id)));
    assert_eq!(hot.len() + 1, all);
    bank.lose_hot(&hot).await?;
    bank.open_restored_to(to).await?;
    let told = bank.last_epoch("payment.restored").await?;
    let gone = told.iter().find(|event| event["paymentId"] == json!(id)).context("no event")?;
    assert_eq!((&gone["version"], &gone["payeeAccountId"]), (&json!(0), &json!("shop")));
    Ok(())
}
