//! Work on several threads at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};

/// Calls `work` with each number below `count`, on several threads. Returns what it returned, in the order of the numbers.
pub(crate) fn each<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let run = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let result = work(number)?;
            done.lock().ok().context("a month panicked")?.insert(number, result);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(count)).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().ok().context("a month panicked")?)
    })?;
    Ok(done.into_inner().ok().context("a month panicked")?.into_values().collect())
}
