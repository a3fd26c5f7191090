//! Both tables are restored, each to an instant of its own.

use payments_restore::Finding;

use super::super::*;
use super::bank::{Bank, LATER, TODAY, differences};

#[tokio::test]
async fn both_tables_with_different_lags_are_as_they_were() -> Result<()> {
    let bank = Bank::new().await?;
    let history = bank.history().await?;
    // The long-term table is a few minutes behind: it lacks the last settlement of c, and all that came then.
    let behind = bank.copies().await?.history;
    bank.settle(&[("c", Ok("TX-c"))]).await?;
    bank.count().await?;
    let (wanted, end) = (bank.hot().await?, bank.history().await?);
    assert_eq!(differences(&end, &history).len(), 1);
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.lose_history(&behind).await?;
    let done = bank.apply().await?;
    assert_eq!(done.findings, BTreeMap::new());
    bank.assert_hot(&wanted).await?;
    assert_eq!(differences(&bank.history().await?, &end), [""; 0]);
    bank.go_on(&["c"]).await
}

/// Details that no table has cannot be built from events. Their client is asked.
#[tokio::test]
async fn a_payment_whose_details_are_lost_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    let behind = bank.copies().await?.history;
    bank.create("k", TODAY).await?;
    bank.count().await?;
    bank.lose_hot(&bank.at_t.hot).await?;
    bank.lose_history(&behind).await?;
    let (done, lines) = bank.told(|_| {}).await?;
    assert_eq!(done.findings, [(Finding::DetailsLost, 1)].into());
    let line = lines.iter().find(|line| line["finding"] == "details-lost").context("no line")?;
    assert_eq!((&line["paymentId"], &line["dueAt"]), (&json!(bank.id("k")), &json!("2026-11-20T00:00:00Z")));
    bank.open().await?;
    bank.world.set_clock(LATER)?;
    assert_eq!(bank.create_again("k", TODAY).await?, bank.id("k"));
    Ok(())
}
