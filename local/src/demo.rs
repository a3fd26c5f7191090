//! `cargo local demo`: one banking day and the night after it, on a clock that runs as fast as the
//! machine can.
//!
//! At 01:00 the feed puts half of the payments in, the others come through the day; the plant
//! sweeps, dispatches and settles as time passes. In the end the database is asked what became of
//! each payment, and the day has gone well only if that is what had to.

mod audit;
mod ingest;
mod night;
mod script;
mod spend;
mod summary;
mod table;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use chrono::{DateTime, TimeDelta};
use payments_boot::Clock;
use payments_model::{BusinessDate, BusinessZone, UtcSecond};
use payments_store::Store;

pub use crate::progress::Progress;
pub use spend::WriteUnits;
pub use summary::{Seconds, Summary};

use crate::client::Client;
use crate::functions::{Functions, reports_in};
use crate::interceptor::client_over;
use crate::invocation::context;
use crate::stack::{EngineChoice, Stack};
use crate::transaction_service::TransactionServiceSettings;
use crate::triggers::{Tick, Triggers};
use audit::Audit;
use night::{Night, left_in_hot};
use script::{FEED_BEGINS, Script};
use spend::Recorders;

/// The day: a Friday in winter.
const DAY: &str = "2026-11-20";

/// Where the bank is.
const ZONE: &str = "Europe/London";

/// Midnight, as a minute of the day.
const MIDNIGHT: u32 = 24 * 60;

/// The minute after midnight at which it is first asked whether all is settled, and how often.
const MORNING_ROUND: u32 = 10;

/// The minute at which the night is over: by then redrives and the archive had their chances.
const NIGHT_ENDS: u32 = MIDNIGHT + 6 * 60;

/// The minutes that are left to the stream after the last payment has moved.
const LAST_MINUTES: u32 = 2;

/// How many shards the bank has.
const SHARDS: &str = "10";

/// The progress bars of the demo.
pub const BARS: [&str; 3] = ["created", "pending", "settled"];

/// What the day is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many payments there are.
    pub payments: u64,
    /// What everything random follows from.
    pub seed: u64,
    /// How many bytes of text each payment carries; without it sizes vary up to 8 KB in all.
    pub data_bytes: Option<usize>,
}

/// A bank with nothing in it, its plant, and its clients.
struct Bank {
    stack: Stack,
    time: Time,
    recorders: Recorders,
    triggers: Triggers,
    client: Client,
    functions: Functions,
    store: Store,
}

/// What happened so far.
#[derive(Default)]
struct Log {
    acknowledged: HashSet<String>,
    tick: Tick,
    units: WriteUnits,
    seconds: Seconds,
    settled_by: Option<UtcSecond>,
}

/// Plays the day, with reports in a folder, and says what happened. Whether that is what had to happen,
/// [`Summary::check`] says.
///
/// # Errors
/// Where the engine fails, a payment is refused, or payments are still open in the morning.
pub async fn run(settings: &Settings, reports: &Path, progress: &Progress) -> Result<Summary> {
    if reports.join("reports").exists() {
        bail!("{} has reports already; give --reports a new folder, since every demo begins anew", reports.display());
    }
    let (day, zone): (BusinessDate, BusinessZone) = (DAY.parse()?, ZONE.parse()?);
    let script = Script::of(settings.seed, settings.payments, settings.data_bytes, day, zone);
    let mut bank = Bank::open(&script, settings.seed, reports).await?;
    let log = bank.play(&script, progress).await?;
    progress.say("reading what became of each payment");
    let service = *bank.triggers.service().settings();
    let audit = audit::audit(&bank.client, &script, &log.acknowledged, &service).await?;
    let night = bank.look_around(&audit, reports, day).await?;
    progress.clear();
    let summary = Summary {
        payments: settings.payments,
        seed: settings.seed,
        day,
        zone,
        settled_by: log.settled_by.unwrap_or(script.instant(FEED_BEGINS)),
        counts: log.tick.counts,
        saw: bank.triggers.service().saw(),
        units: log.units,
        seconds: log.seconds,
        put_aside: bank.triggers.queues().put_aside(bank.time.clock().instant()),
        troubles: u64::try_from(log.tick.troubles.len())?,
        audit,
        night,
    };
    bank.close().await?;
    Ok(summary)
}

impl Bank {
    /// Opens the bank. Each function that writes has a wire of its own, so that what is spent is
    /// known by phase.
    async fn open(script: &Script, seed: u64, reports: &Path) -> Result<Self> {
        let time = Time::at(script.instant(FEED_BEGINS));
        let stack = Stack::on(EngineChoice::Memory)
            .environment(|environment| (environment.claims_per_second, environment.moves_per_second) = (0, 0))
            .clock(&time.clock())
            .reports(reports_in(reports)?)
            .start()
            .await?;
        let (recorders, plain) = (Recorders::new(), stack.environment.client());
        let functions = stack.functions_each(|function| {
            let recorder = recorders.of(function).cloned();
            Ok(recorder.map_or_else(|| plain.clone(), |recorder| client_over(&plain, recorder)))
        })?;
        let store = stack.dependencies(plain).store;
        let client = Client::of_functions(functions.clone(), time.clock());
        let triggers = stack.triggers(functions.clone(), TransactionServiceSettings::seeded(seed)).await?;
        Ok(Self { stack, time, recorders, triggers, client, functions, store })
    }

