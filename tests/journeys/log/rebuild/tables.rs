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
    assert_eq!(differences(&bank.history().await?, &history).len(), 1);
    bank.comes_back(Some(&behind)).await?;
    bank.go_on(&["c"]).await
}

/// Details that no table has cannot be built from events. Their client is asked.
#[tokio::test]
async fn a_payment_whose_details_are_lost_is_listed() -> Result<()> {
    let bank = Bank::new().await?;
    let behind = bank.copies().await?.history;
    bank.create("k", TODAY).await?;
    bank.count().await?;
    bank.lose().await?;
    bank.lose_history(&behind).await?;
    let done = bank.apply().await?.found([(Finding::DetailsLost, 1)])?;
    let lost = json!({ "paymentId": bank.id("k"), "dueAt": "2026-11-20T00:00:00Z" });
    assert_has(done.line("details-lost")?, &lost);
    bank.open().await?;
    bank.set_clock(LATER)?;
    bank.create_again("k", TODAY).await
}
