//! Restores: in some months tables are lost, and an operator brings them back.
//!
//! The hot table is lost, sometimes with the long-term table or the log. The operator follows docs/restore.md.
//! Changes that the restored tables lack come back from the log or the journal. Only changes that
//! were not logged may be lost, and payments whose details are lost. Sometimes the reason for the
//! restore is a client that cancelled and amended what it should not have: that is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, anyhow};
use chrono::TimeDelta;
use fastrand::Rng;
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use payments_machine::client::Request;
use payments_machine::layers::attributes::{Key, number, text};
use payments_machine::layers::random::happens;
use payments_model::UtcSecond;
use payments_restore::{Rebuild, Restored, Source, Told, begin, begin_lost, begin_restored, finish};
use payments_store::{LogPosition, LogRead};
use serde_json::{Value, json};
use tokio::task::spawn_local;

use crate::checks::checker::{scan, tables};
use crate::facts::heads::{due_of, id_of, is_of_head};
use crate::laws::journal::journaled;
use crate::plans::faults::FaultKind;
use crate::settings::FAULTY;
use crate::time::pause;
use crate::workloads::amendments;
use crate::workloads::by_hand::heads;
use crate::workloads::clients::asked_as;
use crate::workloads::log_loss::{self, LogLoss, set};
use crate::workloads::restored::{self, Loss};
use crate::workloads::undos;
use crate::workloads::unsendable;
use crate::world::bank::Bank;
use crate::world::lag;

/// Shorter months have no restore.
const LEAST_DAYS: u32 = 8;

/// In how many of a thousand months there is one.
const PER_THOUSAND: u16 = 700;

/// The longest time of an invocation that has begun.
const LONGEST_INVOCATION: TimeDelta = TimeDelta::minutes(6);

/// The time for which the operator waits until the old table's stream is counted.
const LONGEST_DRAIN: TimeDelta = TimeDelta::hours(2);

/// The most tries of a step, which fails or is killed now and then.
const TRIES: u32 = 60;

/// The most payments that the faulty client changes.
const WRONGLY_CHANGED: usize = 3;

/// The number of segments that are read at once.
const SEGMENTS: u8 = 12;

/// Starts what loses tables.
pub(crate) fn start(bank: &Arc<Bank>, files: &Arc<dyn ObjectStore>, days: u32) {
    if days >= LEAST_DAYS {
        spawn_local(run(Arc::clone(bank), Arc::clone(files), days));
    }
}

async fn run(bank: Arc<Bank>, files: Arc<dyn ObjectStore>, days: u32) {
    let mut random = bank.seed.source("restores");
    if !happens(&mut random, PER_THOUSAND) {
        return;
    }
    pause(TimeDelta::days(random.i64(3..i64::from(days) - 3)) + TimeDelta::hours(random.i64(2..16))).await;
    // The checker reads the tables at the end of each day, and a settlement may be between its writes meanwhile.
    while bank.switches.is_cut_off() || !(2..16).contains(&(bank.time.now() - bank.begin).num_hours().rem_euclid(24)) {
        pause(TimeDelta::hours(1)).await;
    }
    if !bank.faults.has(FaultKind::Restored) {
        return;
    }
    bank.faults.count(FaultKind::Restored);
    let operator = Operator { bank: &bank, files: &files };
    bank.busy_with(operator.restore(&mut random), "a restore failed").await;
}

/// The operator who restores.
struct Operator<'b> {
    bank: &'b Arc<Bank>,
    files: &'b Arc<dyn ObjectStore>,
}

/// The instant from which data may be cleared after a restore that ends now.
fn clear_from(bank: &Bank, days: u32) -> Result<UtcSecond> {
    Ok(UtcSecond::new(bank.time.now() + TimeDelta::days(days.into()))?)
}

/// Returns the last version of each payment of the events.
fn last_versions(events: &[Value]) -> BTreeMap<String, u64> {
    let versions = events.iter().filter_map(|event| Some((event["paymentId"].as_str()?, event["version"].as_u64()?)));
    versions.map(|(id, version)| (id.to_owned(), version)).collect()
}

