//! A restore ends an epoch of the log and begins the next one.
//!
//! The log's head has the stage of a restore in its source: a stream while the log is open, [`NO_SOURCE`] once the
//! epoch is to end, and [`RESTORING`] while the first events of the next one are appended. The function appends only
//! changes of the head's source, so nothing comes in between.

use payments_model::UtcSecond;

use crate::error::StoreError;
use crate::log::head::{LogHead, Missed, NO_SOURCE};
use crate::log::position::LogPosition;
use crate::log::segment::segment_key;
use crate::store::Store;

/// The source while an epoch begins.
const RESTORING: &str = "restore";

/// The stage of the log between two epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStage {
    /// The log takes the changes of its source.
    Open,
    /// The log takes no changes. Its epoch is to end.
    Ended,
    /// A new epoch has begun, and takes no changes yet.
    Begun,
}

impl LogHead {
    /// The stage of the log between two epochs.
    #[must_use]
    pub fn stage(&self) -> LogStage {
        match self.source.as_str() {
            NO_SOURCE => LogStage::Ended,
            RESTORING => LogStage::Begun,
            _ => LogStage::Open,
        }
    }

    fn for_source(&self, source: &str) -> Self {
        Self { source: source.to_owned(), ..self.clone() }
    }

    /// The head of the epoch that begins at `now`. The one before had its last segment before `end`.
    #[must_use]
    pub fn next_epoch(&self, end: u64, now: UtcSecond) -> Self {
        let mut next = self.for_source(RESTORING);
        next.ended.insert(self.epoch, end);
        (next.epoch, next.next) = (self.epoch.next(now), 1);
        next
    }

    /// The beginning of the epoch that is written.
    #[must_use]
    pub fn start_of_epoch(&self) -> LogPosition {
        LogPosition { epoch: self.epoch, number: 1, offset: 0 }
    }

    /// The start of a new reader that wants the events from now on. A log that replaced a lost one
    /// is read from its beginning: readers that lost their places with it must see the loss.
    #[must_use]
    pub fn start_of_news(&self, now: UtcSecond) -> LogPosition {
        let is_after_loss = self.first_epoch() == self.epoch && !self.ended.is_empty();
        if is_after_loss { self.start_of_epoch().max(self.start(now)) } else { self.end() }
    }

    /// The start of a reader whose place a restore of the log lost: the first events of the epoch say what may be
    /// missing. An epoch that is to end has no such events yet, so the reader waits for the next one.
    #[must_use]
    pub fn start_after_loss(&self, now: UtcSecond) -> LogPosition {
        if self.stage() == LogStage::Ended { self.end() } else { self.start_of_epoch().max(self.start(now)) }
    }

    /// The end of the epoch before this one.
    #[must_use]
    pub fn end_before(&self) -> Option<LogPosition> {
        let (epoch, end) = self.ended.last_key_value()?;
        Some(LogPosition { epoch: *epoch, number: *end, offset: 0 })
    }
}

impl Store {
    /// Makes the log take no more changes, and end before a segment's number: 2 write units.
    /// Returns whether its head was as it was read.
    pub async fn end_epoch(&self, head: &LogHead, end: u64) -> Result<bool, StoreError> {
        self.change_log_head(head, &LogHead { next: end, ..head.for_source(NO_SOURCE) }).await
    }

    /// Writes the head of a lost log: it takes no changes, and says that some are missing. 2 write
    /// units. Returns whether there was no log.
    pub async fn begin_lost_log(&self, now: UtcSecond) -> Result<bool, StoreError> {
        let lost = LogHead { missed: Some(Missed { since: None, until: now }), ..LogHead::first(NO_SOURCE, now) };
        self.change_log_head(&LogHead::first(RESTORING, now), &lost).await
    }

    /// Appends events as the first segment of the epoch of `next`, or as a further one: write units as
    /// [`commit_counts`](Self::commit_counts). Returns whether the head was as it was read.
    pub async fn begin_epoch(
        &self,
        head: &LogHead,
        next: &LogHead,
        events: &[String],
        now: UtcSecond,
    ) -> Result<bool, StoreError> {
        let actions = self.append_as(head, next, events, now)?;
        Ok(self.transact(actions.into_iter().collect()).await?.is_ok())
    }

    /// Makes the log take the changes of a stream: 2 write units. Returns whether its head was as it was read.
    pub async fn open_epoch(&self, head: &LogHead, source: &str) -> Result<bool, StoreError> {
        self.change_log_head(head, &head.for_source(source)).await
    }

    async fn change_log_head(&self, from: &LogHead, to: &LogHead) -> Result<bool, StoreError> {
        let update = self.move_log_head(from, &to.item()?);
        let action = update.map(|update| aws_sdk_dynamodb::types::TransactWriteItem::builder().update(update).build());
        Ok(self.transact(action.map(|action| vec![action])).await?.is_ok())
    }

    /// The number after the last segment of the head's epoch that exists at `now`. If a table was
    /// restored while a segment was appended, its head may count segments that are missing, or may
    /// not count existing ones: they are few, and are looked for one by one.
    pub async fn end_of_segments(&self, head: &LogHead, now: UtcSecond) -> Result<u64, StoreError> {
        let (epoch, kept) = head.oldest(now);
        let kept = if epoch == head.epoch { kept } else { 1 };
        let mut end = head.next;
        let has = async |number| {
            Ok::<_, StoreError>(self.get(&self.tables.log, segment_key(head.epoch, number)).await?.is_some())
        };
        while has(end).await? {
            end += 1;
        }
        while end > kept && !has(end - 1).await? {
            end -= 1;
        }
        Ok(end)
    }
}
