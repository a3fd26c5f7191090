//! Payments that are due at another time than at first: events and reports do not say where their heads are.

use payments_queue::Queue;
use payments_queue::in_process::QueueSettings;
use payments_restore::{Change, Finding};
use payments_store::Item;
use payments_tests::scheduled;

use super::super::*;
use super::bank::{Bank, PAYER, TODAY, attribute, differences};
use crate::redate;
use crate::report::settlements;

/// The first due date of these payments.
const FIRST: &str = "2026-12-01";

impl Bank {
    /// Creates a payment that was due later at first, and is due today.
    async fn due_today(&self, name: &str) -> Result<()> {
        self.create(name, FIRST).await?;
        self.amend(name, 1, TODAY).await?;
        self.count().await.map(drop)
    }

    /// Moves payments of a date by a calendar, and counts that.
    async fn redate(&self, calendar: &str, date: &str) -> Result<Value> {
        let closing = redate::bank(self, &self.recorder, |environment| {
            environment.calendars = format!("GBP={calendar}");
            environment.date_rule = "following".to_owned();
        });
        let request = json!({ "action": "move", "calendar": calendar, "from": date, "to": date });
        let moved = scheduled(&closing.await?, "redate", request).await?["moved"].take();
        self.count().await?;
        Ok(moved)
    }

    /// The date on which a payment's head is due.
    async fn assert_due(&self, name: &str, date: &str) -> Result<()> {
        let head = self.head_of(name).await?.context("no head")?;
        assert!(text_of(&head["due"]["S"]).contains(date), "{name}: {head}");
        Ok(())
    }
}

#[tokio::test]
async fn heads_are_found_and_built_where_they_were() -> Result<()> {
    let bank = Bank::new().await?;
    for name in ["m", "n", "p"] {
        bank.due_today(name).await?;
    }
    bank.sweep().await?;
    // Of m the long-term table has the end, of n only the log knows anything, and p is in a report, but its day is not over.
    bank.settle(&[("p", Ok("TX-p"))]).await?;
    settlements::run(&bank).await?;
    bank.settle(&[("m", Ok("TX-m"))]).await?;
    bank.count().await?;
    let done = bank.comes_back(None).await?;
    for (name, want) in [("m", "put-back"), ("n", "built"), ("p", "put-back")] {
        let line = done.lines.iter().find(|line| line["paymentId"] == json!(bank.id(name))).context("no line")?;
        assert_has(line, &json!({ "change": want, "dueAt": "2026-11-20T00:00:00Z" }));
    }
    // The new epoch does not say that they are missing.
    bank.open().await?;
    assert_eq!(bank.news_of("payment.restored").await?, [json!(null); 0]);
    let sent = bank.sent().await?;
    assert_eq!(["m", "n", "p"].map(|name| sent.contains(&bank.id(name))), [false, true, false]);
    Ok(())
}

/// The payments of before the instant to which the table is restored, amended since then.
#[tokio::test]
async fn what_was_amended_since_is_amended_again() -> Result<()> {
    let bank = Bank::new().await?;
    // z was amended twice, and g, which was created since, once.
    for (name, version, date) in [("z", 1, "2026-12-02"), ("z", 2, "2026-12-03"), ("g", 1, "2026-12-04")] {
        bank.amend(name, version, date).await?;
    }
    bank.count().await?;
    bank.comes_back(None).await?;
    bank.open().await?;
    // A repeated amendment is a replay, and the next one is applied.
    let again = bank.amend("z", 1, "2026-12-02").await?;
    assert_eq!((again.header("idempotent-replayed"), again.field("dueDate")), (Some("true"), "2026-12-03"), "{again}");
    bank.amend("z", 3, "2026-12-05").await.map(drop)
}

