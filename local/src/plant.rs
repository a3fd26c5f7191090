//! What runs in the bank without being asked: the schedules, the stream that feeds `dispatch`, the
//! queues to and from the transaction service, and that service itself.
//!
//! On AWS these are EventBridge, Lambda's event source mappings and SQS, as `template.yaml` sets
//! them up. Here one [`Plant::tick`] does all that falls due now. The functions are invoked as
//! Lambda invokes them: through JSON, and with a deadline.

pub mod queues;
mod schedule;
mod tick;

use std::time::Instant;

use anyhow::Result;
use aws_lambda_events::encodings::Body;
use aws_lambda_events::{dynamodb, sqs};
use chrono::{DateTime, TimeDelta, Utc};
use lambda_runtime::Context;
use payments_boot::{Clock, Metrics};
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{
    Delivery, DynamoDbStream, FilterCriteria, Outcome, QueueMapping, StreamMapping, StreamSettings,
};
use payments_model::BusinessZone;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::functions::Functions;
use crate::service::{ServiceSettings, TransactionService};

pub use queues::Queues;
pub use schedule::{SCHEDULES, Schedule, ScheduleSpec};
pub use tick::{Counts, Tick, Took};

/// Which changes of the hot table go to `dispatch`: claims and redrives, the only changes that
/// leave a payment pending.
pub const DISPATCH_FILTER: &str = r#"{"dynamodb":{"NewImage":{"status":{"S":["PENDING"]}}}}"#;

/// The most stream records of one invocation of `dispatch`.
pub const DISPATCH_BATCH: usize = 100;

/// How often a failing batch of `dispatch` is retried.
pub const DISPATCH_RETRIES: u32 = 5;

/// Which changes of the hot table go to `stream-aggregator`: those of heads. Its own writes do not.
pub const AGGREGATOR_FILTER: &str = r#"{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"ACCT#"}]}}}}"#;

/// The most stream records of one invocation of `stream-aggregator`: a commit costs the same for one
/// as for a thousand.
pub const AGGREGATOR_BATCH: usize = 1_000;

/// How long `stream-aggregator` waits for a full batch.
pub const AGGREGATOR_BATCHING_WINDOW: TimeDelta = TimeDelta::seconds(5);

/// The tumbling window of `stream-aggregator`. It is there because only events with a window name
/// their stream shard.
pub const AGGREGATOR_TUMBLING_WINDOW: TimeDelta = TimeDelta::seconds(60);

/// The most results of one invocation of `settle`.
pub const SETTLE_BATCH: usize = 10;

/// The stream mapping of `stream-aggregator`. It never gives a record up: what cannot be read, the
/// function counts, and what cannot be written has to wait.
///
/// # Errors
/// Where the filter is none, which a test rules out.
pub fn aggregator_settings() -> Result<StreamSettings> {
    Ok(StreamSettings {
        batch_size: AGGREGATOR_BATCH,
        maximum_batching_window: AGGREGATOR_BATCHING_WINDOW,
        filter_criteria: FilterCriteria::parse([AGGREGATOR_FILTER])?,
        tumbling_window: Some(AGGREGATOR_TUMBLING_WINDOW),
        ..StreamSettings::of("stream-aggregator")
    })
}

/// How many invocations of `settle` are under way at once. Lambda begins with five pollers.
const SETTLE_POLLERS: usize = 5;

/// How long a scheduled function may take. The template gives it longer; here the stream waits for
/// it, and so does whoever closes the bank.
const TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// All that runs by itself.
pub struct Plant {
    functions: Functions,
    clock: Clock,
    metrics: Metrics,
    queues: Queues,
    schedules: Vec<Schedule>,
    dispatch: StreamMapping,
    aggregator: StreamMapping,
    settle: QueueMapping,
    service: TransactionService,
}

