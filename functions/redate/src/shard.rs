//! One date of one shard: reads the index, judges payments, writes new details, then makes the heads name them.
//!
//! Each step is one round of calls, so the deadline is checked between rounds. The next run finds details that this run
//! wrote before it ended. No head names them until then, so they were never in force.

use std::collections::{HashMap, VecDeque};

use payments_model::redate::Action;
use payments_model::{Actor, Amended, BusinessDate, HeadKey, PaymentId, REDATED, Shard, Status, Stays, causes};
use payments_store::{DueRange, DueRow, DueUntil, Moved, StoreError};
use payments_work::{Halt, Round, Work, at_once, drive};

use crate::function::Redate;
use crate::judge::{Judged, Move, Run, has};
use crate::outcome::RedateOutcome;

/// The index entries of one page, 300 KB.
const PAGE: u16 = 1_000;

/// The payments that are read at once: 25 details of 8 KB.
const READS_AT_ONCE: usize = 25;

/// The most writes of one shard in flight.
const WRITES_AT_ONCE: usize = 16;

/// One date of one shard.
pub(crate) struct ShardDate<'a> {
    run: &'a Run<'a>,
    date: BusinessDate,
    shard: Shard,
    /// The part of the index that is not read yet.
    unread: Option<DueRange>,
    /// Index entries whose payments are not read yet.
    entries: VecDeque<DueRow>,
    /// Payments whose new details are not written yet.
    ready: VecDeque<Move>,
    /// Payments whose new details are written, and whose heads do not name them yet.
    written: VecDeque<Move>,
    outcome: RedateOutcome,
}

impl Work for ShardDate<'_> {
    type Error = StoreError;

    fn is_done(&self) -> bool {
        self.unread.is_none() && self.entries.is_empty() && self.ready.is_empty() && self.written.is_empty()
    }

    /// Makes one round of calls, for the payments that are furthest first. A move is two writes.
    async fn round(&mut self) -> Round<StoreError> {
        let (done, failure) = if !self.written.is_empty() {
            self.amend_some().await
        } else if !self.ready.is_empty() {
            self.write_some().await
        } else if !self.entries.is_empty() {
            (0, self.judge_some().await.err())
        } else {
            (0, self.read().await.err())
        };
        Round { done, per_second: self.run.redate.config.moves_per_second.saturating_mul(2), failure }
    }
}

impl<'a> ShardDate<'a> {
    pub(crate) fn new(run: &'a Run<'a>, date: BusinessDate, shard: Shard) -> Self {
        let unread = DueRange { shard, status: Status::Scheduled, until: DueUntil::Date(date), after: None };
        let entries = VecDeque::new();
        let ready = VecDeque::new();
        let written = VecDeque::new();
        Self { run, date, shard, unread: Some(unread), entries, ready, written, outcome: RedateOutcome::default() }
    }

    /// Works until nothing is left, the deadline comes, or retries are exhausted. Returns the outcome so far, also with an error.
    pub(crate) async fn run(mut self) -> (RedateOutcome, Option<StoreError>) {
        let Run { redate, deadline, .. } = self.run;
        let broken = match drive(&mut self, &redate.clock, deadline).await {
            Ok(()) | Err(Halt::OutOfTime) => None,
            Err(Halt::Broken(error)) => Some(error),
            Err(Halt::GivenUp(error)) => {
                let date = self.date;
                let shard = self.shard.get();
                let causes = causes(&error);
                tracing::warn!(%date, shard, ?causes, "this run gives up a shard of a date; repeat it");
                None
            }
        };
        self.outcome.is_complete = self.is_done();
        self.outcome.waiting += u64::try_from(self.ready.len() + self.written.len()).unwrap_or(u64::MAX);
        (self.outcome, broken)
    }

    /// Reads the next page of the index.
    async fn read(&mut self) -> Result<(), StoreError> {
        let Some(range) = &mut self.unread else { return Ok(()) };
        let page = self.run.redate.store.due_page(range, PAGE).await?;
        match page.next {
            Some(next) => range.after = Some(next),
            None => self.unread = None,
        }
        for row in page.rows {
            match row {
                Ok(row) if has(self.run.redate, self.run.plan, &row) => self.entries.push_back(row),
                Ok(_) => {}
                Err(error) => self.count_unreadable(None, &error.to_string()),
            }
        }
        Ok(())
    }

    /// Reads the heads of the next entries and their details, and judges by them, since the index lags.
    async fn judge_some(&mut self) -> Result<(), StoreError> {
        let store = &self.run.redate.store;
        let some: Vec<DueRow> = self.entries.iter().take(READS_AT_ONCE).cloned().collect();
        let keys: Vec<HeadKey> = some.iter().map(|row| row.head.clone()).collect();
        let mut heads: HashMap<HeadKey, _> = store.hot_heads(&keys).await?.into_iter().collect();
        let found: Vec<_> = some.iter().map(|row| (row, heads.remove(&row.head))).collect();
        let there = found.iter().filter_map(|(row, head)| match head {
            Some(Ok(head)) if Run::is_there(head, row) => Some(head.details_key()),
            _ => None,
        });
        let there: Vec<_> = there.collect();
        let mut details = if there.is_empty() { HashMap::new() } else { store.stored_details(&there).await? };
        drop(self.entries.drain(..some.len()));
        for (row, head) in found {
            let payment_id = row.due.payment_id;
            self.outcome.looked += 1;
            let judged = match head {
                Some(Ok(head)) if Run::is_there(&head, row) => match details.remove(&head.details_key()) {
                    Some(Ok(in_force)) => self.run.judge(head, in_force, self.run.redate.clock.now()),
                    Some(Err(error)) => Judged::Unreadable(error.to_string()),
                    None => Judged::Unreadable("the details that its head names are missing".to_owned()),
                },
                Some(Err(error)) => Judged::Unreadable(error.to_string()),
                Some(Ok(_)) | None => Judged::Changed,
            };
            self.take(payment_id, judged);
        }
        Ok(())
    }

