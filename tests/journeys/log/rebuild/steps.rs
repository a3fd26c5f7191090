//! What is done with the bank: its tables are lost and restored, and its day goes on.

use std::cell::RefCell;
use std::sync::Arc;

use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType};
use object_store::prefix::PrefixStore;
use payments_delivery::StreamMapping;
use payments_machine::Handlers as _;
use payments_machine::triggers::stream_settings;
use payments_queue::Queue;
use payments_queue::in_process::QueueSettings;
use payments_restore::{Line, Outcome, Rebuild, Restored, Source, Told, begin, finish};
use payments_store::schema::{HISTORY, PAYMENTS, Table, create_table};
use payments_store::{Item, Store};
use payments_tests::Counting;
use payments_tests::tables::{NO_DEADLINE, context};

use super::super::*;
use super::bank::{Bank, LATER, T};
use crate::report::settlements;

impl Bank {
    /// Ends the log's epoch, and replaces the hot table by one with these items and without a stream.
    pub(super) async fn lose_hot(&self, items: &[Item]) -> Result<()> {
        begin(&self.world.store().await).await?;
        self.replace(&self.world.environment.tables.payments, &Table { stream: None, ..PAYMENTS }, items).await
    }

    /// Replaces the long-term table.
    pub(super) async fn lose_history(&self, items: &[Item]) -> Result<()> {
        self.replace(&self.world.environment.tables.history, &HISTORY, items).await
    }

    pub(super) async fn replace(&self, name: &str, table: &Table, items: &[Item]) -> Result<()> {
        // Over HTTP: the way past the socket has no operations on tables.
        let client = self.world.environment.client();
        client.delete_table().table_name(name).send().await?;
        create_table(&client, name, table).await?;
        self.world.put_items(name, items.iter().cloned()).await
    }

    pub(super) fn rebuild(&self, store: Store) -> Result<Rebuild> {
        let reports = PrefixStore::new(self.world.outside.reports.clone(), "reports");
        Ok(Rebuild {
            store,
            source: Source::Log,
            reports: Arc::new(reports),
            to: T.parse()?,
            shards: "1".parse()?,
            excepts: Vec::new(),
            accepts_gaps: false,
            finds_details: false,
            per_second: 1_000,
            now: LATER.parse()?,
        })
    }

