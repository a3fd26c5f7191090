//! The walk: events and reports are read, each payment is decided, and the decisions are written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use chrono::TimeDelta;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStore;
use payments_model::{Details, DetailsKey, HeadKey, ShardCount, Status, UtcSecond};
use payments_store::{Archived, LogStage, MAX_BATCH_GET, Missed, Removed, Store};
use tokio::time::Instant;

use super::counts::{self, Dates};
use super::decide::{Decision, Rules, Write};
use super::except::Except;
use super::found::{Amended, Found, Heads};
use super::known::{Known, Payments, date_of};
use super::outcome::{Finding, Line, Outcome, Told};
use super::redates::Contents;
use super::source::{Source, read};
use super::{contradictions, details, reports};

/// The payments that are written at once.
const AT_ONCE: usize = 16;

/// The time before the restored instant whose changes the restored table may lack: clocks differ, and a table is
/// restored to a second.
const MARGIN: TimeDelta = TimeDelta::hours(1);

/// The longest delay in the log of one stream shard's changes behind those of another, if counting keeps up.
const LAG: TimeDelta = TimeDelta::minutes(1);

/// The longest wait between due date and settlement with which the long-term table is asked for a payment without an
/// event. A payment that is redriven for as long as possible waits eleven days.
const DUE_BEFORE: TimeDelta = TimeDelta::days(31);

/// The same for a cancelled payment, which is archived when its date is over.
const CANCELLED_BEFORE: TimeDelta = TimeDelta::days(4);

/// The days before the restored instant whose counters are compared, whether the log names them or not: the expiry of a
/// head is not an event, and heads expire within this time after their date.
const DATES_BEFORE: TimeDelta = TimeDelta::days(7);

/// The most tries of one payment, if something else changes it meanwhile.
const MAX_TRIES: usize = 3;

/// The tables to rebuild, the sources and the options.
#[derive(Debug, Clone)]
pub struct Rebuild {
    /// The tables.
    pub store: Store,
    /// The tables with the long-term table that was replaced, if it was.
    pub replaced: Option<Store>,
    /// The source of the events.
    pub source: Source,
    /// A copy of the bucket's folder `reports`, at least of what was published since.
    pub reports: Arc<dyn ObjectStore>,
    /// The instant to which the hot table was restored.
    pub to: UtcSecond,
    /// The shards of the indexes: the stack's `ReadShards`.
    pub shards: ShardCount,
    /// The events that are left out.
    pub excepts: Vec<Except>,
    /// Whether [`apply`](Self::apply) runs although unknown events are missing.
    pub accepts_gaps: bool,
    /// Whether the whole long-term table is read for details without a head.
    pub finds_details: bool,
    /// The most payments that are written in a second.
    pub per_second: u32,
    /// The current time, which decides when reported heads expire.
    pub now: UtcSecond,
}

impl Rebuild {
    /// Returns what [`apply`](Self::apply) would do, and changes nothing.
    ///
    /// # Errors
    /// If the tables, the log, the journal or a report cannot be read.
    pub async fn plan(&self, told: &Told<impl Fn(&Line), impl Fn(&str, u64, u64)>) -> Result<Outcome> {
        self.run(None, told).await
    }

    /// Restores payments, the report's last run and the counters. A run can be killed and repeated at any time.
    ///
    /// # Errors
    /// As [`plan`](Self::plan); if the log still takes changes, if the hot table has a stream, if events are missing
    /// and [`accepts_gaps`](Self::accepts_gaps) is not set, or if something else writes.
    pub async fn apply(&self, told: &Told<impl Fn(&Line), impl Fn(&str, u64, u64)>) -> Result<Outcome> {
        self.apply_after(&|| Ok(()), told).await
    }

