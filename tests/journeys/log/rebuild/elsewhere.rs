//! Payments that are due at another time than at first: events and reports do not say where their heads are.

use lambda_runtime::LambdaEvent;
use payments_bank::Functions;
use payments_machine::Environment;
use payments_queue::Queue;
use payments_queue::in_process::QueueSettings;
use payments_restore::{Change, Finding};
use payments_tests::tables::{NO_DEADLINE, context, text};

use super::super::*;
use super::bank::{Bank, PAYER, TODAY, differences};
use crate::report::settlements;

/// When these payments were due at first.
const FIRST: &str = "2026-12-01";

/// Creates a payment that was due later at first, and is due today.
async fn due_today(bank: &Bank, name: &str) -> Result<()> {
    bank.create(name, FIRST).await?;
    amend(bank, name, 1, TODAY).await?;
    bank.count().await
}

async fn amend(bank: &Bank, name: &str, version: u32, date: &str) -> Result<()> {
    let amended = bank.amend(name, version, date).await?;
    ensure!(amended.status == 200, "{amended}");
    Ok(())
}

#[tokio::test]
async fn heads_are_found_and_built_where_they_were() -> Result<()> {
    let bank = Bank::new().await?;
    for name in ["m", "n", "p"] {
        due_today(&bank, name).await?;
    }
    bank.world.sweep().await?;
    // Of m the long-term table has the end, of n only the log knows anything, and p is in a report, but its day is not over.
    bank.settle(&[("p", Ok("TX-p"))]).await?;
    settlements::run(&bank.world).await?;
    bank.settle(&[("m", Ok("TX-m"))]).await?;
    bank.count().await?;
    let (wanted, history) = (bank.hot().await?, bank.history().await?);

    bank.lose_hot(&bank.at_t.hot).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, BTreeMap::new(), "{lines:#?}");
    bank.assert_hot(&wanted).await?;
    assert_eq!(differences(&bank.history().await?, &history), [""; 0]);
    let change = |name: &str| lines.iter().find(|line| line["paymentId"] == json!(bank.id(name)));
    for (name, want) in [("m", "put-back"), ("n", "built"), ("p", "put-back")] {
        let line = change(name);
        assert_eq!(line.and_then(|line| line["change"].as_str()), Some(want), "{name}: {lines:#?}");
        assert!(line.is_none_or(|line| line["dueAt"] == "2026-11-20T00:00:00Z"), "{name}: {lines:#?}");
    }
    assert!(bank.apply().await?.is_nothing(), "it is done once");
    bank.recount().await?;

    // The new epoch does not say that they are missing.
    bank.open().await?;
    assert_eq!(bank.last_epoch("payment.restored").await?, [json!(null); 0]);
    let sent = bank.sent().await?;
    assert_eq!(["m", "n", "p"].map(|name| sent.contains(&bank.id(name))), [false, true, false]);
    Ok(())
}

/// The payments of before the instant to which the table is restored, amended since then.
#[tokio::test]
async fn what_was_amended_since_is_amended_again() -> Result<()> {
    let bank = Bank::new().await?;
    // z was amended twice, and g, which was created since, once.
    amend(&bank, "z", 1, "2026-12-02").await?;
    amend(&bank, "z", 2, "2026-12-03").await?;
    amend(&bank, "g", 1, "2026-12-04").await?;
    bank.count().await?;
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, BTreeMap::new(), "{lines:#?}");
    bank.assert_hot(&wanted).await?;
    assert!(bank.apply().await?.is_nothing(), "it is done once");
    bank.recount().await?;
    bank.open().await?;
    // A repeated amendment is a replay, and the next one follows.
    let again = bank.amend("z", 1, "2026-12-02").await?;
    assert_eq!((again.header("idempotent-replayed"), again.field("dueDate")), (Some("true"), "2026-12-03"), "{again}");
    amend(&bank, "z", 3, "2026-12-05").await
}

/// Moves payments of a date by a calendar, and counts that.
async fn redate(bank: &Bank, calendar: &str, date: &str) -> Result<u64> {
    let dependencies = bank.world.dependencies_over(&bank.world.recorder).await;
    let (calendars, date_rule) = (format!("GBP={calendar}"), "following".to_owned());
    let closing = Environment { calendars, date_rule, ..bank.world.environment.clone() };
    let closing = Functions::within(&closing, |_| Ok(dependencies.clone()))?;
    let request = json!({ "action": "move", "calendar": calendar, "from": date, "to": date });
    let request = LambdaEvent::new(serde_json::from_value(request)?, context(NO_DEADLINE));
    let moved = closing.redate.handle(request).await.map_err(anyhow::Error::msg)?.moved;
    bank.count().await?;
    Ok(moved)
}

