//! The triggers of the functions besides HTTP: schedules, streams and queues. The triggers also run the transaction
//! service and expire items.
//!
//! On AWS, the triggers are EventBridge's schedules, Lambda's event source mappings and SQS, which `template.yaml`
//! configures. Here, one [`Triggers::tick`] does everything that is due now. As in Lambda, events and responses are JSON,
//! and an invocation has a deadline.

mod expiry;
mod publishing;
mod sources;
mod starting;
mod tick;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::{Clock, Metrics};
use payments_delivery::{Delivery, DeliveryOutcome, QueueMapping, StreamMapping};
use payments_model::causes;
use serde_json::Value;

use crate::client::Client;
use crate::handlers::Handlers;
use crate::handlers::invocation::context;
use crate::queues::Queues;
use crate::schedule::{Schedule, ScheduleSpec};
use crate::stack::Stack;
use crate::template::{DeployedFunction, Template};
use crate::transaction_service::{TransactionService, TransactionServiceSettings};
use crate::triggers::expiry::Expiry;
use crate::triggers::publishing::Publishing;
use crate::triggers::sources::{failures, queue_source, stream_source};
use crate::triggers::starting::Starting;

pub use sources::{queue_settings, stream_settings};
pub use tick::{Counts, Tick, Took};

/// The stream of the hot table in the template. The log's stream has no mapping here: it only wakes
/// `publish`, which does not read the records.
const HOT_STREAM: &str = "PaymentsTable.StreamArn";

/// The most invocations at once for one queue, unless the template permits fewer. Lambda starts with five pollers.
const POLLERS: usize = 5;

/// The timeout of a scheduled function, which is shorter than the template's. On one machine, a scheduled function holds
/// up the stream and the shutdown.
const TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// The triggers.
pub struct Triggers {
    functions: Arc<dyn Handlers>,
    clock: Clock,
    metrics: Metrics,
    queues: Queues,
    schedules: Vec<Schedule>,
    /// The mappings of streams and queues to functions, in the order of the template.
    mappings: Vec<(&'static DeployedFunction, Mapping)>,
    service: TransactionService,
    publishing: Publishing,
    expiry: Expiry,
    starting: Starting,
}

/// A source that Lambda polls for a function.
enum Mapping {
    Stream(Box<StreamMapping>),
    /// A queue, and the most invocations at once.
    Queue(QueueMapping, usize),
}

impl Triggers {
    /// Creates the template's triggers for `functions`, and a transaction service at the other end of the stack's queues.
    /// Nothing runs yet.
    ///
    /// The stream is read from its oldest record, so records are delivered again after a restart. A payment that was
    /// dispatched before is no longer pending, or is dispatched again. A change that was counted before is not counted
    /// again, because its checkpoint has passed it.
    pub async fn new(stack: &Stack, functions: Arc<dyn Handlers>, service: TransactionServiceSettings) -> Result<Self> {
        let (template, stream) = (Template::ours_while(stack.environment.paused)?, stack.stream().await?);
        let (zone, queues) = (stack.environment.time_zone.parse()?, stack.queues.clone());
        let mut mappings = Vec::new();
        for function in &template.functions {
            if let Some(source) = stream_source(function).filter(|source| source.stream == HOT_STREAM) {
                let failures = failures(source).map(|queue| queues.at(queue)).transpose()?;
                let mapping = StreamMapping::new(stream_settings(&function.package, failures)?, stream.clone())?;
                mappings.push((function, Mapping::Stream(Box::new(mapping))));
            }
            if let Some(source) = queue_source(function) {
                let mapping = QueueMapping::new(queue_settings(&function.package)?, queues.at(&source.queue)?.clone());
                let pollers = source.scaling_config.map_or(POLLERS, |it| it.maximum_concurrency.min(POLLERS));
                mappings.push((function, Mapping::Queue(mapping, pollers)));
            }
        }
        Ok(Self {
            publishing: Publishing::start(stack, Arc::clone(&functions), TIMEOUT).await?,
            starting: Starting::new(stack, Arc::clone(&functions), TIMEOUT),
            functions,
            clock: stack.clock.clone(),
            metrics: stack.metrics.clone(),
            schedules: template.schedules().map(|spec| Schedule::new(spec, zone)).collect::<Result<_>>()?,
            mappings,
            service: TransactionService::new(service, queues.requests.clone(), queues.results.clone()),
            expiry: Expiry::new(stack),
            queues,
        })
    }

