//! A restore of the tables: lost changes are brought back while the event log stands still.
//!
//! The log's epoch ends before the restore, and the next one begins after it.
//! Each step can be repeated, and resumes where it stopped: the log's head has the stage of the restore.

mod call;
mod changes;
mod file;
mod list;
mod named;
mod note;
mod printed;
mod published;
mod rebuild;
mod stack;
pub mod stages;
mod step;
mod value;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::TimeDelta;
use futures::{StreamExt as _, TryStreamExt as _};
use payments_model::{DuePayment, Epoch, GapEvent, Head, LogRestoredEvent, PaymentRestoredEvent, UtcSecond};
use payments_store::{LogHead, LogPosition, LogStage, MAX_SEGMENT_BYTES, Missed, Store, StoreError};

pub use call::{Call, Ran};
pub use note::{Chosen, Note, Origin, Table};
pub use rebuild::{Change, Except, ExceptError, Finding, Line, Outcome, Rebuild, Source, Told};
pub use stack::StackNow;
pub use step::{Runner, Step};

use crate::published::{Published, Version};

/// The heads that are read at once.
const READS: usize = 16;

/// The longest time by which a change may precede the restored instant that the restored table lacks: clocks differ, and a table is
/// restored to a second.
const MARGIN: TimeDelta = TimeDelta::hours(1);

/// The most times that the log's head may move before a step gives up: somebody else changes it.
const MAX_MOVES: usize = 20;

const MISSED: &str =
    "counters had to be repaired, the log's table was lost, or a restore found changes that the log lacks";
const LOST: &str = "the log's own table was lost or restored, and lacks what was appended since";
const HOLE: &str = "the epoch before cannot be read to its end, so payments that changed then may have no event";

/// Ends the epoch of the log: the log takes no more changes, of any stream or release. Returns a line for the operator.
///
/// # Errors
/// If DynamoDB fails, or the log's head keeps moving.
pub async fn begin(store: &Store) -> Result<String> {
    end_before(store, async |head| Ok(head.next)).await
}

/// Ends the epoch before a segment's number.
async fn end_before(store: &Store, number: impl AsyncFn(&LogHead) -> Result<u64>) -> Result<String> {
    for _ in 0..MAX_MOVES {
        let Some(head) = store.log_head().await? else { return Ok(NO_LOG.to_owned()) };
        let end = head.end();
        match head.stage() {
            LogStage::Open => drop(store.end_epoch(&head, number(&head).await?).await?),
            LogStage::Ended => return Ok(ended_at(end)),
            LogStage::Begun => {
                return Ok(format!("A new epoch has begun at {end}, and is not open yet. Run finish again."));
            }
        }
    }
    bail!(
        "the log's head moved {MAX_MOVES} times; is its table being written by something else than stream-aggregator?"
    )
}

/// Begins a log whose table was lost, and ends its first epoch before it has any events: no old invocation can begin
/// the log with the changes of an old stream. If there is a log, ends its epoch as [`begin`] does. Returns a line for
/// the operator.
///
/// # Errors
/// As [`begin`].
pub async fn begin_lost(store: &Store, now: UtcSecond) -> Result<String> {
    if store.log_head().await?.is_none() {
        store.begin_lost_log(now).await?;
    }
    begin(store).await
}

/// Ends the epoch of a log whose table was restored to an instant. The end is after the table's last segment. Notes
/// that changes since the instant may be missing, so that no later step can forget it. Returns a line for the operator.
///
/// # Errors
/// As [`begin`].
pub async fn begin_restored(store: &Store, log_to: UtcSecond, now: UtcSecond) -> Result<String> {
    ensure!(log_to <= now, "no table can be restored to {log_to}, which is not over yet");
    ensure!(
        store.log_head().await?.is_some(),
        "the log was not begun at {log_to}: start again with a later instant, or with --log empty if its table is empty for good"
    );
    // A later segment may hold an earlier change.
    store.note_missed(Missed { since: Some(log_to.saturating_add(-MARGIN)), until: now }).await?;
    end_before(store, async |head| Ok(store.end_of_segments(head, now).await?)).await
}

fn ended_at(end: LogPosition) -> String {
    format!(
        "The epoch has ended at {end}; nothing is counted until finish, so finish within a day. Restore the tables, run rebuild until \
         nothing is left to do, then run finish."
    )
}

const NO_LOG: &str = "The log has never begun, so there is nothing to do. If its table was lost and is empty now, start again with --log empty.";

/// The restored tables, and the instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The ARN of the stream that the hot table has now.
    pub stream: String,
    /// The instant to which the hot table was restored, if it was.
    pub tables_to: Option<UtcSecond>,
    /// The instant to which the log's own table was restored, if it was.
    pub log_to: Option<UtcSecond>,
    /// The instant before which no data of sealed payments is cleared, if tables were restored: a restored table can be restored to its
    /// first instant, whose content is older.
    pub clear_from: Option<UtcSecond>,
}

