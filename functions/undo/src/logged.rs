//! The payments that a client created, by the log, and why the log may lack some of them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use payments_boot::Deadline;
use payments_model::undo::ClientTime;
use payments_model::{EventKind, HeadKey, PaymentId, Slot, UtcSecond};
use payments_store::{CLOCKS_DIFFER, LogEntry, LogHead, LogPosition, LogRead, MAX_BATCH_GET, StoreError};
use payments_work::{Halt, retried};
use serde::Deserialize;

use crate::error::UndoError;
use crate::function::Undo;

/// The time after which the log mostly has what was changed. The runbook also asks for the alarms of late and failing streams, and for a
/// plan an hour later, because a shard that stands still shows nothing here.
const LATEST: TimeDelta = TimeDelta::minutes(15);

/// Changes up to the selection's end that came to the log within this time were at least five minutes late, so more may follow.
const RECENT: TimeDelta = TimeDelta::minutes(10);

/// The most segments of a page. DynamoDB ends a page at 1 MB.
const SEGMENTS: u8 = u8::MAX;

/// The most reasons that a plan names. Each further one is of the same kinds.
const MAX_REASONS: usize = 10;

/// A client's payments, and the reasons why some may be missing.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    keys: Vec<HeadKey>,
    pub(crate) inexact: Vec<String>,
}

/// The fields of an event that a selection needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventFields {
    #[serde(rename = "type")]
    kind: String,
    at: String,
    by: Option<By>,
    account_id: Option<String>,
    payment_id: Option<String>,
    due_at: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

#[derive(Debug, Deserialize)]
struct By {
    kind: String,
    name: Option<String>,
}

/// Reads events of a client's time.
#[derive(Debug)]
struct Reading<'c> {
    client: &'c ClientTime,
    /// The place after which events are recent.
    recent: Option<LogPosition>,
    keys: BTreeMap<PaymentId, HeadKey>,
    inexact: Vec<String>,
    /// The times of the first and of the last change.
    first: Option<UtcSecond>,
    last: Option<UtcSecond>,
    is_late: bool,
}

impl Logged {
    /// The keys of the payments' heads, as many as one call reads at a time.
    pub(crate) fn in_batches(&self) -> impl Iterator<Item = &[HeadKey]> {
        self.keys.chunks(MAX_BATCH_GET)
    }
}

impl Undo {
    /// Reads the log to its end, through all epochs: a create that was cut off comes to the log when it is completed.
    pub(crate) async fn logged(&self, client: &ClientTime, deadline: &Deadline) -> Result<Logged, UndoError> {
        let now = self.now();
        let mut reading = Reading::new(client);
        match retried(deadline, async || self.store.log_head().await).await? {
            Some(head) => self.read_log(&head, &mut reading, now, deadline).await?,
            None => reading.doubt("the log has no head"),
        }
        Ok(reading.end(now))
    }

    async fn read_log(
        &self,
        head: &LogHead,
        reading: &mut Reading<'_>,
        now: UtcSecond,
        deadline: &Deadline,
    ) -> Result<(), UndoError> {
        let from = reading.client.from;
        if let Some(missed) = head.missed {
            reading.take_gap(missed.since, missed.until);
        }
        let since = now.saturating_add(CLOCKS_DIFFER - RECENT);
        match retried(deadline, async || self.store.log_place_at(head, since, now).await).await {
            Ok(place) => reading.recent = place,
            Err(Halt::Broken(error @ StoreError::Unreadable { .. })) => reading.doubt(&error.to_string()),
            Err(halt) => return Err(halt.into()),
        }
        let mut after = head.day_before(from.saturating_add(-CLOCKS_DIFFER)).max(head.start(now));
        loop {
            let page = async || self.store.log_page(head, after, usize::MAX, SEGMENTS, now).await;
            match retried(deadline, page).await {
                Ok(LogRead::Page(page)) => {
                    page.entries.iter().for_each(|entry| reading.take(entry));
                    if page.is_end {
                        break;
                    }
                    after = page.after;
                }
                Ok(LogRead::Expired(place) | LogRead::Beyond(place)) => {
                    reading.doubt(&format!("the log has no place {after}, but {place}"));
                    break;
                }
                Err(Halt::Broken(error @ StoreError::Unreadable { .. })) => {
                    reading.doubt(&error.to_string());
                    let Some(next) = head.after_hole(after) else { break };
                    after = next;
                }
                Err(halt) => return Err(halt.into()),
            }
        }
        if !head.covers(from, now) && reading.first.is_none_or(|first| first > from) {
            reading.doubt(&format!("the log has no event from before {from}, so it may lack earlier ones"));
        }
        Ok(())
    }
}

