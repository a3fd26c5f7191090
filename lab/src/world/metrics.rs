//! The metrics of a month: the functions' own, and those that AWS emits about what it runs.
//!
//! | metric | as it is described in |
//! |---|---|
//! | `AWS/Lambda` Invocations, Errors, IteratorAge | *AWS Lambda Developer Guide*, "Types of metrics for Lambda functions" |
//! | `AWS/Lambda` PolledEventCount, FailedInvokeEventCount, DroppedEventCount | the same page, "Event source mapping metrics" |
//! | `AWS/SQS` visible messages, age of the oldest | *Amazon SQS Developer Guide*, "Available CloudWatch metrics for Amazon SQS" |
//! | `AWS/DynamoDB` WriteThrottleEvents | *Amazon DynamoDB Developer Guide*, "DynamoDB Metrics and dimensions" |
//! | `AWS/ApiGateway` 5xx | *Amazon API Gateway Developer Guide*, "Monitor HTTP APIs with CloudWatch metrics" |

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use payments_alarms::{Metric, Resources, Sample, Samples};
use payments_machine::Queues;
use serde_json::Value;

/// The metrics. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    own: payments_boot::Metrics,
    resources: Arc<Resources>,
    seen: Arc<Mutex<Vec<(Metric, i64)>>>,
}

impl Metrics {
    /// Creates metrics that begin now. The functions emit theirs to `own`.
    pub(crate) fn new(own: payments_boot::Metrics, resources: Resources) -> Self {
        Self { own, resources: Arc::new(resources), seen: Arc::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<(Metric, i64)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_function(&self, name: &str, package: &str, value: i64) {
        if let Ok(id) = self.resources.function(package) {
            self.seen().push((Metric::new("AWS/Lambda", name, "FunctionName", id), value));
        }
    }

    fn of_mapping(&self, name: &str, package: &str, value: usize) {
        if let Ok(id) = self.resources.mapping(package) {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            self.seen().push((Metric::new("AWS/Lambda", name, "EventSourceMappingUUID", id), value));
        }
    }

    /// Counts an invocation. Errors are those of the code, and those of the runtime: timeouts and ends of the process.
    pub(crate) fn invoked(&self, package: &str, failed: bool) {
        self.of_function("Invocations", package, 1);
        if failed {
            self.of_function("Errors", package, 1);
        }
    }

    /// Notes the age of the last record of an event of the stream, when the mapping sends it to the function.
    pub(crate) fn sent(&self, package: &str, event: &Value, now: DateTime<Utc>) {
        let last = event["Records"].as_array().and_then(|records| records.last());
        let created = last.and_then(|record| record["dynamodb"]["ApproximateCreationDateTime"].as_i64());
        if let Some(created) = created.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
            self.of_function("IteratorAge", package, (now - created).num_milliseconds().max(0));
        }
    }

    /// Counts events that a mapping has read. An enabled mapping polls all the time, and counts 0
    /// without events. A disabled one does not poll.
    pub(crate) fn polled(&self, package: &str, events: usize) {
        self.of_mapping("PolledEventCount", package, events);
    }

    /// Counts events that a mapping invoked its function with, and that failed: all of a batch of which the function
    /// reports some.
    pub(crate) fn failed(&self, package: &str, events: usize) {
        self.of_mapping("FailedInvokeEventCount", package, events);
    }

    /// Counts events whose retries are exhausted and that reached no failure destination.
    pub(crate) fn dropped(&self, package: &str, events: usize) {
        self.of_mapping("DroppedEventCount", package, events);
    }

    /// Counts a write that was throttled at a place: a table, or a table and its index.
    pub(crate) fn throttled(&self, place: &str) {
        let (table, index) = place.split_once('/').map_or((place, None), |(table, index)| (table, Some(index)));
        let table = if table == "payments" { "PaymentsTable" } else { "HistoryTable" };
        let mut metric = Metric::new("AWS/DynamoDB", "WriteThrottleEvents", "TableName", table);
        metric.dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName".to_owned(), index.to_owned())));
        self.seen().push((metric, 1));
    }

    /// Counts a response of the API. A function that fails or is killed is one, too.
    pub(crate) fn answered(&self, status: u16) {
        if status >= 500 {
            self.seen().push((Metric::new("AWS/ApiGateway", "5xx", "ApiId", "PaymentsApi"), 1));
        }
    }

    /// Reads the queues. SQS sends these metrics each minute.
    pub(crate) fn look_at(&self, queues: &Queues, now: DateTime<Utc>) {
        for (id, queue) in queues.by_resource() {
            let visible = i64::try_from(queue.counts(now).visible).unwrap_or(i64::MAX);
            let age = queue.oldest_sent_at().map_or(0, |sent_at| (now - sent_at).num_seconds());
            for (name, value) in
                [("ApproximateNumberOfMessagesVisible", visible), ("ApproximateAgeOfOldestMessage", age)]
            {
                self.seen().push((Metric::new("AWS/SQS", name, "QueueName", id), value));
            }
        }
    }

    /// Takes the samples of the minute that ends now.
    ///
    /// # Errors
    /// If a function emitted a malformed line.
    pub(crate) fn take(&self, end: DateTime<Utc>) -> Result<Samples> {
        let at = end - TimeDelta::minutes(1);
        let mut samples = Samples::default();
        for line in self.own.take() {
            samples.extend(self.resources.samples_of(&line, at).context(line)?);
        }
        let seen = std::mem::take(&mut *self.seen());
        samples.extend(seen.into_iter().map(|(metric, value)| Sample { metric, at, value }));
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use payments_alarms::Minute;
    use serde_json::json;

    use payments_machine::Template;

    use super::*;
    use crate::world::template::template;

    fn metrics() -> Metrics {
        Metrics::new(payments_boot::Metrics::captured(), Resources::parse(template().unwrap()).unwrap())
    }

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_796_000_460, 0).unwrap()
    }

