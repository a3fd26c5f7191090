//! Payments that are due at another time than at first: events and reports do not say where their heads are.

use payments_restore::{Change, Finding};
use payments_tests::tables::{key_of, text};

use super::super::*;
use super::bank::{Bank, PAYER, TODAY, differences};
use crate::report::settlements;

/// When these payments were due at first.
const FIRST: &str = "2026-12-01";

/// Creates a payment that was due later at first, and is due today.
async fn due_today(bank: &Bank, name: &str) -> Result<()> {
    bank.create(name, FIRST).await?;
    let id = bank.id(name);
    let heads = bank.world.heads(PAYER).await?;
    let head = heads.into_iter().find(|head| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id)));
    let mut head = head.context("no head")?;
    let table = &bank.world.environment.tables.payments;
    bank.world.client().await.delete_item().table_name(table).set_key(Some(key_of(&head))).send().await?;
    // Neither is counted or logged.
    bank.counting.lock().await.skip().await?;
    head.insert("due".to_owned(), text(format!("SCHEDULED#{TODAY}#{TODAY}T00:00:00Z#{id}")));
    bank.world.put_items(table, [head]).await?;
    bank.count().await
}

#[tokio::test]
async fn heads_are_found_and_built_where_they_were() -> Result<()> {
    let bank = Bank::new().await?;
    for name in ["m", "n", "p"] {
        due_today(&bank, name).await?;
    }
    bank.world.sweep().await?;
    // Of m the long-term table has the end, of n only the log knows anything, and p is in a report.
    bank.settle(&[("p", Ok("TX-p"))]).await?;
    settlements::run(&bank.world).await?;
    bank.settle(&[("m", Ok("TX-m"))]).await?;
    bank.count().await?;
    let (mut wanted, history) = (bank.wanted().await?, bank.history().await?);
    // They were created since T and are reported, so the long-term table alone has them, as if they had expired.
    let reported_since = [bank.id("p"), bank.id("h")];
    wanted.retain(|key, _| !reported_since.iter().any(|id| key.ends_with(id)));

    bank.lose_hot(&bank.at_t.hot).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, BTreeMap::new(), "{lines:#?}");
    bank.assert_hot(&wanted).await?;
    assert_eq!(differences(&bank.history().await?, &history), [""; 0]);
    let change = |name: &str| lines.iter().find(|line| line["paymentId"] == json!(bank.id(name)));
    for (name, want) in [("m", Some("put-back")), ("n", Some("built")), ("p", None)] {
        let line = change(name);
        assert_eq!(line.and_then(|line| line["change"].as_str()), want, "{name}: {lines:#?}");
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

/// A head whose due time is not that of its later events: nobody knows why.
#[tokio::test]
async fn a_head_that_is_due_at_another_time_than_the_log_says_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    let mut at_t = bank.at_t.hot.clone();
    // By the log, c is claimed later.
    let id = bank.id("c");
    for head in at_t.iter_mut().filter(|head| head["sk"].as_s().is_ok_and(|sk| sk.ends_with(&id))) {
        head.insert("due".to_owned(), text(format!("SCHEDULED#2026-11-22#2026-11-22T00:00:00Z#{id}")));
    }
    bank.lose_hot(&at_t).await?;
    let before = bank.head_of("c").await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(
        (done.findings, done.changes.get(&Change::Moved)),
        ([(Finding::Differs, 1)].into(), Some(&1)),
        "{lines:#?}"
    );
    assert_eq!(bank.head_of("c").await?, before);
    Ok(())
}
