//! The claims that a shard has reserved, from the reservation until each is made or given back.

use std::collections::{HashSet, VecDeque};

use payments_model::{BusinessDate, DayTotal, Head, PaymentId, State, Status, UtcSecond};
use payments_store::{DueRow, StoreError};

use crate::guard::Guard;
use crate::sweep::ShardSweep;

/// The most claims of a reservation. A crash leaves at most so many a shard reserved.
const AT_MOST: usize = 100;

/// The reserved claims of a shard.
#[derive(Default)]
pub(crate) struct Reserved {
    /// Payments of one date that are not claimed yet.
    pub(crate) rows: VecDeque<DueRow>,
    /// Payments of `rows` whose last claim was not answered: it may have been made.
    pub(crate) unanswered: HashSet<PaymentId>,
    /// Payments that were not claimed, to give back.
    unclaimed: Vec<DueRow>,
}

impl Reserved {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unclaimed.is_empty()
    }

    /// Notes that a payment was not in the state in which its claim begins. Its reservation is given back, unless this sweep may have
    /// claimed it: by a try at the same time whose answer was lost, or by an earlier claim without an answer.
    pub(crate) fn not_claimed(&mut self, row: DueRow, found: Option<&Head>, at: UtcSecond) {
        let is_unclaimed = found.is_some_and(|head| matches!(head.state, State::Scheduled | State::Cancelled));
        let is_own = |head: &Head| head.moved.iter().any(|entry| entry.status == Status::Pending && entry.at == at);
        let may_be_own = self.unanswered.contains(&row.due.payment_id) || found.is_some_and(is_own);
        if is_unclaimed || !may_be_own {
            self.unclaimed.push(row);
        }
    }

    /// Keeps the payments of dates that are not held; the others are given back.
    pub(crate) fn leave(&mut self, is_held: impl Fn(BusinessDate) -> bool) {
        let rows = std::mem::take(&mut self.rows);
        let (left, kept): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_held(row.due.due_date));
        self.rows = kept.into();
        self.unclaimed.extend(left.into_iter().filter(|row| !self.unanswered.contains(&row.due.payment_id)));
    }
}

impl ShardSweep<'_> {
    /// Reserves the claims of the next payments of one date, at most [`AT_MOST`].
    pub(crate) async fn reserve(&mut self, guard: &Guard<'_>) -> Result<(), StoreError> {
        let Some(date) = self.in_hand.front().map(|row| row.due.due_date) else { return Ok(()) };
        let count = self.in_hand.iter().take(AT_MOST).take_while(|row| row.due.due_date == date).count();
        let claims: DayTotal = self.in_hand.iter().take(count).map(|row| row.money).collect();
        if guard.reserve(date, &claims).await? {
            self.reserved.rows = self.in_hand.drain(..count).collect();
            self.reserved.unanswered.clear();
        }
        Ok(())
    }

    /// Gives back what was not claimed.
    pub(crate) async fn give_back(&mut self, guard: &Guard<'_>) {
        let unclaimed = std::mem::take(&mut self.reserved.unclaimed);
        let Some(date) = unclaimed.first().map(|row| row.due.due_date) else { return };
        guard.give_back(date, &unclaimed.iter().map(|row| row.money).collect()).await;
    }

    /// Ends the reservations of the run. Payments whose claim was not answered stay reserved.
    pub(crate) async fn end_reservations(&mut self, guard: &Guard<'_>) {
        for row in std::mem::take(&mut self.reserved.rows).into_iter().rev() {
            if !self.reserved.unanswered.contains(&row.due.payment_id) {
                self.reserved.unclaimed.push(row.clone());
            }
            self.in_hand.push_front(row);
        }
        self.give_back(guard).await;
    }
}
