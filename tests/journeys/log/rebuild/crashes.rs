//! `apply` can be killed at any call and run again: the end is the same.

use payments_machine::{Call, Fate};
use payments_restore::{Line, Told};
use payments_store::Store;
use payments_tests::{CrashPoints, Way};

use super::super::between::failing;
use super::super::*;
use super::bank::{Bank, differences};

#[tokio::test]
async fn apply_that_is_killed_at_any_call_comes_to_the_same_end() -> Result<()> {
    let bank = Bank::new().await?;
    let (wanted, history) = (bank.hot().await?, bank.history().await?);
    // The long-term table lost the last settlements, too, so there are heads to put into both.
    let mut copies = bank.at_t.clone();
    let lost = [bank.id("h"), bank.id("j")];
    copies.history = bank.copies().await?.history;
    let is_lost = |item: &payments_store::Item| {
        let is = |name: &str, of: &dyn Fn(&str) -> bool| {
            item.get(name).and_then(|it| it.as_s().ok()).is_some_and(|it| of(it))
        };
        is("pk", &|pk| pk.starts_with("ACCT#")) && is("sk", &|sk| lost.iter().any(|id| sk.ends_with(id.as_str())))
    };
    copies.history.retain(|item| !is_lost(item));
    // Killed at a read, it leaves what it leaves when it is killed after the write before.
    let is_read = |operation: &str| ["Query", "GetItem", "BatchGetItem", "DescribeTable"].contains(&operation);
    let fates = [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply];
    let mut points = CrashPoints::new("rebuild", fates.map(Way::once));
    while let Some(point) = points.next_case() {
        bank.lose_hot(&copies.hot).await?;
        bank.lose_history(&copies.history).await?;
        let run = async |client| {
            let rebuild = bank.rebuild(Store::new(client, bank.world.environment.tables.clone()))?;
            let told = Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} };
            rebuild.apply(&told).await
        };
        let is_write = move |call: &Call| !is_read(&call.operation);
        let run = failing(&bank.world, &mut points, point, is_write, run).await?;
        run.transpose().with_context(|| format!("{point:?}"))?;
        bank.apply().await?;
        bank.assert_hot(&wanted).await.with_context(|| format!("{point:?}"))?;
        let differences = differences(&bank.history().await?, &history);
        ensure!(differences.is_empty(), "{point:?}: {differences:#?}");
        ensure!(bank.apply().await?.is_nothing(), "{point:?}");
    }
    assert!(points.cases() > 38, "{points:?}");
    bank.recount().await
}
