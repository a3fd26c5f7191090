//! What invokes the functions besides HTTP: schedules, stream and queues. The transaction service is here, too, and the
//! expiry of items.
//!
//! On AWS these are EventBridge, Lambda's event source mappings and SQS, as `template.yaml` configures them. Here one
//! [`Triggers::tick`] does everything that is due now. As in Lambda, events and responses are JSON, and an invocation has
//! a deadline.

mod expiry;
mod publishing;
mod schedule;
mod starting;
mod tick;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use payments_boot::{Clock, Metrics};
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{Delivery, DeliveryOutcome, Filter, QueueMapping, StreamMapping, StreamSettings};
use payments_model::causes;
use payments_queue::Queue;
use serde_json::Value;

use crate::client::Client;
use crate::function::Function;
use crate::handlers::Handlers;
use crate::invocation::context;
use crate::queues::Queues;
use crate::stack::Stack;
use crate::transaction_service::{TransactionService, TransactionServiceSettings};
use crate::triggers::expiry::Expiry;
use crate::triggers::publishing::Publishing;
use crate::triggers::starting::Starting;

pub use publishing::{PUBLISH_BATCH, PUBLISH_FILTER, publish_settings};
pub use schedule::{SCHEDULES, Schedule, ScheduleSpec};
pub use tick::{Counts, Tick, Took};

/// The changes of the hot table that go to `dispatch`: claims and redrives, the only ones that leave a payment pending.
pub const DISPATCH_FILTER: &str = r#"{"dynamodb":{"NewImage":{"status":{"S":["PENDING"]}}}}"#;

/// The most stream records of one invocation of `dispatch`.
pub const DISPATCH_BATCH: usize = 100;

/// How often a failing batch of `dispatch` is retried.
pub const DISPATCH_RETRIES: u32 = 5;

/// The changes of the hot table that go to `stream-aggregator`: those of heads, and not its own writes.
pub const AGGREGATOR_FILTER: &str = r#"{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"ACCT#"}]}}}}"#;

/// The most stream records of one invocation of `stream-aggregator`. A commit costs the same for one as for a thousand.
pub const AGGREGATOR_BATCH: usize = 1_000;

/// How long `stream-aggregator` waits for a full batch.
pub const AGGREGATOR_BATCHING_WINDOW: TimeDelta = TimeDelta::seconds(3);

/// The tumbling window of `stream-aggregator`. Only events with a window name their stream shard.
pub const AGGREGATOR_TUMBLING_WINDOW: TimeDelta = TimeDelta::seconds(60);

/// The most settlement results of one invocation of `settle`.
pub const SETTLE_BATCH: usize = 10;

/// Returns the stream mapping of `dispatch`, which reports discarded batches to `failures`.
pub fn dispatch_settings(failures: &Queue) -> Result<StreamSettings> {
    Ok(StreamSettings {
        batch_size: DISPATCH_BATCH,
        filter: Some(Filter::parse(DISPATCH_FILTER)?),
        maximum_retry_attempts: Some(DISPATCH_RETRIES),
        bisect_batch_on_function_error: true,
        report_batch_item_failures: true,
        on_failure: Some(failures.clone()),
        ..StreamSettings::of("dispatch")
    })
}

/// Returns the stream mapping of `stream-aggregator`. It never discards a record: the function skips a record that it
/// cannot read, and what it cannot write waits.
pub fn aggregator_settings() -> Result<StreamSettings> {
    Ok(StreamSettings {
        batch_size: AGGREGATOR_BATCH,
        maximum_batching_window: AGGREGATOR_BATCHING_WINDOW,
        filter: Some(Filter::parse(AGGREGATOR_FILTER)?),
        tumbling_window: Some(AGGREGATOR_TUMBLING_WINDOW),
        ..StreamSettings::of("stream-aggregator")
    })
}

/// How many invocations of `settle` run at once. Lambda starts with five pollers.
const SETTLE_POLLERS: usize = 5;