/// Begins the next epoch of the log after a restore, and opens it for the changes of the stream. Its first events name
/// the restore and the payments whose changes it undid. Calls `progress` with the numbers of compared payments and of
/// all. Returns a line for the operator.
///
/// # Errors
/// If [`begin`] did not run, DynamoDB fails, or a head cannot be read.
pub async fn finish(
    store: &Store,
    restored: &Restored,
    now: impl Fn() -> UtcSecond,
    progress: impl Fn(u64, u64),
) -> Result<String> {
    let (table, stream) = (&store.tables().payments, restored.stream.as_str());
    ensure!(
        stream.contains(&format!(":table/{table}/stream/")),
        "{stream} is not a stream of {table}: the stack or the restore's file names another table"
    );
    let instants = [restored.tables_to, restored.log_to].into_iter().flatten();
    let instant = instants.max().context("nothing was restored")?;
    ensure!(instant <= now(), "no table can be restored to {instant}, which is not over yet");
    for _ in 0..MAX_MOVES {
        let Some(head) = store.log_head().await? else { return Ok(NO_LOG.to_owned()) };
        match head.stage() {
            // A restored log has the old stream, and an epoch that began before the instant.
            LogStage::Open if head.source == stream && head.epoch >= Epoch::begun_at(instant) => {
                return Ok(format!("The log takes the changes of {stream} in epoch {}.", head.epoch));
            }
            LogStage::Open => {
                bail!("the log still takes the changes of {}; run `cargo restore begin --apply` first", head.source)
            }
            LogStage::Ended => {
                if let Some(from) = restored.clear_from {
                    store.clear_not_before(from).await?;
                }
                begin_epoch(store, &head, restored, now()).await?;
            }
            LogStage::Begun => {
                let head = tell(store, head, restored.tables_to, &now, &progress).await?;
                store.open_epoch(&head, stream).await?;
            }
        }
    }
    bail!("the log's head moved {MAX_MOVES} times; does finish run twice?")
}

/// Begins the epoch with the event of the restore. If another run was first, nothing changes.
async fn begin_epoch(store: &Store, head: &LogHead, restored: &Restored, now: UtcSecond) -> Result<()> {
    let end = store.end_of_segments(head, now).await?;
    let next = head.next_epoch(end, now);
    let end_cursor = next.end_before().context("no epoch has ended")?.to_string();
    let mut events = vec![LogRestoredEvent { at: now, restored_to: restored.tables_to, end_cursor }.json(next.epoch)?];
    let missed =
        head.missed.map(|missed| GapEvent { at: now, since: missed.since, until: missed.until, reason: MISSED });
    let gap = restored.log_to.map_or(missed, |log_to| {
        let since = head.missed.map_or(Some(log_to), |missed| Some(missed.since?.min(log_to)));
        Some(GapEvent { at: now, since, until: now, reason: LOST })
    });
    events.extend(gap.map(|gap| gap.json(next.epoch, next.next)).transpose()?);
    store.begin_epoch(head, &next, &events, now).await?;
    Ok(())
}

/// Appends an event for each payment that is gone or has a lower version than in the log. Returns the log's head after
/// these events.
async fn tell(
    store: &Store,
    head: LogHead,
    restored_to: Option<UtcSecond>,
    now: &impl Fn() -> UtcSecond,
    progress: &impl Fn(u64, u64),
) -> Result<LogHead> {
    let Some(restored_to) = restored_to else { return Ok(head) };
    let published = Published::read(store, &head, restored_to.saturating_add(-MARGIN), now()).await?;
    let all = published.changed.len() as u64;
    let compare = |version: &Version| compare(store, version.clone(), now());
    let mut compared = futures::stream::iter(&published.changed).map(compare).buffered(READS);
    let (mut done, mut writer) = (0, Writer { store, head, events: Vec::new(), bytes: 0 });
    if let Some(until) = published.unreadable_since {
        let gap = GapEvent { at: now(), since: Some(until), until: now(), reason: HOLE };
        // No segment has the number 0.
        if !published.told.contains(&GapEvent::id(writer.head.epoch, 0)) {
            writer.add(gap.json(writer.head.epoch, 0)?, now()).await?;
        }
    }
    while let Some(lower) = compared.try_next().await? {
        done += 1;
        progress(done, all);
        let new = lower.filter(|event| !published.told.contains(&event.id(writer.head.epoch)));
        if let Some(event) = new {
            writer.add(event.json(writer.head.epoch)?, now()).await?;
        }
    }
    writer.append(now()).await?;
    Ok(writer.head)
}

/// Returns an event if the payment is gone or has a lower version than in the log.
async fn compare(store: &Store, version: Version, now: UtcSecond) -> Result<Option<PaymentRestoredEvent>> {
    let Version { payment, version, payee } = version;
    Ok(match head_of(store, &payment).await? {
        Some(head) if head.version >= version => None,
        Some(head) => Some(PaymentRestoredEvent::Head(Box::new(head))),
        None => Some(PaymentRestoredEvent::Missing { payment, payee, at: now }),
    })
}

/// Returns the head of a payment that an event names. If the due time was changed, only the details have the key.
async fn head_of(store: &Store, payment: &DuePayment) -> Result<Option<Head>> {
    let guess = payment.guessed_key();
    if let Some(head) = store.head(&guess).await? {
        return Ok(Some(head));
    }
    match store.details(payment.payment_id).await {
        Ok(details) => match details.map(|details| details.key()).filter(|key| *key != guess) {
            Some(key) => Ok(store.head(&key).await?),
            None => Ok(None),
        },
        // The payment counts as missing, too: nothing else has its key.
        Err(StoreError::Unreadable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Appends events in full segments.
struct Writer<'s> {
    store: &'s Store,
    head: LogHead,
    events: Vec<String>,
    bytes: usize,
}

impl Writer<'_> {
    async fn add(&mut self, event: String, now: UtcSecond) -> Result<()> {
        if self.bytes + event.len() + 1 > MAX_SEGMENT_BYTES {
            self.append(now).await?;
        }
        self.bytes += event.len() + 1;
        self.events.push(event);
        Ok(())
    }

    async fn append(&mut self, now: UtcSecond) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let appended = self.store.begin_epoch(&self.head, &self.head, &self.events, now).await?;
        ensure!(appended, "somebody else writes the new epoch; run finish again when no other one runs");
        self.head = self.head.after_append(now);
        (self.events, self.bytes) = (Vec::new(), 0);
        Ok(())
    }
}
