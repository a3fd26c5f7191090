//! The payments that a sweep leaves: their number, and the time for which they could have been claimed.

use payments_model::{HeadKey, causes};
use payments_store::{MAX_BATCH_GET, StoreError};

use crate::lateness::oldest_of;
use crate::sweep::ShardSweep;

impl ShardSweep<'_> {
    /// Counts the time for which the payments left could have been claimed, as far as one query and one batch read show.
    pub(crate) async fn measure_left(&mut self) {
        let oldest = self.oldest_left().await.unwrap_or_else(|error| {
            tracing::warn!(shard = self.shard.get(), causes = ?causes(&error), "payments left cannot be read");
            None
        });
        self.outcome.oldest_left_seconds = oldest.filter(|seconds| *seconds > 0);
        self.outcome.count_overdue(oldest);
    }

    /// Returns the longest time for which one of the index's next 100 payments could have been claimed; `None` if the time
    /// is unknown. These are the payments that are due first. Among payments with one due time, the choice is random.
    async fn oldest_left(&mut self) -> Result<Option<u64>, StoreError> {
        if self.in_hand.is_empty() && !self.read_to_end && !self.deadline.has_come() {
            self.read().await?;
        }
        if self.deadline.has_come() {
            // No time is left to read heads. If the sweep has claimed payments, these were due before the
            // payments left, and their times are already counted.
            return Ok((self.progress() > 0).then_some(0));
        }
        let keys: Vec<HeadKey> = self.in_hand.iter().take(MAX_BATCH_GET).map(|row| row.head.clone()).collect();
        let heads = self.sweeper.store.hot_heads(&keys).await?;
        let readable = heads.iter().filter_map(|(_, head)| head.as_ref().ok());
        Ok(Some(oldest_of(readable, |date| self.freed_at(date), self.sweeper.clock.now())))
    }

    /// Counts the payments left, with at most one read.
    pub(crate) async fn count_remaining(&mut self) {
        self.outcome.remaining += u64::try_from(self.in_hand.len()).unwrap_or(u64::MAX);
        if self.read_to_end {
            return;
        }
        if self.deadline.has_come() {
            self.outcome.remaining_is_lower_bound = true;
            return;
        }
        let Some((range, end)) = self.next_range() else { return };
        let are_ranges_left = self.switch.free(end.plus_days(1), self.last).is_some();
        match self.sweeper.store.due_count(&range).await {
            Ok((count, more)) => {
                self.outcome.remaining += count;
                self.outcome.remaining_is_lower_bound |= more || are_ranges_left;
            }
            Err(_) => self.outcome.remaining_is_lower_bound = true,
        }
    }
}