impl Plant {
    /// The plant around `functions`, which have to send to `queues.requests` and to put their
    /// metrics into `metrics`. Nothing runs yet.
    ///
    /// The stream is read from its oldest record: what was handed over before is pending no more
    /// or handed over again, and what was counted before is behind its checkpoint.
    ///
    /// # Errors
    /// Where a mapping or a schedule is set up wrongly, which a test rules out.
    pub fn new(
        functions: Functions,
        zone: BusinessZone,
        clock: Clock,
        metrics: Metrics,
        queues: Queues,
        stream: DynamoDbStream,
        service: ServiceSettings,
    ) -> Result<Self> {
        let settings = StreamSettings {
            batch_size: DISPATCH_BATCH,
            filter_criteria: FilterCriteria::parse([DISPATCH_FILTER])?,
            maximum_retry_attempts: Some(DISPATCH_RETRIES),
            bisect_batch_on_function_error: true,
            report_batch_item_failures: true,
            on_failure: Some(queues.dispatch_failures.clone()),
            ..StreamSettings::of("dispatch")
        };
        let settle = QueueMappingSettings { batch_size: SETTLE_BATCH, report_batch_item_failures: true };
        Ok(Self {
            functions,
            clock,
            metrics,
            schedules: SCHEDULES.iter().map(|spec| Schedule::new(spec, zone)).collect::<Result<_>>()?,
            dispatch: StreamMapping::new(settings, stream.clone())?,
            aggregator: StreamMapping::new(aggregator_settings()?, stream)?,
            settle: QueueMapping::new(settle, queues.results.clone()),
            service: TransactionService::new(service, queues.requests.clone(), queues.results.clone()),
            queues,
        })
    }

    /// The same with another period for one of its schedules.
    #[must_use]
    pub fn with_period(mut self, schedule: &str, period: TimeDelta) -> Self {
        let schedules = std::mem::take(&mut self.schedules).into_iter();
        self.schedules =
            schedules.map(|known| if known.spec().name == schedule { known.every(period) } else { known }).collect();
        self
    }

    /// The transaction service.
    #[must_use]
    pub fn service(&self) -> &TransactionService {
        &self.service
    }

    /// The queues.
    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Does all that has fallen due: schedules first, then stream and queues until nothing in them
    /// is ready. When it returns, no write is in flight. What goes wrong is told, and left for the
    /// next tick.
    pub async fn tick(&mut self, now: DateTime<Utc>) -> Tick {
        let mut tick = Tick::default();
        self.run_schedules(now, &mut tick).await;
        loop {
            let relayed = self.relay(now, &mut tick).await;
            let step = self.service.step(now);
            tick.taken += step.taken;
            tick.answered += step.answered;
            let settled = self.settle(now, &mut tick).await;
            let counted = self.count(now, &mut tick).await;
            if !relayed && !settled && !counted && step == Default::default() {
                break;
            }
        }
        tick.counts = Counts::of(&self.metrics.take());
        if tick.counts.counted > 0 {
            tick.today = today(&self.functions, now).await;
        }
        tick
    }

    async fn run_schedules(&mut self, now: DateTime<Utc>, tick: &mut Tick) {
        let due: Vec<ScheduleSpec> =
            self.schedules.iter_mut().filter_map(|it| it.falls_due(now).then_some(it.spec())).collect();
        for spec in due {
            let started = Instant::now();
            let context = context(self.clock.instant(), TIMEOUT);
            if let Err(error) = invoke(&self.functions, &spec, context).await {
                tick.troubles.push(format!("{}: {error}", spec.name));
            }
            let took = match spec.function {
                "archive" => &mut tick.took.archive,
                "report" => &mut tick.took.report,
                "recount" => &mut tick.took.recount,
                _ => &mut tick.took.sweep,
            };
            *took += started.elapsed();
        }
    }

