//! The load itself: workers on lanes, and what becomes of their requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use payments_local::Recorder;
use payments_local::client::{Client, Reply, Request};
use payments_model::BusinessDate;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::check;
use crate::lane::{Job, Kind, Lane};
use crate::meter::Course;
use crate::orders::{self, Orders};
use crate::settings::Settings;
use payments_local::progress::Progress;

/// How often the bars move.
const REFRESH: Duration = Duration::from_millis(500);

/// How many transaction ids are remembered for look-ups.
const REMEMBERED: usize = 256;

/// How many shards the bank has.
const SHARDS: u64 = 10;

/// A load under way.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) course: Course,
    pub(crate) outcome: Outcome,
    orders: Orders,
    client: Client,
    due: BusinessDate,
    is_over: AtomicBool,
    transactions: Mutex<Vec<String>>,
}

/// What became of the requests.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    acknowledged: AtomicU64,
    errors: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// The answer to a batch, as far as it matters here.
#[derive(Deserialize)]
struct Batch {
    results: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    status: u16,
    #[serde(default)]
    problem: Value,
}

impl Load {
    /// A load that begins now.
    pub(crate) fn new(settings: &Settings, orders: Orders, client: Client, due: BusinessDate) -> Result<Self> {
        Ok(Self {
            lanes: Lane::of(settings)?,
            course: Course::of(settings.payments),
            outcome: Outcome::default(),
            orders,
            client,
            due,
            is_over: AtomicBool::new(false),
            transactions: Mutex::default(),
        })
    }

    /// Works until every payment was answered, and shows how it goes.
    pub(crate) async fn run(self: &Arc<Self>, wire: Option<&Recorder>, progress: &Progress, before: u64) -> Result<()> {
        let (mut puts, mut asks) = (JoinSet::new(), JoinSet::new());
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            for _ in 0..lane.workers {
                if lane.kind.puts() { &mut puts } else { &mut asks }.spawn(Arc::clone(self).work(index));
            }
        }
        let mut refresh = interval(REFRESH);
        loop {
            tokio::select! {
                done = puts.join_next() => match done {
                    Some(done) => done??,
                    None => break,
                },
                _ = refresh.tick() => {
                    // The wire's list of calls would grow with the load.
                    wire.map(Recorder::take_operations);
                    let marks = self.course.marks();
                    let counted = match progress.is_visible() {
                        true => check::counts(&self.client, self.due).await.map_or(0, |counts| counts.total),
                        false => 0,
                    };
                    progress.show(&[marks.latest.payments, counted.saturating_sub(before)]);
                    let rate = marks.rate().map_or_else(String::new, |rate| format!(", {rate} a second"));
                    progress.say(format!("creating payments{rate}"));
                }
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(done) = asks.join_next().await {
            done??;
        }
        Ok(())
    }

    /// One worker of a lane.
    async fn work(self: Arc<Self>, lane: usize) -> Result<()> {
        let lane = &self.lanes[lane];
        while let Some(job) = lane.next() {
            let begins = job.wait(self.course.begins()).await;
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            let done = match lane.kind {
                Kind::Feed => self.put_many(job).await?,
                Kind::Create => self.put_one(job).await?,
                kind => self.ask(kind, job).await,
            };
            if done {
                lane.latency.enter(begins.elapsed());
            }
        }
        Ok(())
    }

    async fn put_many(&self, job: Job) -> Result<bool> {
        let orders: Vec<_> = (job.payments.0..job.payments.1).map(|number| self.orders.order(number)).collect();
        let body = orders::batch(&orders)?;
        let asked = u64::try_from(orders.len())?;
        let request = Request::post("/payment-batches").text(body);
        let done = |reply: &Reply| {
            !reply.is_for_later() && entries(reply).iter().all(|entry| entry.status < 500 && entry.status != 429)
        };
        let answered = self.client.send_until(&request, done).await;
        let put = answered.as_ref().map_or_else(|_| Vec::new(), entries);
        let acknowledged = u64::try_from(put.iter().filter(|entry| entry.status == 201).count())?;
        let refused = put.into_iter().find(|entry| entry.status != 201).map(|entry| entry.problem.to_string());
        self.outcome.enter(acknowledged, asked.saturating_sub(acknowledged), || match (&answered, refused) {
            (_, Some(problem)) => format!("a payment was refused: {problem}"),
            (Ok(reply), None) => format!("a batch was answered {}: {}", reply.status, reply.text),
            (Err(error), None) => format!("a batch was not answered: {error:#}"),
        });
        self.course.enter(asked);
        Ok(true)
    }

    async fn put_one(&self, job: Job) -> Result<bool> {
        let order = self.orders.order(job.payments.0);
        let request = Request::post(&format!("/accounts/{}/payments", order.account));
        let request = request.header("Idempotency-Key", &order.key).text(order.single()?);
        let answered = self.client.send_until(&request, |reply| !reply.is_for_later()).await;
        let acknowledged = u64::from(answered.as_ref().is_ok_and(|reply| reply.status == 201));
        self.outcome.enter(acknowledged, 1 - acknowledged, || match answered {
            Ok(reply) => format!("a payment was answered {}: {}", reply.status, reply.text),
            Err(error) => format!("a payment was not answered: {error:#}"),
        });
        self.course.enter(1);
        Ok(true)
    }

    /// Asks a question. Says whether there was one.
    async fn ask(&self, kind: Kind, job: Job) -> bool {
        let due = self.due;
        let path = match kind {
            Kind::ByDate => format!("/payments?dueDate={due}&limit=100&shard={}", job.number % SHARDS),
            Kind::Counts => format!("/counts?from={due}&to={due}"),
            Kind::LookUp => {
                let known = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(id) = usize::try_from(job.number).ok().and_then(|at| known.get(at % known.len().max(1)))
                else {
                    return false;
                };
                format!("/transactions/{id}")
            }
            _ => {
                // Of an account that has paid a while ago, as busy ones have more often.
                let account = self.orders.order(job.number * 4).account;
                format!("/accounts/{account}/payments?from={due}&limit=100")
            }
        };
        // A transaction id is found by an index, which follows within moments.
        match self.client.get_until(&path, |reply| reply.status == 200).await {
            Ok(answer) if kind == Kind::List => self.remember(&answer),
            Ok(_) => {}
            Err(error) => self.outcome.enter(0, 1, || format!("{error:#}")),
        }
        true
    }

    fn remember(&self, list: &Value) {
        let found = list["payments"].as_array().into_iter().flatten();
        let mut known = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
        for id in found.filter_map(|payment| payment["transactionId"].as_str()) {
            if known.len() == REMEMBERED {
                known.remove(0);
            }
            known.push(id.to_owned());
        }
    }
}

impl Outcome {
    fn enter(&self, acknowledged: u64, errors: u64, trouble: impl FnOnce() -> String) {
        self.acknowledged.fetch_add(acknowledged, Ordering::Relaxed);
        if errors > 0 {
            self.errors.fetch_add(errors, Ordering::Relaxed);
            self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(trouble);
        }
    }

    /// How many payments the bank said it has.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// How many payments it did not, and how many questions it did not answer.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// The first thing that went wrong.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn entries(reply: &Reply) -> Vec<Entry> {
    serde_json::from_str::<Batch>(&reply.text).map_or_else(|_| Vec::new(), |batch| batch.results)
}
