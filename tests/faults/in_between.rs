//! A settlement between its two writes: the long-term table has it, and the hot table has the payment as pending. It is
//! seen nowhere, and whoever comes next completes it as it was decided.
//!
//! A month leaves payments there for minutes and at random; here each reader looks at one that stays there.

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use daily_due_sweeper::Action;
use payments_lab::facts::intent::Intent;
use payments_lab::facts::results::processed;
use payments_machine::Fate;
use payments_machine::layers::attributes::text;
use payments_tests::Ask;

use crate::kit::fault_plan::of_calls;
use crate::kit::fixture::Fixture;
use crate::kit::invariants::Stage;

/// Creates a payment and kills `settle` after its first write. Returns it, and when it was settled.
async fn left_in_between(fixture: &Fixture) -> Result<(Vec<Intent>, DateTime<Utc>)> {
    // The amount of a payment decides how it ends.
    let mut intents = fixture.pending(1).await?;
    while intents[0].amount.is_multiple_of(4) {
        intents = fixture.pending(1).await?;
    }
    fixture.dispatch_all().await?;
    fixture.serve(None)?;
    while fixture.results.counts(fixture.time.now()).visible > 0 {
        fixture.faults.inject(of_calls("UpdateItem", Fate::KillBefore));
        ensure!(fixture.faults.until_killed(fixture.settle_step()).await.is_none(), "settle was not killed");
    }
    fixture.faults.clear();
    assert_eq!(statuses(fixture, &intents[0]).await?, ["PENDING", "PROCESSED"]);
    Ok((intents, fixture.time.now()))
}

/// The statuses in the hot table and in the long-term table.
async fn statuses(fixture: &Fixture, intent: &Intent) -> Result<Vec<String>> {
    let (tables, pk) = (fixture.tables(), format!("ACCT#{}", intent.account));
    let (hot, history) = (fixture.items(&tables.payments, &pk).await?, fixture.items(&tables.history, &pk).await?);
    Ok(hot.iter().chain(&history).map(|head| text(head, "status").to_owned()).collect())
}

/// Fails unless the head in the hot table is completed, with the time of the settlement.
async fn assert_completed(fixture: &Fixture, intents: &[Intent], settled_at: DateTime<Utc>) -> Result<()> {
    assert_eq!(statuses(fixture, &intents[0]).await?, ["PROCESSED", "PROCESSED"]);
    fixture.assert_lawful(intents, Stage::Finished).await?;
    let pk = format!("ACCT#{}", intents[0].account);
    let head = fixture.items(&fixture.tables().payments, &pk).await?.remove(0);
    assert_eq!(text(&head, "settledAt"), settled_at.to_rfc3339_opts(SecondsFormat::Secs, true));
    fixture.assert_counters_exact().await
}

#[tokio::test]
async fn a_result_that_comes_again_completes_it_as_it_was_decided() -> Result<()> {
    let fixture = Fixture::start().await?;
    let (intents, settled_at) = left_in_between(&fixture).await?;
    // The result's message comes again after the queue's visibility timeout.
    fixture.settle_all().await?;
    assert!(fixture.time.now() > settled_at);
    assert_completed(&fixture, &intents, settled_at).await
}

#[tokio::test]
async fn another_result_is_a_conflict_and_completes_it_as_it_was_decided() -> Result<()> {
    let fixture = Fixture::start().await?;
    let (mut intents, settled_at) = left_in_between(&fixture).await?;
    intents[0].contested = true;
    drop(fixture.metrics.take());
    fixture.send_result(&processed(&intents[0].transfer(), "T-other"))?;
    ensure!(fixture.settle_step().await.is_some(), "the other result comes first");
    assert_eq!(fixture.measured(["ConflictingResults", "Processed", "RepeatedResults"]), [1, 0, 0]);
    // The first result need not come again.
    assert_eq!(statuses(&fixture, &intents[0]).await?, ["PROCESSED", "PROCESSED"]);
    fixture.settle_all().await?;
    assert_completed(&fixture, &intents, settled_at).await
}

#[tokio::test]
async fn a_redrive_completes_it_and_sends_nothing() -> Result<()> {
    let fixture = Fixture::start().await?;
    let (intents, settled_at) = left_in_between(&fixture).await?;
    // The first result does not come again.
    fixture.redrive_later().await?;
    let sent = fixture.faults.sent();
    drop(fixture.metrics.take());
    fixture.dispatch_all().await?;
    assert_eq!((fixture.faults.sent(), fixture.measured(["Completed"])), (sent, [1]));
    assert_completed(&fixture, &intents, settled_at).await
}

#[tokio::test]
async fn a_payment_that_a_restore_brought_back_is_not_sent_again() -> Result<()> {
    let fixture = Fixture::start().await?;
    let mut intents = fixture.due(1).await?;
    while intents[0].amount.is_multiple_of(4) {
        intents = fixture.due(1).await?;
    }
    let scheduled = fixture.world.heads(&intents[0].account).await?;
    fixture.assert_finishes(&intents).await?;
    // The hot table is restored to the moment before the sweep, two hours later; its stream begins anew.
    fixture.world.put_items(&fixture.tables().payments, scheduled).await?;
    fixture.time.pass(TimeDelta::hours(2));
    let sent = fixture.faults.sent();
    fixture.tick(Action::Sweep).await?;
    fixture.dispatch_all().await?;
    assert_eq!(fixture.faults.sent(), sent);
    assert_eq!(statuses(&fixture, &intents[0]).await?, ["PROCESSED", "PROCESSED"]);
    Ok(())
}

#[tokio::test]
async fn readers_show_it_once_and_as_pending() -> Result<()> {
    let fixture = Fixture::start().await?;
    let (intents, settled_at) = left_in_between(&fixture).await?;
    let account = &intents[0].account;
    let id = intents[0].id()?;
    let day = &intents[0].scheduled_for[..10];
    // Lists of past days read both tables.
    fixture.time.pass(TimeDelta::hours(20));
    for (question, shown) in [
        (format!("/accounts/{account}/payments?from={day}"), 1),
        (format!("/accounts/{account}/payments?from={day}&status=PENDING"), 1),
        (format!("/accounts/{account}/payments?from={day}&status=PROCESSED"), 0),
        (format!("/payments?dueDate={day}"), 1),
        (format!("/payments?dueDate={day}&status=PENDING"), 1),
        (format!("/payments?dueDate={day}&status=PROCESSED"), 0),
        (format!("/payments?transactionId=T-{}", intents[0].amount), 0),
    ] {
        let reply = fixture.ask(Ask::get(&question)).await?;
        let found: Vec<&str> = reply.payments().iter().filter_map(|payment| payment["status"].as_str()).collect();
        assert_eq!(found, vec!["PENDING"; shown], "{question}");
    }
    let one = fixture.ask(Ask::get(&format!("/accounts/{account}/payments/{id}"))).await?;
    assert_eq!(one.field("status"), "PENDING");
    let cancel = fixture.ask(Ask::cancel(account, id)).await?;
    assert_eq!(cancel.status, 409, "{cancel}");

    fixture.aggregate_all().await?;
    let recounted = fixture.recount(day).await?;
    assert_eq!(recounted["exact"], 1, "{recounted}");
    fixture.settle_all().await?;
    assert_completed(&fixture, &intents, settled_at).await.context("in the end")
}
