//! The functions over an engine, and the payments that both sides of a pair work on.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use aws_sdk_dynamodb::Client;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _};
use payments_bank::Functions;
use payments_boot::Clock;
use payments_load::Settings;
use payments_load::orders::{Order, Orders};
use payments_machine::client::Request;
use payments_machine::interceptor::client_over;
use payments_machine::invocation::context;
use payments_machine::payload::DataKind;
use payments_machine::{EngineChoice, Function, Handlers as _, Recorder, Stack, event};
use payments_model::{Actor, BusinessZone, DayCounts, Details, Head, PaymentId, ShardCount, Status, UtcSecond};
use payments_store::{DateCounters, Store};
use serde_json::json;

use crate::calls::{AT_ONCE, Collector, Work};

/// The time on the clock, which is the same in every run.
const NOW: &str = "2026-11-21T12:00:00Z";

/// The due date of payments to sweep and settle.
const PAST: &str = "2026-11-20";

/// The due date of the other payments.
pub(crate) const FUTURE: &str = "2026-12-01";

/// The client, as the trail names it.
const CLIENT: &str = "compare";

/// The number of accounts that pay.
pub(crate) const ACCOUNTS: u32 = 20;

/// The functions over an engine, with the engine's client and payments for both sides.
#[derive(Debug)]
pub struct Fixture {
    pub(crate) client: Client,
    pub(crate) functions: Functions,
    pub(crate) collector: Collector,
    pub(crate) zone: BusinessZone,
    pub(crate) now: UtcSecond,
    pub(crate) shards: ShardCount,
    store: Store,
    past: Orders,
    future: Orders,
    numbers: AtomicU64,
}

impl Fixture {
    /// Creates a fixture over the engine at this URL, for payments with this kind of data. A recorder sees all calls that are
    /// measured.
    pub async fn over(url: &str, data_kind: DataKind, recorder: Option<&Recorder>) -> Result<Self> {
        let instant: DateTime<Utc> = NOW.parse()?;
        let stack = Stack::on(EngineChoice::Endpoint(url.to_owned()))
            .environment(|environment| environment.claims_per_second = 0)
            .clock(&Clock::simulated(move || instant, |_| {}))
            .environment(|environment| environment.machine_clients = CLIENT.to_owned())
            .start()
            .await?;
        let (plain, tables) = (stack.environment.client(), stack.environment.tables.clone());
        let client = recorder.map_or_else(|| plain.clone(), |recorder| client_over(&plain, recorder.clone()));
        let zone: BusinessZone = stack.environment.time_zone.parse()?;
        let settings = Settings { accounts: ACCOUNTS, busiest: 0, data_kind, ..Settings::of(1, zone) };
        Ok(Self {
            functions: Functions::on(&stack, &client)?,
            collector: Collector::over(&client, &tables),
            store: Store::new(plain, tables),
            client,

            zone,
            now: NOW.parse()?,
            shards: stack.environment.shards.to_string().parse()?,
            past: Orders::of(&settings, "past", PAST),
            future: Orders::of(&settings, "future", FUTURE),
            numbers: AtomicU64::new(0),
        })
    }

    fn new_numbers(&self, size: u64) -> std::ops::Range<u64> {
        let first = self.numbers.fetch_add(size, Ordering::Relaxed);
        first..first + size
    }

    /// Returns new payments of a future day, as clients send them.
    pub(crate) fn orders(&self, size: u64) -> Vec<Order<'_>> {
        self.new_numbers(size).map(|number| self.future.order(number)).collect()
    }

    /// Returns the first payments of the future day.
    pub(crate) fn first_orders(&self, size: u64) -> impl Iterator<Item = Order<'_>> {
        (0..size).map(|number| self.future.order(number))
    }

    /// Returns new due payments, as they were created.
    pub(crate) fn due(&self, size: u64) -> Result<Vec<Head>> {
        let orders = self.new_numbers(size).map(|number| self.past.order(number));
        orders.map(|order| Ok(Head::scheduled(&self.details(&order)?))).collect()
    }

    /// Returns the details that `ingest` makes of an order.
    pub(crate) fn details(&self, order: &Order<'_>) -> Result<Details> {
        let instruction = order.instruction()?;
        let payment_id = PaymentId::derive(&instruction.account, &order.key.parse()?);
        Ok(Details::accept(payment_id, instruction, self.zone, self.shards, self.now, Actor::client(CLIENT)))
    }

    /// Writes heads into the hot table.
    pub(crate) async fn put(&self, heads: &[Head]) -> Result<()> {
        let puts = futures::stream::iter(heads).map(|head| async {
            self.store.put_head(head).await?;
            Ok(())
        });
        puts.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Creates so many due payments.
    pub async fn fill(&self, size: u64) -> Result<()> {
        self.put(&self.due(size)?).await
    }

    /// Writes today's counters and those of the day before, as if so many payments were scheduled on each.
    pub async fn count(&self, size: u64) -> Result<()> {
        let mut counts = DayCounts::default();
        counts.shift(Status::Scheduled, size.try_into()?);
        counts.shift_sum("EUR".parse()?, Status::Scheduled, i128::from(size) * 125_000);
        for date in [PAST.parse()?, self.zone.date_of(self.now)] {
            let is_written = self.store.correct_counters(date, &DateCounters::default(), &counts).await?;
            ensure!(is_written, "the counters of {date} are there already");
        }
        Ok(())
    }

    /// Asks the console for a view.
    pub async fn show(&self, view: &str) -> Result<()> {
        self.answer(vec![Ok(Request::get(&format!("/console/views/{view}")))], 1, 200)?.await
    }

    /// Runs the sweeper once, and returns how many payments it claimed.
    pub async fn sweep(&self) -> Result<u64> {
        let context = context(self.now.as_chrono() + TimeDelta::minutes(15));
        let sweep = self.functions.scheduled(Function::DailyDueSweeper, json!({ "action": "sweep" }), context);
        // Boxed: the chain of calls is deeper than the compiler follows in one type.
        let outcome = Box::pin(sweep).await.map_err(anyhow::Error::msg)?;
        let left = ["failed", "remaining", "shardsGivenUp", "alreadyClaimed"];
        ensure!(left.iter().all(|name| outcome[name] == 0), "the sweep did not handle all: {outcome}");
        Ok(outcome["claimed"].as_u64().unwrap_or(0))
    }

    /// Returns the work of answering these requests, each with `status`.
    pub(crate) fn answer(&self, requests: Vec<Result<Request>>, at_once: usize, status: i64) -> Result<Work<'_>> {
        let authorizer = event::all_scopes(CLIENT);
        let event = |request: Result<Request>| request?.event("compare", self.now.as_chrono(), &authorizer);
        let events: Vec<_> = requests.into_iter().map(event).collect::<Result<_>>()?;
        let answers = futures::stream::iter(events).map(move |(function, event)| async move {
            let response = self.functions.invoke(function, event).await;
            ensure!(response.status_code == status, "{} returned {response:?}", function.name());
            Ok(())
        });
        Ok(Box::pin(answers.buffer_unordered(at_once).try_collect()))
    }
}