    /// The count and the sum of a metric's samples.
    fn found(metrics: &Metrics, wanted: &[(Metric, i64, i64)]) {
        let samples = metrics.take(now()).unwrap();
        for (metric, count, sum) in wanted {
            let minute = samples.in_minute_before(metric, now());
            let of = |minute: Minute| (minute.count, minute.sum);
            assert_eq!(minute.map_or((0, 0), of), (*count, *sum), "{metric:?}");
        }
        assert_eq!(samples.metrics().count(), wanted.iter().filter(|(_, count, _)| *count > 0).count());
    }

    fn of_lambda(name: &str, dimension: &str, id: &str) -> Metric {
        Metric::new("AWS/Lambda", name, dimension, id)
    }

    #[test]
    fn invocations_and_errors_are_those_of_a_function() {
        let metrics = metrics();
        metrics.invoked("settle", false);
        metrics.invoked("settle", true);
        metrics.invoked("report", false);
        let of = |name: &str, id: &str| of_lambda(name, "FunctionName", id);
        found(
            &metrics,
            &[
                (of("Invocations", "SettleFunction"), 2, 2),
                (of("Errors", "SettleFunction"), 1, 1),
                (of("Invocations", "ReportFunction"), 1, 1),
                (of("Errors", "ReportFunction"), 0, 0),
            ],
        );
        found(&metrics, &[]);
    }

    #[test]
    fn the_iterator_age_is_that_of_the_last_record_of_an_event() {
        let metrics = metrics();
        let record =
            |seconds: i64| json!({ "dynamodb": { "ApproximateCreationDateTime": now().timestamp() - seconds } });
        metrics.sent("dispatch", &json!({ "Records": [record(900), record(7)] }), now());
        // The end of a window has no records.
        metrics.sent("dispatch", &json!({ "Records": [], "isFinalInvokeForWindow": true }), now());
        found(&metrics, &[(of_lambda("IteratorAge", "FunctionName", "DispatchFunction"), 1, 7_000)]);
    }

    #[test]
    fn a_mapping_counts_what_it_polls_and_what_fails_and_is_dropped() {
        let metrics = metrics();
        metrics.polled("dispatch", 0);
        metrics.polled("dispatch", 12);
        metrics.failed("settle", 10);
        metrics.dropped("stream-aggregator", 3);
        // No mapping invokes it.
        metrics.polled("report", 1);
        let of = |name: &str, id: &str| of_lambda(name, "EventSourceMappingUUID", id);
        found(
            &metrics,
            &[
                (of("PolledEventCount", "DispatchFunctionBecamePending"), 2, 12),
                (of("FailedInvokeEventCount", "SettleFunctionReport"), 1, 10),
                (of("DroppedEventCount", "StreamAggregatorFunctionHeadChanged"), 1, 3),
            ],
        );
    }

    #[test]
    fn a_queue_has_visible_messages_and_an_oldest_one() {
        let (metrics, queues) = (metrics(), Queues::from_template(Template::ours().unwrap()).unwrap());
        queues.results.send("a", now() - TimeDelta::seconds(90)).unwrap();
        queues.results.send("b", now()).unwrap();
        assert_eq!(queues.results.receive(1, now()).len(), 1);
        metrics.look_at(&queues, now());
        let samples = metrics.take(now()).unwrap();
        let of =
            |name: &str| samples.in_minute_before(&Metric::new("AWS/SQS", name, "QueueName", "ResultQueue"), now());
        assert_eq!(of("ApproximateNumberOfMessagesVisible").unwrap().sum, 1);
        assert_eq!(of("ApproximateAgeOfOldestMessage").unwrap().sum, 90);
        assert_eq!(samples.metrics().count(), 10);
    }

    #[test]
    fn throttles_are_those_of_a_table_or_of_an_index() {
        let metrics = metrics();
        for place in ["payments", "payments/due", "payments/due", "payment-history/transaction"] {
            metrics.throttled(place);
        }
        let of = |table: &str, index: Option<&str>| {
            let mut metric = Metric::new("AWS/DynamoDB", "WriteThrottleEvents", "TableName", table);
            metric.dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName".to_owned(), index.to_owned())));
            metric
        };
        found(
            &metrics,
            &[
                (of("PaymentsTable", None), 1, 1),
                (of("PaymentsTable", Some("due")), 2, 2),
                (of("HistoryTable", Some("transaction")), 1, 1),
            ],
        );
    }

    #[test]
    fn the_api_counts_its_own_errors_and_not_the_clients() {
        let metrics = metrics();
        [200, 422, 429, 500, 503].into_iter().for_each(|status| metrics.answered(status));
        found(&metrics, &[(Metric::new("AWS/ApiGateway", "5xx", "ApiId", "PaymentsApi"), 2, 2)]);
    }

    #[test]
    fn a_function_emits_its_own_metrics() {
        let metrics = metrics();
        let line = r#"{"_aws":{"CloudWatchMetrics":[{"Namespace":"ScheduledPayments","Dimensions":[["Function"]],"Metrics":[{"Name":"Sent"}]}],"Timestamp":0},"Sent":4,"Function":"dispatch"}"#;
        let samples = metrics.resources.samples_of(line, now()).unwrap();
        assert_eq!(samples[0].metric, Metric::new("ScheduledPayments", "Sent", "Function", "DispatchFunction"));
        found(&metrics, &[]);
    }
}
