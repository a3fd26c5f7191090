//! A part of a bank's day on one machine, with payments of one kind, and the quantities that it takes.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::routing::post;
use chrono::{DateTime, DurationRound as _, TimeDelta, Timelike as _, Utc};
use fastrand::Rng;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use payments_files::FileKind;
use payments_machine::client::Client;
use payments_machine::environment::CALENDARS;
use payments_machine::payload::DataKind;
use payments_machine::transaction_service::TransactionServiceSettings;
use payments_machine::triggers::{Tick, Triggers};
use payments_machine::{EngineChoice, Recorder, Stack, Template, Time};
use scheduled_payments::{Bank, BatchEntry, Data, EndpointOrder, PaymentOrder, ScheduledFor};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::quantities::Quantities;
use crate::recorded::{Record, Recorded, add_metrics, log_to};
use crate::stored::add_stored;

/// The beginning: 15:00 of a Thursday in winter, in London. Payments are due until the evening, and reported and counted until morning.
const BEGINS: &str = "2026-11-19T15:00:00Z";

/// The minutes from the beginning to the morning, when all payments are settled, reported and counted.
const NIGHT: i32 = 13 * 60 + 30;

/// The hours from the beginning until all reported heads have expired, and the minutes in which they do.
const EXPIRED: TimeDelta = TimeDelta::hours(71);
const EXPIRES: i32 = 3;

/// The time from the beginning to the first run that seals the payments.
const SEALED: TimeDelta = TimeDelta::minutes((51 * 24 + 13) * 60 + 15);

/// The payments of a batch of the feed, and the single requests at once.
const BATCH: usize = 100;
const AT_ONCE: usize = 16;

/// The times between two looks: of a part that ends within a minute, and of others.
const GRAINS: [TimeDelta; 2] = [TimeDelta::seconds(1), TimeDelta::seconds(10)];

/// The time from a payment's creation until it is due; between two sweeps; and from a sweep until all are settled.
const DUE_AFTER: TimeDelta = TimeDelta::minutes(2);
const SWEEPS: TimeDelta = TimeDelta::minutes(5);
const SETTLED: TimeDelta = TimeDelta::seconds(110);

/// A payment is recounted in 14 nights, and in a part twice: before its head expires, and after.
const RECOUNTS: u64 = 14 / 2;

/// The shards of the machine. A deployed stack has more, and each run reads them all.
pub(crate) const SHARDS: u16 = 2;

/// A kind of payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Created in batches of a hundred.
    Feed,
    /// Created one by one.
    Single,
    /// Created one by one, and amended.
    Amended,
    /// Created one by one, and cancelled.
    Cancelled,
}

/// Payments that come one after another.
#[derive(Debug, Clone)]
pub struct Part {
    /// Their number, by kind.
    pub kinds: Vec<(Kind, u64)>,
    /// The time in which they are created, evenly.
    pub within: TimeDelta,
}

impl Part {
    /// The number of its payments.
    #[must_use]
    pub fn payments(&self) -> u64 {
        self.kinds.iter().map(|(_, payments)| payments).sum()
    }
}

/// The data of each payment, and the endpoints of webhooks.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// The kind of data.
    pub kind: DataKind,
    /// Its bytes.
    pub bytes: usize,
    /// The endpoints that are told of each change.
    pub endpoints: u64,
}

/// A machine with everything recorded.
pub(crate) struct Machine {
    stack: Stack,
    pub(crate) time: Time,
    pub(crate) record: Record,
    recorders: Vec<(&'static str, Recorder)>,
    triggers: Triggers,
    pub(crate) bank: Bank,
    receiver: Option<JoinHandle<()>>,
    /// The reads of indexes on AWS for each one here, and the recounts.
    index_reads: u64,
    recounts: u64,
}

impl Machine {
    pub(crate) async fn start(
        at: DateTime<Utc>,
        content: Content,
        (index_reads, recounts): (u64, u64),
        seal_after_days: u32,
    ) -> Result<Self> {
        let (time, record) = (Time::at(at), Record::default());
        let template = Template::ours()?;
        let shards: u32 = template.default_of("ReadShards")?.parse()?;
        let claims: u32 = template.default_of("ClaimsPerSecondPerShard")?.parse()?;
        let stack = Stack::on(EngineChoice::Unserved).clock(&time.clock()).environment(|environment| {
            environment.shards = SHARDS;
            environment.claims_per_second = claims * shards / u32::from(SHARDS);
            environment.calendars = CALENDARS.to_owned();
            environment.seal_after_days = seal_after_days;
        });
        let stack = stack.start().await?;
        let (functions, recorders) = Recorded::on(&stack, &record)?;
        let service = TransactionServiceSettings { repeats_per_thousand: 0, ..TransactionServiceSettings::seeded(1) };
        // Triggers ask for today's counts, which no client does.
        let triggers = Triggers::new(&stack, Arc::new(functions.without_requests(&stack)?), service).await?;
        let bank = Client::for_functions(Arc::new(functions), time.clock())?.bank().clone();
        let mut machine =
            Self { stack, time, record, recorders, triggers, bank, receiver: None, index_reads, recounts };
        machine.add_endpoints(content.endpoints).await?;
        machine.forget();
        Ok(machine)
    }

