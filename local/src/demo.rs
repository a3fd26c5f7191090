//! `cargo local demo`: simulates one banking day and the night after it, on a fast clock.
//!
//! At 01:00 the feed creates half of the payments. In the early morning customers amend some of them. The others are created during the
//! day, while payments are claimed, dispatched and settled. A receiver of webhooks is told of each change. At the end every payment is read, and the summary checks all of
//! them, and what the receiver was told. Then it is Sunday: payments of that day are due on Monday, and those of a holiday that the bank
//! announces are moved. Days later the day is sealed, and a question in SQL is asked.

mod audit;
mod closed_days;
mod ingest;
mod night;
mod receiver;
mod script;
mod sealed;
mod summary;
mod table;
mod write_units;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use payments_bank::{Dependencies, Functions};
use payments_machine::client::Client;
use payments_machine::environment::CALENDARS;
use payments_machine::invocation::context;
use payments_machine::layers::client_over;
use payments_machine::payload::DataKind;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_machine::triggers::{Tick, Triggers};
use payments_machine::{EngineChoice, Queues, Stack, Time};
use payments_model::{BusinessDate, BusinessZone, UtcSecond};
use payments_store::Store;

pub use payments_machine::progress::Progress;
pub use summary::Summary;

use crate::SEAL_AFTER_DAYS;
use crate::reports::without_reports;
use audit::Audit;
use closed_days::ClosedDays;
use ingest::Amended;
use night::{Night, left_in_hot};
use receiver::Receiver;
use script::{FEED_BEGINS, Script};
use sealed::Sealed;
use write_units::{Recorders, WriteUnits};

/// The day: a Friday in winter.
const DAY: &str = "2026-11-20";

/// The time zone of the simulation.
const ZONE: &str = "Europe/London";

/// Midnight, as a minute of the day.
const MIDNIGHT: u32 = 24 * 60;

/// The minutes between looks, after midnight, for unsettled payments.
const MORNING_ROUND: u32 = 10;

/// The minute at which the night ends. Redrives have run by then.
const NIGHT_ENDS: u32 = MIDNIGHT + 6 * 60;

/// The minute at which all heads of the day have expired: more than a day after it.
const EXPIRED: u32 = 2 * MIDNIGHT + 14 * 60;

/// The minute at which the archive has run.
const ARCHIVED: u32 = MIDNIGHT + 3 * 60;

/// The minute at which the day is sealed: so many days after its last settlement in the night.
const SEALED: u32 = (SEAL_AFTER_DAYS + 2) * MIDNIGHT;

/// The minutes that the stream gets after the last payment is reported, and after the last head has expired.
const LAST_MINUTES: u32 = 2;

/// The number of shards.
const SHARDS: &str = "10";

/// The minutes of the day between two lines, where there is no bar.
const LINE_EVERY: u32 = 3 * 60;

/// The steps of a payment that the bar counts: it is created, claimed and settled, the night passes, its head expires, and it is
/// read at the end.
const STEPS: u64 = 6;

/// Returns the steps of a demo with so many payments, which its bar counts.
pub fn steps(payments: u64) -> u64 {
    payments.saturating_mul(STEPS)
}

/// The settings of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of payments.
    pub payments: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// The bytes of each payment's data; `None` varies the sizes, up to 8 KB for the whole payment.
    pub data_bytes: Option<usize>,
    /// The kind of data.
    pub data_kind: DataKind,
}

/// The system, its clients and its clock.
struct Simulation {
    stack: Stack,
    time: Time,
    recorders: Recorders,
    triggers: Triggers,
    client: Client,
    functions: Functions,
    store: Store,
    receiver: Receiver,
}

/// The sums so far.
#[derive(Default)]
struct Totals {
    acknowledged: HashSet<String>,
    tick: Tick,
    units: WriteUnits,
    ingest: Duration,
    amended: Amended,
    settled_by: Option<UtcSecond>,
}

/// The visible state of the system after a minute of the day.
#[derive(Debug)]
pub struct Minute<'s> {
    /// The minute.
    pub at: DateTime<Utc>,
    /// The events of the minute, with the metrics of the functions under their names.
    pub tick: &'s Tick,
    /// The queues.
    pub queues: &'s Queues,
}

/// Simulates the day, with reports in a folder, and returns a summary. [`Summary::check`] checks it.
pub async fn run(settings: &Settings, reports: &Path, progress: &Progress) -> Result<Summary> {
    run_watched(settings, reports, progress, |_| {}).await
}

