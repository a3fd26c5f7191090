//! Runs the triggers in the background, on the machine's clock.

use std::time::Duration;

use anyhow::Result;
use payments_boot::Clock;
use payments_machine::triggers::{Tick, Triggers};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use crate::sandbox::{Move, Sandbox};

/// The time between polls of the stream and the queues. Lambda polls streams four times a second.
const PERIOD: Duration = Duration::from_millis(250);

/// Triggers that run.
#[derive(Debug)]
pub struct Background {
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Background {
    /// Starts to tick, on a thread of its own. As in Lambda, a handler stays on one thread. In a sandbox it also moves the
    /// clock.
    pub fn start(triggers: Triggers, clock: Clock, sandbox: Option<(Sandbox, mpsc::Receiver<Move>)>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Handle::current();
        Self { stop, running: spawn_blocking(move || runtime.block_on(run(triggers, clock, sandbox, stopped))) }
    }

    /// Stops after the current tick. No write is in flight afterwards.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        Ok(self.running.await?)
    }
}

async fn run(
    triggers: Triggers,
    clock: Clock,
    mut sandbox: Option<(Sandbox, mpsc::Receiver<Move>)>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut triggers = triggers.in_background();
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut stopped => return triggers.end().await,
            Some((sandbox, next)) = next_move(&mut sandbox) => {
                // Boxed, both: the chain of calls is deeper than the compiler accepts in one type.
                Box::pin(sandbox.play(next, async |now| log(&Box::pin(triggers.tick_to_the_end(now)).await))).await;
            }
            _ = period.tick() => {}
        }
        log(&Box::pin(triggers.tick(clock.instant())).await);
    }
}

/// Waits for the next move of a sandbox's clock. `None` if there is no sandbox.
async fn next_move(sandbox: &mut Option<(Sandbox, mpsc::Receiver<Move>)>) -> Option<(Sandbox, Move)> {
    let (sandbox, moves) = sandbox.as_mut()?;
    Some((sandbox.clone(), moves.recv().await?))
}

/// Logs one line for a tick that did something.
fn log(tick: &Tick) {
    let line = tick.to_string();
    if line.is_empty() {
        return;
    }
    if tick.troubles.is_empty() {
        tracing::info!("{line}");
    } else {
        tracing::warn!("{line}");
    }
}
