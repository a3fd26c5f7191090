//! Reserves claims of a shard before they are made, and gives back those that are not.

use payments_model::{DayTotal, MAX_RESERVED};
use payments_store::StoreError;

use crate::guard::Guard;
use crate::sweep::ShardSweep;

impl ShardSweep<'_> {
    /// Reserves the claims of the next payments of one date, at most [`MAX_RESERVED`].
    pub(crate) async fn reserve(&mut self, guard: &Guard<'_>) -> Result<(), StoreError> {
        let Some(date) = self.in_hand.front().map(|row| row.due.due_date) else { return Ok(()) };
        let count = self.in_hand.iter().take(MAX_RESERVED).take_while(|row| row.due.due_date == date).count();
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