    /// As [`apply`](Self::apply), and calls `before` before the first write.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and those of `before`.
    pub async fn apply_after(
        &self,
        before: &dyn Fn() -> Result<()>,
        told: &Told<impl Fn(&Line), impl Fn(&str, u64, u64)>,
    ) -> Result<Outcome> {
        match self.store.log_head().await?.map(|head| head.stage()) {
            None | Some(LogStage::Ended) => {}
            Some(LogStage::Open) => bail!("the log still takes changes; run `cargo restore begin --apply` first"),
            Some(LogStage::Begun) => bail!("a new epoch has begun; run `cargo restore finish --apply`"),
        }
        let table = &self.store.tables().payments;
        ensure!(
            !self.store.has_stream().await?,
            "{table} has a stream, so what is restored would be counted and sent: switch it off, or give the restored table"
        );
        self.run(Some(before), told).await
    }

    /// Writes if there is something to do before the first write.
    async fn run(
        &self,
        before: Option<&dyn Fn() -> Result<()>>,
        told: &Told<impl Fn(&Line), impl Fn(&str, u64, u64)>,
    ) -> Result<Outcome> {
        let is_apply = before.is_some();
        ensure!(self.to <= self.now, "no table can be restored to {}, which is not over yet", self.to);
        let since = self.to.saturating_add(-MARGIN);
        let mut payments = read(&self.source, &self.store, since, self.now).await?;
        let within = payments.payments.restores.iter().find(|(to, over)| *to < self.to && self.to < *over);
        if let Some((to, over)) = within {
            bail!(
                "at {} an earlier restore was under way, and the table was that of {to} in part: restore to an instant after {over}, or \
                 start again with --to {to}",
                self.to
            );
        }
        let last_run = reports::read(&self.reports, &mut payments.payments).await?;
        let outcome = std::cell::RefCell::new(Outcome::default());
        let tell = |line: &Line| {
            outcome.borrow_mut().note(line);
            (told.line)(line);
        };
        payments.gaps.iter().chain(&payments.holes).for_each(|gap| tell(&Line::place(Finding::Gap, gap.clone())));
        if let Some(hole) = payments.holes.first().filter(|_| is_apply && !self.accepts_gaps) {
            bail!(
                "{hole}\nSo a payment that was cancelled may be paid, and nothing was changed. Find what is missing, or see \
                 \"Without log and journal\" of docs/restore.md; give --accept-gaps if you will do what it says"
            );
        }
        if let Some(before) = before {
            before()?;
        }
        self.find_ended(since, &mut payments.payments, &tell).await?;
        let rules = Rules { excepts: self.excepts.clone(), since, now: self.now };
        let unlogged = self.walk(&payments.payments, &rules, is_apply, &tell, &told.progress).await?;
        let unlogged = if matches!(self.source, Source::Nowhere) { Some(since) } else { unlogged };
        self.note_unlogged(&payments.payments, unlogged, is_apply, &tell).await?;
        if self.finds_details {
            details::find(&self.store, since, &payments.payments, &tell, &told.progress).await?;
        }
        outcome.borrow_mut().report_run = self.set_report_run(last_run, is_apply).await?;
        let from = date_of(self.to.saturating_add(-DATES_BEFORE))?;
        let dates = Dates { known: payments.payments.dates.clone(), from };
        let dates = counts::dates(&self.store, self.shards, dates).await?;
        let all = dates.len() as u64;
        for (done, date) in (1..).zip(dates) {
            if counts::set(&self.store, self.shards, date, is_apply, &tell).await? {
                outcome.borrow_mut().counters.push(date);
            }
            (told.progress)("dates", done, all);
        }
        let forgotten = counts::forget(&self.store, is_apply).await?;
        let contradictions = match &self.replaced {
            Some(old) => contradictions::copy((old, &self.store), (since, self.now), is_apply, &tell).await?,
            None => 0,
        };
        let mut outcome = outcome.into_inner();
        (outcome.forgotten, outcome.contradictions) = (forgotten, contradictions);
        (outcome.events, outcome.payments) = (payments.payments.events, payments.payments.known.len() as u64);
        Ok(outcome)
    }

