//! The log: each version of a payment is one event, in the order of the versions, and its readers miss nothing.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use chrono::TimeDelta;
use lambda_runtime::LambdaEvent;
use payments_bank::Dependencies;
use payments_lab::laws::journal::journaled;
use payments_restore::{Restored, finish};
use payments_store::{LOG_KEPT_FOR, LogEntry, LogHead, LogPage, LogPosition, LogRead, Store};
use payments_tests::tables::{NO_DEADLINE, context, key, number, text};
use payments_tests::{Ask, Bus, Counting, Receivers, World, assert_fails, assert_has, with_role};
use publish::{Publish, Request, Webhooks};
use serde_json::{Value, json};
use tokio::sync::Mutex;

mod between;
mod bus;
mod cost;
mod gaps;
mod journal;
mod reading;
mod rebuild;
mod restore;
mod webhooks;

/// So many segments are read at once.
const SEGMENTS: u8 = 3;

/// The partition of the log's segments on the day of these tests.
const PARTITION: &str = "LOG#3622140";

/// A world whose changes are counted, and so logged, when a test says so; and what reads the log.
struct Log {
    world: World,
    counting: Mutex<Counting>,
    created: AtomicUsize,
    receivers: Receivers,
    bus: Option<Arc<Bus>>,
}

impl Deref for Log {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// The account of a payment.
fn account(n: usize) -> String {
    format!("payer-{}", n * 7919 % 997)
}

fn payment(n: usize) -> Value {
    json!({
        "accountId": account(n), "idempotencyKey": format!("{n}"), "payeeAccountId": format!("shop-{}", n * 31 % 89),
        "amountMinor": 1 + n * 7907 % 100_003, "currency": "GBP", "scheduledFor": format!("2026-12-{:02}", 1 + n % 3),
    })
}

/// Runs `publish`. Returns its outcome.
async fn invoke(function: &Publish, request: Request, deadline: u64) -> Result<Value> {
    let outcome = function.handle(LambdaEvent::new(request, context(deadline))).await;
    Ok(serde_json::to_value(outcome.map_err(anyhow::Error::from_boxed)?)?)
}

impl Log {
    /// Opens a world in which nothing was ever logged.
    async fn open() -> Result<Self> {
        Self::new(World::open().await?).await
    }

    async fn new(world: World) -> Result<Self> {
        let counting = Mutex::new(Counting::start(&world).await?);
        Ok(Self { world, counting, created: AtomicUsize::default(), receivers: Receivers::default(), bus: None })
    }

    /// Opens a world whose log has segments of so many new payments.
    async fn with(segments: &[usize]) -> Result<Self> {
        let log = Self::open().await?;
        log.segments(segments).await?;
        Ok(log)
    }

    async fn segments(&self, segments: &[usize]) -> Result<()> {
        for payments in segments {
            self.segment(*payments).await?;
        }
        Ok(())
    }

    /// Creates so many more payments.
    async fn create(&self, payments: usize) -> Result<()> {
        let from = self.created.fetch_add(payments, Ordering::Relaxed);
        self.send_creates(from..from + payments).await
    }

    /// Sends the requests of these payments, whether they were sent before or not.
    async fn send_creates(&self, numbers: Range<usize>) -> Result<()> {
        self.create_all(numbers.map(payment)).await.map(drop)
    }

    /// Counts and logs what happened. Returns the number of changes.
    async fn count(&self) -> Result<usize> {
        self.counting.lock().await.count(self.functions()).await
    }

    /// Creates payments, and counts them: one segment.
    async fn segment(&self, payments: usize) -> Result<()> {
        self.create(payments).await?;
        self.count().await.map(drop)
    }

    /// Advances the time, in which nothing happens, beyond the time for which the log keeps its segments.
    fn expire(&self) -> Result<()> {
        assert!(LOG_KEPT_FOR > TimeDelta::days(34));
        self.set_clock("2026-12-27T09:00:00Z")
    }

    /// Creates and counts a payment after [`expire`](Self::expire).
    async fn late_segment(&self) -> Result<()> {
        let late =
            json!({ "payeeAccountId": "shop", "amountMinor": 1, "currency": "GBP", "scheduledFor": "2026-12-31" });
        self.world.create("late", "late", &late).await?;
        self.count().await.map(drop)
    }

    /// Advances the time.
    fn pass(&self, time: TimeDelta) -> Result<()> {
        self.set_clock(&self.now().saturating_add(time).to_string())
    }

    /// A deadline after so much time.
    fn deadline(&self, time: TimeDelta) -> Result<u64> {
        Ok(u64::try_from(self.now().saturating_add(time).as_chrono().timestamp_millis())?)
    }

    async fn head(&self) -> Result<LogHead> {
        self.store().await.log_head().await?.context("nothing was ever logged")
    }

    async fn start(&self) -> Result<LogPosition> {
        Ok(self.head().await?.start(self.now()))
    }

    async fn end(&self) -> Result<LogPosition> {
        Ok(self.head().await?.end())
    }

