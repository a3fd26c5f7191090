//! The load itself: tasks that send the requests of each workload and count the replies.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use payments_machine::Recorder;
use payments_machine::client::{Client, Reply, transaction_path};
use payments_machine::progress::Progress;
use payments_model::BusinessDate;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::check;
use crate::measurements::Throughput;
use crate::orders::{self, Orders};
use crate::settings::Settings;
use crate::workload::{RequestKind, Task, Workload};

/// The time between two changes of the progress bars.
const REFRESH: Duration = Duration::from_millis(500);

/// The number of transaction ids that are kept for look-ups.
const KEPT: usize = 256;

/// The number of shards.
const SHARDS: u64 = 10;

/// A load that runs.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) throughput: Throughput,
    pub(crate) tally: Tally,
    orders: Orders,
    client: Client,
    due: BusinessDate,
    is_over: AtomicBool,
    transactions: Mutex<Vec<String>>,
}

/// The replies so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    acknowledged: AtomicU64,
    errors: AtomicU64,
    first_error: Mutex<Option<String>>,
}

/// The reply to a batch.
#[derive(Deserialize)]
struct Batch {
    results: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    status_code: u16,
    #[serde(default)]
    problem: Value,
}

impl Load {
    /// Creates a load that starts now.
    pub(crate) fn new(settings: &Settings, orders: Orders, client: Client, due: BusinessDate) -> Result<Self> {
        Ok(Self {
            workloads: Workload::parse(settings)?,
            throughput: Throughput::new(settings.payments),
            tally: Tally::default(),
            orders,
            client,
            due,
            is_over: AtomicBool::new(false),
            transactions: Mutex::default(),
        })
    }