    /// Creates endpoints of webhooks, which accept whatever they are told.
    async fn add_endpoints(&mut self, endpoints: u64) -> Result<()> {
        if endpoints == 0 {
            return Ok(());
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let record = self.record.clone();
        let take = move |body: String| async move {
            let mut record = record.lock();
            record.add("bytes to the Internet", u64::try_from(body.len()).unwrap_or(0));
            record.add("webhooks", 1);
            http::StatusCode::NO_CONTENT
        };
        let router = Router::new().route("/{endpoint}", post(take));
        self.receiver = Some(tokio::spawn(async move { drop(axum::serve(listener, router).await) }));
        for number in 0..endpoints {
            let order = EndpointOrder { url: format!("http://{address}/{number}"), ..EndpointOrder::default() };
            self.bank.put_webhook_endpoint(&format!("endpoint-{number}"), &order).await?;
        }
        Ok(())
    }

    /// Forgets what was recorded before the part began.
    pub(crate) fn forget(&self) {
        *self.record.lock() = Quantities::default();
        for (_, recorder) in &self.recorders {
            drop((recorder.take_operations(), recorder.take_capacity_use()));
        }
        drop(self.stack.metrics.take());
    }

    /// Does everything that is due at an instant.
    pub(crate) async fn tick(&mut self, at: DateTime<Utc>) -> Result<()> {
        self.time.move_to(at);
        let Tick { metrics, troubles, .. } = self.triggers.tick(at).await;
        ensure!(troubles.is_empty(), "something failed: {}", troubles.join("; "));
        add_metrics(&mut self.record.lock(), &metrics, at.hour())?;
        self.add_calls()
    }

    /// Adds what the calls of the functions used.
    fn add_calls(&self) -> Result<()> {
        let mut record = self.record.lock();
        for (function, recorder) in &self.recorders {
            let runs = match *function {
                "recount" => self.recounts,
                // The clear reads a payment once more.
                "seal" => 2,
                _ => 1,
            };
            record.add(format!("{function}, calls"), runs * u64::try_from(recorder.take_operations().len())?);
            for ((operation, place), half_units) in recorder.take_capacity_use() {
                let table = place.split(['/', '#']).next().unwrap_or_default();
                let is_read = operation == "Query" || operation.contains("Get") || operation == "Scan";
                let kind = match (is_read, *function) {
                    (true, "seal") => "reads of the seal",
                    (true, _) => "reads",
                    (false, _) => "writes",
                };
                let times = runs * if place.contains('/') && is_read { self.index_reads } else { 1 };
                *record.amounts.entry(format!("{table}, {kind}")).or_default() += 500 * half_units * times;
                // An empty read uses half a unit.
                record.add(format!("{function}, calls"), half_units * (times - runs));
            }
        }
        Ok(())
    }

    /// Returns the bytes that tables and files keep.
    pub(crate) async fn kept(&self) -> Result<Quantities> {
        let mut quantities = Quantities::default();
        add_stored(&self.stack.client(), &self.stack.environment.tables, &mut quantities).await?;
        quantities.add_scaled(&self.files().await?, 1, 1);
        Ok(quantities)
    }

    /// Returns the files that were put, and their bytes.
    async fn files(&self) -> Result<Quantities> {
        let (mut quantities, mut all) = (Quantities::default(), self.stack.reports.list(None));
        while let Some(file) = all.try_next().await? {
            let is_part = file.location.as_ref().starts_with(FileKind::Sealed.folder());
            if is_part {
                // Without the footer, whose length is in the last eight bytes: a day has few parts, and this one's are small.
                let end = self.stack.reports.get_range(&file.location, file.size - 8..file.size).await?;
                let footer = u32::from_le_bytes(end.get(..4).context("a part has an end")?.try_into()?);
                quantities.add("bytes of parts", file.size.saturating_sub(footer.into()));
                continue;
            }
            quantities.add("files put", 1);
            quantities.add("bytes of files", file.size);
        }
        Ok(quantities)
    }

    pub(crate) async fn end(self) -> Result<Quantities> {
        let quantities = self.record.lock().clone();
        if let Some(receiver) = &self.receiver {
            receiver.abort();
        }
        drop((self.triggers, self.bank, self.recorders));
        self.stack.stop().await?;
        Ok(quantities)
    }
}

impl Machine {
    /// Creates the payments of a part, and delivers what they cause as it comes, until all are settled.
    async fn create(&mut self, part: &Part, content: Content, begin: DateTime<Utc>) -> Result<()> {
        let step = GRAINS[usize::from(part.within > TimeDelta::minutes(1))];
        let within = u64::try_from(part.within.num_milliseconds())?.max(1);
        let created = |payments: u64, at: DateTime<Utc>| {
            let passed = u64::try_from((at - begin).num_milliseconds()).unwrap_or(0);
            (payments * passed / within).min(payments)
        };
        // Until the last sweep that claims some of them, and the results.
        let last = (begin + part.within + step + DUE_AFTER).duration_trunc(SWEEPS)? + SWEEPS;
        let mut at = begin;
        while at < last + SETTLED {
            let before = at;
            at += step;
            self.time.move_to(at);
            for (kind, payments) in &part.kinds {
                let numbers = created(*payments, before)..created(*payments, at);
                create(&self.bank, *kind, content, (numbers, at)).await?;
            }
            self.tick(at).await?;
        }
        Ok(())
    }
}

/// Creates payments, as their clients do.
pub(crate) async fn create(
    bank: &Bank,
    kind: Kind,
    content: Content,
    (numbers, now): (Range<u64>, DateTime<Utc>),
) -> Result<()> {
    let orders: Vec<BatchEntry> = numbers.map(|number| entry(number, kind, content, now)).collect();
    if kind == Kind::Feed {
        for batch in orders.chunks(BATCH) {
            for result in bank.create_batch(batch).await? {
                result.outcome?;
            }
        }
        return Ok(());
    }
    let singles = futures::stream::iter(orders).map(async |entry: BatchEntry| {
        let BatchEntry { account_id, idempotency_key, mut order } = entry;
        let id = bank.create(&account_id, &idempotency_key, &order).await?.payment.payment_id;
        match kind {
            Kind::Amended => {
                order.amount_minor += 1;
                bank.amend(&account_id, &id, &format!("{idempotency_key}-a"), &order, 1).await?;
            }
            Kind::Cancelled => drop(bank.cancel(&account_id, &id).await?),
            Kind::Feed | Kind::Single => {}
        }
        Ok(())
    });
    singles.buffer_unordered(AT_ONCE).try_collect().await
}

/// Returns a payment that is due today.
fn entry(number: u64, kind: Kind, content: Content, now: DateTime<Utc>) -> BatchEntry {
    // Payments of two kinds have other data, or a part would compress them better.
    let mut random = Rng::with_seed(number | (kind as u64) << 32);
    let due: ScheduledFor = match kind {
        Kind::Feed => now.date_naive().into(),
        _ => (now + DUE_AFTER).fixed_offset().into(),
    };
    let mut order = PaymentOrder::new(&format!("payee-{}", random.u16(1..=500)), random.i64(1..=500_000), "GBP", due);
    order.data = Data::from_value(&content.kind.value(&mut random, content.bytes)).ok();
    let account_id = format!("account-{:05}", random.u32(1..=99_999));
    BatchEntry { account_id, idempotency_key: format!("{kind:?}-{}-{number}", now.date_naive()), order }
}

/// Plays a part of a day and the night after it, and returns what it takes.
///
/// # Errors
/// If a payment is not accepted, or a function fails.
pub(crate) async fn part(part: Option<&Part>, content: Content) -> Result<Quantities> {
    let begin: DateTime<Utc> = BEGINS.parse()?;
    let mut machine = Machine::start(begin, content, (1, RECOUNTS), seal::SEAL_AFTER_DAYS).await?;
    let _log = log_to(&machine.record);
    machine.tick(begin).await?;
    machine.forget();
    if let Some(part) = part {
        machine.create(part, content, begin).await?;
    }
    // The part may have lasted for some minutes.
    for minute in 1..NIGHT {
        let at = begin + TimeDelta::minutes(minute.into());
        if at > machine.time.now() {
            machine.tick(at).await?;
        }
    }
    let kept = machine.kept().await?;
    machine.record.lock().add_scaled(&kept, 1, 1);
    for minute in 0..EXPIRES {
        machine.tick(begin + EXPIRED + TimeDelta::minutes(minute.into())).await?;
    }
    let kept = machine.files().await?;
    machine.tick(begin + SEALED).await?;
    let parts = machine.files().await?.without(&kept);
    machine.record.lock().add_scaled(&parts, 1, 1);
    machine.end().await
}
