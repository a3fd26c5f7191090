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
use aws_lambda_events::{dynamodb, sqs};
use chrono::{DateTime, TimeDelta, Utc};
use daily_due_sweeper::Request;
use lambda_runtime::{Context, LambdaEvent};
use payments_boot::{Clock, Metrics};
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{
    Delivery, DynamoDbStream, FilterCriteria, Outcome, QueueMapping, StreamMapping, StreamSettings,
};
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

/// The most results of one invocation of `settle`.
pub const SETTLE_BATCH: usize = 10;

/// How many invocations of `settle` are under way at once. Lambda begins with five pollers.
const SETTLE_POLLERS: usize = 5;

/// How long the sweeper may take. The template gives it longer; here the stream waits for it, and
/// so does whoever closes the bank.
const SWEEPER_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// All that runs by itself.
pub struct Plant {
    functions: Functions,
    clock: Clock,
    metrics: Metrics,
    queues: Queues,
    schedules: Vec<Schedule>,
    dispatch: StreamMapping,
    settle: QueueMapping,
    service: TransactionService,
}

impl Plant {
    /// The plant around `functions`, which have to send to `queues.requests` and to put their
    /// metrics into `metrics`. Nothing runs yet.
    ///
    /// The stream is read from its oldest record: what was handed over before is pending no more
    /// or handed over again, and both do no harm.
    ///
    /// # Errors
    /// Where the mapping is set up wrongly, which a test rules out.
    pub fn new(
        functions: Functions,
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
            schedules: SCHEDULES.iter().map(Schedule::new).collect(),
            dispatch: StreamMapping::new(settings, stream)?,
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
            schedules.map(|known| if known.name() == schedule { known.every(period) } else { known }).collect();
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
            if !relayed && !settled && step == Default::default() {
                break;
            }
        }
        tick.counts = Counts::of(&self.metrics.take());
        tick
    }

    async fn run_schedules(&mut self, now: DateTime<Utc>, tick: &mut Tick) {
        let started = Instant::now();
        for schedule in &mut self.schedules {
            if !schedule.falls_due(now) {
                continue;
            }
            let done = match schedule.event::<Request>() {
                Ok(event) => {
                    let event = LambdaEvent::new(event, context(self.clock.instant(), SWEEPER_TIMEOUT));
                    self.functions.sweeper.handle(event).await.map(drop).map_err(|error| chain(&*error))
                }
                Err(error) => Err(chain(&error)),
            };
            if let Err(error) = done {
                tick.troubles.push(format!("{}: {error}", schedule.name()));
            }
        }
        tick.took.sweep += started.elapsed();
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

/// What Lambda tells a function about its invocation.
fn context(now: DateTime<Utc>, timeout: TimeDelta) -> Context {
    let mut context = Context::default();
    context.deadline = u64::try_from((now + timeout).timestamp_millis()).unwrap_or(0);
    context
}

/// An error with all its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn read<T: DeserializeOwned>(event: Value) -> Result<T, String> {
    serde_json::from_value(event).map_err(|error| error.to_string())
}

fn written(answer: &impl Serialize) -> Result<Value, String> {
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
