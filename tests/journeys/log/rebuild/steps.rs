//! Steps of a bank's day: its tables are lost and restored, and its work continues.

use std::cell::RefCell;

use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType};
use object_store::prefix::PrefixStore;
use payments_delivery::StreamMapping;
use payments_machine::Handlers as _;
use payments_machine::triggers::stream_settings;
use payments_queue::Queue;
use payments_queue::in_process::QueueSettings;
use payments_restore::{Change, Finding, Line, Outcome, Rebuild, Source, Told, begin};
use payments_store::Item;
use payments_store::schema::{HISTORY, LOG, PAYMENTS, Table, create_table};

use super::super::*;
use super::bank::{Bank, LATER, T, differences};
use crate::report::settlements;

/// The outcome of `apply`, and the lines that it told.
pub(super) struct Applied {
    outcome: Outcome,
    pub(super) lines: Vec<Value>,
}

impl Deref for Applied {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

impl Applied {
    /// Fails unless the findings are exactly these.
    pub(super) fn found<const N: usize>(self, findings: [(Finding, u64); N]) -> Result<Self> {
        ensure!(self.findings == findings.into(), "{:?}: {:#?}", self.findings, self.lines);
        Ok(self)
    }

    /// The line with this change or finding.
    pub(super) fn line(&self, kind: &str) -> Result<&Value> {
        let is = |line: &&Value| line["finding"] == kind || line["change"] == kind;
        self.lines.iter().find(is).with_context(|| format!("no {kind}: {:#?}", self.lines))
    }

    pub(super) fn changed(&self, change: Change) -> u64 {
        self.changes.get(&change).copied().unwrap_or_default()
    }
}

impl Bank {
    /// Ends the log's epoch, and replaces the hot table by one with these items and without a stream.
    pub(super) async fn lose_hot(&self, items: &[Item]) -> Result<()> {
        begin(&self.store().await).await?;
        self.replace(&self.environment.tables.payments, &Table { stream: None, ..PAYMENTS }, items).await
    }

    /// The hot table is that of T.
    pub(super) async fn lose(&self) -> Result<()> {
        self.lose_hot(&self.at_t.hot).await
    }

    /// Replaces the long-term table.
    pub(super) async fn lose_history(&self, items: &[Item]) -> Result<()> {
        self.replace(&self.environment.tables.history, &HISTORY, items).await
    }

    /// The hot table is that of T, and the log's table is empty.
    pub(super) async fn lose_log(&self) -> Result<()> {
        self.lose().await?;
        self.replace(&self.environment.tables.log, &LOG, &[]).await
    }

    async fn replace(&self, name: &str, table: &Table, items: &[Item]) -> Result<()> {
        // Over HTTP: the way past the socket has no operations on tables.
        let client = self.environment.client();
        client.delete_table().table_name(name).send().await?;
        create_table(&client, name, table).await?;
        self.put_items(name, items.iter().cloned()).await
    }

