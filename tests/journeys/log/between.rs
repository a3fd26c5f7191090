//! What comes between the calls of a run: its end, or something else that happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use payments_machine::interceptor::{Fate, Interceptor, Process, client_over};
use payments_tests::{World, note_case};
use tokio::sync::Notify;

/// Runs something over a client, of which one call meets a fate. Returns what came of it; none if it was killed.
pub(super) async fn with_fate<T>(
    world: &World,
    harness: &str,
    fate: Fate,
    number: usize,
    run: impl AsyncFnOnce(Client) -> Result<T>,
) -> Result<Option<Result<T>>> {
    let (process, met) = (Process::default(), Arc::new(AtomicBool::new(false)));
    let (killed, meets) = (process.clone(), Arc::clone(&met));
    let interceptor = Interceptor::over(world.recorder.clone(), move |call, next| {
        let is_it = call.number == number;
        meets.fetch_or(is_it, Ordering::Relaxed);
        let (process, fate) = (killed.clone(), if is_it { fate } else { Fate::Pass });
        async move { fate.carry_out(call, &process, |call| async move { next.send(call).await }).await }
    });
    let client = client_over(&world.client().await, interceptor);
    let ended = process.until_killed(run(client)).await;
    if met.load(Ordering::Relaxed) {
        note_case(harness, format_args!("{fate:?}"), number)?;
    }
    Ok(ended)
}

/// Runs something over a client, and something else at one of its calls, or after it.
pub(super) async fn at_call(
    world: &World,
    harness: &str,
    number: usize,
    run: impl AsyncFnOnce(Client) -> Result<()>,
    other: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (reached, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let met = Arc::new(AtomicBool::new(false));
    let meets = Arc::clone(&met);
    let waits = (Arc::clone(&reached), Arc::clone(&done));
    let interceptor = Interceptor::over(world.recorder.clone(), move |call, next| {
        let waits = (call.number == number).then(|| waits.clone());
        meets.fetch_or(waits.is_some(), Ordering::Relaxed);
        async move {
            if let Some((reached, done)) = waits {
                reached.notify_one();
                done.notified().await;
            }
            next.send(call).await
        }
    });
    let client = client_over(&world.client().await, interceptor);
    let run = async {
        let ended = run(client).await;
        // If it made fewer calls.
        reached.notify_one();
        ended
    };
    let other = async {
        reached.notified().await;
        other.await?;
        done.notify_one();
        anyhow::Ok(())
    };
    tokio::try_join!(run, other)?;
    if met.load(Ordering::Relaxed) {
        note_case(harness, "Waits", number)?;
    }
    Ok(())
}