    /// Adds the payments of the long-term table that ended since, whether the log has them or not.
    async fn find_ended(&self, since: UtcSecond, payments: &mut Payments, tell: &impl Fn(&Line)) -> Result<()> {
        let before = |status: Status| if status.is_settled() { DUE_BEFORE } else { CANCELLED_BEFORE };
        let ended = self
            .shards
            .all()
            .flat_map(|shard| [Status::Processed, Status::Failed, Status::Cancelled].map(|status| (shard, status)));
        let found = futures::stream::iter(ended).map(async |(shard, status)| {
            let (from, mut after) = (date_of(since.saturating_add(-before(status)))?, None);
            let mut heads = Vec::new();
            loop {
                let page = self.store.ended_page(shard, status, (from, since), after).await?;
                heads.extend(page.heads);
                after = page.end;
                if after.is_none() {
                    return anyhow::Ok(heads);
                }
            }
        });
        let mut found = found.buffer_unordered(AT_ONCE);
        while let Some(heads) = found.try_next().await? {
            for head in heads {
                match head {
                    Ok((key, payment)) => payments.entry(&payment).key = key,
                    Err(error) => tell(&Line::place(Finding::Unreadable, error.to_string())),
                }
            }
        }
        Ok(())
    }

    /// Notes in the log's head the instant since which the tables may have changes that the log lacks, so that finish
    /// tells the log's readers. Such changes were found, or are possible because the restored instant is not clearly
    /// before the log's last event.
    async fn note_unlogged(
        &self,
        payments: &Payments,
        found: Option<UtcSecond>,
        is_apply: bool,
        tell: &impl Fn(&Line),
    ) -> Result<()> {
        let end = payments.last_at.filter(|last| self.to > last.saturating_add(-LAG));
        let Some(since) = found.into_iter().chain(end).min() else { return Ok(()) };
        if is_apply {
            self.store.note_missed(Missed { since: Some(since), until: self.now }).await?;
        }
        let why = format!("the tables may have changes since {since} that the log lacks; finish tells its readers");
        tell(&Line::place(Finding::Gap, why));
        Ok(())
    }

    /// Decides each payment, a hundred at a time, and writes the decisions. Returns the time of the first change that
    /// the log lacks.
    async fn walk(
        &self,
        payments: &Payments,
        rules: &Rules,
        is_apply: bool,
        tell: &impl Fn(&Line),
        progress: &impl Fn(&str, u64, u64),
    ) -> Result<Option<UtcSecond>> {
        let all: Vec<&Known> = payments.known.values().collect();
        let (mut done, mut unlogged) = (0, None::<UtcSecond>);
        for some in all.chunks(MAX_BATCH_GET) {
            let begun = Instant::now();
            let mut written = 0;
            let read = self.read(some).await?;
            let decided = some.iter().map(|known| (*known, read.decide(known, rules)));
            let decided: Vec<(&Known, Decision)> =
                decided.map(|(known, decision)| Ok((known, decision?))).collect::<Result<_>>()?;
            for (known, decision) in &decided {
                unlogged = unlogged.into_iter().chain(decision.unlogged).min();
                decision
                    .findings
                    .iter()
                    .for_each(|(kind, why)| tell(&Line::finding(*kind, &known.payment, why.clone())));
                if let Some((change, to)) = decision.change {
                    tell(&Line::change(change, &known.payment, to));
                    written += 1;
                }
            }
            if is_apply {
                let writes = decided.into_iter().filter(|(_, decision)| !decision.writes.is_empty());
                let writes = writes.map(|(known, decision)| self.write(known, decision, rules));
                futures::stream::iter(writes).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
            }
            done += some.len();
            progress("payments", done as u64, all.len() as u64);
            if is_apply && done < all.len() {
                let least = Duration::from_secs(1) * written / self.per_second.max(1);
                tokio::time::sleep(least.saturating_sub(begun.elapsed())).await;
            }
        }
        Ok(unlogged)
    }

    /// Writes a decision. If an item is not as it was read, such as after a call whose reply was lost, decides again.
    async fn write(&self, known: &Known, decision: Decision, rules: &Rules) -> Result<()> {
        let mut writes = decision.writes;
        for _ in 0..MAX_TRIES {
            let mut is_done = true;
            for write in writes {
                if !self.write_one(write).await? {
                    is_done = false;
                    break;
                }
            }
            if is_done {
                return Ok(());
            }
            writes = self.read(&[known]).await?.decide(known, rules)?.writes;
        }
        bail!("the payment {} changes meanwhile: who else writes?", known.payment.payment_id)
    }

