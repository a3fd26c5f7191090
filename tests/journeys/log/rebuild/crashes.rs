//! `apply` can be killed at any call and run again: the end is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use payments_machine::interceptor::{Fate, Interceptor, Process, client_over};
use payments_restore::{Line, Told};
use payments_store::Store;
use payments_tests::note_case;

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
    for fate in [Fate::KillBefore, Fate::KillAfter, Fate::LoseReply] {
        for number in 0.. {
            bank.lose_hot(&copies.hot).await?;
            bank.lose_history(&copies.history).await?;
            let (process, writes) = (Process::default(), Arc::new(AtomicUsize::new(0)));
            let (killed, counted) = (process.clone(), Arc::clone(&writes));
            let interceptor = Interceptor::over(bank.world.recorder.clone(), move |call, next| {
                let is_it = !is_read(&call.operation) && counted.fetch_add(1, Ordering::Relaxed) == number;
                let (process, fate) = (killed.clone(), if is_it { fate } else { Fate::Pass });
                async move { fate.carry_out(call, &process, |call| async move { next.send(call).await }).await }
            });
            let client = client_over(&bank.world.client().await, interceptor);
            let rebuild = bank.rebuild(Store::new(client, bank.world.environment.tables.clone()))?;
            let told = Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} };
            let run = process.until_killed(rebuild.apply(&told)).await;
            if let Some(done) = run {
                done.with_context(|| format!("{fate:?} at write {number}"))?;
            }
            bank.apply().await?;
            bank.assert_hot(&wanted).await.with_context(|| format!("{fate:?} at write {number}"))?;
            let differences = differences(&bank.history().await?, &history);
            ensure!(differences.is_empty(), "{fate:?} at write {number}: {differences:#?}");
            ensure!(bank.apply().await?.is_nothing(), "{fate:?} at write {number}");
            if writes.load(Ordering::Relaxed) <= number {
                assert!(number > 12, "{number} writes");
                break;
            }
            note_case("rebuild", format_args!("{fate:?}"), number)?;
        }
    }
    bank.recount().await
}