    fn take(&mut self, payment_id: PaymentId, judged: Judged) {
        match judged {
            Judged::Moves(payment) if self.run.plan.action == Action::Move => self.ready.push_back(*payment),
            Judged::Moves(payment) => {
                let rail = self.run.redate.config.business_days.rail(payment.head.money.currency);
                self.outcome.add_waiting(self.date, rail.map_or("", |rail| rail.calendar.id()));
                self.outcome.add_example(payment_id);
            }
            Judged::Stays(Stays::None) => self.outcome.left.none += 1,
            Judged::Stays(Stays::Refuse) => {
                self.outcome.left.refuse += 1;
                self.notice_left(payment_id, "its rule is refuse");
            }
            Judged::Stays(Stays::Uncovered) => {
                self.outcome.left.uncovered += 1;
                self.notice_left(payment_id, "its calendar covers no open date after it");
            }
            Judged::Changed => self.outcome.changed_meanwhile += 1,
            Judged::Unreadable(why) => self.count_unreadable(Some(payment_id), &why),
        }
    }

    /// Writes the details of the next few payments. Those whose write was throttled or not answered stay queued.
    async fn write_some(&mut self) -> (u32, Option<StoreError>) {
        let store = &self.run.redate.store;
        let puts = async |it: &Move| store.put_redated_details(&it.in_force, &it.redated).await;
        let puts = at_once(&mut self.ready, WRITES_AT_ONCE, puts).await;
        let (mut answered, mut failure) = (0, None);
        for (payment, put) in puts {
            match put {
                Ok(None) => self.written.push_back(payment),
                // An earlier run wrote them, and ended before the head named them.
                Ok(Some(known)) if payment.is_said_by(&known) => {
                    self.written.push_back(Move { redated: known, ..payment });
                }
                Ok(Some(_)) => {
                    let why = "there are other details with the amendment's id";
                    self.count_unreadable(Some(payment.head.payment_id), why);
                }
                Err(error @ StoreError::Unreadable { .. }) => {
                    self.count_unreadable(Some(payment.head.payment_id), &error.to_string());
                }
                Err(error) => {
                    self.ready.push_back(payment);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, failure)
    }

    /// Makes the heads of the next few payments name their new details. Those whose write was
    /// throttled or not answered stay queued.
    async fn amend_some(&mut self) -> (u32, Option<StoreError>) {
        let run = self.run;
        let amends = at_once(&mut self.written, WRITES_AT_ONCE, async |payment| run.amend(payment).await).await;
        let (mut answered, mut failure) = (0, None);
        for (payment, amended) in amends {
            let payment_id = payment.head.payment_id;
            match amended {
                Ok(true) => {
                    self.outcome.moved += 1;
                    self.outcome.add_example(payment_id);
                }
                Ok(false) => self.outcome.changed_meanwhile += 1,
                Err(error @ StoreError::Unreadable { .. }) => {
                    self.count_unreadable(Some(payment_id), &error.to_string());
                }
                Err(error) => {
                    self.written.push_back(payment);
                    failure = Some(StoreError::worse(failure, error));
                    continue;
                }
            }
            answered += 1;
        }
        (answered, failure)
    }

    fn notice_left(&mut self, payment_id: PaymentId, why: &str) {
        self.outcome.add_example_left(payment_id);
        if self.run.left.one_more() {
            tracing::warn!(%payment_id, why, "a payment stays due on a closed date");
        }
    }

    /// Counts a payment that an operator has to repair.
    fn count_unreadable(&mut self, payment_id: Option<PaymentId>, why: &str) {
        self.outcome.unreadable += 1;
        payment_id.into_iter().for_each(|id| self.outcome.add_example_unreadable(id));
        if self.run.unreadable.one_more() {
            let payment_id = payment_id.map(|id| id.to_string());
            tracing::error!(
                payment_id,
                why,
                "a payment of a closed date cannot be judged; see docs/alarms.md, RedateUnfinished"
            );
        }
    }
}

impl Run<'_> {
    /// Returns whether the payment is moved. If an answer was lost, its head says so.
    async fn amend(&self, payment: &Move) -> Result<bool, StoreError> {
        let Some(amendment) = payment.redated.amendment else { return Ok(false) };
        let Redate { store, clock, .. } = self.redate;
        let amended = Amended { at: clock.now(), by: Actor::redate(), changed: vec![REDATED.to_owned()] };
        let amended = payment.head.amended(amendment.name, &payment.redated, amended);
        Ok(match store.amend(&payment.head, &amended).await? {
            Moved::Done(_) => true,
            Moved::Elsewhere(head) => head.is_some_and(|head| head.amendment == Some(amendment.name)),
        })
    }
}