/// The bank itself moved payments of a Saturday since: its events name no client.
#[tokio::test]
async fn what_was_redated_since_is_redated_again() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("w", "2026-12-05").await?;
    bank.amend("z", 1, "2026-12-05").await?;
    assert_eq!(bank.redate("GB", "2026-12-05").await?, 2);
    bank.comes_back(None).await?;
    for name in ["w", "z"] {
        bank.assert_due(name, "2026-12-07").await?;
    }
    Ok(())
}

/// The long-term table was restored, too, to before the redates. Clients' amendments are lost, and
/// the bank's redates are done again: w was scheduled for a Friday that is a holiday in England and
/// for T2, k was amended before, and z since.
#[tokio::test]
async fn redates_whose_details_are_lost_are_built_anew() -> Result<()> {
    let bank = Bank::new().await?;
    bank.create("w", "2026-12-25").await?;
    bank.create("k", FIRST).await?;
    bank.amend("k", 1, "2026-12-05").await?;
    let behind = bank.copies().await?.history;
    bank.amend("z", 1, "2026-12-05").await?;
    // T2 is open on the Monday after Christmas, and England's banks are not.
    for (calendar, date, moved) in [("GB", "2026-12-05", 2), ("T2", "2026-12-25", 1), ("GB", "2026-12-28", 1)] {
        assert_eq!(bank.redate(calendar, date).await?, moved, "{date}");
    }
    let (wanted, mut details) = (bank.hot().await?, bank.details().await?);
    // No event says which calendar moved a payment.
    for redated in details.values_mut().filter(|item| item["createdBy"]["S"] == "b:redate") {
        let redated = redated.as_object_mut().context("no item")?;
        assert!(["calendarId", "calendarVersion"].iter().all(|name| redated.remove(*name).is_some()), "{redated:?}");
    }
    bank.lose().await?;
    bank.lose_history(&behind).await?;
    // Of z nobody knows the details that the redate followed.
    bank.apply().await?.found([(Finding::DetailsLost, 1)])?;
    let (found, of_z) = (bank.details().await?, bank.id("z"));
    let lost: Vec<_> = differences(&found, &details).into_iter().filter(|it| !it.contains(&of_z)).collect();
    assert_eq!(lost, [""; 0], "each item is as it was, without its calendar");
    for (name, due) in [("w", "2026-12-29"), ("k", "2026-12-07"), ("z", "2026-12-07")] {
        bank.assert_due(name, due).await?;
        bank.assert_like(name, &wanted, &["due"]).await?;
    }
    assert!(bank.apply().await?.changes.is_empty(), "it is done once");
    bank.recount().await?;
    bank.open().await?;
    assert_eq!(bank.amend("w", 3, "2026-12-30").await?.field("dueDate"), "2026-12-30");
    for (name, versions) in [("k", 3), ("w", 4)] {
        let path = format!("/accounts/{PAYER}/payments/{}/versions", bank.id(name));
        let listed = bank.send(Ask::get(&path)).await?;
        assert_eq!(listed.body["versions"].as_array().map(Vec::len), Some(versions), "{listed}");
    }
    Ok(())
}

/// A fault of a client amended payments.
#[tokio::test]
async fn amendments_are_left_out_if_they_are_named() -> Result<()> {
    let bank = Bank::new().await?;
    bank.amend("z", 1, "2026-12-02").await?;
    bank.due_today("k").await?;
    bank.due_today("l").await?;
    bank.sweep().await?;
    bank.amend("g", 1, "2026-12-04").await?;
    bank.count().await?;
    bank.lose().await?;
    // k and l were claimed since, so they stay amended.
    bank.apply_except(&["type=payment.amended"]).await?.found([(Finding::LeftOut, 2), (Finding::Kept, 2)])?;
    for (name, status, due) in [("z", "SCHEDULED", FIRST), ("g", "SCHEDULED", FIRST), ("k", "PENDING", TODAY)] {
        let due = format!("{status}#{due}#{due}T00:00:00Z#{}", bank.id(name));
        assert_eq!(bank.head_of(name).await?.context("no head")?["due"]["S"], due, "{name}");
    }
    // An amendment that was left out can be made anew, with another key: the details of the first
    // time are still stored.
    bank.open().await?;
    bank.amend("z", 1, "2026-12-05").await.map(drop)
}