impl Operator<'_> {
    async fn restore(&self, random: &mut Rng) -> Result<()> {
        let (bank, switches) = (self.bank, &self.bank.switches);
        // To which instant the long-term table and the log can be restored, if they are lost, too.
        let history = random.bool().then(|| tables(bank).map(|tables| tables.history)).transpose()?;
        let latest = bank.time.now();
        let log = LogLoss::draw(bank, random)?;
        pause(TimeDelta::minutes(random.i64(1..40))).await;
        let wrong = if random.u8(0..3) == 0 { self.change_wrongly().await } else { BTreeMap::new() };
        pause(TimeDelta::minutes(random.i64(1..10))).await;
        switches.restoring.store(true, Ordering::Relaxed);
        if random.bool() {
            self.drain().await?;
        }
        let undone = undos::before_restore(bank, self.files).await?;
        switches.table_lost.store(true, Ordering::Relaxed);
        if undone.is_some() {
            switches.uncounted.store(false, Ordering::Relaxed);
        }
        // Changes under way at that moment may still be logged, or not.
        pause(TimeDelta::seconds(random.i64(0..60))).await;
        self.end_epoch(log.as_ref(), random).await?;

        let to = UtcSecond::new(latest - TimeDelta::minutes(random.i64(5..400)))?;
        let logged = match &log {
            None => self.logged().await?,
            Some(log) => {
                let mut versions = last_versions(&journaled(self.files).await?);
                if !log.is_gone() {
                    for (id, version) in self.logged().await? {
                        let known = versions.entry(id).or_default();
                        *known = version.max(*known);
                    }
                }
                versions
            }
        };
        let loss = Loss { to, history, before: tables(bank)?, logged, wrong, log };
        let first = bank.changes.log().len();
        // Until the restore is done, all changes are its own.
        bank.state().by_hand.restored = Some(first..usize::MAX);
        bank.stream.end();
        self.rewind(&loss)?;
        self.rebuild(&loss, random).await?;
        bank.state().by_hand.restored = Some(first..bank.changes.log().len());
        restored::check(bank, &loss)?;

        let stream = bank.stream.renew()?;
        let restored = Restored {
            stream,
            tables_to: Some(to),
            log_to: loss.log.as_ref().and_then(LogLoss::restored_to),
            clear_from: bank.clears_after.map(|days| clear_from(bank, days)).transpose()?,
        };
        let (store, now) = (bank.lambda.operator(), || UtcSecond::new(bank.time.now()).unwrap_or(to));
        self.again(random, async || finish(store, &restored, now, |_, _| ()).await.map(drop)).await?;
        switches.table_lost.store(false, Ordering::Relaxed);
        undos::resume(bank).await?;
        if let Some(undone) = undone {
            undos::after_restore(bank, self.files, &undone).await?;
        }
        self.sweep().await?;
        switches.restoring.store(false, Ordering::Relaxed);
        unsendable::end(bank).await
    }

    /// Ends the log's epoch, when nothing old can write any more. If the log is lost, another table takes its place first.
    async fn end_epoch(&self, lost: Option<&LogLoss>, random: &mut Rng) -> Result<()> {
        let (bank, store) = (self.bank, self.bank.lambda.operator());
        let Some(lost) = lost else {
            self.again(random, async || begin(store).await.map(drop)).await?;
            pause(LONGEST_INVOCATION).await;
            return Ok(());
        };
        LogLoss::lose(bank);
        pause(LONGEST_INVOCATION).await;
        lost.replace(bank)?;
        self.again(random, async || {
            let now = UtcSecond::new(bank.time.now())?;
            match lost.restored_to() {
                None => begin_lost(store, now).await.map(drop),
                Some(log_to) => begin_restored(store, log_to, now).await.map(drop),
            }
        })
        .await
    }

    /// Waits until the log has every change of the old table, if that comes.
    async fn drain(&self) -> Result<()> {
        let until = self.bank.time.now() + LONGEST_DRAIN;
        pause(LONGEST_INVOCATION).await;
        while self.bank.time.now() < until {
            let logged = self.logged().await?;
            let heads = scan(self.bank, "payments")?;
            let mut heads = heads.iter().filter(|((pk, _), _)| is_of_head(pk));
            if heads.all(|((_, sk), head)| logged.get(id_of(sk)) == Some(&number(head, "version"))) {
                return Ok(());
            }
            pause(TimeDelta::minutes(5)).await;
        }
        Ok(())
    }

    /// Returns the last version of each payment in the log.
    async fn logged(&self) -> Result<BTreeMap<String, u64>> {
        let store = self.bank.lambda.operator();
        let mut after = LogPosition::BEGINNING;
        let mut versions = BTreeMap::new();
        for _ in 0..10_000 {
            let now = UtcSecond::new(self.bank.time.now())?;
            let Ok(head) = store.log_head().await else { continue };
            let head = head.context("there is no log")?;
            let Ok(page) = store.log_page(&head, after, usize::MAX, SEGMENTS, now).await else { continue };
            let LogRead::Page(page) = page else { anyhow::bail!("the log does not begin at its beginning") };
            let events: Vec<Value> =
                page.entries.iter().map(|entry| serde_json::from_str(&entry.json)).collect::<Result<_, _>>()?;
            versions.extend(last_versions(&events));
            if page.is_end {
                return Ok(versions);
            }
            after = page.after;
        }
        Err(anyhow!("the log cannot be read to its end"))
    }

    /// Amends and cancels some payments by mistake, as the faulty client. Returns the version that each had before.
    async fn change_wrongly(&self) -> BTreeMap<String, u64> {
        let (bank, soon) = (self.bank, self.bank.time.now() + TimeDelta::hours(6));
        let scheduled = heads(bank, "SCHEDULED").unwrap_or_default();
        let later = scheduled.iter().filter(|head| due_of(head).1 > soon.to_rfc3339().as_str());
        let mut wrong = BTreeMap::new();
        for (place, head) in later.take(WRONGLY_CHANGED).enumerate() {
            let (account, id) = (text(head, "pk").trim_start_matches("ACCT#"), id_of(text(head, "sk")));
            bank.state().cancel_asked.insert(id.to_owned());
            let amended = if place == 0 { amendments::by_mistake(bank, head) } else { None };
            let request = amended.unwrap_or_else(|| Request::cancel(account, id));
            // The outcome does not matter: the payment's client may have changed it before.
            wrong.insert(id.to_owned(), number(head, "version"));
            asked_as(bank, FAULTY, &request, |reply| matches!(reply.status, 200 | 409 | 412).then_some(())).await;
        }
        wrong
    }

    /// Makes the hot table what it was at an instant, and the long-term table its copy.
    fn rewind(&self, Loss { to, history, .. }: &Loss) -> Result<()> {
        let mut at_t: BTreeMap<Key, Option<Value>> = BTreeMap::new();
        for change in self.bank.changes.since(to.as_chrono()) {
            at_t.insert(change.key, change.before);
        }
        for (key, item) in at_t {
            set(self.bank, "payments", &key, item.as_ref())?;
        }
        self.bank.changes.follow()?;
        let Some(history) = history else { return Ok(()) };
        for key in tables(self.bank)?.history.keys().chain(history.keys()).collect::<BTreeSet<_>>() {
            set(self.bank, "payment-history", key, history.get(key))?;
        }
        Ok(())
    }

    /// Applies until nothing is left to do, and looks once more when the indexes must have caught up.
    async fn rebuild(&self, loss: &Loss, random: &mut Rng) -> Result<()> {
        self.again(random, async || {
            let told = Told { line: |_: &_| (), progress: |_: &str, _, _| () };
            let planned = self.rebuild_of(loss)?.plan(&told).await?;
            let tables = if loss.history.is_some() { "both tables" } else { "the hot table" };
            let log = match &loss.log {
                Some(log) if log.is_gone() => ", the log is lost",
                Some(_) => ", the log to an instant of its own",
                None => "",
            };
            let shown = format!(
                "{tables} to {}{log}: {:?}, {:?}, {} wrongly changed",
                loss.to,
                planned.changes,
                planned.findings,
                loss.wrong.len()
            );
            self.bank.state().restores = vec![shown];
            Ok(())
        })
        .await?;
        let mut done = 0;
        while done < 2 {
            pause(lag::LONGEST).await;
            let mut is_nothing = false;
            self.again(random, async || {
                let told = Told { line: |_: &_| (), progress: |_: &str, _, _| () };
                is_nothing = self.rebuild_of(loss)?.apply(&told).await?.is_nothing();
                Ok(())
            })
            .await?;
            done = if is_nothing { done + 1 } else { 0 };
        }
        Ok(())
    }

    fn rebuild_of(&self, loss: &Loss) -> Result<Rebuild> {
        let except = format!("actor=client:{FAULTY}").parse()?;
        Ok(Rebuild {
            store: self.bank.lambda.operator().clone(),
            // The law of findings holds months without a restore alone.
            replaced: None,
            source: loss.log.as_ref().map_or(Source::Log, |_| log_loss::journal(self.files)),
            reports: Arc::new(PrefixStore::new(Arc::clone(self.files), "reports")),
            to: loss.to,
            shards: self.bank.shards,
            excepts: if loss.wrong.is_empty() { Vec::new() } else { vec![except] },
            accepts_gaps: false,
            finds_details: false,
            per_second: 500,
            now: UtcSecond::new(self.bank.time.now())?,
        })
    }

    /// Takes a step until it succeeds. Some tries are killed.
    async fn again(&self, random: &mut Rng, mut step: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let mut last = None;
        for tried in 0..TRIES {
            let limit = if tried < 3 && random.bool() { random.i64(10..4_000) } else { 3_600_000 };
            match tokio::time::timeout(TimeDelta::milliseconds(limit).to_std()?, step()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
            pause(TimeDelta::seconds(30)).await;
        }
        Err(last.unwrap_or_else(|| anyhow!("it takes too long")))
    }

    /// Claims all that is due, before anybody can cancel it.
    async fn sweep(&self) -> Result<()> {
        for _ in 0..TRIES {
            pause(lag::LONGEST).await;
            let (sweep, in_time) = (json!({ "action": "sweep" }), TimeDelta::zero());
            let done = self.bank.scheduled("daily-due-sweeper", sweep, in_time).await;
            if done.is_ok_and(|outcome| outcome["remaining"] == 0) {
                return Ok(());
            }
        }
        Err(anyhow!("something due is left"))
    }
}
