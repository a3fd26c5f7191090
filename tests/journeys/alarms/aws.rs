//! Faults that show in AWS's own metrics: queues, Lambda, mappings, DynamoDB, the API. And functions that do not run.

use payments_tests::prelude::*;

use chrono::TimeDelta;
use payments_alarms::{Metric, Sample};

use super::day::{Day, ids};
use super::fault::Fault;

/// The minute of the day in which a fault begins.
const BEGINS: i64 = 11 * 60;

/// A metric that has a value in each of some minutes, and the alarm that it sets off; none if it is too small for one.
type Row = (&'static str, Metric, i64, i64);

impl Day {
    fn with(&self, (alarm, metric, minutes, value): Row) -> Fault {
        let at = |minute: i64| self.begin + TimeDelta::minutes(BEGINS + minute);
        let samples = (0..minutes).map(|minute| Sample { metric: metric.clone(), at: at(minute), value }).collect();
        let what = format!("{value} in each of {minutes} minutes of {metric:?}");
        let alarms = Some(alarm).filter(|alarm| !alarm.is_empty()).into_iter().collect();
        Fault { what, alarms, silent: Vec::new(), samples }
    }
}

fn without(alarm: &'static str, metric: Metric) -> Fault {
    let what = format!("nothing of {metric:?}");
    Fault { what, alarms: vec![alarm], silent: vec![metric], samples: Vec::new() }
}

fn of_lambda(name: &str, function: &str) -> Metric {
    Metric::new("AWS/Lambda", name, "FunctionName", function)
}

fn of_mapping(name: &str, mapping: &str) -> Metric {
    Metric::new("AWS/Lambda", name, "EventSourceMappingUUID", mapping)
}

fn of_queue(name: &str, queue: &str) -> Metric {
    Metric::new("AWS/SQS", name, "QueueName", queue)
}

/// A function's own metric.
fn own(name: &str, function: &str) -> Metric {
    Metric::new("ScheduledPayments", name, "Function", function)
}

/// All of them.
pub(super) fn faults(day: &Day) -> Result<Vec<Fault>> {
    let rows = [queues(), streams()?, functions()?, tables()].concat();
    let mut faults: Vec<Fault> = rows.into_iter().map(|row| day.with(row)).collect();
    let report = day.with(("ReportErrors", of_lambda("Errors", "ReportFunction"), 10, 2));
    faults.push(Fault { alarms: vec!["ReportErrors", "FunctionErrors"], ..report });
    // A healthy day has an endpoint, which lacks nothing.
    let behind = own("WebhookSegmentsBehind", "PublishFunction");
    for (alarm, minutes, segments) in [("WebhooksBehind", 70, 1), ("", 50, 1_000)] {
        let fault = day.with((alarm, behind.clone(), minutes, segments));
        faults.push(Fault { silent: vec![behind.clone()], ..fault });
    }
    faults.extend(silence(day));
    Ok(faults)
}

fn queues() -> Vec<Row> {
    let (depth, age) = ("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage");
    vec![
        ("RequestDeadLettersAlarm", of_queue(depth, "RequestDeadLetters"), 1, 1),
        ("ResultDeadLettersAlarm", of_queue(depth, "ResultDeadLetters"), 1, 1),
        ("DispatchFailuresAlarm", of_queue(depth, "DispatchFailures"), 1, 1),
        ("RequestsWaiting", of_queue(age, "RequestQueue"), 10, 3_601),
        ("ResultsWaiting", of_queue(age, "ResultQueue"), 10, 3_601),
        // A backlog that is worked off.
        ("", of_queue(depth, "ResultQueue"), 60, 100_000),
        ("", of_queue(age, "ResultQueue"), 60, 3_600),
    ]
}

fn streams() -> Result<Vec<Row>> {
    let aggregator = || of_lambda("IteratorAge", "StreamAggregatorFunction");
    let mut rows = vec![
        ("DispatchBehind", of_lambda("IteratorAge", "DispatchFunction"), 10, 300_001),
        ("CountsBehind", aggregator(), 1, 3_600_001),
        ("", aggregator(), 60, 3_600_000),
    ];
    // The next tick of `publish` does what was not delivered to it.
    for mapping in ids()?.mappings().iter().filter(|it| !it.starts_with("Publish")) {
        rows.push(("RecordsFailing", of_mapping("FailedInvokeEventCount", mapping), 15, 1));
        if !mapping.starts_with("Settle") {
            rows.push(("RecordsDropped", of_mapping("DroppedEventCount", mapping), 1, 1));
            // Records that a retry heals.
            rows.push(("", of_mapping("FailedInvokeEventCount", mapping), 5, 1_000));
        }
    }
    Ok(rows)
}

fn functions() -> Result<Vec<Row>> {
    let ids = ids()?;
    let errors = |package: &str| anyhow::Ok(of_lambda("Errors", ids.function(package)?));
    let mut rows = Vec::new();
    for (package, alarm) in [
        ("report", "ReportErrors"),
        ("archive", "ArchiveErrors"),
        ("seal", "SealErrors"),
        ("recount", "RecountErrors"),
        ("redate", "RedateErrors"),
    ] {
        rows.push((alarm, errors(package)?, 1, 1));
    }
    let of_api = ["ingest", "query-account", "query-due", "webhooks"].map(|package| (package, "ApiFunctionErrors"));
    let others = ["daily-due-sweeper", "dispatch", "settle", "stream-aggregator", "publish", "undo"];
    for (package, alarm) in of_api.into_iter().chain(others.map(|package| (package, "FunctionErrors"))) {
        rows.extend([(alarm, errors(package)?, 10, 2), ("", errors(package)?, 60, 1)]);
    }
    rows.push(("SealDiffers", own("SealDiffers", "SealFunction"), 1, 1));
    let bus = || own("BusSegmentsBehind", "PublishFunction");
    let api = || Metric::new("AWS/ApiGateway", "5xx", "ApiId", "PaymentsApi");
    rows.extend([("BusBehind", bus(), 20, 1), ("", bus(), 5, 1_000), ("ApiErrors", api(), 10, 3), ("", api(), 1, 100)]);
    Ok(rows)
}

/// Work that should run and does not.
fn silence(day: &Day) -> Vec<Fault> {
    let recounts = of_lambda("Invocations", "RecountFunction");
    // The clocks go back: 25 hours from one night's recount to the next one's.
    let night =
        |minutes: i64| Sample { metric: recounts.clone(), at: day.begin + TimeDelta::minutes(minutes), value: 1 };
    let of_dispatch = of_mapping("PolledEventCount", "DispatchFunctionBecamePending");
    let of_counting = of_mapping("PolledEventCount", "StreamAggregatorFunctionHeadChanged");
    vec![
        without("DispatchStopped", of_dispatch),
        without("CountingStopped", of_counting),
        without("ArchiveStopped", of_lambda("Invocations", "ArchiveFunction")),
        without("RecountStopped", recounts.clone()),
        without("RedateStopped", of_lambda("Invocations", "RedateFunction")),
        Fault {
            samples: vec![night(-30), night(25 * 60 - 30)],
            what: "a day of 25 hours".to_owned(),
            alarms: Vec::new(),
            ..without("", recounts.clone())
        },
        without("PaymentsOverdue", own("OldestOverdueSeconds", "DailyDueSweeperFunction")),
        without("SealBehind", own("SealBehind", "SealFunction")),
        without("RedriveFailures", own("RedriveFailed", "DailyDueSweeperFunction")),
        without("ReportsLate", own("OldestUnreportedSeconds", "ReportFunction")),
        without("JournalBehind", own("JournalSegmentsBehind", "PublishFunction")),
    ]
}

fn tables() -> Vec<Row> {
    let throttles = |table: &str, index: Option<&&str>| {
        let mut dimensions = BTreeMap::from([("TableName".to_owned(), table.to_owned())]);
        dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName".to_owned(), (*index).to_owned())));
        Metric { namespace: "AWS/DynamoDB".to_owned(), name: "WriteThrottleEvents".to_owned(), dimensions }
    };
    let mut rows = Vec::new();
    for (table, indexes) in [
        ("PaymentsTable", &["due", "unreported", "moved"][..]),
        ("HistoryTable", &["due", "transaction", "moved"]),
        ("LogTable", &[]),
    ] {
        for index in std::iter::once(None).chain(indexes.iter().map(Some)) {
            rows.extend([("WriteThrottles", throttles(table, index), 10, 21), ("", throttles(table, index), 60, 20)]);
        }
    }
    rows
}