    pub(super) async fn plan(&self) -> Result<Outcome> {
        let told = Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} };
        self.rebuild(self.world.store().await)?.plan(&told).await
    }

    pub(super) async fn apply(&self) -> Result<Outcome> {
        Ok(self.told(|_| {}).await?.0)
    }

    /// Applies with changed options. Returns the lines, too.
    pub(super) async fn told(&self, change: impl FnOnce(&mut Rebuild)) -> Result<(Outcome, Vec<Value>)> {
        let mut rebuild = self.rebuild(self.world.store().await)?;
        change(&mut rebuild);
        let lines = RefCell::new(Vec::new());
        let line = |line: &Line| lines.borrow_mut().push(serde_json::to_value(line).unwrap_or_default());
        let done = rebuild.apply(&Told { line, progress: |_: &str, _, _| {} }).await?;
        Ok((done, lines.into_inner()))
    }

    /// Switches the stream on, and begins the new epoch of the log.
    pub(super) async fn open(&self) -> Result<()> {
        self.open_restored_to(T).await
    }

    pub(super) async fn open_restored_to(&self, instant: &str) -> Result<()> {
        let stream = StreamSpecification::builder().stream_enabled(true);
        let stream = stream.stream_view_type(StreamViewType::NewAndOldImages).build()?;
        let table = &self.world.environment.tables.payments;
        self.world.environment.client().update_table().table_name(table).stream_specification(stream).send().await?;
        let stream = self.world.stream().await?.arn().to_owned();
        let restored = Restored { stream, tables_to: Some(instant.parse()?), log_to: None };
        // The engine shows what happened before in the new stream, too.
        let mut counting = self.counting.lock().await;
        *counting = Counting::of(&self.world).await?;
        counting.skip().await?;
        finish(&self.world.store().await, &restored, || self.world.now(), |_, _| {}).await?;
        Ok(())
    }

    /// A delivery of all that the stream has, to `stream-aggregator`.
    pub(super) async fn delivery(&self) -> Result<Value> {
        let mut mapping = StreamMapping::new(stream_settings("stream-aggregator", None)?, self.world.stream().await?)?;
        let (mut now, seen) = (self.world.now().as_chrono(), RefCell::new(None));
        for _ in 0..2 {
            let step = mapping.step(now, async |event| {
                seen.borrow_mut().get_or_insert(event);
                Ok(json!({ "state": {} }))
            });
            step.await?;
            now += TimeDelta::seconds(30);
        }
        seen.into_inner().context("the stream has nothing")
    }

    /// Since when changes may be missing, by the marks of the log's last epoch.
    pub(super) async fn gaps(&self) -> Result<Vec<Value>> {
        let gaps = self.last_epoch("log.gap").await?;
        Ok(gaps.into_iter().map(|mut event| event["since"].take()).collect())
    }

    /// The events of a type in the log's last epoch.
    pub(super) async fn last_epoch(&self, kind: &str) -> Result<Vec<Value>> {
        let epoch = head(&self.world).await?.epoch.get();
        let mut events = events(&all(&self.world, 1_000).await?)?;
        events.retain(|event| event["epoch"] == epoch && event["type"] == kind);
        Ok(events)
    }

    /// What must be true after every restore: the recount is exact at once, and nothing is sent that was cancelled or settled.
    pub(super) async fn go_on(&self, also_settled: &[&str]) -> Result<()> {
        self.recount().await?;
        self.open().await?;
        let sent = self.sent().await?;
        for name in ["a", "b", "d", "e", "f", "h", "i", "j"].iter().chain(also_settled) {
            assert!(!sent.contains(&self.id(name)), "{name} is sent again");
        }
        if !also_settled.contains(&"c") {
            assert!(sent.contains(&self.id("c")), "c is pending, and is sent again");
            self.settle(&[("c", Ok("TX-c"))]).await?;
        }
        self.count().await?;
        self.recount().await?;
        let report = settlements::run(&self.world).await?;
        let unreported = if also_settled.is_empty() { 3 } else { 2 + also_settled.len() };
        assert_eq!(report["reported"], unreported, "h, j and those that were settled now are reported: {report}");
        Ok(())
    }

    /// Every date is exact.
    pub(super) async fn recount(&self) -> Result<()> {
        let request = json!({ "action": "recount", "from": "2026-11-18", "to": "2026-12-31" });
        let done = self.world.functions().scheduled("recount", request, context(NO_DEADLINE)).await;
        let done = done.map_err(anyhow::Error::msg)?;
        ensure!(done["exact"] == 44, "{done}");
        Ok(())
    }

    /// Sweeps, and redrives until no attempt is left. Returns the payments whose requests are sent.
    pub(super) async fn sent(&self) -> Result<Vec<String>> {
        self.sent_or_refused(&Queue::new(QueueSettings::named("failures"))).await
    }

    /// The same with a queue for the records that `dispatch` refuses.
    pub(super) async fn sent_or_refused(&self, refused: &Queue) -> Result<Vec<String>> {
        let mut mapping = StreamMapping::new(stream_settings("dispatch", Some(refused))?, self.world.stream().await?)?;
        let functions = self.world.functions();
        for hour in ["10", "12", "16"] {
            self.world.set_clock(&format!("2026-11-20T{hour}:56:00Z"))?;
            self.world.sweep().await?;
            let request = json!({ "action": "redrive" });
            let done = functions.scheduled("daily-due-sweeper", request, context(NO_DEADLINE)).await;
            done.map_err(anyhow::Error::msg)?;
            loop {
                let mut now = self.world.now().as_chrono();
                let mut any = false;
                for _ in 0..2 {
                    let deliveries = mapping.step(now, |event| functions.deliver("dispatch", event)).await?;
                    any |= !deliveries.is_empty();
                    now += TimeDelta::seconds(30);
                }
                if !any {
                    break;
                }
            }
        }
        let now = self.world.now().as_chrono();
        let mut sent = Vec::new();
        loop {
            let messages = self.world.outside.requests.receive(10, now);
            if messages.is_empty() {
                return Ok(sent);
            }
            for message in messages {
                self.world.outside.requests.delete(&message.receipt_handle);
                let request: Value = serde_json::from_str(&message.body)?;
                sent.push(request["paymentId"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
}
