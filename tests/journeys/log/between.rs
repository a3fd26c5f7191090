//! What comes between the calls of a run: its end, or something else that happens.

use std::sync::Arc;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use payments_local::interceptor::{Fate, Interceptor, Process, client_over};
use payments_tests::World;
use tokio::sync::Notify;

/// Runs something over a client, of which one call meets a fate. Returns what came of it; none if it was killed.
pub(super) async fn with_fate<T>(
    world: &World,
    fate: Fate,
    number: usize,
    run: impl AsyncFnOnce(Client) -> Result<T>,
) -> Option<Result<T>> {
    let process = Process::default();
    let killed = process.clone();
    let interceptor = Interceptor::over(world.recorder.clone(), move |call, next| {
        let (process, fate) = (killed.clone(), if call.number == number { fate } else { Fate::Pass });
        async move { fate.carry_out(call, &process, |call| async move { next.send(call).await }).await }
    });
    let client = client_over(&world.client().await, interceptor);
    process.until_killed(run(client)).await
}

/// Runs something over a client, and something else at one of its calls, or after it.
pub(super) async fn at_call(
    world: &World,
    number: usize,
    run: impl AsyncFnOnce(Client) -> Result<()>,
    other: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (reached, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let waits = (Arc::clone(&reached), Arc::clone(&done));
    let interceptor = Interceptor::over(world.recorder.clone(), move |call, next| {
        let waits = (call.number == number).then(|| waits.clone());
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
    tokio::try_join!(run, other).map(drop)
}