    /// The stream to `dispatch`, until nothing is left of it. Says whether there was anything.
    async fn relay(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let (started, mut any) = (Instant::now(), false);
        let dispatch = &self.functions.dispatch;
        let function = |event: Value| async move {
            let event: dynamodb::Event = read(event)?;
            written(&dispatch.handle(event).await.map_err(|error| chain(&*error))?)
        };
        loop {
            match self.dispatch.step(now, function).await {
                Ok(deliveries) if deliveries.is_empty() => break,
                Ok(deliveries) => {
                    any = true;
                    deliveries.iter().for_each(|delivery| tell("dispatch", delivery, tick));
                }
                Err(error) => {
                    tick.troubles.push(format!("dispatch: {}", chain(&error)));
                    break;
                }
            }
        }
        tick.took.dispatch += started.elapsed();
        any
    }

    /// The stream to `stream-aggregator`, until nothing is left of it. Says whether there was anything.
    async fn count(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let (started, mut any) = (Instant::now(), false);
        let aggregator = &self.functions.aggregator;
        let function = |event: Value| async move {
            let event: stream_aggregator::Event = read(event)?;
            written(&aggregator.handle(event).await.map_err(|error| chain(&*error))?)
        };
        loop {
            match self.aggregator.step(now, function).await {
                Ok(deliveries) if deliveries.is_empty() => break,
                Ok(deliveries) => {
                    any = true;
                    deliveries.iter().for_each(|delivery| tell("stream-aggregator", delivery, tick));
                    // What cannot be counted now comes again at the next tick, and not at once.
                    if deliveries.iter().any(|delivery| matches!(delivery.outcome, Outcome::Retrying { .. })) {
                        break;
                    }
                }
                Err(error) => {
                    tick.troubles.push(format!("stream-aggregator: {}", chain(&error)));
                    break;
                }
            }
        }
        tick.took.aggregate += started.elapsed();
        any
    }

    /// The results to `settle`, until none is visible. Says whether there was any.
    async fn settle(&mut self, now: DateTime<Utc>, tick: &mut Tick) -> bool {
        let (started, mut any) = (Instant::now(), false);
        let settle = &self.functions.settle;
        let function = |event: Value| async move {
            let event: sqs::SqsEvent = read(event)?;
            written(&settle.handle(event).await)
        };
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

impl std::fmt::Debug for Plant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plant({:?})", self.schedules)
    }
}

/// Invokes the function of a schedule with its input.
async fn invoke(functions: &Functions, spec: &ScheduleSpec, context: Context) -> Result<(), String> {
    let input: Value = serde_json::from_str(spec.input).map_err(|error| chain(&error))?;
    functions.scheduled(spec.function, input, context).await.map(drop)
}

/// Today's counts as the API has them.
async fn today(functions: &Functions, now: DateTime<Utc>) -> Option<String> {
    let (parts, ()) = http::Request::get("/counts").body(()).ok()?.into_parts();
    let (function, event) = crate::event::of(&parts, b"", "plant", now).ok()?;
    let Some(Body::Text(answer)) = functions.invoke(function, event).await.body else { return None };
    let answer: Value = serde_json::from_str(&answer).ok()?;
    tick::told(answer["counts"].get(0)?)
}

/// What Lambda tells a function about its invocation.
fn context(now: DateTime<Utc>, timeout: TimeDelta) -> Context {
    let mut context = Context::default();
    context.deadline = u64::try_from((now + timeout).timestamp_millis()).unwrap_or(0);
    context
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

pub(crate) fn read<T: DeserializeOwned>(event: Value) -> Result<T, String> {
    serde_json::from_value(event).map_err(|error| error.to_string())
}

pub(crate) fn written(answer: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

/// Tells what did not go well with a delivery.
fn tell(function: &str, delivery: &Delivery, tick: &mut Tick) {
    match &delivery.outcome {
        Outcome::Succeeded => {}
        Outcome::Retrying { why, remaining } => {
            tick.troubles.push(format!("{function}: {remaining} records come again: {why}"));
        }
        Outcome::Discarded { condition, records } => {
            tick.troubles.push(format!("{function}: {records} records put aside: {}", condition.as_str()));
        }
    }
}