/// The long-term table was restored to before an amendment. Nobody knows its data, so nothing may be sent: least of all what the payment
/// said before.
#[tokio::test]
async fn a_payment_whose_amendment_is_lost_is_never_sent() -> Result<()> {
    let bank = Bank::new().await?;
    let behind = bank.copies().await?.history;
    bank.amend("z", 1, TODAY).await?;
    bank.amend("g", 1, "2026-12-04").await?;
    bank.count().await?;
    bank.sweep().await?;
    bank.count().await?;
    let wanted = bank.hot().await?;
    bank.lose().await?;
    bank.lose_history(&behind).await?;
    bank.apply().await?.found([(Finding::DetailsLost, 2)])?;
    for name in ["z", "g"] {
        let attributes =
            ["due", "status", "version", "details", "amountMinor", "payeeAccountId", "scheduledFor", "moved"];
        bank.assert_like(name, &wanted, &attributes).await?;
    }
    let again = bank.apply().await?.found([(Finding::DetailsLost, 2)])?;
    assert_eq!(again.changes, BTreeMap::new());
    bank.open().await?;
    // `dispatch` refuses z at each attempt, which raises an alarm, and sends the others of its batch.
    let refused = Queue::new(QueueSettings::named("failures"));
    let sent = bank.sent_or_refused(&refused).await?;
    assert_eq!(["z", "g", "c"].map(|name| sent.contains(&bank.id(name))), [false, false, true]);
    let refused = refused.receive(10, bank.now().as_chrono());
    assert_eq!(refused.len(), 3, "{refused:#?}");
    assert!(refused.iter().all(|record| record.body.contains("RetryAttemptsExhausted")), "{refused:#?}");
    // The client cancels the payment that is still scheduled, and creates another. A result settles
    // the payment that was sent before the loss.
    bank.cancel("g").await?;
    bank.settle(&[("z", Ok("TX-z"))]).await?;
    bank.assert_statuses(&[("g", Some("CANCELLED")), ("z", Some("PROCESSED"))]).await
}

/// Somebody changed a due key by hand, so that the head is due at another time than the log says.
#[tokio::test]
async fn a_head_that_is_due_elsewhere_is_listed() -> Result<()> {
    for (case, name, attributes, finding, moved) in [
        // By the log, an amended payment was claimed at another time.
        (
            "a_head_that_is_due_at_another_time_than_the_log_says_is_listed",
            "k",
            &["due", "moved"][..],
            Finding::Differs,
            0,
        ),
        ("a_head_that_is_due_elsewhere_without_an_amendment_is_listed", "c", &["due"], Finding::Unreadable, 1),
    ] {
        let bank = Bank::new().await?;
        let mut hot = bank.at_t.hot.clone();
        if name == "k" {
            bank.due_today("k").await?;
            hot = bank.copies().await?.hot;
            bank.sweep().await?;
            bank.count().await?;
        }
        let (id, due) = (bank.id(name), format!("2026-11-22T00:00:00Z#{}", bank.id(name)));
        for head in hot.iter_mut().filter(|head: &&mut Item| attribute(head, "sk").ends_with(&id)) {
            for attribute in attributes {
                let prefix = if *attribute == "due" { "SCHEDULED#2026-11-22#" } else { "" };
                head.insert((*attribute).to_owned(), text(format!("{prefix}{due}")));
            }
        }
        bank.lose_hot(&hot).await?;
        let before = bank.head_of(name).await?;
        let done = bank.apply().await?.found([(finding, 1)]).context(case)?;
        assert_eq!(done.changed(Change::Moved), moved, "{case}");
        assert!(name == "c" || done.changes.is_empty(), "{case}: {:?}", done.changes);
        assert_eq!(bank.head_of(name).await?, before, "{case}");
    }
    Ok(())
}
