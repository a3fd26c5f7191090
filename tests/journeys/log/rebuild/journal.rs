//! The log is lost, and the journal takes its place.

use std::sync::Arc;

use object_store::ObjectStoreExt as _;
use object_store::prefix::PrefixStore;
use payments_machine::Handlers as _;
use payments_restore::{Finding, Rebuild, Source, begin_lost};
use payments_store::schema::LOG;

use super::super::*;
use super::bank::{Bank, LATER};

fn from_journal(bank: &Bank) -> impl FnOnce(&mut Rebuild) {
    let journal = Arc::new(PrefixStore::new(bank.world.outside.reports.clone(), "journal"));
    move |rebuild| rebuild.source = Source::Journal(journal)
}

/// The journal's files, in their order.
async fn names(bank: &Bank) -> Result<Vec<object_store::path::Path>> {
    let files: Vec<_> =
        futures::TryStreamExt::try_collect::<Vec<_>>(bank.world.outside.reports.list(Some(&"journal".into()))).await?;
    let mut names: Vec<_> = files.into_iter().map(|file| file.location).collect();
    names.sort();
    Ok(names)
}

#[tokio::test]
async fn without_the_log_the_journal_tells_what_happened() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    let old = head(&bank.world).await?.end();
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.replace(&bank.world.environment.tables.log, &LOG, &[]).await?;
    let error = bank.apply().await.err().context("it applied without a log")?;
    assert!(error.to_string().contains("give --journal"), "{error}");
    let (done, lines) = bank.told(from_journal(&bank)).await?;
    assert_eq!(done.findings, [(Finding::Gap, 1)].into(), "where the journal ends: {lines:#?}");
    bank.assert_hot(&wanted).await?;
    bank.go_on(&[]).await?;
    // The next log has another epoch, and the cursors of the lost one lead nowhere.
    assert!(head(&bank.world).await?.epoch > old.epoch);
    let reply = bank.world.send(Ask::get(&format!("/events?cursor={old}"))).await?;
    assert_eq!((reply.status, reply.problem()), (410, "cursor-gone"), "{reply}");
    Ok(())
}

/// An old invocation that comes late would begin the empty log with the old stream, and the new one would be refused.
#[tokio::test]
async fn a_lost_log_begins_with_the_restore_and_with_nothing_old() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    let old = head(&bank.world).await?.end();
    bank.create("late", "2026-12-01").await?;
    let late = bank.delivery().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.replace(&bank.world.environment.tables.log, &LOG, &[]).await?;
    let (store, now) = (bank.world.store().await, bank.world.now());
    for _ in 0..2 {
        let line = begin_lost(&store, now).await?;
        assert!(line.starts_with("The epoch has ended"), "{line}");
    }
    let deliver = async || bank.world.functions().deliver("stream-aggregator", late.clone()).await;
    assert!(deliver().await.is_err(), "an old invocation writes to the log");
    bank.told(from_journal(&bank)).await?;
    bank.recount().await?;
    bank.open().await?;
    assert!(deliver().await.is_err(), "an old invocation writes to the log");
    let events = events(&all(&bank.world, 1_000).await?)?;
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).take(2).collect();
    assert_eq!(types, ["log.restored", "log.gap"]);
    assert!(events[1]["reason"].as_str().is_some_and(|why| why.contains("the log's table was lost")), "{events:?}");
    assert!(head(&bank.world).await?.epoch > old.epoch);
    let reply = bank.world.send(Ask::get(&format!("/events?cursor={old}"))).await?;
    assert_eq!((reply.status, reply.problem()), (410, "cursor-gone"), "{reply}");
    Ok(())
}

/// The journal was behind. A restored log knows more of the end, and of the beginning the journal does.
#[tokio::test]
async fn what_a_restored_log_knows_beyond_the_journal_is_read() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    bank.create("k", "2026-12-01").await?;
    bank.count().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.told(from_journal(&bank)).await?;
    assert_eq!(bank.status("k").await?.as_deref(), Some("SCHEDULED"), "the journal does not have it");
    Ok(())
}

/// The log that follows a lost one does not know what was before it, whatever its epochs say.
#[tokio::test]
async fn a_log_that_follows_a_lost_one_covers_nothing_before_it() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.replace(&bank.world.environment.tables.log, &LOG, &[]).await?;
    begin_lost(&bank.world.store().await, bank.world.now()).await?;
    bank.told(from_journal(&bank)).await?;
    bank.open().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let error = bank.apply().await.err().context("it applied from a log that began later")?;
    assert!(error.to_string().contains("Without log and journal"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_file_that_the_journal_lacks_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    for name in ["k", "l"] {
        bank.create(name, "2026-12-01").await?;
        bank.count().await?;
        bank.publish().await?;
    }
    let names = names(&bank).await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.world.outside.reports.delete(&names[names.len() - 2]).await?;
    let error = bank.told(from_journal(&bank)).await.err().context("it applied with a hole")?;
    assert!(error.to_string().contains("give --accept-gaps"), "{error}");
    let from_journal = from_journal(&bank);
    let accepted = |rebuild: &mut Rebuild| {
        from_journal(rebuild);
        rebuild.accepts_gaps = true;
    };
    let (done, lines) = bank.told(accepted).await?;
    assert_eq!(done.findings, [(Finding::Gap, 2)].into(), "{lines:#?}");
    assert_eq!((bank.status("k").await?, bank.status("l").await?.as_deref()), (None, Some("SCHEDULED")));
    Ok(())
}

/// What was in the first file may be anything, also the cancellation of what is scheduled again.
#[tokio::test]
async fn a_first_file_that_the_journal_lacks_is_found() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    bank.create("k", "2026-12-01").await?;
    bank.count().await?;
    bank.publish().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let names = names(&bank).await?;
    bank.world.outside.reports.delete(&names[0]).await?;
    let error = bank.told(from_journal(&bank)).await.err().context("it applied without the first file")?;
    let want = format!("the journal begins at {LATER}; changes since 2026-11-20T08:30:00Z are unknown");
    assert!(error.to_string().starts_with(&want), "{error}");
    Ok(())
}

/// The next epoch says where the one before ended.
#[tokio::test]
async fn a_last_file_of_an_epoch_that_the_journal_lacks_is_found() -> Result<()> {
    let bank = Bank::new().await?;
    bank.publish().await?;
    let last = head(&bank.world).await?.end();
    bank.create("k", "2026-12-01").await?;
    bank.count().await?;
    bank.publish().await?;
    let end = head(&bank.world).await?.end();
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.apply().await?;
    bank.open().await?;
    bank.publish().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.told(from_journal(&bank)).await.context("the journal is whole")?;
    let names = names(&bank).await?;
    bank.world.outside.reports.delete(&names[names.len() - 2]).await?;
    let error = bank.told(from_journal(&bank)).await.err().context("it applied without the last file")?;
    let want = format!("the journal has nothing between {last} and {end}");
    assert!(error.to_string().starts_with(&want), "{error}");
    Ok(())
}