    /// Changes the period of a schedule.
    pub fn with_period(mut self, schedule: &str, period: TimeDelta) -> Self {
        let schedules = std::mem::take(&mut self.schedules).into_iter();
        self.schedules =
            schedules.map(|known| if known.spec().name == schedule { known.every(period) } else { known }).collect();
        self
    }

    /// Removes a schedule.
    pub fn without(mut self, schedule: &str) -> Self {
        self.schedules.retain(|known| known.spec().name != schedule);
        self
    }

    /// Makes `publish` and the functions that operators start run in the background from now on. So a
    /// webhook endpoint that hangs does not hold up a tick. [`end`](Self::end) waits for these functions.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        self.publishing.in_background();
        self.starting.in_background();
        self
    }

    /// Waits for the functions that run in the background.
    pub async fn end(&mut self) {
        self.publishing.end().await;
        self.starting.end().await;
    }

    /// Returns the transaction service.
    pub fn service(&self) -> &TransactionService {
        &self.service
    }

    /// Returns the queues.
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Does everything that is due: first the schedules, and then the streams and queues until no record or message is
    /// ready. After the tick, only functions in the background still write. Failures are in the returned tick, and the
    /// next tick retries them.
    pub async fn tick(&mut self, now: DateTime<Utc>) -> Tick {
        let mut tick = Tick::default();
        self.run_schedules(now, &mut tick).await;
        if let Err(error) = self.expiry.run(now).await {
            tick.troubles.push(format!("expired items stay: {error:#}"));
        }
        while self.deliver(now, &mut tick).await {}
        // Functions that operators started run after the stream is counted. So, if nothing runs in the
        // background, a recount compares counters that do not change.
        tick.troubles.extend(self.starting.step(now).await);
        if let Err(error) = self.publishing.wake(now).await {
            tick.troubles.push(format!("publish: {error}"));
        }
        tick.metrics = self.metrics.take();
        tick.counts = Counts::from_lines(&tick.metrics);
        if tick.counts.counted > 0 {
            tick.today = today(&self.functions, &self.clock).await;
        }
        tick
    }

    /// Does everything that is due, and also delivers stream records that would wait for more records in their batch.
    pub async fn tick_to_the_end(&mut self, now: DateTime<Utc>) -> Tick {
        let mut tick = self.tick(now).await;
        let mut rest = Tick::default();
        for number in 0..self.mappings.len() {
            if let Mapping::Stream(mapping) = &self.mappings[number].1 {
                let later = now + mapping.settings().maximum_batching_window;
                if later > now {
                    self.poll(number, later, &mut rest).await;
                }
            }
        }
        if let Err(error) = self.publishing.wake(now).await {
            rest.troubles.push(format!("publish: {error}"));
        }
        rest.metrics = self.metrics.take();
        rest.counts = Counts::from_lines(&rest.metrics);
        tick += rest;
        tick
    }

    async fn run_schedules(&mut self, now: DateTime<Utc>, tick: &mut Tick) {
        let due: Vec<&'static ScheduleSpec> =
            self.schedules.iter_mut().filter_map(|it| it.falls_due(now).then_some(it.spec())).collect();
        for spec in due {
            let began = Instant::now();
            if let Err(error) = self.run(spec).await {
                tick.troubles.push(format!("{}: {error}", spec.name));
            }
            match spec.package.as_str() {
                "report" => tick.took.report += began.elapsed(),
                "daily-due-sweeper" => tick.took.sweep += began.elapsed(),
                _ => {}
            }
        }
    }

    /// Invokes the function of a schedule with its input.
    async fn run(&mut self, spec: &'static ScheduleSpec) -> Result<(), String> {
        let input: Value = serde_json::from_str(&spec.input).map_err(|error| causes(&error).join(": "))?;
        if spec.package == "publish" {
            return self.publishing.invoke(input).await;
        }
        self.functions.scheduled(&spec.package, input, context(self.clock.instant() + TIMEOUT)).await.map(drop)
    }

