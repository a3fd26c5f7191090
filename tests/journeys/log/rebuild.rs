//! After a restore, what the log, the journal, the long-term table and the reports know is there again.
//!
//! A bank has a day. At T its tables are copied; later they are lost, and the copies take their place. The heads must then be as they were
//! before the loss.

mod bank;
mod beginning;
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
    bank.lose_hot(&bank.at_t.hot).await?;
    assert!(bank.assert_hot(&wanted).await.is_err());

    let (planned, restored) = (bank.plan().await?, bank.hot().await?);
    let done = bank.apply().await?;
    assert_eq!((&planned.changes, planned.report_run), (&done.changes, done.report_run), "the plan is what was done");
    assert!(bank.assert_hot(&restored).await.is_err());
    bank.assert_hot(&wanted).await?;
    assert_eq!(done.findings, BTreeMap::new());
    let want =
        [(Change::Moved, 2), (Change::Built, 1), (Change::Completed, 2), (Change::PutBack, 2), (Change::Reported, 1)];
    assert_eq!(done.changes, want.into());
    assert_eq!(done.report_run, Some(2));
    assert!(bank.apply().await?.is_nothing(), "it is done once");

    bank.go_on(&[]).await?;
    assert_eq!(bank.gaps().await?, [json!(null); 0]);
    Ok(())
}

#[tokio::test]
async fn plan_changes_nothing_and_apply_waits_for_begin_and_for_a_table_without_a_stream() -> Result<()> {
    let bank = Bank::new().await?;
    let calls = bank.world.recorder.take_operations();
    assert!(calls.iter().any(|call| call == "PutItem"), "{calls:?}");
    bank.plan().await?;
    let reads = ["GetItem", "BatchGetItem", "Query"];
    for call in bank.world.recorder.take_operations() {
        assert!(reads.contains(&call.as_str()), "{call}");
    }
    let error = bank.apply().await.err().context("it applied")?;
    assert!(error.to_string().contains("run begin first"), "{error}");
    begin(&bank.world.store().await).await?;
    let error = bank.apply().await.err().context("it applied")?;
    assert!(error.to_string().contains("has a stream"), "{error}");
    Ok(())
}

/// What happened at the very end is in the long-term table alone: the log was not written any more.
#[tokio::test]
async fn a_settlement_that_the_log_lacks_is_completed_from_the_long_term_table() -> Result<()> {
    let bank = Bank::new().await?;
    bank.settle(&[("c", Ok("TX-late"))]).await?;
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let done = bank.apply().await?;
    bank.assert_hot(&wanted).await?;
    assert_eq!(done.findings, [(Finding::Gap, 1)].into());
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
    bank.world.sweep().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.apply().await?;
    assert_eq!(bank.status("k").await?.as_deref(), Some("SCHEDULED"));
    bank.open().await?;
    bank.world.sweep().await?;
    let error = bank.cancel("k").await.err().context("a payment that was sent is cancelled")?;
    assert!(error.to_string().contains("409"), "{error}");
    Ok(())
}

/// What was accepted and not logged is listed, and stays as it is: its client may never have got an answer.
#[tokio::test]
async fn details_without_an_event_are_listed_and_never_put() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("k", "2026-12-01").await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let (done, lines) = bank.told(|rebuild| rebuild.finds_details = true).await?;
    assert_eq!(done.findings, [(Finding::NoEvent, 1)].into());
    let line = lines.iter().find(|line| line["finding"] == "no-event").context("no line")?;
    assert_eq!(line["paymentId"], json!(bank.id("k")));
    assert_eq!(bank.status("k").await?, None);
    // The client sends it again with the same key, and gets the same payment.
    bank.open().await?;
    bank.world.set_clock(LATER)?;
    assert_eq!(bank.create_again("k", "2026-12-01").await?, bank.id("k"));
    Ok(())
}

#[tokio::test]
async fn a_head_that_is_newer_than_the_log_stays_and_one_that_differs_is_not_touched() -> Result<()> {
    let bank = Bank::new().await?;
    bank.cancel("g").await?;
    let ahead = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    // The restored table has a cancellation that the log lacks, and a cancellation of what the log knows as claimed.
    bank.put_head("g", &ahead).await?;
    bank.cancel_by_hand("c").await?;
    let before = bank.hot().await?;
    let done = bank.apply().await?;
    assert_eq!(done.findings, [(Finding::Above, 1), (Finding::Differs, 1), (Finding::Gap, 1)].into());
    for name in ["g", "c"] {
        assert_eq!(bank.head_of(name).await?, bank.head_in(name, &before), "{name}");
    }
    Ok(())
}