    async fn read(&self, after: LogPosition, limit: usize) -> Result<LogRead> {
        Ok(self.store().await.log_page(&self.head().await?, after, limit, SEGMENTS, self.now()).await?)
    }

    async fn page(&self, after: LogPosition, limit: usize) -> Result<LogPage> {
        let LogRead::Page(page) = self.read(after, limit).await? else { bail!("no page after {after}") };
        ensure!(page.entries.len() <= limit && page.after >= after);
        Ok(page)
    }

    /// The whole log, page by page.
    async fn entries(&self, limit: usize) -> Result<Vec<LogEntry>> {
        let (mut after, mut entries) = (self.start().await?, Vec::new());
        loop {
            let page = self.page(after, limit).await?;
            entries.extend(page.entries);
            if page.is_end {
                return Ok(entries);
            }
            after = page.after;
        }
    }

    /// The events of the whole log.
    async fn events(&self) -> Result<Vec<Value>> {
        self.entries(1_000).await?.iter().map(|entry| Ok(serde_json::from_str(&entry.json)?)).collect()
    }

    /// The events of the last epoch.
    async fn news(&self) -> Result<Vec<Value>> {
        let (epoch, mut events) = (self.head().await?.epoch.get(), self.events().await?);
        events.retain(|event| event["epoch"] == epoch);
        Ok(events)
    }

    /// Updates the log's head.
    async fn set_head(&self, expression: &str, value: aws_sdk_dynamodb::types::AttributeValue) -> Result<()> {
        let table = &self.environment.tables.log;
        self.update_in(table, key("LOG#HEAD", "HEAD"), expression, &[(":value", value)]).await
    }

    /// Deletes a segment.
    async fn tear(&self, number: u64) -> Result<()> {
        self.delete(&self.environment.tables.log, &key(PARTITION, format!("{number:012}"))).await
    }

    /// The position of a consumer.
    async fn place(&self, consumer: &str) -> Result<Option<LogPosition>> {
        Ok(self.store().await.log_consumer(consumer).await?)
    }

    /// Begins the next epoch, in a store.
    async fn finish_in(&self, store: &Store, tables_to: Option<&str>, log_to: Option<&str>) -> Result<String> {
        let stream = self.stream().await?.arn().to_owned();
        let clear_from = tables_to.map(|_| self.now());
        let [tables_to, log_to] = [tables_to, log_to].map(|instant| instant.map(str::parse).transpose());
        let restored = Restored { stream, tables_to: tables_to?, log_to: log_to?, clear_from };
        finish(store, &restored, || self.now(), |_, _| {}).await
    }

    /// Begins the next epoch, after the tables were restored to an instant.
    async fn finish_tables(&self, restored_to: &str) -> Result<String> {
        self.finish_in(&self.store().await, Some(restored_to), None).await
    }

    /// Begins the next epoch, after the log's own table was restored to an instant.
    async fn finish_log(&self, restored_to: &str) -> Result<String> {
        self.finish_in(&self.store().await, None, Some(restored_to)).await
    }

    /// `publish` over a client, with its role.
    fn function(&self, client: &Client) -> Result<Publish> {
        self.function_with(client, self.receivers.webhooks()?)
    }

    fn function_with(&self, client: &Client, webhooks: Webhooks) -> Result<Publish> {
        let client = with_role(client, "publish", &self.environment.tables)?;
        let Dependencies { store, reports, clock, metrics, .. } = self.dependencies(client);
        Ok(Publish::new(store, reports, webhooks, clock, metrics).with_bus(self.bus.clone().map(|bus| bus as _)))
    }

    /// Runs `publish` by its schedule. Returns its outcome.
    async fn publish(&self) -> Result<Value> {
        self.publish_over(self.client().await).await
    }

    async fn publish_over(&self, client: Client) -> Result<Value> {
        invoke(&self.function(&client)?, Request::Tick, NO_DEADLINE).await
    }

    /// Runs `publish` as a new segment does.
    async fn wake(&self) -> Result<Value> {
        invoke(&self.function(&self.client().await)?, Request::Woken, NO_DEADLINE).await
    }

    /// The events of the journal.
    async fn journal(&self) -> Result<Vec<Value>> {
        journaled(&self.outside.reports).await
    }

    /// The write units of the log since the last time.
    fn take_log_units(&self) -> u64 {
        let units = self.take_write_units().into_iter();
        units.filter(|((_, place), _)| place == "payments-log").map(|(_, units)| units).sum()
    }

    /// Asserts that a reader of this cursor learns that its events are gone, and the oldest cursor of the log.
    async fn is_gone(&self, cursor: &str, oldest: &str) -> Result<()> {
        let reply = self.send(Ask::get(&format!("/events?cursor={cursor}"))).await?;
        assert_eq!(reply.field("oldestCursor"), oldest, "{cursor}: {reply}");
        reply.refused(410, "cursor-gone").map(drop)
    }
}

/// The types of events.
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| text_of(&event["type"])).collect()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