/// The timeout of a scheduled function. The template allows more. Here it is short, because a scheduled function holds
/// up the stream and the shutdown.
const TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// The triggers.
pub struct Triggers {
    functions: Arc<dyn Handlers>,
    clock: Clock,
    metrics: Metrics,
    queues: Queues,
    schedules: Vec<Schedule>,
    dispatch: StreamMapping,
    aggregator: StreamMapping,
    settle: QueueMapping,
    service: TransactionService,
    publishing: Publishing,
    expiry: Expiry,
    starting: Starting,
}

impl Triggers {
    /// Creates the triggers of `functions`, which send to the stack's queue of requests, and a transaction service at
    /// the other end of the queues. Nothing runs yet.
    ///
    /// The stream is read from its oldest record. A payment that was dispatched before is either no longer pending or is
    /// dispatched again, and a change that was counted before is behind its checkpoint.
    pub async fn new(stack: &Stack, functions: Arc<dyn Handlers>, service: TransactionServiceSettings) -> Result<Self> {
        let stream = stack.stream().await?;
        let (zone, queues) = (stack.environment.time_zone.parse()?, stack.queues.clone());
        let settle = QueueMappingSettings { batch_size: SETTLE_BATCH, report_batch_item_failures: true };
        Ok(Self {
            publishing: Publishing::of(stack, Arc::clone(&functions), TIMEOUT).await?,
            starting: Starting::of(stack, Arc::clone(&functions), TIMEOUT),
            functions,
            clock: stack.clock.clone(),
            metrics: stack.metrics.clone(),
            schedules: SCHEDULES.iter().map(|spec| Schedule::new(spec, zone)).collect::<Result<_>>()?,
            dispatch: StreamMapping::new(dispatch_settings(&queues.dispatch_failures)?, stream.clone())?,
            aggregator: StreamMapping::new(aggregator_settings()?, stream)?,
            settle: QueueMapping::new(settle, queues.results.clone()),
            service: TransactionService::new(service, queues.requests.clone(), queues.results.clone()),
            expiry: Expiry::of(stack),
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

    /// Leaves a schedule out.
    pub fn without(mut self, schedule: &str) -> Self {
        self.schedules.retain(|known| known.spec().name != schedule);
        self
    }

    /// Lets `publish` and what operators start run beside the rest, so that a webhook endpoint that hangs holds nothing up. [`end`](Self::end) waits for it.
    #[must_use]
    pub fn in_background(mut self) -> Self {
        self.publishing.in_background();
        self.starting.in_background();
        self
    }

    /// Waits for what runs beside the ticks.
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

    /// Does everything that is due: the schedules first, then stream and queues until nothing in them is ready. When it
    /// returns, no write is in flight. Failures are in the tick and are retried by the next one.
    pub async fn tick(&mut self, now: DateTime<Utc>) -> Tick {
        let mut tick = Tick::default();
        self.run_schedules(now, &mut tick).await;
        if let Err(error) = self.expiry.run(now).await {
            tick.troubles.push(format!("expired items stay: {error:#}"));
        }
        loop {
            let dispatched = self.dispatch(now, &mut tick).await;
            let step = self.service.step(now);
            tick.received += step.received;
            tick.answered += step.answered;
            let settled = self.settle(now, &mut tick).await;
            let counted = self.count(now, &mut tick).await;
            if !dispatched && !settled && !counted && step == Default::default() {
                break;
            }
        }
        // After all that is there was counted: where nothing runs in the background, a recount meets counters that stand still.
        tick.troubles.extend(self.starting.step(now).await);
        if let Err(error) = self.publishing.wake(now).await {
            tick.troubles.push(format!("publish: {error}"));
        }
        tick.metrics = self.metrics.take();
        tick.counts = Counts::of(&tick.metrics);
        if tick.counts.counted > 0 {
            tick.today = today(&self.functions, &self.clock).await;
        }
        tick
    }

    /// Does everything that is due, and counts also the changes for which a batch would wait.
    pub async fn tick_to_the_end(&mut self, now: DateTime<Utc>) -> Tick {
        let mut tick = self.tick(now).await;
        let mut rest = Tick::default();
        self.count(now + AGGREGATOR_BATCHING_WINDOW, &mut rest).await;
        if let Err(error) = self.publishing.wake(now).await {
            rest.troubles.push(format!("publish: {error}"));
        }
        rest.metrics = self.metrics.take();
        rest.counts = Counts::of(&rest.metrics);
        tick += rest;
        tick
    }

    async fn run_schedules(&mut self, now: DateTime<Utc>, tick: &mut Tick) {
        let due: Vec<ScheduleSpec> =
            self.schedules.iter_mut().filter_map(|it| it.falls_due(now).then_some(it.spec())).collect();
        for spec in due {
            let began = Instant::now();
            if let Err(error) = self.run(&spec).await {
                tick.troubles.push(format!("{}: {error}", spec.name));
            }
            match spec.function {
                Function::Report => tick.took.report += began.elapsed(),
                Function::DailyDueSweeper => tick.took.sweep += began.elapsed(),
                _ => {}
            }
        }
    }

    /// Invokes the function of a schedule with its input.
    async fn run(&mut self, spec: &ScheduleSpec) -> Result<(), String> {
        let input: Value = serde_json::from_str(spec.input).map_err(|error| causes(&error).join(": "))?;
        if spec.function == Function::Publish {
            return self.publishing.invoke(input).await;
        }
        self.functions.scheduled(spec.function, input, context(self.clock.instant() + TIMEOUT)).await.map(drop)
    }

    /// Delivers the stream to `dispatch` until nothing is left. Returns whether there was anything.
    async fn dispatch(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let started = Instant::now();
        let any = drain(&mut self.dispatch, Function::Dispatch, &*self.functions, now, tick).await;
        tick.took.dispatch += started.elapsed();
        any
    }

    /// Delivers the stream to `stream-aggregator` until nothing is left. Returns whether there was anything.
    async fn count(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let started = Instant::now();
        let any = drain(&mut self.aggregator, Function::StreamAggregator, &*self.functions, now, tick).await;
        tick.took.aggregate += started.elapsed();
        any
    }

    /// Delivers settlement results to `settle` until none is visible. Returns whether there was any.
    async fn settle(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let (started, mut any) = (Instant::now(), false);
        let functions = &self.functions;
        let function = |event| functions.deliver(Function::Settle, event);
        loop {
            let pollers = (0..SETTLE_POLLERS).map(|_| self.settle.step(now, function));
            let steps: Vec<_> = futures::future::join_all(pollers).await.into_iter().flatten().collect();
            if steps.is_empty() {
                break;
            }
            any = true;
            for step in steps {
                tick.troubles.extend(step.error.map(|error| format!("settle: {error}")));
            }
        }
        tick.took.settle += started.elapsed();
        any
    }
}

impl std::fmt::Debug for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Triggers({:?})", self.schedules)
    }
}

/// Delivers a stream to a function until nothing is left. Returns whether there was anything.
async fn drain(
    mapping: &mut StreamMapping,
    function: Function,
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
        // `dispatch` is retried at once, since its retries are limited; `stream-aggregator` at the next tick.
        let retries = deliveries.iter().any(|delivery| matches!(delivery.outcome, DeliveryOutcome::Retrying { .. }));
        if deliveries.is_empty() || (retries && function == Function::StreamAggregator) {
            return any;
        }
    }
}

/// Returns today's counts as the API has them, in words.
async fn today(functions: &Arc<dyn Handlers>, clock: &Clock) -> Option<String> {
    let answer = Client::of_functions(Arc::clone(functions), clock.clone()).ok()?.get("/counts").await.ok()?;
    tick::in_words(answer["counts"].get(0)?)
}

/// Adds the failure of a delivery to a tick.
fn record_failure(function: Function, delivery: &Delivery, tick: &mut Tick) {
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
