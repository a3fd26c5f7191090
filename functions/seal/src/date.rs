//! Seals a date: its finished payments that no part has, part after part.

use std::collections::{HashMap, HashSet, VecDeque};

use chrono::TimeDelta;
use futures::{StreamExt as _, stream};
use payments_boot::Deadline;
use payments_model::{BusinessDate, Head, HeadKey, PaymentId, SealedData, UtcSecond};
use payments_sealed::{Folder, MAX_PART_BYTES, PartName, Put, SealedError, SealedRow, damaged, encode, path};
use payments_store::{CHANGEABLE_DAYS, DueRange, DueUntil, MAX_BATCH_GET, StoreError, StoredDetails};
use payments_work::{at_once, retried};

use crate::error::SealError;
use crate::function::Seal;
use crate::outcome::SealOutcome;
use crate::payment::{STATUSES, in_force, row};
use crate::stop::{Stop, readable};

/// The payments that a run reads a second: a million in 17 minutes, two invocations. All heads of one account are in one partition,
/// which answers 3,000 reads a second.
const PAYMENTS_PER_SECOND: u32 = 1_000;

/// The most queries at once.
pub(crate) const READS_AT_ONCE: usize = 32;

/// The most payments that the log of a run names.
pub(crate) const MAX_NAMED: u64 = 20;

/// A payment that may be sealed, in the order of the parts: by account, due time and id.
type Entry = (HeadKey, UtcSecond);