    /// Delivers the records and messages that are ready, and steps the transaction service before each
    /// queue is read. Returns whether any record, message or step was ready.
    async fn deliver(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let mut any = false;
        for number in 0..self.mappings.len() {
            if matches!(self.mappings[number].1, Mapping::Queue(..)) {
                let step = self.service.step(now);
                tick.received += step.received;
                tick.answered += step.answered;
                any |= step != Default::default();
            }
            any |= self.poll(number, now, tick).await;
        }
        any
    }

    /// Delivers a stream or a queue until no record or message is ready. Returns whether any was delivered.
    async fn poll(&mut self, number: usize, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let started = Instant::now();
        let (function, mapping) = &mut self.mappings[number];
        let package = function.package.as_str();
        let any = match mapping {
            Mapping::Stream(mapping) => drain(mapping, package, &*self.functions, now, tick).await,
            Mapping::Queue(mapping, pollers) => empty(mapping, *pollers, package, &*self.functions, now, tick).await,
        };
        let took = match package {
            "dispatch" => &mut tick.took.dispatch,
            "stream-aggregator" => &mut tick.took.aggregate,
            _ => &mut tick.took.settle,
        };
        *took += started.elapsed();
        any
    }
}

impl std::fmt::Debug for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Triggers({:?})", self.schedules)
    }
}

/// Delivers a queue's messages to a function until no message is visible. Returns whether any was delivered.
async fn empty(
    mapping: &QueueMapping,
    pollers: usize,
    package: &'static str,
    functions: &dyn Handlers,
    now: DateTime<Utc>,
    tick: &mut Tick,
) -> bool {
    let mut any = false;
    loop {
        let steps = (0..pollers).map(|_| mapping.step(now, |event| functions.deliver(package, event)));
        let steps: Vec<_> = futures::future::join_all(steps).await.into_iter().flatten().collect();
        if steps.is_empty() {
            return any;
        }
        any = true;
        for step in steps {
            tick.troubles.extend(step.error.map(|error| format!("{package}: {error}")));
        }
    }
}

/// Delivers a stream's records to a function until no record is ready, or until a batch waits for its
/// retry. Returns whether any record was delivered.
async fn drain(
    mapping: &mut StreamMapping,
    function: &'static str,
    functions: &dyn Handlers,
    now: DateTime<Utc>,
    tick: &mut Tick,
) -> bool {
    let mut any = false;
    loop {
        let deliveries = match mapping.step(now, |event| functions.deliver(function, event)).await {
            Ok(deliveries) => deliveries,
            Err(error) => {
                tick.troubles.push(format!("{function}: {}", causes(&error).join(": ")));
                return any;
            }
        };
        deliveries.iter().for_each(|delivery| record_failure(function, delivery, tick));
        any |= !deliveries.is_empty();
        // A batch with limited retries is retried at once. A batch with unlimited retries is retried at the next tick.
        let retries = deliveries.iter().any(|delivery| matches!(delivery.outcome, DeliveryOutcome::Retrying { .. }));
        if deliveries.is_empty() || (retries && mapping.settings().maximum_retry_attempts.is_none()) {
            return any;
        }
    }
}

/// Returns today's counts, as the API returns them, in words.
async fn today(functions: &Arc<dyn Handlers>, clock: &Clock) -> Option<String> {
    let answer = Client::for_functions(Arc::clone(functions), clock.clone()).ok()?.get("/counts").await.ok()?;
    tick::in_words(answer["counts"].get(0)?)
}

/// Adds the failure of a delivery to a tick.
fn record_failure(function: &'static str, delivery: &Delivery, tick: &mut Tick) {
    match &delivery.outcome {
        DeliveryOutcome::Succeeded => {}
        DeliveryOutcome::Retrying { why, remaining } => {
            tick.troubles.push(format!("{function}: {remaining} records are retried: {why}"));
        }
        DeliveryOutcome::Discarded { records } => {
            tick.troubles.push(format!(
                "{function}: {records} records failed in every retry and are discarded; \
                 redrives send their requests again"
            ));
        }
    }
}
