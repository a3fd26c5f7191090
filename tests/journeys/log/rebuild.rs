//! After a restore, the heads have again all that the log, the journal, the long-term table and the reports know.
//!
//! A bank has a day. At T its tables are copied; later they are lost, and the copies take their
//! place. The heads must then be as they were before the loss.

mod bank;
mod beginning;
mod claims;
mod contradictions;
mod crashes;
mod elsewhere;
mod faults;
mod journal;
mod steps;
mod tables;
mod unknown;

use payments_restore::{Change, Finding, begin};

use super::*;
use bank::{Bank, LATER};

#[tokio::test]
async fn the_hot_table_alone_is_as_it_was_before_the_loss() -> Result<()> {
    let bank = Bank::new().await?;
    let wanted = bank.hot().await?;
    bank.lose().await?;
    assert!(bank.assert_hot(&wanted).await.is_err());

    let (planned, restored) = (bank.plan(|_| {}).await?, bank.hot().await?);
    let done = bank.apply().await?.found([])?;
    assert_eq!((&planned.changes, planned.report_run), (&done.changes, done.report_run), "the plan is what was done");
    assert!(bank.assert_hot(&restored).await.is_err());
    bank.assert_hot(&wanted).await?;
    let want =
        [(Change::Moved, 2), (Change::Built, 1), (Change::Completed, 2), (Change::PutBack, 2), (Change::Reported, 1)];
    assert_eq!((&done.changes, done.report_run), (&want.into(), Some(2)));
    bank.assert_done().await?;

    bank.go_on(&[]).await?;
    assert_eq!(bank.gaps().await?, [json!(null); 0]);
    Ok(())
}

#[tokio::test]
async fn plan_changes_nothing_and_apply_waits_for_begin_and_for_a_table_without_a_stream() -> Result<()> {
    let bank = Bank::new().await?;
    let calls = bank.recorder.take_operations();
    assert!(calls.iter().any(|call| call == "PutItem"), "{calls:?}");
    bank.plan(|_| {}).await?;
    let reads = ["GetItem", "BatchGetItem", "Query"];
    for call in bank.recorder.take_operations() {
        assert!(reads.contains(&call.as_str()), "{call}");
    }
    assert_fails(bank.apply().await, "run `cargo restore begin --apply` first");
    begin(&bank.store().await).await?;
    assert_fails(bank.apply().await, "has a stream");
    Ok(())
}

/// The last settlements are in the long-term table alone: the log was no longer written.
#[tokio::test]
async fn a_settlement_that_the_log_lacks_is_completed_from_the_long_term_table() -> Result<()> {
    let bank = Bank::new().await?;
    bank.settle(&[("c", Ok("TX-late"))]).await?;
    let wanted = bank.hot().await?;
    bank.lose().await?;
    bank.apply().await?.found([(Finding::Gap, 1)])?;
    bank.assert_hot(&wanted).await?;
    bank.go_on(&["c"]).await?;
    // Readers of the log, who never get an event of it, learn to ask.
    assert_eq!(bank.gaps().await?, [json!(LATER)]);
    Ok(())
}

/// A claim that the log does not know is claimed again by the sweep before the API opens, and sent with the same id.
#[tokio::test]
async fn a_claim_that_the_log_lacks_is_made_again_before_anybody_can_cancel() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("k", "2026-11-20").await?;
    bank.count().await?;
    bank.sweep().await?;
    bank.lose().await?;
    bank.apply().await?;
    bank.assert_statuses(&[("k", Some("SCHEDULED"))]).await?;
    bank.open().await?;
    bank.sweep().await?;
    assert_fails(bank.cancel("k").await, "409");
    Ok(())
}

/// Accepted payments that were not logged are listed, and stay as they are: their clients may never have got an answer.
#[tokio::test]
async fn details_without_an_event_are_listed_and_never_put() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("k", "2026-12-01").await?;
    bank.lose().await?;
    let done = bank.apply_with(|rebuild| rebuild.finds_details = true).await?.found([(Finding::NoEvent, 1)])?;
    assert_eq!(done.line("no-event")?["paymentId"], json!(bank.id("k")));
    bank.assert_statuses(&[("k", None)]).await?;
    // The client sends it again with the same key, and gets the same payment.
    bank.open().await?;
    bank.set_clock(LATER)?;
    bank.create_again("k", "2026-12-01").await
}

#[tokio::test]
async fn a_head_that_is_newer_than_the_log_stays_and_one_that_differs_is_not_touched() -> Result<()> {
    let bank = Bank::new().await?;
    bank.cancel("g").await?;
    let ahead = bank.hot().await?;
    bank.lose().await?;
    // The restored table has a cancellation that the log lacks, and a cancellation of what the log knows as claimed.
    bank.put_head(&bank.environment.tables.payments, "g", &ahead).await?;
    bank.cancel_by_hand("c").await?;
    let before = bank.hot().await?;
    bank.apply().await?.found([(Finding::Above, 1), (Finding::Differs, 1), (Finding::Gap, 1)])?;
    for name in ["g", "c"] {
        assert_eq!(bank.head_of(name).await?, bank.head_in(name, &before), "{name}");
    }
    Ok(())
}
