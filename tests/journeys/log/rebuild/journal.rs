//! The log is lost, and the journal takes its place.

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::prefix::PrefixStore;
use payments_restore::{Finding, Rebuild, Source, begin_lost};

use super::super::*;
use super::bank::{Bank, LATER};
use super::steps::Applied;

impl Bank {
    /// A day that is in the journal.
    async fn journaled() -> Result<Self> {
        let bank = Self::new().await?;
        bank.publish().await?;
        Ok(bank)
    }

    fn of_journal(&self) -> impl Fn(&mut Rebuild) + use<> {
        let journal = Arc::new(PrefixStore::new(self.outside.reports.clone(), "journal"));
        move |rebuild| rebuild.source = Source::Journal(journal.clone())
    }

    async fn apply_journal(&self) -> Result<Applied> {
        self.apply_with(self.of_journal()).await
    }

    /// Deletes a file of the journal; `place` says which, of how many.
    async fn delete_file(&self, place: impl FnOnce(usize) -> usize) -> Result<()> {
        let files: Vec<_> = self.outside.reports.list(Some(&"journal".into())).try_collect().await?;
        let mut names: Vec<_> = files.into_iter().map(|file| file.location).collect();
        names.sort();
        Ok(self.outside.reports.delete(&names[place(names.len())]).await?)
    }
}

#[tokio::test]
async fn without_the_log_the_journal_tells_what_happened() -> Result<()> {
    let bank = Bank::journaled().await?;
    let (old, wanted) = (bank.end().await?, bank.hot().await?);
    bank.lose_log().await?;
    assert_fails(bank.apply().await, "give --journal");
    // The restore finds a gap where the journal ends.
    bank.apply_journal().await?.found([(Finding::Gap, 1)])?;
    bank.assert_hot(&wanted).await?;
    bank.go_on(&[]).await?;
    // The next log has another epoch, and the cursors of the lost one lead nowhere.
    assert!(bank.head().await?.epoch > old.epoch);
    bank.refused(Ask::get(&format!("/events?cursor={old}")), 410, "cursor-gone").await.map(drop)
}

/// An old invocation that comes late would begin the empty log with the old stream, and the new one would be refused.
#[tokio::test]
async fn a_lost_log_begins_with_the_restore_and_with_nothing_old() -> Result<()> {
    let bank = Bank::journaled().await?;
    let old = bank.end().await?;
    bank.create("late", "2026-12-01").await?;
    let late = bank.delivery().await?;
    bank.lose_log().await?;
    for _ in 0..2 {
        let line = begin_lost(&bank.store().await, bank.now()).await?;
        assert!(line.starts_with("The epoch has ended"), "{line}");
    }
    bank.assert_refused(&late, "").await;
    bank.apply_journal().await?;
    bank.recount().await?;
    bank.open().await?;
    bank.assert_refused(&late, "").await;
    let events = bank.events().await?;
    assert_eq!(types(&events)[..2], ["log.restored", "log.gap"]);
    assert!(text_of(&events[1]["reason"]).contains("the log's table was lost"), "{events:?}");
    assert!(bank.head().await?.epoch > old.epoch);
    bank.refused(Ask::get(&format!("/events?cursor={old}")), 410, "cursor-gone").await.map(drop)
}

/// The journal was behind. A restored log knows more of the end, and of the beginning the journal does.
#[tokio::test]
async fn what_a_restored_log_knows_beyond_the_journal_is_read() -> Result<()> {
    let bank = Bank::journaled().await?;
    bank.create("k", "2026-12-01").await?;
    bank.count().await?;
    bank.lose().await?;
    bank.apply_journal().await?;
    bank.assert_statuses(&[("k", Some("SCHEDULED"))]).await.context("the journal does not have it")
}

/// A log that begins after a lost one does not know what was before it, whatever its epochs say.
#[tokio::test]
async fn a_log_that_follows_a_lost_one_covers_nothing_before_it() -> Result<()> {
    let bank = Bank::journaled().await?;
    bank.lose_log().await?;
    begin_lost(&bank.store().await, bank.now()).await?;
    bank.apply_journal().await?;
    bank.open().await?;
    bank.lose().await?;
    assert_fails(bank.apply().await, "Without log and journal");
    Ok(())
}

#[tokio::test]
async fn a_file_that_the_journal_lacks_is_listed() -> Result<()> {
    let bank = Bank::journaled().await?;
    bank.create_published("k").await?;
    bank.create_published("l").await?;
    bank.lose().await?;
    bank.delete_file(|files| files - 2).await?;
    assert_fails(bank.apply_journal().await, "give --accept-gaps");
    let of_journal = bank.of_journal();
    let accepted = |rebuild: &mut Rebuild| {
        of_journal(rebuild);
        rebuild.accepts_gaps = true;
    };
    bank.apply_with(accepted).await?.found([(Finding::Gap, 2)])?;
    bank.assert_statuses(&[("k", None), ("l", Some("SCHEDULED"))]).await
}

/// The first file may have held anything, even the cancellation of a payment that is scheduled again.
#[tokio::test]
async fn a_first_file_that_the_journal_lacks_is_found() -> Result<()> {
    let bank = Bank::journaled().await?;
    bank.create_published("k").await?;
    bank.lose().await?;
    bank.delete_file(|_| 0).await?;
    let want = format!("the journal begins at {LATER}; changes since 2026-11-20T08:30:00Z are unknown");
    assert_fails(bank.apply_journal().await, &want);
    Ok(())
}

/// The next epoch says where the one before ended.
#[tokio::test]
async fn a_last_file_of_an_epoch_that_the_journal_lacks_is_found() -> Result<()> {
    let bank = Bank::journaled().await?;
    let last = bank.end().await?;
    bank.create_published("k").await?;
    let end = bank.end().await?;
    bank.lose().await?;
    bank.apply().await?;
    bank.open().await?;
    bank.publish().await?;
    bank.lose().await?;
    bank.apply_journal().await.context("the journal is whole")?;
    bank.delete_file(|files| files - 2).await?;
    assert_fails(bank.apply_journal().await, &format!("the journal has nothing between {last} and {end}"));
    Ok(())
}
