//! `apply` can be killed at any call and run again: the end is the same.

use payments_machine::{Call, Fate};
use payments_restore::{Line, Told};
use payments_store::Item;
use payments_tests::{CrashPoints, Way};

use super::super::between::failing;
use super::super::*;
use super::bank::{Bank, attribute, differences};
use super::contradictions::{close, contradict, replaced};

#[tokio::test]
async fn apply_that_is_killed_at_any_call_comes_to_the_same_end() -> Result<()> {
    let bank = Bank::new().await?;
    let (wanted, history) = (bank.hot().await?, bank.history().await?);
    let without = bank.copies().await?.history;
    let closed = contradict(&bank, "e", "closed").await?;
    contradict(&bank, "a", "open").await?;
    close(&bank, &closed).await?;
    let (findings, replaced) = (bank.findings().await?, replaced(&bank).await?);
    // The long-term table lost the last settlements, too, so there are heads to put into both.
    let (mut behind, lost) = (without, [bank.id("h"), bank.id("j")]);
    let is_lost = |item: &Item| {
        attribute(item, "pk").starts_with("ACCT#") && lost.iter().any(|id| attribute(item, "sk").ends_with(id.as_str()))
    };
    behind.retain(|item| !is_lost(item));
    // Killed at a read, it leaves what it leaves when it is killed after the write before.
    let is_read = |operation: &str| ["Query", "GetItem", "BatchGetItem", "DescribeTable"].contains(&operation);
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("rebuild", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        bank.lose().await?;
        bank.lose_history(&behind).await?;
        let run = async |client| {
            let mut rebuild = bank.rebuild(Store::new(client, bank.environment.tables.clone()))?;
            rebuild.replaced = Some(replaced.clone());
            rebuild.apply(&Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} }).await
        };
        let is_write = move |call: &Call| !is_read(&call.operation);
        let run = failing(&bank, &mut points, point, is_write, run).await?;
        run.transpose().with_context(|| format!("{point:?}"))?;
        bank.apply_with(|rebuild| rebuild.replaced = Some(replaced.clone())).await?;
        bank.assert_hot(&wanted).await.with_context(|| format!("{point:?}"))?;
        for (have, want) in [(bank.history().await?, &history), (bank.findings().await?, &findings)] {
            let differences = differences(&have, want);
            ensure!(differences.is_empty(), "{point:?}: {differences:#?}");
        }
        bank.assert_done().await.with_context(|| format!("{point:?}"))?;
    }
    assert!(points.cases() > 44, "{points:?}");
    bank.recount().await
}
