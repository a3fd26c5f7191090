//! A gate that every call waits at, and a scheduler that says whose call goes next: this is how
//! interleavings are chosen instead of happening.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How often the scheduler lets the tasks work on before it takes what waits for all there is. A
/// task that is not waiting here only computes, so that a few polls bring it here or to its end.
const PATIENCE: usize = 64;

/// The gate; open until somebody schedules.
#[derive(Debug, Default)]
pub(crate) struct TaskScheduler(Mutex<Waiting>);

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Pass<'g>(&'g TaskScheduler);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.waiting().under_way -= 1;
    }
}

#[derive(Debug, Default)]
struct Waiting {
    closed: bool,
    /// How many calls were let go on and have not ended yet.
    under_way: usize,
    by_task: BTreeMap<usize, Vec<oneshot::Sender<()>>>,
}

impl TaskScheduler {
    /// Waits for the scheduler, if there is one. The call is under way until the pass is dropped.
    pub(crate) async fn pass(&self, task: usize) -> Option<Pass<'_>> {
        let turn = {
            let mut waiting = self.waiting();
            if !waiting.closed {
                return None;
            }
            let (sender, turn) = oneshot::channel();
            waiting.by_task.entry(task).or_default().push(sender);
            turn
        };
        let _opened = turn.await;
        Some(Pass(self))
    }

    /// Runs tasks together; `choose` says, of the tasks with a waiting call, whose goes next.
    pub(crate) async fn schedule(
        &self,
        tasks: Vec<impl Future<Output = ()>>,
        mut choose: impl FnMut(&[usize]) -> usize,
    ) {
        self.waiting().closed = true;
        let running = std::cell::Cell::new(tasks.len());
        let tasks = tasks.into_iter().map(|task| async {
            task.await;
            running.set(running.get() - 1);
        });
        let scheduler = async {
            while running.get() > 0 {
                self.let_work_on().await;
                let ready: Vec<usize> = self.waiting().by_task.keys().copied().collect();
                if !ready.is_empty() {
                    self.open(ready[choose(&ready) % ready.len()]);
                }
            }
            self.waiting().closed = false;
        };
        futures::future::join(futures::future::join_all(tasks), scheduler).await;
    }

    /// Lets the tasks work on until no call is under way and they had time to make the next.
    async fn let_work_on(&self) {
        let mut idle = 0;
        while idle < PATIENCE {
            tokio::task::yield_now().await;
            idle = if self.waiting().under_way == 0 { idle + 1 } else { 0 };
        }
    }

    /// Lets the oldest waiting call of a task go on.
    fn open(&self, task: usize) {
        let mut waiting = self.waiting();
        let Some(calls) = waiting.by_task.get_mut(&task) else { return };
        let turn = calls.remove(0);
        if calls.is_empty() {
            waiting.by_task.remove(&task);
        }
        // Nobody waits any more where the task was dropped.
        if turn.send(()).is_ok() {
            waiting.under_way += 1;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
