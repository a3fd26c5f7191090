//! A part of a run: some payments of a plan, each with its end. Only a payment that is as it was planned is cancelled.

use std::collections::{HashMap, VecDeque};

use payments_boot::Deadline;
use payments_files::{PlanRow, UndoEnd};
use payments_model::{Actor, Event, Head, HeadKey, State, Status, causes};
use payments_store::{DueSort, MAX_BATCH_GET, Moved, PutHead, StoreError};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::function::Undo;

/// The most payments that are cancelled at once: with 10 ms a call, 640 a second need 7.
const WRITES_AT_ONCE: usize = 32;

/// A part of a run.
pub(crate) struct Part<'a> {
    undo: &'a Undo,
    by: &'a Actor,
    per_second: u32,
    /// Payments whose heads are not read yet.
    unread: VecDeque<PlanRow>,
    /// Payments to be cancelled, with their heads as they were read.
    ready: VecDeque<(PlanRow, Head)>,
    /// Payments that the hot table does not have.
    missing: VecDeque<PlanRow>,
    ends: Vec<(PlanRow, UndoEnd)>,
}

/// The next step of a payment.
enum Step {
    Ended(UndoEnd),
    Cancel(Box<Head>),
    Look,
}

impl<'a> Part<'a> {
    pub(crate) fn new(undo: &'a Undo, by: &'a Actor, per_second: u32, rows: Vec<PlanRow>) -> Self {
        let ready = VecDeque::new();
        let missing = VecDeque::new();
        Self { undo, by, per_second, unread: rows.into(), ready, missing, ends: Vec::new() }
    }

    /// Works until all payments have ended. `None` if the deadline comes first, or calls keep failing: the next run begins the part
    /// again.
    pub(crate) async fn run(mut self, deadline: &Deadline) -> Result<Option<Vec<(PlanRow, UndoEnd)>>, StoreError> {
        let undo = self.undo;
        match drive(&mut self, &undo.clock, deadline).await {
            Ok(()) => Ok(Some(self.ends)),
            Err(Halt::OutOfTime) => Ok(None),
            Err(Halt::GivenUp(error)) => {
                let by = self.by.as_str();
                tracing::warn!(by, causes = ?causes(&error), "this run gives up a part of an undo; the next run continues");
                Ok(None)
            }
            Err(Halt::Broken(error)) => Err(error),
        }
    }

    /// Reads the heads of the next payments.
    async fn read(&mut self) -> Result<(), StoreError> {
        let some: Vec<PlanRow> = self.unread.iter().take(MAX_BATCH_GET).cloned().collect();
        let keys: Vec<HeadKey> = some.iter().map(|row| row.head.clone()).collect();
        let mut heads: HashMap<HeadKey, _> = self.undo.store.hot_heads(&keys).await?.into_iter().collect();
        drop(self.unread.drain(..some.len()));
        for row in some {
            let step = heads.remove(&row.head).map_or(Ok(Step::Look), |head| head.map(|head| self.judge(&row, head)));
            self.take(row, step.unwrap_or_else(|error| unreadable(&error)));
        }
        Ok(())
    }

    fn take(&mut self, row: PlanRow, step: Step) {
        match step {
            Step::Ended(end) => self.ends.push((row, end)),
            Step::Cancel(head) => self.ready.push_back((row, *head)),
            Step::Look => self.missing.push_back(row),
        }
    }

    /// Decides by the payment's head. After a restore, a payment that was claimed when it was planned may be scheduled again, but
    /// its request was sent.
    fn judge(&self, row: &PlanRow, head: Head) -> Step {
        let was_claimed = row.status.is_some_and(|status| status != Status::Scheduled);
        Step::Ended(match head.state {
            State::Cancelled if head.last_change().1 == self.by => UndoEnd::Cancelled,
            State::Cancelled => UndoEnd::AlreadyCancelled,
            State::Processed(_) => UndoEnd::Processed,
            State::Failed(_) => UndoEnd::Failed,
            State::Pending => UndoEnd::Claimed,
            State::Scheduled if was_claimed => UndoEnd::Claimed,
            State::Scheduled if (&row.payee, row.money) != (&head.payee, head.money) => UndoEnd::Amended,
            State::Scheduled => return Step::Cancel(Box::new(head)),
        })
    }