/// Simulates the day as [`run`] does, and shows every minute of it.
pub async fn run_watched(
    settings: &Settings,
    reports: &Path,
    progress: &Progress,
    mut watch: impl FnMut(&Minute<'_>),
) -> Result<Summary> {
    without_reports(reports)?;
    let (day, zone): (BusinessDate, BusinessZone) = (DAY.parse()?, ZONE.parse()?);
    let data = (settings.data_kind, settings.data_bytes);
    let script = Script::draw(settings.seed, settings.payments, data, day, zone);
    let mut simulation = Simulation::start(&script, settings.seed, reports).await?;
    let totals = simulation.play(&script, progress, &mut watch).await?;
    show(progress, "reading every payment".to_owned(), true);
    let service = *simulation.triggers.service().settings();
    let before = totals.steps(script.payments(), EXPIRED + LAST_MINUTES + 1);
    let read = |read: u64| progress.show(&[before + read]);
    let audit = audit::audit(simulation.client.bank(), &script, &totals.acknowledged, &service, read).await?;
    let night = simulation.inspect(&audit, reports, day).await?;
    let received = simulation.receiver.judge(simulation.client.bank(), day.as_chrono()).await?;
    let in_time = || context(simulation.time.clock().instant() + TimeDelta::minutes(15));
    let closed_days = ClosedDays::play(simulation.client.bank(), &simulation.stack, &in_time()).await?;
    simulation.time.move_to(script.instant(SEALED).as_chrono());
    let sealed = Sealed::seal(&simulation.functions, in_time, reports, day).await?;
    progress.clear();
    let summary = Summary {
        payments: settings.payments,
        seed: settings.seed,
        day,
        zone,
        settled_by: totals.settled_by.unwrap_or(script.instant(FEED_BEGINS)),
        counts: totals.tick.counts,
        service: simulation.triggers.service().counts(),
        ingest: totals.ingest,
        amended: totals.amended,
        took: totals.tick.took,
        units: totals.units,
        dead_letters: simulation.triggers.queues().dead_letters(simulation.time.clock().instant()),
        troubles: u64::try_from(totals.tick.troubles.len())?,
        audit,
        night,
        received,
        closed_days,
        sealed,
    };
    simulation.stop().await?;
    Ok(summary)
}

impl Simulation {
    /// Starts the system. Each function that writes has a recorder of its own, so the write units of each phase are known.
    async fn start(script: &Script, seed: u64, reports: &Path) -> Result<Self> {
        let time = Time::at(script.instant(FEED_BEGINS).as_chrono());
        let stack = Stack::on(EngineChoice::Memory)
            .environment(|environment| {
                (environment.claims_per_second, environment.moves_per_second) = (0, 0);
                environment.seal_after_days = SEAL_AFTER_DAYS;
                environment.calendars = CALENDARS.to_owned();
            })
            .clock(&time.clock())
            .reports(reports)
            .start()
            .await?;
        let (recorders, plain) = (Recorders::new(&stack), stack.client());
        let functions = Functions::within(&stack.environment, |function| {
            let recorder = recorders.for_function(function).cloned();
            let client = recorder.map_or_else(|| plain.clone(), |recorder| client_over(&plain, recorder));
            Ok(Dependencies { metrics: stack.metrics.for_function(function), ..Dependencies::on(&stack, client) })
        })?;
        let store = stack.store(plain);
        let client = Client::for_functions(Arc::new(functions.clone()), time.clock())?;
        let triggers =
            Triggers::new(&stack, Arc::new(functions.clone()), TransactionServiceSettings::seeded(seed)).await?;
        let receiver = Receiver::start(client.bank(), &time.clock()).await?;
        // Its endpoint was created before the day began.
        drop(stack.metrics.take());
        Ok(Self { stack, time, recorders, triggers, client, functions, store, receiver })
    }

    /// Simulates the day, minute by minute, the night until every payment is settled and reported, and the minutes in which
    /// their heads expire.
    async fn play(
        &mut self,
        script: &Script,
        progress: &Progress,
        watch: &mut impl FnMut(&Minute<'_>),
    ) -> Result<Totals> {
        let mut feed = script.feed();
        let mut daytime = script.daytime();
        let mut amendments = script.amendments();
        let (mut totals, mut settled) = (Totals::default(), false);
        let mut ends = NIGHT_ENDS;
        for minute in FEED_BEGINS.. {
            if minute >= ends {
                break;
            }
            let now = script.instant(minute);
            self.time.move_to(now.as_chrono());
            let started = Instant::now();
            let orders = |numbers: Vec<u64>| numbers.into_iter().map(|number| script.order(number));
            if let Some(numbers) = feed.remove(&minute) {
                totals.acknowledged.extend(ingest::feed(self.client.bank(), orders(numbers)).await?);
            }
            if let Some(numbers) = daytime.remove(&minute) {
                totals.acknowledged.extend(ingest::create(self.client.bank(), orders(numbers)).await?);
            }
            totals.ingest += started.elapsed();
            if let Some(numbers) = amendments.remove(&minute) {
                totals.units += self.recorders.take();
                let orders = numbers.into_iter().map(|number| (script.order(number), script.last_order(number)));
                totals.amended.make(self.client.bank(), orders).await?;
                totals.amended.units += self.recorders.take().created();
            }
            let tick = self.triggers.tick(now.as_chrono()).await;
            watch(&Minute { at: now.as_chrono(), tick: &tick, queues: self.triggers.queues() });
            totals.add(tick, now);
            totals.units += self.recorders.take();
            show(progress, totals.at(script, minute), minute.is_multiple_of(LINE_EVERY) || minute == FEED_BEGINS);
            progress.show(&[totals.steps(script.payments(), minute)]);
            if minute <= ARCHIVED || !minute.is_multiple_of(MORNING_ROUND) || ends < NIGHT_ENDS {
                continue;
            }
            settled = settled || audit::unsettled(self.client.bank(), script).await? == 0;
            if settled && night::unreported(&self.store, SHARDS.parse()?).await? == 0 {
                ends = minute + 1 + LAST_MINUTES;
            }
        }
        if settled {
            show(progress, format!("{}  heads expire", clock(script, EXPIRED)), true);
            for minute in EXPIRED..=EXPIRED + LAST_MINUTES {
                let now = script.instant(minute);
                self.time.move_to(now.as_chrono());
                totals.add(self.triggers.tick(now.as_chrono()).await, now);
                totals.units += self.recorders.take();
                progress.show(&[totals.steps(script.payments(), minute + 1)]);
            }
            return Ok(totals);
        }
        let open = audit::unsettled(self.client.bank(), script).await?;
        progress.clear();
        let troubles = totals.tick.troubles.first().map(String::as_str).unwrap_or("no failure was seen");
        bail!("{open} payments are neither processed nor failed in the morning; the first failure: {troubles}")
    }

    /// Reads the reports, the tables and the counters after the night.
    async fn inspect(&self, audit: &Audit, reports: &Path, day: BusinessDate) -> Result<Night> {
        let mut night =
            Night { left_in_hot: left_in_hot(&self.store, day, SHARDS.parse()?).await?, ..Night::default() };
        night.read_reports(reports)?;
        let context = context(self.time.clock().instant() + TimeDelta::minutes(15));
        let listed = serde_json::to_value(&audit.by_status)?;
        night.compare_counters(&self.functions, &self.client, context, day, &listed).await?;
        night.read_back(&self.client, audit.a_transaction.as_deref()).await?;
        Ok(night)
    }

    async fn stop(self) -> Result<()> {
        let Self { stack, recorders, triggers, client, functions, store, receiver, .. } = self;
        drop((recorders, triggers, client, functions, store, receiver));
        stack.stop().await
    }
}

impl Totals {
    fn add(&mut self, tick: Tick, now: UtcSecond) {
        if tick.counts.settled() > 0 {
            self.settled_by = Some(now);
        }
        self.tick += tick;
    }

    /// Returns the steps of so many payments until a minute.
    fn steps(&self, payments: u64, minute: u32) -> u64 {
        let passed = |from: u32, to: u32| {
            let minutes = minute.clamp(from, to) - from;
            payments * u64::from(minutes) / u64::from(to - from)
        };
        let counts = &self.tick.counts;
        let stages = self.created() + counts.claimed + counts.settled();
        stages + passed(MIDNIGHT, ARCHIVED) + passed(EXPIRED, EXPIRED + LAST_MINUTES + 1)
    }

    fn created(&self) -> u64 {
        u64::try_from(self.acknowledged.len()).unwrap_or(u64::MAX)
    }

    /// Returns the state at a minute in words.
    fn at(&self, script: &Script, minute: u32) -> String {
        let part = match minute {
            ..360 => "the feed",
            360..1_080 => "the day",
            1_080..MIDNIGHT => "the evening",
            _ => "the night",
        };
        let (counts, time) = (&self.tick.counts, clock(script, minute));
        let [created, settled, reported] = [self.created(), counts.settled(), counts.reported].map(table::grouped);
        format!("{time}  {part:<11}  {created} created, {settled} settled, {reported} reported")
    }
}

/// Returns the date and the time of a minute of the day. Minutes count on after midnight.
fn clock(script: &Script, minute: u32) -> String {
    let date = script.day().plus_days(minute / MIDNIGHT);
    format!("{date} {}", table::clock_face(minute.into()))
}

/// Shows a text, and writes it where lines are wanted.
fn show(progress: &Progress, text: String, is_line: bool) {
    if is_line {
        progress.line(&text);
    }
    progress.say(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_changes_at_midnight() {
        let (day, zone) = (DAY.parse().unwrap(), ZONE.parse().unwrap());
        let script = Script::draw(1, 10, (DataKind::default(), None), day, zone);
        for (minute, text) in [
            (FEED_BEGINS, "2026-11-20 01:00"),
            (MIDNIGHT - 1, "2026-11-20 23:59"),
            (MIDNIGHT + 30, "2026-11-21 00:30"),
            (EXPIRED, "2026-11-22 14:00"),
        ] {
            assert_eq!(clock(&script, minute), text);
        }
    }

    #[test]
    fn the_bar_is_full_when_each_payment_is_read_and_not_before() {
        let mut totals = Totals::default();
        totals.acknowledged.extend((0..10).map(|number: u32| number.to_string()));
        (totals.tick.counts.claimed, totals.tick.counts.processed) = (10, 10);
        let end = EXPIRED + LAST_MINUTES + 1;
        for (minute, seen) in [(MIDNIGHT - 1, 30), (MIDNIGHT + 90, 35), (ARCHIVED, 40), (EXPIRED, 40), (end, 50)] {
            assert_eq!(totals.steps(10, minute), seen, "{minute}");
        }
        assert_eq!(totals.steps(10, end) + 10, steps(10));
    }
}