    pub(super) fn rebuild(&self, store: Store) -> Result<Rebuild> {
        let reports = PrefixStore::new(self.outside.reports.clone(), "reports");
        Ok(Rebuild {
            store,
            replaced: None,
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

    pub(super) async fn plan(&self, change: impl FnOnce(&mut Rebuild)) -> Result<Outcome> {
        let mut rebuild = self.rebuild(self.store().await)?;
        change(&mut rebuild);
        rebuild.plan(&Told { line: |_: &Line| {}, progress: |_: &str, _, _| {} }).await
    }

    pub(super) async fn apply(&self) -> Result<Applied> {
        self.apply_with(|_| {}).await
    }

    /// Applies with changed options.
    pub(super) async fn apply_with(&self, change: impl FnOnce(&mut Rebuild)) -> Result<Applied> {
        let mut rebuild = self.rebuild(self.store().await)?;
        change(&mut rebuild);
        let lines = RefCell::new(Vec::new());
        let line = |line: &Line| lines.borrow_mut().push(serde_json::to_value(line).unwrap_or_default());
        let outcome = rebuild.apply(&Told { line, progress: |_: &str, _, _| {} }).await?;
        Ok(Applied { outcome, lines: lines.into_inner() })
    }

    /// Applies without these events.
    pub(super) async fn apply_except(&self, events: &[&str]) -> Result<Applied> {
        let excepts = events.iter().map(|events| events.parse()).collect::<Result<_, _>>()?;
        self.apply_with(|rebuild| rebuild.excepts = excepts).await
    }

    /// Applies to another instant, at another time.
    pub(super) async fn apply_to(&self, to: &str, now: &str) -> Result<Applied> {
        let (to, now) = (to.parse()?, now.parse()?);
        self.apply_with(|rebuild| (rebuild.to, rebuild.now) = (to, now)).await
    }

    pub(super) async fn assert_done(&self) -> Result<()> {
        ensure!(self.apply().await?.is_nothing(), "it is done once");
        Ok(())
    }

    /// Loses the hot table and, with its items of before, the long-term table. Today's items must
    /// come back, without a finding.
    pub(super) async fn comes_back(&self, history: Option<&[Item]>) -> Result<Applied> {
        let (hot, heads) = (self.hot().await?, self.history().await?);
        self.lose().await?;
        if let Some(items) = history {
            self.lose_history(items).await?;
        }
        ensure!(self.assert_hot(&hot).await.is_err(), "nothing was lost");
        let done = self.apply().await?.found([])?;
        self.assert_hot(&hot).await?;
        assert_eq!(differences(&self.history().await?, &heads), [""; 0]);
        self.assert_done().await?;
        self.recount().await?;
        Ok(done)
    }

    /// Switches the stream on, and begins the new epoch of the log.
    pub(super) async fn open(&self) -> Result<()> {
        self.open_restored_to(T).await
    }

    pub(super) async fn open_restored_to(&self, instant: &str) -> Result<()> {
        let stream = StreamSpecification::builder().stream_enabled(true);
        let stream = stream.stream_view_type(StreamViewType::NewAndOldImages).build()?;
        let table = &self.environment.tables.payments;
        self.environment.client().update_table().table_name(table).stream_specification(stream).send().await?;
        // The engine shows what happened before in the new stream, too.
        let mut counting = self.counting.lock().await;
        *counting = Counting::start(self).await?;
        counting.skip().await?;
        self.finish_tables(instant).await.map(drop)
    }

    /// A delivery of all that the stream has, to `stream-aggregator`.
    pub(super) async fn delivery(&self) -> Result<Value> {
        let mut mapping = StreamMapping::new(stream_settings("stream-aggregator", None)?, self.stream().await?)?;
        let (mut now, seen) = (self.now().as_chrono(), RefCell::new(None));
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

    /// The late delivery of an old invocation must be refused.
    pub(super) async fn assert_refused(&self, delivery: &Value, why: &str) {
        let delivered = self.functions().deliver("stream-aggregator", delivery.clone()).await;
        assert_fails(delivered.map_err(anyhow::Error::msg), why);
    }

    /// The times since which changes may be missing, by the marks of the log's last epoch.
    pub(super) async fn gaps(&self) -> Result<Vec<Value>> {
        Ok(self.news_of("log.gap").await?.into_iter().map(|mut event| event["since"].take()).collect())
    }

    /// The events of a type in the log's last epoch.
    pub(super) async fn news_of(&self, kind: &str) -> Result<Vec<Value>> {
        let mut events = self.news().await?;
        events.retain(|event| event["type"] == kind);
        Ok(events)
    }

    /// Asserts what is true after every restore: the recount is exact at once, and no cancelled or
    /// settled payment is sent.
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
        let report = settlements::run(self).await?;
        let unreported = if also_settled.is_empty() { 3 } else { 2 + also_settled.len() };
        assert_eq!(report["reported"], unreported, "h, j and those that were settled now are reported: {report}");
        Ok(())
    }

    /// Every date is exact.
    pub(super) async fn recount(&self) -> Result<()> {
        let request = json!({ "action": "recount", "from": "2026-11-18", "to": "2026-12-31" });
        let done = self.run("recount", request).await?;
        ensure!(done["exact"] == 44, "{done}");
        Ok(())
    }

    /// Sweeps, and redrives until no attempt is left. Returns the payments whose requests are sent.
    pub(super) async fn sent(&self) -> Result<Vec<String>> {
        self.sent_or_refused(&Queue::new(QueueSettings::named("failures"))).await
    }

    /// The same with a queue for the records that `dispatch` refuses.
    pub(super) async fn sent_or_refused(&self, refused: &Queue) -> Result<Vec<String>> {
        let mut mapping = StreamMapping::new(stream_settings("dispatch", Some(refused))?, self.stream().await?)?;
        let functions = self.functions();
        for hour in ["10", "12", "16"] {
            self.set_clock(&format!("2026-11-20T{hour}:56:00Z"))?;
            self.sweep().await?;
            self.run("daily-due-sweeper", json!({ "action": "redrive" })).await?;
            loop {
                let mut now = self.now().as_chrono();
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
        let now = self.now().as_chrono();
        let mut sent = Vec::new();
        loop {
            let messages = self.outside.requests.receive(10, now);
            if messages.is_empty() {
                return Ok(sent);
            }
            for message in messages {
                self.outside.requests.delete(&message.receipt_handle);
                let request: Value = serde_json::from_str(&message.body)?;
                sent.push(text_of(&request["paymentId"]).to_owned());
            }
        }
    }
}