    /// Returns whether the item was as it was read.
    async fn write_one(&self, write: Write) -> Result<bool> {
        Ok(match write {
            Write::ToHistory(head) => matches!(self.store.put_archived_head(&head).await?, Archived::Done),
            Write::ToHot { read, new } => self.store.put_restored_head(read.as_deref(), &new).await?,
            Write::Details(redate) => {
                let known = self.store.put_redated_details(&redate.content, &redate.details).await?;
                known.is_none_or(|known| known == redate.details)
            }
            Write::Remove(head) => matches!(self.store.remove_head(&head).await?, Removed::Done | Removed::Gone),
        })
    }

    /// Reads the heads and details of up to a hundred payments.
    async fn read(&self, some: &[&Known]) -> Result<Found> {
        let keys: Vec<HeadKey> = some.iter().map(|known| known.key.clone()).collect();
        let mut hot: Heads = self.store.stored_heads(&keys).await?.into_iter().collect();
        let mut history: Heads = self.store.settled_heads(&keys).await?.into_iter().collect();
        let is_without = |known: &&&Known| !hot.contains_key(&known.key) && !history.contains_key(&known.key);
        let first = |known: &&Known| DetailsKey { payment_id: known.payment.payment_id, amendment: None };
        let without: Vec<DetailsKey> = some.iter().filter(is_without).map(first).collect();
        let details = if without.is_empty() { HashMap::new() } else { self.store.details_of(&without).await? };
        let mut amended = Amended::new();
        let wanted: Vec<DetailsKey> = some.iter().flat_map(|known| known.amended_details()).collect();
        for wanted in wanted.chunks(MAX_BATCH_GET) {
            amended.extend(self.store.details_of(wanted).await?);
        }
        // A payment whose due time was changed has its head elsewhere.
        let elsewhere = details.values().flatten().map(Details::key).filter(|key| !keys.contains(key));
        let elsewhere: Vec<HeadKey> = elsewhere.collect();
        if !elsewhere.is_empty() {
            hot.extend(self.store.stored_heads(&elsewhere).await?);
            history.extend(self.store.settled_heads(&elsewhere).await?);
        }
        let contents = self.contents(some, &hot, &amended).await?;
        Ok(Found { hot, history, details, amended, contents })
    }

    /// Reads the stored details that a redate with lost details may follow.
    async fn contents(&self, some: &[&Known], hot: &Heads, amended: &Amended) -> Result<Contents> {
        let has_lost = |known: &&&Known| known.redates().any(|key| !amended.contains_key(&key));
        let mut wanted = Vec::new();
        for known in some.iter().filter(has_lost) {
            let payment_id = known.payment.payment_id;
            wanted.push(DetailsKey { payment_id, amendment: None });
            wanted.extend(known.amended_details().filter(|key| amended.contains_key(key)));
            let heads = hot.values().flatten().map(|head| head.known().details_key());
            wanted.extend(heads.filter(|key| key.payment_id == payment_id));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut contents = Contents::new();
        for wanted in wanted.chunks(MAX_BATCH_GET) {
            let read = self.store.stored_details(wanted).await?;
            contents.extend(read.into_iter().filter_map(|(key, details)| Some((key, details.ok()?))));
        }
        Ok(contents)
    }

    /// Sets the report's last run to the last published one, if that is later. Returns its number if so.
    async fn set_report_run(
        &self,
        published: Option<payments_store::ReportRun>,
        is_apply: bool,
    ) -> Result<Option<u64>> {
        let known = self.store.last_report_run().await?.map(|run| run.number);
        let Some(run) = published.filter(|run| known.is_none_or(|known| known < run.number)) else { return Ok(None) };
        if is_apply && !self.store.restore_report_run(known, &run).await? {
            let now = self.store.last_report_run().await?.map(|run| run.number);
            ensure!(now == Some(run.number), "the report's last run changes meanwhile: is the report paused?");
        }
        Ok(Some(run.number))
    }
}
