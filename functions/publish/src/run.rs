//! Writes the journal, from the journal's end to the end that the log has when the run begins.

use object_store::{Error, ObjectStoreExt as _, PutMode};
use payments_boot::Deadline;
use payments_files::{JournalObject, MAX_OBJECT_BYTES};
use payments_model::UtcSecond;
use payments_store::{LogHead, LogPosition, LogRead};

use crate::error::PublishError;
use crate::function::Publish;
use crate::outcome::PublishOutcome;

/// The name of the journal among the log's consumers.
const JOURNAL: &str = "journal";

/// The most segments that one read of the log asks DynamoDB for: at most 4 MB of events.
const SEGMENTS: u8 = 12;

impl Publish {
    /// Writes files until the journal has all events that the log had when the run began, or until the deadline.
    pub(crate) async fn run(&self, deadline: &Deadline, outcome: &mut PublishOutcome) -> Result<(), PublishError> {
        // The place is read before the log's head. In the other order, another run could move the place
        // beyond the head that this run has read.
        let stored = self.store.log_consumer(JOURNAL).await?;
        let Some(head) = self.store.log_head().await? else { return Ok(()) };
        let mut at = stored.unwrap_or_else(|| head.start(self.clock.now()));
        outcome.journal_segments_behind = head.segments_after(at);
        if stored.is_none() && !self.store.move_log_consumer(JOURNAL, None, at).await? {
            return Ok(());
        }
        if at > head.end() {
            return Err(PublishError::shorter(&head, "the journal", at));
        }
        // `<`: a file that another run wrote can end beyond the end that the log had when this run began.
        while at < head.end() && !deadline.has_come() {
            let next = match self.gather(&head, at).await? {
                Gathered::Object(object) => self.write(object, outcome).await?,
                Gathered::Next(next) => next,
                Gathered::Missed(next) => {
                    tracing::error!(journal = %at, log = %next, "the log no longer has events that the journal lacks");
                    outcome.journal_missed += 1;
                    next
                }
            };
            if !self.store.move_log_consumer(JOURNAL, Some(at), next).await? {
                // Another run has moved the journal's place, and continues.
                return Ok(());
            }
            at = next;
            outcome.journal_segments_behind = head.segments_after(at);
        }
        Ok(())
    }

    /// Reads the events of the next file.
    async fn gather(&self, head: &LogHead, first: LogPosition) -> Result<Gathered, PublishError> {
        let mut object = JournalObject { first, after: first, events: Vec::new() };
        let mut bytes = 0;
        while object.after.epoch == first.epoch && object.after != head.end() && bytes < MAX_OBJECT_BYTES {
            let page = self.store.log_page(head, object.after, usize::MAX, SEGMENTS, self.clock.now()).await;
            let page = match page {
                Ok(LogRead::Page(page)) => page,
                // The events read so far go into a file; the next file finds the same result.
                _ if !object.events.is_empty() => break,
                Ok(LogRead::Expired(oldest)) => return Ok(Gathered::Missed(oldest)),
                Ok(LogRead::Beyond(_)) => {
                    return Ok(match beyond(head, "the journal", first, self.clock.now())? {
                        (next, true) => Gathered::Missed(next),
                        // The journal keeps the events that the log lost, and continues with the events after the loss.
                        (next, false) => Gathered::Next(next),
                    });
                }
                Err(error) => return Err(error.into()),
            };
            bytes += page.entries.iter().map(|entry| entry.json.len()).sum::<usize>();
            object.events.extend(page.entries.into_iter().map(|entry| entry.json));
            if page.after.epoch != first.epoch {
                // The epoch ends here, and so does the file.
                if object.events.is_empty() {
                    return Ok(Gathered::Next(page.after));
                }
                object.after = LogPosition { number: head.end_of(first.epoch).unwrap_or(first.number), ..first };
                break;
            }
            object.after = page.after;
        }
        Ok(Gathered::Object(object))
    }

    /// Writes a file, if no file has its name. Returns the end of the file with that name.
    async fn write(&self, object: JournalObject, outcome: &mut PublishOutcome) -> Result<LogPosition, PublishError> {
        let path = JournalObject::path(object.first);
        match self.files.put_opts(&path, object.encode()?.into(), PutMode::Create.into()).await {
            Ok(_) => {
                outcome.journal_files += 1;
                outcome.journaled_events += u64::try_from(object.events.len()).unwrap_or(u64::MAX);
                Ok(object.after)
            }
            Err(Error::AlreadyExists { .. }) => {
                let bytes = self.files.get(&path).await?.bytes().await?;
                let existing = JournalObject::decode(object.first, &bytes);
                let existing = existing.map_err(|error| PublishError::Altered(path.to_string(), error))?;
                if existing.events.iter().zip(&object.events).any(|(theirs, ours)| theirs != ours) {
                    return Err(PublishError::Differs(path.to_string()));
                }
                Ok(existing.after)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The events of the log after a place of the journal.
enum Gathered {
    /// Events.
    Object(JournalObject),
    /// No events: the epoch of the place has ended. The next epoch begins at the given place.
    Next(LogPosition),
    /// The log no longer has the events. The log begins at the given place.
    Missed(LogPosition),
}

/// Returns the next place of a reader whose place the log does not have, and whether the reader misses
/// events. A restore either ended the place's epoch before the place, or began another log.
///
/// # Errors
/// [`PublishError::LogShorter`] if the place is in the current epoch, or in a later one: the log's
/// numbers are used again, and it is unknown which events the reader has.
pub(crate) fn beyond(
    head: &LogHead,
    reader: &str,
    at: LogPosition,
    now: UtcSecond,
) -> Result<(LogPosition, bool), PublishError> {
    if at.epoch >= head.epoch {
        return Err(PublishError::shorter(head, reader, at));
    }
    Ok(match head.end_of(at.epoch) {
        // A restore ended the epoch before the reader's place.
        Some(_) => (LogPosition { epoch: head.epoch_after(at.epoch), number: 1, offset: 0 }, false),
        // The log was lost, and another log has begun.
        None => (head.start(now), true),
    })
}