    /// Cancels a payment at the version that was read.
    async fn cancel(&self, row: &PlanRow, head: &Head) -> Result<Step, StoreError> {
        let Undo { store, clock, .. } = self.undo;
        let Ok(step) = head.transition(&Event::Cancel, clock.now(), self.by.clone()) else {
            return Ok(Step::Ended(UndoEnd::Unreadable));
        };
        Ok(match store.transition(&head.key(), DueSort::from_head(head), &step).await? {
            Moved::Done(_) => Step::Ended(UndoEnd::Cancelled),
            // The payment was claimed or amended since, or the reply of an earlier call was lost.
            Moved::Elsewhere(Some(head)) => self.judge(row, *head),
            Moved::Elsewhere(None) => Step::Look,
        })
    }

    /// Looks for a payment that the hot table does not have. A create that was cut off is completed, as its repetition would do, so
    /// that a later repetition finds it cancelled.
    async fn look(&self, row: &PlanRow) -> Result<Step, StoreError> {
        let Undo { store, config, .. } = self.undo;
        if let Some(head) = store.archived_head(&row.head).await? {
            return Ok(match self.judge(row, head) {
                // The long-term table alone never has a scheduled payment.
                Step::Cancel(_) | Step::Look => Step::Ended(UndoEnd::Unreadable),
                ended @ Step::Ended(_) => ended,
            });
        }
        let payment_id = row.head.slot.payment_id;
        let details = store.details(payment_id).await?;
        let was_claimed = row.status.is_some_and(|status| status != Status::Scheduled);
        // A sealed payment had finished.
        let Some(details) = details.filter(|details| !was_claimed && !details.is_sealed()) else {
            return Ok(Step::Ended(UndoEnd::Lost));
        };
        // A head from the first details would undo the amendments.
        if store.has_amendments(payment_id).await? {
            return Ok(Step::Ended(UndoEnd::Lost));
        }
        // A create of the last second may still write the head, so the undo is faster or sees it.
        if self.undo.now() >= config.zone.headless_from(details.due_date) {
            // The heads were read earlier.
            let late = store.hot_heads(std::slice::from_ref(&row.head)).await?.pop();
            return late.map_or(Ok(Step::Ended(UndoEnd::NeverCreated)), |(_, head)| Ok(self.judge(row, head?)));
        }
        Ok(match store.put_head(&Head::scheduled(&details)).await? {
            PutHead::Created => self.judge(row, Head::scheduled(&details)),
            PutHead::Existing(head) => self.judge(row, *head),
        })
    }

    /// Takes the answers to calls. Those whose call was throttled or not answered come back.
    fn take_all<T>(
        &mut self,
        answers: Vec<(T, Result<Step, StoreError>)>,
        row_of: impl Fn(T) -> PlanRow,
        back: impl Fn(&mut Self, T),
    ) -> (u32, Option<StoreError>) {
        let (mut answered, mut failure) = (0, None);
        for (entry, step) in answers {
            match step {
                Ok(step) => self.take(row_of(entry), step),
                Err(error @ StoreError::Unreadable { .. }) => self.take(row_of(entry), unreadable(&error)),
                Err(error) => {
                    back(self, entry);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, failure)
    }
}

impl Work for Part<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.unread.is_empty() && self.ready.is_empty() && self.missing.is_empty()
    }

    /// Makes one round of calls, for the payments that are furthest first.
    async fn round(&mut self) -> Round<StoreError> {
        let (done, failure) = if !self.ready.is_empty() {
            let mut ready = std::mem::take(&mut self.ready);
            let answers = at_once(&mut ready, WRITES_AT_ONCE, async |(row, head)| self.cancel(row, head).await).await;
            self.ready = ready;
            self.take_all(answers, |(row, _)| row, |part, entry| part.ready.push_back(entry))
        } else if !self.missing.is_empty() {
            let mut missing = std::mem::take(&mut self.missing);
            let answers = at_once(&mut missing, WRITES_AT_ONCE, async |row| self.look(row).await).await;
            self.missing = missing;
            self.take_all(answers, |row| row, |part, row| part.missing.push_back(row))
        } else {
            (0, self.read().await.err())
        };
        Round { done, per_second: self.per_second, failure }
    }
}

fn unreadable(error: &StoreError) -> Step {
    tracing::error!(%error, "a payment of an undo cannot be read; see docs/alarms.md, UndoUnfinished");
    Step::Ended(UndoEnd::Unreadable)
}