/// The bank itself moved payments of a Saturday since: its events name no client.
#[tokio::test]
async fn what_was_redated_since_is_redated_again() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("w", "2026-12-05").await?;
    amend(&bank, "z", 1, "2026-12-05").await?;
    assert_eq!(redate(&bank, "GB", "2026-12-05").await?, 2);
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, BTreeMap::new(), "{lines:#?}");
    bank.assert_hot(&wanted).await?;
    for name in ["w", "z"] {
        let head = bank.head_in(name, &wanted).context("no head")?;
        assert!(head["due"]["S"].as_str().is_some_and(|due| due.contains("2026-12-07")), "{name}: {head}");
    }
    assert!(bank.apply().await?.is_nothing(), "it is done once");
    bank.recount().await
}

/// The long-term table was restored, too, to before the redates. What a client amended is lost, and what the bank did is done again: w was
/// scheduled for a Friday that is a holiday in England and for T2, k was amended before, and z since.
#[tokio::test]
async fn redates_whose_details_are_lost_are_built_anew() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("w", "2026-12-25").await?;
    bank.create("k", FIRST).await?;
    amend(&bank, "k", 1, "2026-12-05").await?;
    let behind = bank.copies().await?.history;
    amend(&bank, "z", 1, "2026-12-05").await?;
    assert_eq!(redate(&bank, "GB", "2026-12-05").await?, 2);
    // T2 is open on the Monday after Christmas, and England's banks are not.
    assert_eq!([redate(&bank, "T2", "2026-12-25").await?, redate(&bank, "GB", "2026-12-28").await?], [1, 1]);
    let (wanted, mut details) = (bank.hot().await?, bank.details().await?);
    // No event says which calendar moved a payment.
    for redated in details.values_mut().filter(|item| item["createdBy"]["S"] == "b:redate") {
        let redated = redated.as_object_mut().context("no item")?;
        assert!(["calendarId", "calendarVersion"].iter().all(|name| redated.remove(*name).is_some()), "{redated:?}");
    }
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.lose_history(&behind).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    // Of z nobody knows the details that the redate followed.
    assert_eq!(done.findings, [(Finding::DetailsLost, 1)].into(), "{lines:#?}");
    let found = bank.details().await?;
    let of_z = bank.id("z");
    let lost: Vec<_> = differences(&found, &details).into_iter().filter(|it| !it.contains(&of_z)).collect();
    assert_eq!(lost, [""; 0], "each item is as it was, without its calendar");
    for (name, due) in [("w", "2026-12-29"), ("k", "2026-12-07"), ("z", "2026-12-07")] {
        let (have, want) = (bank.head_of(name).await?, bank.head_in(name, &wanted));
        assert_eq!(have.as_ref().map(|head| &head["due"]), want.as_ref().map(|head| &head["due"]), "{name}");
        assert!(have.is_some_and(|head| head["due"]["S"].as_str().is_some_and(|it| it.contains(due))), "{name}");
    }
    assert!(bank.apply().await?.changes.is_empty(), "it is done once");
    bank.recount().await?;
    bank.open().await?;
    let again = bank.amend("w", 3, "2026-12-30").await?;
    assert_eq!((again.status, again.field("dueDate")), (200, "2026-12-30"), "{again}");
    for (name, versions) in [("k", 3), ("w", 4)] {
        let path = format!("/accounts/{PAYER}/payments/{}/versions", bank.id(name));
        let listed = bank.world.send(Ask::get(&path)).await?;
        assert_eq!(listed.body["versions"].as_array().map(Vec::len), Some(versions), "{listed}");
    }
    Ok(())
}

/// A fault of a client amended payments.
#[tokio::test]
async fn amendments_are_left_out_if_they_are_named() -> Result<()> {
    let bank = Bank::new().await?;
    amend(&bank, "z", 1, "2026-12-02").await?;
    due_today(&bank, "k").await?;
    due_today(&bank, "l").await?;
    bank.world.sweep().await?;
    amend(&bank, "g", 1, "2026-12-04").await?;
    bank.count().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    let excepts = vec!["type=payment.amended".parse()?];
    let (done, lines) = bank.told(|rebuild| rebuild.excepts = excepts).await?;
    // k and l were claimed since, so they stay amended.
    assert_eq!(done.findings, [(Finding::LeftOut, 2), (Finding::Kept, 2)].into(), "{lines:#?}");
    for (name, status, due) in [("z", "SCHEDULED", FIRST), ("g", "SCHEDULED", FIRST), ("k", "PENDING", TODAY)] {
        let due = format!("{status}#{due}#{due}T00:00:00Z#{}", bank.id(name));
        assert_eq!(bank.head_of(name).await?.context("no head")?["due"]["S"], due, "{name}");
    }
    // What was left out can be amended anew, with another key: the details of the first time are still there.
    bank.open().await?;
    amend(&bank, "z", 1, "2026-12-05").await
}