    /// Plays the day, minute by minute, and the night until everything is settled and in history.
    async fn play(&mut self, script: &Script, progress: &Progress) -> Result<Log> {
        let (mut feed, mut daytime) = (script.feed(), script.daytime());
        let (mut log, mut settled) = (Log::default(), false);
        let mut ends = NIGHT_ENDS;
        for minute in FEED_BEGINS.. {
            if minute >= ends {
                break;
            }
            let now = script.instant(minute);
            self.time.move_to(now);
            let started = Instant::now();
            let orders = |numbers: Vec<u64>| numbers.into_iter().map(|number| script.order(number));
            if let Some(numbers) = feed.remove(&minute) {
                log.acknowledged.extend(ingest::feed(&self.client, orders(numbers)).await?);
            }
            if let Some(numbers) = daytime.remove(&minute) {
                log.acknowledged.extend(ingest::create(&self.client, orders(numbers)).await?);
            }
            log.seconds.ingest += started.elapsed();
            log.add(self.triggers.tick(now.as_chrono()).await, now);
            log.units += self.recorders.take();
            log.show(minute, progress);
            if minute <= MIDNIGHT || !minute.is_multiple_of(MORNING_ROUND) || ends < NIGHT_ENDS {
                continue;
            }
            settled = settled || audit::unsettled(&self.client, script).await? == 0;
            if settled && night::left_in_hot(&self.store, script.day(), SHARDS.parse()?).await? == 0 {
                ends = minute + 1 + LAST_MINUTES;
            }
        }
        if settled {
            return Ok(log);
        }
        let open = audit::unsettled(&self.client, script).await?;
        progress.clear();
        let troubles = log.tick.troubles.first().map(String::as_str).unwrap_or("nothing went visibly wrong");
        bail!("{open} payments are neither processed nor failed in the morning; first trouble: {troubles}")
    }

    /// Looks at what the night left behind.
    async fn look_around(&self, audit: &Audit, reports: &Path, day: BusinessDate) -> Result<Night> {
        let mut night =
            Night { left_in_hot: left_in_hot(&self.store, day, SHARDS.parse()?).await?, ..Night::default() };
        night.read_reports(reports)?;
        let context = context(self.time.clock().instant() + TimeDelta::minutes(15));
        let listed = serde_json::to_value(&audit.by_status)?;
        night.compare_counters(&self.functions, &self.client, context, day, &listed).await?;
        night.read_back(&self.client, audit.a_transaction.as_deref()).await?;
        Ok(night)
    }

    async fn close(self) -> Result<()> {
        let Self { stack, recorders, triggers, client, functions, store, .. } = self;
        drop((recorders, triggers, client, functions, store));
        stack.stop().await
    }
}

impl Log {
    fn add(&mut self, tick: Tick, now: UtcSecond) {
        self.seconds.sweep += tick.took.sweep;
        self.seconds.dispatch += tick.took.dispatch;
        self.seconds.settle += tick.took.settle;
        self.seconds.count += tick.took.aggregate;
        self.seconds.report += tick.took.report;
        self.seconds.archive += tick.took.archive;
        if tick.counts.settled() > 0 {
            self.settled_by = Some(now);
        }
        self.tick += tick;
    }

    fn show(&self, minute: u32, progress: &Progress) {
        let created = u64::try_from(self.acknowledged.len()).unwrap_or(u64::MAX);
        let what = match minute {
            ..360 => "the feed",
            360..1_080 => "the day",
            1_080..MIDNIGHT => "the evening",
            _ => "the night",
        };
        let time = format!("{DAY} {}  {what}", table::clock_face(minute.into()));
        progress.say(time);
        progress.show(&[created, self.tick.counts.claimed, self.tick.counts.settled()]);
    }
}

/// The bank's time, in milliseconds: it stands still but for those who move it or wait.
#[derive(Clone)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn at(instant: UtcSecond) -> Self {
        Self(Arc::new(AtomicI64::new(instant.as_chrono().timestamp_millis())))
    }

    /// Moves on to `instant`, never back: somebody may have waited past it.
    fn move_to(&self, instant: UtcSecond) {
        self.0.fetch_max(instant.as_chrono().timestamp_millis(), Ordering::Relaxed);
    }

    fn clock(&self) -> Clock {
        let (shown, passed) = (self.clone(), self.clone());
        let now = move || DateTime::from_timestamp_millis(shown.0.load(Ordering::Relaxed)).unwrap_or_default();
        Clock::simulated(now, move |time| {
            passed.0.fetch_add(i64::try_from(time.as_millis()).unwrap_or(0), Ordering::Relaxed);
        })
    }
}