impl Seal {
    /// Seals a date whose parts have the numbers from 1 to `number`, and returns the number of its sealed payments.
    pub(crate) async fn seal_date(
        &self,
        date: BusinessDate,
        number: u32,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<u64, SealError> {
        let mut rows = 0;
        match self.seal_parts(date, number, &mut rows, deadline, outcome).await {
            Ok(()) | Err(Stop::Later) => Ok(rows),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    async fn seal_parts(
        &self,
        date: BusinessDate,
        mut number: u32,
        rows: &mut u64,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<(), Stop> {
        let folder = Folder(&*self.files);
        let mut sealed = HashSet::new();
        for number in 1..=number {
            if deadline.has_come() {
                return Err(Stop::Later);
            }
            *rows = folder.read_ids(&path(date, number), &mut sealed).await?;
        }
        let mut entries = self.entries(date, &sealed, deadline, outcome).await?;
        while !entries.is_empty() {
            let part = self.next_rows(&mut entries, deadline, outcome).await?;
            if part.is_empty() {
                continue;
            }
            let (sealed_at, kept_days) = (self.clock.now(), self.config.kept_days);
            let (due_date, next) = (date.to_string(), number + 1);
            let name = PartName { due_date, number: next, rows_before: *rows, sealed_at, kept_days };
            let bytes = encode(&name, &part).map_err(SealError::Encoding)?;
            match folder.put(&path(date, next), bytes, kept_days).await? {
                Put::Committed => {
                    outcome.parts += 1;
                    outcome.sealed += part.len() as u64;
                }
                Put::Adopted => {}
                // Another run seals this date. The next one finds what that run leaves.
                Put::Exists => return Err(Stop::Later),
            }
            number += 1;
            *rows += part.len() as u64;
        }
        Ok(())
    }

    /// Returns the date's finished payments that no part has, in the order of the parts.
    async fn entries(
        &self,
        date: BusinessDate,
        sealed: &HashSet<PaymentId>,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<VecDeque<Entry>, Stop> {
        let ranges = self.config.read_shards.all().flat_map(|shard| {
            STATUSES.map(|status| DueRange { shard, status, until: DueUntil::Date(date), after: None })
        });
        let reads =
            stream::iter(ranges).map(|range| self.range(range, sealed, deadline)).buffer_unordered(READS_AT_ONCE);
        let reads: Vec<_> = reads.collect().await;
        let mut entries = Vec::new();
        for read in reads {
            for entry in read? {
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(error) => count_unreadable(outcome, Some(date), None, &error.to_string()),
                }
            }
        }
        entries.sort_unstable_by(|(one, at), (other, later)| {
            (&one.account, at, one.slot.payment_id).cmp(&(&other.account, later, other.slot.payment_id))
        });
        // The index shows a payment twice while an entry moves.
        entries.dedup_by(|(one, _), (other, _)| one == other);
        Ok(entries.into())
    }

    /// Returns the entries of a range that no part has. Those of a date are in memory together, so no more are kept.
    async fn range(
        &self,
        range: DueRange,
        sealed: &HashSet<PaymentId>,
        deadline: &Deadline,
    ) -> Result<Vec<Result<Entry, StoreError>>, Stop> {
        let is_new = |entry: &Result<Entry, StoreError>| match entry {
            Ok((head, _)) => !sealed.contains(&head.slot.payment_id),
            Err(_) => true,
        };
        let (mut entries, mut after) = (Vec::new(), None);
        loop {
            let page = retried(deadline, async || self.store.archived_page(&range, after.clone()).await).await?;
            let found = page.keys.into_iter().map(|key| key.map(|(due, head)| (head, due.due_at)));
            entries.extend(found.filter(is_new));
            after = page.next;
            if after.is_none() {
                return Ok(entries);
            }
        }
    }

    /// Reads payments until a part is full or none is left, and returns the rows of those that are finished for good.
    async fn next_rows(
        &self,
        entries: &mut VecDeque<Entry>,
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<Vec<SealedRow>, Stop> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < self.config.max_part_rows && bytes < MAX_PART_BYTES && !entries.is_empty() {
            let started = self.clock.instant();
            let most = MAX_BATCH_GET.min(self.config.max_part_rows - rows.len());
            let keys: Vec<HeadKey> = entries.iter().take(most).map(|(head, _)| head.clone()).collect();
            let mut heads = self.finished(&keys, deadline, outcome).await?;
            while !heads.is_empty() {
                let read =
                    async |head: &Head| retried(deadline, async || self.store.all_details(head.payment_id).await).await;
                for (head, details) in at_once(&mut heads, READS_AT_ONCE, read).await {
                    if let Ok(all) = &details {
                        not_sealed(all)?;
                    }
                    let all = readable(details)?.map(|all| all.into_iter().map(StoredDetails::into_known).collect());
                    match all.and_then(|all| row(&head, &in_force(&head, all)?)) {
                        Ok(row) => {
                            bytes += row.bytes();
                            rows.push(row);
                        }
                        Err(why) => count_unreadable(outcome, Some(head.due_date), Some(head.payment_id), &why),
                    }
                }
            }
            drop(entries.drain(..keys.len()));
            deadline.keep_rate(u32::try_from(keys.len()).unwrap_or(u32::MAX), started, PAYMENTS_PER_SECOND).await;
        }
        Ok(rows)
    }

    /// Returns the heads of payments that are finished for good, in the order of their keys: the long-term table decides, the hot table
    /// has none, and no restore comes back to a time before their ends.
    async fn finished(
        &self,
        keys: &[HeadKey],
        deadline: &Deadline,
        outcome: &mut SealOutcome,
    ) -> Result<VecDeque<Head>, Stop> {
        // The long-term table first: a head is there before it leaves the hot one.
        let archived = retried(deadline, async || self.store.archived_heads(keys).await).await?;
        let hot = retried(deadline, async || self.store.hot_heads(keys).await).await?;
        let hot: HashSet<HeadKey> = hot.into_iter().map(|(key, _)| key).collect();
        let mut archived: HashMap<HeadKey, _> = archived.into_iter().collect();
        let mut heads = VecDeque::new();
        let days = CHANGEABLE_DAYS.min(self.config.seal_after_days);
        let settled_by = self.clock.now().saturating_add(-TimeDelta::days(days.into()));
        let is_finished = |head: &Head| head.state.status().is_terminal() && head.updated_at() <= settled_by;
        for key in keys {
            match archived.remove(key) {
                Some(Ok(head)) if is_finished(head.known()) && !hot.contains(key) => heads.push_back(head.into_known()),
                Some(Err(error)) => {
                    count_unreadable(outcome, None, Some(key.slot.payment_id), &error.to_string());
                }
                _ => outcome.waiting += 1,
            }
        }
        Ok(heads)
    }
}

/// Stops at a payment that no part has, though its details name one: the part was replaced by another one, and a new part would have some
/// of its payments again.
fn not_sealed(all: &[StoredDetails]) -> Result<(), Stop> {
    let data = all.iter().filter_map(|details| details.known().instruction.data.as_ref());
    match data.filter_map(|data| data.text().err()).next() {
        None => Ok(()),
        Some(SealedData { place, .. }) => {
            let error = SealedError::NotAPart("it lacks a payment whose data it has; it was replaced by another part");
            Err(damaged(&path(place.date, place.part), error).into())
        }
    }
}

/// Counts a payment that an operator has to repair.
fn count_unreadable(outcome: &mut SealOutcome, date: Option<BusinessDate>, payment_id: Option<PaymentId>, why: &str) {
    outcome.unreadable += 1;
    if outcome.unreadable <= MAX_NAMED {
        let (date, payment_id) = (date.map(|date| date.to_string()), payment_id.map(|id| id.to_string()));
        tracing::error!(date, payment_id, why, "a payment cannot be sealed");
    }
}
