//! The source of the events: the log or, if that is lost, the journal's files.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use payments_files::JournalObject;
use payments_model::UtcSecond;
use payments_store::{LogHead, LogPosition, LogRead, Store, StoreError};

use super::known::{Mark, Payments};

/// The most events and segments of a page.
const PAGE: (usize, u8) = (1_000, 10);

/// The source of the events.
#[derive(Debug, Clone)]
pub enum Source {
    /// The log.
    Log,
    /// The journal's files: a copy of the folder `journal`.
    Journal(Arc<dyn ObjectStore>),
    /// Neither log nor journal can be read. The long-term table and the reports are read alone.
    Nowhere,
}

/// The events that were read, and the missing ones.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) payments: Payments,
    /// Events that should exist and could not be read: their content is unknown.
    pub(crate) holes: Vec<String>,
    /// Changes that the log lacks by its own account.
    pub(crate) gaps: Vec<String>,
}

/// Reads the events since an instant.
pub(crate) async fn read(source: &Source, store: &Store, since: UtcSecond, now: UtcSecond) -> Result<Read> {
    let mut read = Read::default();
    match source {
        Source::Log => {
            let head = store.log_head().await?.context(
                "the log has no head: give --journal a copy of the journal, or --no-log if that cannot be read either",
            )?;
            read.note_missed(&head, since);
            read.log(store, &head, head.day_before(since).max(head.start(now)), (since, now)).await?;
            if !head.covers(since, now) {
                read.check_beginning("log", since);
            }
        }
        Source::Journal(files) => {
            let end = read.journal(files, since).await?;
            read.check_beginning("journal", since);
            if let Some(head) = store.log_head().await? {
                read.note_missed(&head, since);
                // A restored log can have events that no file of the journal has.
                if head.has(end, now) {
                    read.log(store, &head, end, (since, now)).await?;
                }
            }
            let last = read.payments.last_at.map_or_else(String::new, |last| format!(", with a change of {last}"));
            read.gaps.push(format!(
                "the events end at {end} of the journal or after it{last}: what was changed later is unknown"
            ));
        }
        Source::Nowhere => read.holes.push(unknown("neither log nor journal was read", since)),
    }
    let gaps = std::mem::take(&mut read.payments.gaps);
    read.gaps.extend(gaps.into_iter().map(|gap| format!("changes may be missing: {gap}")));
    Ok(read)
}

fn unknown(why: &str, since: UtcSecond) -> String {
    format!("{why}; changes since {since} are unknown: also do \"Without log and journal\" of docs/restore.md")
}

impl Read {
    /// Notes a hole unless the first event is from `since` or before: otherwise earlier events may be missing.
    fn check_beginning(&mut self, what: &str, since: UtcSecond) {
        let begins = match self.payments.first_at {
            Some(first) if first <= since => return,
            Some(first) => format!("the {what} begins at {first}"),
            None => format!("the {what} has no event"),
        };
        self.holes.push(unknown(&begins, since));
    }

    /// Notes the changes that the log lacks by its head.
    fn note_missed(&mut self, head: &LogHead, since: UtcSecond) {
        if let Some(missed) = head.missed.filter(|missed| missed.until >= since) {
            let from = missed.since.map_or_else(String::new, |from| format!(" from {from}"));
            self.gaps.push(format!("changes{from} to {} are not in the log", missed.until));
        }
    }

    /// Reads the log from a place on.
    async fn log(
        &mut self,
        store: &Store,
        head: &LogHead,
        mut after: LogPosition,
        (since, now): (UtcSecond, UtcSecond),
    ) -> Result<()> {
        loop {
            let page = match store.log_page(head, after, PAGE.0, PAGE.1, now).await {
                Ok(LogRead::Page(page)) => page,
                Ok(LogRead::Expired(place) | LogRead::Beyond(place)) => {
                    anyhow::bail!("the log has no place {after}, but {place}")
                }
                // The events after the hole may still complete the tables.
                Err(error @ StoreError::Unreadable { .. }) => {
                    self.holes.push(format!("{error}"));
                    let Some(next) = head.after_hole(after) else { return Ok(()) };
                    after = next;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for entry in &page.entries {
                self.payments.take(&entry.json, since)?;
            }
            if page.is_end {
                return Ok(());
            }
            after = page.after;
        }
    }

    /// Reads the files one by one. If a file does not begin at the end of the file before it, events are missing.
    /// Returns the end of the last file.
    async fn journal(&mut self, files: &Arc<dyn ObjectStore>, since: UtcSecond) -> Result<LogPosition> {
        let found: Vec<ObjectMeta> = files.list(None).try_collect().await?;
        let mut places: Vec<_> = found.iter().filter_map(|file| Some((place_of(file)?, file))).collect();
        places.sort_by_key(|(place, _)| *place);
        ensure!(!places.is_empty(), "there is no file of the journal: give --journal a copy of the folder");
        let mut last: Option<LogPosition> = None;
        for (first, file) in places {
            let bytes = files.get(&file.location).await?.bytes().await?;
            let object = JournalObject::decode(first, &bytes).with_context(|| file.location.to_string())?;
            if let Some(last) = last.filter(|last| last.epoch < first.epoch) {
                self.holes.extend(hole_between(last, &object, since)?);
            }
            if let Some(last) = last.filter(|last| last.epoch == first.epoch && *last != first) {
                self.holes.push(format!("the journal has nothing between {last} and {first}"));
            }
            for event in &object.events {
                self.payments.take(event, since)?;
            }
            last = Some(object.after);
        }
        last.context("there is no file of the journal")
    }
}

/// The hole between the last file of an epoch, which ends at `last`, and the first file of a later epoch, whose first
/// event has the end of the epoch before. A hole from before `since` does not matter.
fn hole_between(last: LogPosition, object: &JournalObject, since: UtcSecond) -> Result<Option<String>> {
    let first = object.first;
    let mark = object.events.first().map(|event| Mark::parse(event)).transpose()?;
    if mark.as_ref().is_some_and(|mark| mark.at < since) {
        return Ok(None);
    }
    if first.number > 1 {
        return Ok(Some(format!("the journal has nothing between {last} and {first}")));
    }
    Ok(match mark.and_then(|mark| mark.end) {
        Some(end) if end > last => Some(format!("the journal has nothing between {last} and {end}")),
        Some(_) => None,
        None => Some(format!("a log without an end before it begins at {first}: changes after {last} are unknown")),
    })
}

/// The place in a file's name: `<epoch>/<number>.jsonl.gz`.
fn place_of(file: &ObjectMeta) -> Option<LogPosition> {
    let path = file.location.to_string();
    let (epoch, name) = path.rsplit_once('/')?;
    let (epoch, number) = (epoch.rsplit('/').next()?, name.strip_suffix(".jsonl.gz")?);
    format!("{epoch}.{}.0", number.parse::<u64>().ok()?).parse().ok()
}

#[cfg(test)]
mod tests;
