//! The functions, with a record of each invocation, call, message, file and line of log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use aws_lambda_events::encodings::Body;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use lambda_runtime::Context;
use payments_bank::{Dependencies, Functions};
use payments_boot::{Clock, log_filter};
use payments_http::HttpFunction;
use payments_machine::layers::client_over;
use payments_machine::{Handlers, LocalRun, Recorder, Run, Stack};
use payments_queue::{PaymentRequest, Queue, QueueError, SENT_AT_ONCE, TransactionQueue};
use serde_json::Value;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::quantities::Quantities;

/// The bytes of a request that API Gateway charges as one, and those of a call of SQS.
const REQUEST_BYTES: usize = 512 * 1024;
const CALL_BYTES: usize = 64 * 1024;

/// The bytes of a line that CloudWatch charges besides its text.
const LINE_BYTES: u64 = 26;

/// The quantities so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Quantities>>);

impl Record {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Quantities> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The functions, each over a recorder of its own.
#[derive(Debug)]
pub(crate) struct Recorded {
    functions: Functions,
    clock: Clock,
    record: Record,
    /// The functions whose requests are not recorded, if any.
    unrecorded: Option<Functions>,
}

impl Recorded {
    /// Creates the functions on a machine. Returns them with the recorders of their calls.
    pub(crate) fn on(stack: &Stack, record: &Record) -> Result<(Self, Vec<(&'static str, Recorder)>)> {
        let recorders = Mutex::new(Vec::new());
        let functions = Functions::within(&stack.environment, |function| {
            let recorder = stack.recorder();
            let client = client_over(&stack.client(), recorder.clone());
            recorders.lock().unwrap_or_else(PoisonError::into_inner).push((function, recorder));
            let requests = Requests { queue: stack.queues.requests.clone(), record: record.clone() };
            let metrics = stack.metrics.for_function(function);
            Ok(Dependencies { requests: Arc::new(requests), metrics, ..Dependencies::on(stack, client) })
        })?;
        let recorders = recorders.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (clock, record) = (stack.clock.clone(), record.clone());
        Ok((Self { functions, clock, record, unrecorded: None }, recorders))
    }

    /// Returns the same functions, with requests that are not recorded.
    pub(crate) fn without_requests(&self, stack: &Stack) -> Result<Self> {
        let unrecorded = Some(Functions::on(stack, &stack.client())?);
        Ok(Self {
            functions: self.functions.clone(),
            clock: self.clock.clone(),
            record: self.record.clone(),
            unrecorded,
        })
    }

    /// Records the end of an invocation, with the time for which it waited.
    fn invoked(&self, function: &str, began: DateTime<Utc>) {
        let waited = u64::try_from((self.clock.instant() - began).num_milliseconds()).unwrap_or(0);
        let mut record = self.record.lock();
        record.add(format!("{function}, invocations"), 1);
        record.add(format!("{function}, ms of waits"), waited);
    }
}

impl Handlers for Recorded {
    fn scheduled(&self, function: &'static str, input: Value, context: Context) -> LocalRun<'_, Result<Value, String>> {
        let began = self.clock.instant();
        // The log's stream wakes `publish` with records; its schedule has none.
        if input.get("Records").is_none() {
            self.record.lock().add("schedules", 1);
        }
        let run = self.functions.scheduled(function, input, context);
        async move {
            let outcome = run.await;
            self.invoked(function, began);
            outcome
        }
        .boxed_local()
    }

    fn deliver(&self, function: &'static str, event: Value) -> Run<'_, Result<Value, String>> {
        let began = self.clock.instant();
        if event["Records"][0]["eventSource"] == "aws:sqs" {
            // A receive and a delete of the batch; a batch of ten is sent by the transaction service, too.
            let bytes = event.to_string().len();
            let messages = event["Records"].as_array().map_or(0, Vec::len);
            let sends = messages.div_ceil(SENT_AT_ONCE).max(bytes.div_ceil(CALL_BYTES));
            self.record.lock().add("calls of queues", calls(bytes) + 1 + u64::try_from(sends).unwrap_or(0));
        }
        let run = self.functions.deliver(function, event);
        async move {
            let outcome = run.await;
            self.invoked(function, began);
            outcome
        }
        .boxed()
    }

    fn invoke(&self, function: HttpFunction, event: ApiGatewayV2httpRequest) -> Run<'_, ApiGatewayV2httpResponse> {
        if let Some(functions) = &self.unrecorded {
            return functions.invoke(function, event);
        }
        let began = self.clock.instant();
        let bytes = event.body.as_ref().map_or(0, String::len);
        let route = event.route_key.clone().unwrap_or_default();
        let run = self.functions.invoke(function, event);
        async move {
            let response = run.await;
            self.invoked(function.name(), began);
            let answered = match &response.body {
                Some(Body::Text(text)) => text.len(),
                Some(Body::Binary(bytes)) => bytes.len(),
                _ => 0,
            };
            let charged = bytes.max(answered).div_ceil(REQUEST_BYTES).max(1);
            let mut record = self.record.lock();
            record.add("requests", u64::try_from(charged).unwrap_or(0));
            record.add("requests, access log", 1);
            record.add("bytes to the Internet", u64::try_from(answered).unwrap_or(0));
            record.metrics.entry(("route".to_owned(), route)).or_default();
            response
        }
        .boxed()
    }
}

fn calls(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(CALL_BYTES).max(1)).unwrap_or(u64::MAX)
}

/// The queue of requests. Its calls are those that `payments-sqs` makes: ten messages each, and three times for the way
/// of each: sent, received and deleted by the transaction service.
#[derive(Debug)]
struct Requests {
    queue: Queue,
    record: Record,
}

#[async_trait]
impl TransactionQueue for Requests {
    async fn send(&self, requests: &[PaymentRequest], now: DateTime<Utc>) -> Vec<Result<(), QueueError>> {
        for batch in requests.chunks(SENT_AT_ONCE) {
            let bytes = batch.iter().filter_map(|request| request.to_json().ok()).map(|text| text.len()).sum();
            self.record.lock().add("calls of queues", 2 * calls(bytes) + 1);
        }
        TransactionQueue::send(&self.queue, requests, now).await
    }
}

/// Records the log of this thread's functions, in the form that it has on AWS, until the guard is dropped.
pub(crate) fn log_to(record: &Record) -> DefaultGuard {
    let record = record.clone();
    let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).without_time();
    let layer = layer.with_writer(move || Log(record.clone()));
    tracing::subscriber::set_default(tracing_subscriber::registry().with(log_filter("info,dynoxide=off")).with(layer))
}

struct Log(Record);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        self.0.lock().add("bytes of log", length + LINE_BYTES);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds the lines of metrics that functions emitted, and the metrics that CloudWatch makes of them.
pub(crate) fn add_metrics(record: &mut Quantities, lines: &[String], hour: u32) -> Result<()> {
    for line in lines {
        record.add("bytes of log", u64::try_from(line.len())? + LINE_BYTES);
        let line: Value = serde_json::from_str(line)?;
        let function = line["Function"].as_str().unwrap_or_default();
        let named = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().into_iter().flatten();
        for name in named.filter_map(|metric| metric["Name"].as_str()) {
            record.metrics.entry((function.to_owned(), name.to_owned())).or_default().insert(hour);
        }
    }
    Ok(())
}