impl<'c> Reading<'c> {
    fn new(client: &'c ClientTime) -> Self {
        let keys = BTreeMap::new();
        Self { client, recent: None, keys, inexact: Vec::new(), first: None, last: None, is_late: false }
    }

    /// Notes a reason why payments may be missing.
    fn doubt(&mut self, reason: &str) {
        if self.inexact.len() < MAX_REASONS && self.inexact.iter().all(|known| known != reason) {
            self.inexact.push(reason.to_owned());
        }
    }

    fn take_gap(&mut self, since: Option<UtcSecond>, until: UtcSecond) {
        if until >= self.client.from && since.is_none_or(|since| since <= self.client.to) {
            let since = since.map_or_else(String::new, |since| format!(" from {since}"));
            self.doubt(&format!("changes{since} to {until} may be missing in the log"));
        }
    }

    fn take(&mut self, entry: &LogEntry) {
        if self.take_event(entry).is_none() {
            self.doubt(&format!("the event before {} cannot be read", entry.after));
        }
    }

    /// `None` if the event cannot be read.
    fn take_event(&mut self, entry: &LogEntry) -> Option<()> {
        let event: EventFields = serde_json::from_str(&entry.json).ok()?;
        let at: UtcSecond = event.at.parse().ok()?;
        match EventKind::ALL.iter().copied().find(|kind| kind.as_str() == event.kind)? {
            EventKind::Gap => {
                let since = event.since.map(|since| since.parse()).transpose().ok()?;
                self.take_gap(since, event.until?.parse().ok()?);
                return Some(());
            }
            EventKind::Irregular if at >= self.client.from => {
                let payment = event.payment_id.unwrap_or_else(|| "a payment".to_owned());
                self.doubt(&format!("the log has an irregular change of {payment} at {at}"));
                return Some(());
            }
            EventKind::Irregular | EventKind::LogRestored | EventKind::PaymentRestored => return Some(()),
            EventKind::Scheduled if self.is_selected(event.by.as_ref()?, at) => {
                let slot = Slot { at: event.due_at?.parse().ok()?, payment_id: event.payment_id?.parse().ok()? };
                self.keys.insert(slot.payment_id, HeadKey { account: event.account_id?.parse().ok()?, slot });
            }
            EventKind::Scheduled
            | EventKind::Pending
            | EventKind::Processed
            | EventKind::Failed
            | EventKind::Cancelled
            | EventKind::Amended => {}
        }
        self.first = self.first.into_iter().chain([at]).min();
        self.last = self.last.into_iter().chain([at]).max();
        self.is_late |= at <= self.client.to && self.recent.is_some_and(|recent| entry.after > recent);
        Some(())
    }

    fn is_selected(&self, by: &By, at: UtcSecond) -> bool {
        let ClientTime { name, from, to } = self.client;
        by.kind == "client" && by.name.as_deref() == Some(name) && (*from..=*to).contains(&at)
    }

    /// Judges whether the log had all changes of the time when it was read.
    fn end(mut self, now: UtcSecond) -> Logged {
        let to = self.client.to;
        if to.saturating_add(LATEST) > now {
            self.doubt(&format!(
                "{to} is less than {} minutes ago, so the log may lack later events",
                LATEST.num_minutes()
            ));
        }
        if self.last.is_none_or(|last| last <= to) {
            self.doubt(&format!("the log has no event from after {to}, so it may be late"));
        }
        if self.is_late {
            let minutes = RECENT.num_minutes();
            self.doubt(&format!("events from before {to} came within the last {minutes} minutes, so more may come"));
        }
        Logged { keys: self.keys.into_values().collect(), inexact: self.inexact }
    }
}
