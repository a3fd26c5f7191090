//! A round: a few calls at once, of which none is in flight when the round ends.

use std::collections::VecDeque;

use futures::future::join_all;

/// The result of a round.
#[derive(Debug, PartialEq, Eq)]
pub struct Round<E> {
    /// The calls that were answered and that the pace counts.
    pub done: u32,
    /// The most of them a second; 0 is unlimited.
    pub per_second: u32,
    /// The worst failure that a retry may resolve.
    pub failure: Option<E>,
}

/// Takes up to `most` entries from the front of a queue, makes a call for each, all at once, and returns each entry with its answer.
pub async fn at_once<T, Answer>(
    queue: &mut VecDeque<T>,
    most: usize,
    call: impl AsyncFn(&T) -> Answer,
) -> Vec<(T, Answer)> {
    let some: Vec<T> = queue.drain(..queue.len().min(most)).collect();
    let answers = join_all(some.iter().map(|entry| call(entry))).await;
    some.into_iter().zip(answers).collect()
}
