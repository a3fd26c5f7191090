//! Events between the calls of a run: its end, or something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use payments_machine::layers::client_over;
use payments_machine::layers::fault::{Fault, Process};
use payments_machine::{Call, Fate, Layers};
use payments_tests::{CrashPoint, CrashPoints, World, note_case};
use tokio::sync::Notify;

/// Runs something over a client that fails at a point, and notes whether it does. Only calls to
/// which `counts` applies have numbers. Returns the outcome of the run; none if it was killed.
pub(super) async fn failing<T>(
    world: &World,
    points: &mut CrashPoints,
    point: CrashPoint,
    counts: impl Fn(&Call) -> bool + Send + Sync + 'static,
    run: impl AsyncFnOnce(Client) -> Result<T>,
) -> Result<Option<Result<T>>> {
    let (process, calls) = (Process::default(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let fault = Fault::for_process(&process, move |call| {
        let number = counts(call).then(|| counted.fetch_add(1, Ordering::Relaxed));
        number.map_or(Fate::Pass, |number| point.fate_at(number))
    });
    let client = client_over(&world.client().await, Layers::over(world.recorder.clone()).with(fault));
    let ended = process.until_killed(run(client)).await;
    if calls.load(Ordering::Relaxed) > point.call {
        points.failed(format_args!("{:?}", point.way.fate))?;
    }
    Ok(ended)
}

/// Runs something over a client, and something else at one of its calls, or after it. Returns the outcome of the run.
pub(super) async fn at_call<T>(
    world: &World,
    harness: &str,
    number: usize,
    run: impl AsyncFnOnce(Client) -> Result<T>,
    other: impl Future<Output = Result<()>>,
) -> Result<T> {
    let (reached, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let met = Arc::new(AtomicBool::new(false));
    let meets = Arc::clone(&met);
    let waits = (Arc::clone(&reached), Arc::clone(&done));
    let layers = Layers::over(world.recorder.clone()).with_fn(move |call, next| {
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
    let client = client_over(&world.client().await, layers);
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
        Ok(())
    };
    let (ended, ()) = tokio::try_join!(run, other)?;
    if met.load(Ordering::Relaxed) {
        note_case(harness, "Waits", number)?;
    }
    Ok(ended)
}
