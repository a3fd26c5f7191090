//! A scheduler of calls: every call waits for its turn, so that a test chooses how concurrent tasks interleave.
//!
//! A month's calls interleave by their latencies; here a test orders them, so that a schedule can be shrunk.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The polls of the tasks in a row, without a call under way, before the next turn is given. A task
/// that waits for no turn only computes, so a few polls bring it to its next call or to its end.
const IDLE_POLLS: usize = 64;

/// The scheduler. Outside of [`run`](Self::run) no call waits.
#[derive(Debug, Default)]
pub(crate) struct TaskScheduler(Mutex<State>);

/// A call under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'s>(&'s TaskScheduler);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().under_way -= 1;
    }
}

#[derive(Debug, Default)]
struct State {
    is_running: bool,
    under_way: usize,
    waiting_by_task: BTreeMap<usize, Vec<oneshot::Sender<()>>>,
}

impl TaskScheduler {
    /// Waits for the task's turn, if the scheduler runs.
    pub(crate) async fn turn(&self, task: usize) -> Option<Turn<'_>> {
        let turn = {
            let mut state = self.state();
            if !state.is_running {
                return None;
            }
            let (sender, turn) = oneshot::channel();
            state.waiting_by_task.entry(task).or_default().push(sender);
            turn
        };
        let _given = turn.await;
        Some(Turn(self))
    }

    /// Runs tasks together. Of the tasks with a waiting call, the one at the position that `choose` returns goes next.
    pub(crate) async fn run(&self, tasks: Vec<impl Future<Output = ()>>, mut choose: impl FnMut(&[usize]) -> usize) {
        self.state().is_running = true;
        let running = std::cell::Cell::new(tasks.len());
        let tasks = tasks.into_iter().map(|task| async {
            task.await;
            running.set(running.get() - 1);
        });
        let scheduler = async {
            while running.get() > 0 {
                self.until_idle().await;
                let ready: Vec<usize> = self.state().waiting_by_task.keys().copied().collect();
                if !ready.is_empty() {
                    self.give_turn(ready[choose(&ready) % ready.len()]);
                }
            }
            self.state().is_running = false;
        };
        futures::future::join(futures::future::join_all(tasks), scheduler).await;
    }

    /// Polls the tasks until no call is under way and each had time to begin the next.
    async fn until_idle(&self) {
        let mut idle = 0;
        while idle < IDLE_POLLS {
            tokio::task::yield_now().await;
            idle = if self.state().under_way == 0 { idle + 1 } else { 0 };
        }
    }

    /// Begins the oldest waiting call of a task.
    fn give_turn(&self, task: usize) {
        let mut state = self.state();
        let Some(calls) = state.waiting_by_task.get_mut(&task) else { return };
        let turn = calls.remove(0);
        if calls.is_empty() {
            state.waiting_by_task.remove(&task);
        }
        // Sending fails if the task was dropped.
        if turn.send(()).is_ok() {
            state.under_way += 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