    /// Runs until every create has a reply. `counted_before` is what the counters had before.
    pub(crate) async fn run(
        self: &Arc<Self>,
        recorder: Option<&Recorder>,
        progress: &Progress,
        counted_before: u64,
    ) -> Result<()> {
        let (mut creates, mut queries) = (JoinSet::new(), JoinSet::new());
        for (index, workload) in self.workloads.iter().enumerate() {
            for _ in 0..workload.concurrency {
                if workload.kind.creates() { &mut creates } else { &mut queries }.spawn(Arc::clone(self).work(index));
            }
        }
        let mut refresh = interval(REFRESH);
        loop {
            tokio::select! {
                done = creates.join_next() => match done {
                    Some(done) => done??,
                    None => break,
                },
                _ = refresh.tick() => {
                    // The list of operations would grow with the load.
                    recorder.map(Recorder::take_operations);
                    self.show(progress, counted_before).await;
                }
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(done) = queries.join_next().await {
            done??;
        }
        Ok(())
    }

    async fn show(&self, progress: &Progress, counted_before: u64) {
        let marks = self.throughput.marks();
        let counted = match progress.is_visible() {
            true => check::counts(&self.client, self.due).await.map_or(0, |counts| counts.total),
            false => 0,
        };
        progress.show(&[marks.latest.payments, counted.saturating_sub(counted_before)]);
        let rate = marks.rate().map_or_else(String::new, |rate| format!(", {rate} a second"));
        progress.say(format!("creating payments{rate}"));
    }

    /// Sends requests of a workload, one after another.
    async fn work(self: Arc<Self>, workload: usize) -> Result<()> {
        let workload = &self.workloads[workload];
        while let Some(task) = workload.next() {
            let start = task.wait(self.throughput.start()).await;
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let sent = match workload.kind {
                RequestKind::Feed => self.create_batch(task).await?,
                RequestKind::Create => self.create(task).await?,
                kind => self.query(kind, task).await,
            };
            if sent {
                workload.latency.record(start.elapsed());
            }
        }
        Ok(())
    }

    async fn create_batch(&self, task: Task) -> Result<bool> {
        let orders: Vec<_> = (task.payments.0..task.payments.1).map(|number| self.orders.order(number)).collect();
        let count = u64::try_from(orders.len())?;
        let request = orders::batch(&orders)?;
        let done = |reply: &Reply| {
            !reply.is_for_later()
                && entries(reply).iter().all(|entry| entry.status_code < 500 && entry.status_code != 429)
        };
        let reply = self.client.send_until(&request, done).await;
        let entries = reply.as_ref().map_or_else(|_| Vec::new(), entries);
        let acknowledged = u64::try_from(entries.iter().filter(|entry| entry.status_code == 201).count())?;
        let rejected =
            entries.into_iter().find(|entry| entry.status_code != 201).map(|entry| entry.problem.to_string());
        self.tally.add(acknowledged, count.saturating_sub(acknowledged), || match (&reply, rejected) {
            (_, Some(problem)) => format!("a payment was rejected: {problem}"),
            (Ok(reply), None) => format!("the reply to a batch was {}: {}", reply.status, reply.text),
            (Err(error), None) => format!("a batch had no reply: {error:#}"),
        });
        self.throughput.add(count);
        Ok(true)
    }

    async fn create(&self, task: Task) -> Result<bool> {
        let request = self.orders.order(task.payments.0).request()?;
        let reply = self.client.send_until(&request, |reply| !reply.is_for_later()).await;
        let acknowledged = u64::from(reply.as_ref().is_ok_and(|reply| reply.status == 201));
        self.tally.add(acknowledged, 1 - acknowledged, || match reply {
            Ok(reply) => format!("the reply to a payment was {}: {}", reply.status, reply.text),
            Err(error) => format!("a payment had no reply: {error:#}"),
        });
        self.throughput.add(1);
        Ok(true)
    }

    /// Sends a query. Returns false if there is nothing to ask for yet.
    async fn query(&self, kind: RequestKind, task: Task) -> bool {
        let due = self.due;
        let path = match kind {
            RequestKind::ListByDate => format!("/payments?dueDate={due}&limit=100&shard={}", task.number % SHARDS),
            RequestKind::Counts => format!("/counts?from={due}&to={due}"),
            RequestKind::Transaction => {
                let kept = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
                let id = usize::try_from(task.number).ok().and_then(|number| kept.get(number % kept.len().max(1)));
                let Some(id) = id else { return false };
                transaction_path(id)
            }
            _ => {
                // The account of an earlier payment; busy accounts come more often.
                let account = self.orders.order(task.number * 4).account;
                format!("/accounts/{account}/payments?from={due}&limit=100")
            }
        };
        // The index of transaction ids follows its table within moments, so an empty list is asked for again.
        let is_found = |list: &Value| list["payments"].as_array().is_some_and(|payments| !payments.is_empty());
        let is_done = |reply: &Reply| match kind {
            RequestKind::Transaction => reply.status == 200 && reply.json().is_ok_and(|list| is_found(&list)),
            _ => reply.status == 200,
        };
        match self.client.get_until(&path, is_done).await {
            Ok(list) if kind == RequestKind::ListByAccount => self.keep_transactions(&list),
            Ok(list) if kind == RequestKind::Transaction && !is_found(&list) => {
                self.tally.add(0, 1, || format!("{path} found no payment"));
            }
            Ok(_) => {}
            Err(error) => self.tally.add(0, 1, || format!("{error:#}")),
        }
        true
    }

    fn keep_transactions(&self, list: &Value) {
        let found = list["payments"].as_array().into_iter().flatten();
        let mut kept = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(found.filter_map(|payment| payment["transactionId"].as_str()).map(str::to_owned));
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }
}

impl Tally {
    fn add(&self, acknowledged: u64, errors: u64, error: impl FnOnce() -> String) {
        self.acknowledged.fetch_add(acknowledged, Ordering::Relaxed);
        if errors > 0 {
            self.errors.fetch_add(errors, Ordering::Relaxed);
            self.first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(error);
        }
    }

    /// Returns how many payments were created.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Returns how many payments were not created, and how many queries failed.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    pub(crate) fn first_error(&self) -> Option<String> {
        self.first_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn entries(reply: &Reply) -> Vec<Entry> {
    serde_json::from_str::<Batch>(&reply.text).map_or_else(|_| Vec::new(), |batch| batch.results)
}