/// The long-term table was restored to before an amendment. Nobody knows its data, so nothing may be sent: least of all what the payment
/// said before.
#[tokio::test]
async fn a_payment_whose_amendment_is_lost_is_never_sent() -> Result<()> {
    let bank = Bank::new().await?;
    let behind = bank.copies().await?.history;
    amend(&bank, "z", 1, TODAY).await?;
    amend(&bank, "g", 1, "2026-12-04").await?;
    bank.count().await?;
    bank.world.sweep().await?;
    bank.count().await?;
    let wanted = bank.hot().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.lose_history(&behind).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, [(Finding::DetailsLost, 2)].into(), "{lines:#?}");
    for name in ["z", "g"] {
        let (have, want) = (bank.head_of(name).await?, bank.head_in(name, &wanted));
        let (have, want) = (have.context("no head")?, want.context("no head")?);
        for attribute in
            ["due", "status", "version", "details", "amountMinor", "payeeAccountId", "scheduledFor", "moved"]
        {
            assert_eq!(have[attribute], want[attribute], "{name}: {attribute}");
        }
    }
    let again = bank.apply().await?;
    assert_eq!((again.changes, again.findings), (BTreeMap::new(), [(Finding::DetailsLost, 2)].into()));
    bank.open().await?;
    // `dispatch` refuses z at each attempt, which raises an alarm, and sends the others of its batch.
    let refused = Queue::new(QueueSettings::named("failures"));
    let sent = bank.sent_or_refused(&refused).await?;
    assert_eq!(["z", "g", "c"].map(|name| sent.contains(&bank.id(name))), [false, false, true]);
    let refused = refused.receive(10, bank.world.now().as_chrono());
    assert_eq!(refused.len(), 3, "{refused:#?}");
    assert!(refused.iter().all(|record| record.body.contains("RetryAttemptsExhausted")), "{refused:#?}");
    // Its client cancels what is still scheduled, and creates another. A result settles what was sent before the loss.
    bank.cancel("g").await?;
    bank.settle(&[("z", Ok("TX-z"))]).await?;
    assert_eq!(
        [bank.status("g").await?.as_deref(), bank.status("z").await?.as_deref()],
        [Some("CANCELLED"), Some("PROCESSED")]
    );
    Ok(())
}

/// Somebody changed an amended payment's head by hand. By the log, it was claimed at another time.
#[tokio::test]
async fn a_head_that_is_due_at_another_time_than_the_log_says_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    due_today(&bank, "k").await?;
    let mut restored = bank.copies().await?.hot;
    bank.world.sweep().await?;
    bank.count().await?;
    let id = bank.id("k");
    for head in restored.iter_mut().filter(|head| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id))) {
        head.insert("due".to_owned(), text(format!("SCHEDULED#2026-11-22#2026-11-22T00:00:00Z#{id}")));
        head.insert("moved".to_owned(), text(format!("2026-11-22T00:00:00Z#{id}")));
    }
    bank.lose_hot(&restored).await?;
    let before = bank.head_of("k").await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!((done.findings, done.changes), ([(Finding::Differs, 1)].into(), BTreeMap::new()), "{lines:#?}");
    assert_eq!(bank.head_of("k").await?, before);
    Ok(())
}

/// Somebody changed a due key by hand.
#[tokio::test]
async fn a_head_that_is_due_elsewhere_without_an_amendment_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    let mut at_t = bank.at_t.hot.clone();
    let id = bank.id("c");
    for head in at_t.iter_mut().filter(|head| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id))) {
        head.insert("due".to_owned(), text(format!("SCHEDULED#2026-11-22#2026-11-22T00:00:00Z#{id}")));
    }
    bank.lose_hot(&at_t).await?;
    let before = bank.head_of("c").await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(
        (done.findings, done.changes.get(&Change::Moved)),
        ([(Finding::Unreadable, 1)].into(), Some(&1)),
        "{lines:#?}"
    );
    assert_eq!(bank.head_of("c").await?, before);
    Ok(())
}
