//! Faults that show in AWS's own metrics: queues, Lambda, mappings, DynamoDB, the API. And functions that do not run.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::TimeDelta;
use payments_alarms::{Metric, Sample};

use super::day::{Day, ids};
use super::fault::Fault;

/// How many minutes into the day a fault begins.
const BEGINS: i64 = 11 * 60;

/// A metric that has a value in each of some minutes.
fn lasting(day: &Day, metric: &Metric, minutes: i64, value: i64) -> Vec<Sample> {
    let at = |minute: i64| day.begin + TimeDelta::minutes(BEGINS + minute);
    (0..minutes).map(|minute| Sample { metric: metric.clone(), at: at(minute), value }).collect()
}

fn with(day: &Day, alarms: &[&'static str], metric: &Metric, minutes: i64, value: i64) -> Fault {
    let samples = lasting(day, metric, minutes, value);
    let what = format!("{value} in each of {minutes} minutes of {metric:?}");
    Fault { what, alarms: alarms.to_vec(), silent: Vec::new(), samples }
}

fn without(alarms: &[&'static str], metric: Metric) -> Fault {
    let what = format!("nothing of {metric:?}");
    Fault { what, alarms: alarms.to_vec(), silent: vec![metric], samples: Vec::new() }
}

fn of_lambda(name: &str, function: &str) -> Metric {
    Metric::of("AWS/Lambda", name, "FunctionName", function)
}

fn of_mapping(name: &str, mapping: &str) -> Metric {
    Metric::of("AWS/Lambda", name, "EventSourceMappingUUID", mapping)
}

fn of_queue(name: &str, queue: &str) -> Metric {
    Metric::of("AWS/SQS", name, "QueueName", queue)
}

/// All of them.
pub(super) fn faults(day: &Day) -> Result<Vec<Fault>> {
    Ok([queues(day), streams(day)?, functions(day)?, silence(day), tables(day)].concat())
}

fn queues(day: &Day) -> Vec<Fault> {
    let (depth, age) = ("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage");
    vec![
        with(day, &["RequestDeadLettersAlarm"], &of_queue(depth, "RequestDeadLetters"), 1, 1),
        with(day, &["ResultDeadLettersAlarm"], &of_queue(depth, "ResultDeadLetters"), 1, 1),
        with(day, &["DispatchFailuresAlarm"], &of_queue(depth, "DispatchFailures"), 1, 1),
        with(day, &["RequestsWaiting"], &of_queue(age, "RequestQueue"), 10, 3_601),
        with(day, &["ResultsWaiting"], &of_queue(age, "ResultQueue"), 10, 3_601),
        // A backlog that is worked off.
        with(day, &[], &of_queue(depth, "ResultQueue"), 60, 100_000),
        with(day, &[], &of_queue(age, "ResultQueue"), 60, 3_600),
    ]
}

fn streams(day: &Day) -> Result<Vec<Fault>> {
    let ids = ids()?;
    // What is not delivered to `publish`, its next tick does.
    let mappings: Vec<String> = ids.mappings().iter().filter(|it| !it.starts_with("Publish")).cloned().collect();
    let failing =
        |mapping: &String| with(day, &["RecordsFailing"], &of_mapping("FailedInvokeEventCount", mapping), 15, 1);
    let mut faults: Vec<Fault> = mappings.iter().map(failing).collect();
    for mapping in mappings.iter().filter(|mapping| !mapping.starts_with("Settle")) {
        faults.push(with(day, &["RecordsDropped"], &of_mapping("DroppedEventCount", mapping), 1, 1));
        // Records that a retry heals.
        faults.push(with(day, &[], &of_mapping("FailedInvokeEventCount", mapping), 5, 1_000));
    }
    faults.extend([
        with(day, &["DispatchBehind"], &of_lambda("IteratorAge", "DispatchFunction"), 10, 300_001),
        with(day, &["CountsBehind"], &of_lambda("IteratorAge", "StreamAggregatorFunction"), 1, 3_600_001),
        with(day, &[], &of_lambda("IteratorAge", "StreamAggregatorFunction"), 60, 3_600_000),
        without(&["DispatchStopped"], of_mapping("PolledEventCount", "DispatchFunctionBecamePending")),
        without(&["CountingStopped"], of_mapping("PolledEventCount", "StreamAggregatorFunctionHeadChanged")),
    ]);
    Ok(faults)
}

fn functions(day: &Day) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for (package, alarm) in [
        ("report", "ReportErrors"),
        ("archive", "ArchiveErrors"),
        ("recount", "RecountErrors"),
        ("redate", "RedateErrors"),
    ] {
        faults.push(with(day, &[alarm], &of_lambda("Errors", ids()?.function(package)?), 1, 1));
    }
    let of_api = ["ingest", "query-account", "query-due", "webhooks"].map(|package| (package, "ApiFunctionErrors"));
    let others = ["daily-due-sweeper", "dispatch", "settle", "stream-aggregator", "publish"];
    for (package, alarm) in of_api.into_iter().chain(others.map(|package| (package, "FunctionErrors"))) {
        faults.push(with(day, &[alarm], &of_lambda("Errors", ids()?.function(package)?), 10, 2));
        faults.push(with(day, &[], &of_lambda("Errors", ids()?.function(package)?), 60, 1));
    }
    faults.push(with(day, &["ReportErrors", "FunctionErrors"], &of_lambda("Errors", "ReportFunction"), 10, 2));
    let behind = Metric::of("ScheduledPayments", "WebhookSegmentsBehind", "Function", ids()?.function("publish")?);
    // A healthy day has an endpoint, which lacks nothing.
    let instead = |fault: Fault| Fault { silent: vec![behind.clone()], ..fault };
    faults.extend([with(day, &["WebhooksBehind"], &behind, 70, 1), with(day, &[], &behind, 50, 1_000)].map(instead));
    let of_bus =
        |name: &str| anyhow::Ok(Metric::of("ScheduledPayments", name, "Function", ids()?.function("publish")?));
    faults.push(with(day, &["BusBehind"], &of_bus("BusSegmentsBehind")?, 20, 1));
    faults.push(with(day, &[], &of_bus("BusSegmentsBehind")?, 5, 1_000));
    let api = Metric::of("AWS/ApiGateway", "5xx", "ApiId", "PaymentsApi");
    faults.extend([with(day, &["ApiErrors"], &api, 10, 3), with(day, &[], &api, 1, 100)]);
    Ok(faults)
}

/// What should run and does not.
fn silence(day: &Day) -> Vec<Fault> {
    let own = |name: &str, function: &str| Metric::of("ScheduledPayments", name, "Function", function);
    let recounts = of_lambda("Invocations", "RecountFunction");
    // The clocks go back: 25 hours from one night's recount to the next one's.
    let night =
        |minutes: i64| Sample { metric: recounts.clone(), at: day.begin + TimeDelta::minutes(minutes), value: 1 };
    vec![
        without(&["ArchiveStopped"], of_lambda("Invocations", "ArchiveFunction")),
        without(&["RecountStopped"], recounts.clone()),
        without(&["RedateStopped"], of_lambda("Invocations", "RedateFunction")),
        Fault {
            samples: vec![night(-30), night(25 * 60 - 30)],
            what: "a day of 25 hours".to_owned(),
            ..without(&[], recounts.clone())
        },
        without(&["PaymentsOverdue"], own("OldestOverdueSeconds", "DailyDueSweeperFunction")),
        without(&["RedriveFailures"], own("RedriveFailed", "DailyDueSweeperFunction")),
        without(&["ReportsLate"], own("OldestUnreportedSeconds", "ReportFunction")),
        without(&["JournalBehind"], own("JournalSegmentsBehind", "PublishFunction")),
    ]
}

fn tables(day: &Day) -> Vec<Fault> {
    let throttles = |table: &str, index: Option<&str>| {
        let mut dimensions = BTreeMap::from([("TableName".to_owned(), table.to_owned())]);
        dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName".to_owned(), index.to_owned())));
        Metric { namespace: "AWS/DynamoDB".to_owned(), name: "WriteThrottleEvents".to_owned(), dimensions }
    };
    let mut faults = Vec::new();
    for (table, indexes) in [
        ("PaymentsTable", &["due", "unreported", "moved"][..]),
        ("HistoryTable", &["due", "transaction", "moved"]),
        ("LogTable", &[]),
    ] {
        for index in std::iter::once(None).chain(indexes.iter().map(|index| Some(*index))) {
            faults.push(with(day, &["WriteThrottles"], &throttles(table, index), 10, 21));
            faults.push(with(day, &[], &throttles(table, index), 60, 20));
        }
    }
    faults
}
