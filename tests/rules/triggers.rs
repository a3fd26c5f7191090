//! Compares the triggers of `template.yaml` with the local ones: the stream mappings and their filters, the queues
//! and their limits, the schedules and their inputs.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use archive::ARCHIVE_EVERY;
use daily_due_sweeper::{REDRIVE_EVERY, SWEEP_EVERY};
use payments_machine::queues::{MAX_REQUEST_RECEIVES, MAX_RESULT_RECEIVES, RESULT_VISIBILITY};
use payments_machine::triggers::{
    AGGREGATOR_FILTER, DISPATCH_BATCH, DISPATCH_FILTER, DISPATCH_RETRIES, PUBLISH_FILTER, SCHEDULES, SETTLE_BATCH,
    aggregator_settings, publish_settings,
};
use serde_json::{Value, json};

use crate::template::{FUNCTION, http_events, package, resources, template, text};

/// The events of one type, each with its function.
fn events<'t>(template: &'t Value, kind: &str) -> Result<Vec<(&'t str, &'t Value)>> {
    let mut found = Vec::new();
    for (_, function) in resources(template, FUNCTION)? {
        let events = function["Properties"]["Events"].as_object().context("no events")?.values();
        for event in events.filter(|event| event["Type"] == kind) {
            found.push((package(function)?, &event["Properties"]));
        }
    }
    Ok(found)
}

/// The settings of a stream mapping that the local system simulates or a test fixes.
const KNOWN: [&str; 14] = [
    "BatchSize",
    "BisectBatchOnFunctionError",
    "DestinationConfig",
    "Enabled",
    "FilterCriteria",
    "FunctionResponseTypes",
    "MaximumBatchingWindowInSeconds",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "MetricsConfig",
    "ParallelizationFactor",
    "StartingPosition",
    "Stream",
    "TumblingWindowInSeconds",
];

/// The one mapping from the stream to a function.
fn stream_mapping<'t>(template: &'t Value, function: &str) -> Result<&'t Value> {
    let mappings = events(template, "DynamoDB")?;
    let mut own = mappings.into_iter().filter(|(known, _)| *known == function);
    let (_, mapping) = own.next().with_context(|| format!("no stream for {function}"))?;
    ensure!(own.next().is_none(), "two streams for {function}");
    // What woke nobody is delivered by the schedule.
    let (table, from) = if function == "publish" { ("LogTable", "LATEST") } else { ("PaymentsTable", "TRIM_HORIZON") };
    assert_eq!(mapping["Stream"]["!GetAtt"], format!("{table}.StreamArn"));
    assert_eq!(mapping["StartingPosition"], from);
    let unknown: Vec<_> =
        mapping.as_object().context("no settings")?.keys().filter(|name| !KNOWN.contains(&name.as_str())).collect();
    ensure!(unknown.is_empty(), "{function} has settings that one machine does not simulate: {unknown:?}");
    Ok(mapping)
}

#[test]
fn the_stream_feeds_dispatch_as_in_the_local_system() -> Result<()> {
    let template = template()?;
    let mapping = stream_mapping(&template, "dispatch")?;
    assert_eq!(mapping["FilterCriteria"], json!({ "Filters": [{ "Pattern": DISPATCH_FILTER }] }));
    assert_eq!(mapping["BatchSize"], DISPATCH_BATCH);
    assert_eq!(mapping["MaximumRetryAttempts"], DISPATCH_RETRIES);
    assert_eq!(mapping["BisectBatchOnFunctionError"], true);
    assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    assert_eq!(mapping["DestinationConfig"]["OnFailure"]["Type"], "SQS");
    for default in ["MaximumRecordAgeInSeconds", "MaximumBatchingWindowInSeconds", "ParallelizationFactor"] {
        assert!(mapping[default].is_null(), "{default}: the local system has Lambda's default");
    }
    assert!(mapping["TumblingWindowInSeconds"].is_null());
    Ok(())
}

#[test]
fn the_stream_feeds_the_aggregator_and_never_discards_a_record() -> Result<()> {
    let (template, local) = (template()?, aggregator_settings()?);
    let mapping = stream_mapping(&template, "stream-aggregator")?;
    assert_eq!(mapping["FilterCriteria"], json!({ "Filters": [{ "Pattern": AGGREGATOR_FILTER }] }));
    assert_eq!(mapping["BatchSize"], local.batch_size);
    assert_eq!(mapping["MaximumBatchingWindowInSeconds"], local.maximum_batching_window.num_seconds());
    let window = local.tumbling_window.context("no window, and so no shard")?;
    assert_eq!(mapping["TumblingWindowInSeconds"], window.num_seconds());
    assert_eq!(local.maximum_retry_attempts, None);
    assert_eq!((&mapping["MaximumRetryAttempts"], &mapping["MaximumRecordAgeInSeconds"]), (&json!(-1), &json!(-1)));
    assert_eq!((&mapping["ParallelizationFactor"], &mapping["BisectBatchOnFunctionError"]), (&json!(1), &json!(false)));
    assert!(!local.bisect_batch_on_function_error && !local.report_batch_item_failures);
    assert!(mapping["FunctionResponseTypes"].is_null() && mapping["DestinationConfig"].is_null());
    Ok(())
}

#[test]
fn new_segments_wake_publish_as_in_the_local_system() -> Result<()> {
    let (template, local) = (template()?, publish_settings()?);
    let mapping = stream_mapping(&template, "publish")?;
    assert_eq!(mapping["FilterCriteria"], json!({ "Filters": [{ "Pattern": PUBLISH_FILTER }] }));
    assert_eq!(mapping["BatchSize"], local.batch_size);
    assert_eq!(mapping["Enabled"], true);
    assert_eq!(template["Parameters"]["EventBus"]["Default"], "");
    assert_eq!((&mapping["MaximumRetryAttempts"], local.maximum_retry_attempts), (&json!(0), Some(0)));
    assert!(mapping["MaximumBatchingWindowInSeconds"].is_null() && mapping["TumblingWindowInSeconds"].is_null());
    Ok(())
}

#[test]
fn results_reach_settle_as_in_the_local_system() -> Result<()> {
    let template = template()?;
    let mappings = events(&template, "SQS")?;
    let [(function, mapping)] = mappings.as_slice() else { anyhow::bail!("{} queue mappings", mappings.len()) };
    assert_eq!(*function, "settle");
    assert_eq!(mapping["BatchSize"], SETTLE_BATCH);
    assert_eq!(mapping["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]));
    let queue = &template["Resources"]["ResultQueue"]["Properties"];
    assert_eq!(queue["VisibilityTimeout"], RESULT_VISIBILITY.num_seconds());
    // Lambda requires at least six times the function's timeout, and settle has the default timeout.
    let timeout = template["Globals"]["Function"]["Timeout"].as_i64().context("no timeout")?;
    ensure!(RESULT_VISIBILITY.num_seconds() >= 6 * timeout);
    Ok(())
}

#[test]
fn every_queue_has_a_dead_letter_queue_or_is_one() -> Result<()> {
    let template = template()?;
    let (queues, mut ends) = (resources(&template, "AWS::SQS::Queue")?, BTreeSet::new());
    for (queue, receives) in [("RequestQueue", MAX_REQUEST_RECEIVES), ("ResultQueue", MAX_RESULT_RECEIVES)] {
        let policy = &template["Resources"][queue]["Properties"]["RedrivePolicy"];
        assert_eq!(policy["maxReceiveCount"], receives, "{queue}");
        ends.insert(text(&policy["deadLetterTargetArn"]["!GetAtt"])?);
    }
    let dispatch = stream_mapping(&template, "dispatch")?;
    ends.insert(text(&dispatch["DestinationConfig"]["OnFailure"]["Destination"]["!GetAtt"])?);
    for (name, queue) in queues {
        let is_end = ends.remove(format!("{name}.Arn").as_str());
        assert_eq!(is_end, queue["Properties"]["RedrivePolicy"].is_null(), "{name}");
    }
    ensure!(ends.is_empty(), "no queue of this template: {ends:?}");
    Ok(())
}

#[test]
fn all_but_counting_the_journal_and_the_look_can_be_paused() -> Result<()> {
    let template = template()?;
    for (function, schedule) in events(&template, "ScheduleV2")? {
        // What is counted while the rest is paused is written to the journal, too. The look writes nothing, and what is paused over midnight
        // waits on a date that has passed.
        let state = json!({"!If": ["IsSending", "ENABLED", "DISABLED"]});
        let is_always_on = ["publish", "redate"].contains(&function);
        assert_eq!(schedule["State"], if is_always_on { Value::Null } else { state }, "{function}");
        // By default SAM names a schedule without the stack, so a second stack of the account could not be created.
        assert_eq!(schedule["OmitName"], true, "{function}");
    }
    let enabled = |function: &str, mapping: &Value| (function.to_owned(), mapping["Enabled"].clone());
    let (streams, queues) = (events(&template, "DynamoDB")?, events(&template, "SQS")?);
    let found: Vec<_> = streams.iter().chain(&queues).map(|(function, mapping)| enabled(function, mapping)).collect();
    let wanted = [
        ("dispatch", json!({"!If": ["IsSending", true, false]})),
        // What is counted while the rest is paused is delivered, too.
        ("publish", json!(true)),
        // The stream keeps changes for a day: what is not counted by then must be repaired.
        ("stream-aggregator", Value::Null),
        ("settle", json!({"!If": ["IsSettling", true, false]})),
    ];
    assert_eq!(found, wanted.map(|(function, enabled)| (function.to_owned(), enabled)));
    let paused = |value: &str| json!({"!Equals": [{"!Ref": "Paused"}, value]});
    assert_eq!(template["Conditions"]["IsSending"], paused("none"));
    assert_eq!(template["Conditions"]["IsSettling"], json!({"!Not": [paused("settling")]}));
    assert_eq!(template["Parameters"]["Paused"]["Default"], "none");
    Ok(())
}

/// The alarms on dropped and failing records, and on a mapping that is disabled, need these metrics. An empty list switches them off.
#[test]
fn every_mapping_counts_its_events() -> Result<()> {
    let template = template()?;
    let (streams, queues) = (events(&template, "DynamoDB")?, events(&template, "SQS")?);
    for (function, mapping) in streams.into_iter().chain(queues) {
        assert_eq!(
            mapping["MetricsConfig"],
            json!({ "Metrics": { "!If": ["IsMonitored", ["EventCount"], []] } }),
            "{function}"
        );
    }
    Ok(())
}

#[test]
fn what_works_by_schedule_and_the_api_can_be_kept_to_themselves() -> Result<()> {
    let template = template()?;
    assert_eq!(template["Parameters"]["ReserveConcurrency"]["Default"], "false", "an account may have none to reserve");
    let scheduled: BTreeSet<_> = events(&template, "ScheduleV2")?.into_iter().map(|(function, _)| function).collect();
    for (_, function) in resources(&template, FUNCTION)? {
        let package = package(function)?;
        let reserved = &function["Properties"]["ReservedConcurrentExecutions"];
        let is_of_api = http_events(function).next().is_some();
        // A mapping needs what is left over, or its records wait.
        let is_of_stream = events(&template, "DynamoDB")?.into_iter().any(|(function, _)| function == package);
        let can_be = is_of_api || (scheduled.contains(package) && !is_of_stream);
        assert_eq!(reserved["!If"][0] == "ReservesConcurrency", can_be, "{package}");
        let most = if package == "daily-due-sweeper" { 2 } else { 1 };
        ensure!(is_of_api || reserved.is_null() || reserved["!If"][1] == most, "{package}: {reserved}");
    }
    Ok(())
}

#[test]
fn schedules_are_those_of_the_local_system() -> Result<()> {
    let template = template()?;
    let of = |(function, event): &(&str, &Value)| -> Result<(String, String, String)> {
        let expression = match &event["ScheduleExpression"] {
            Value::String(expression) => expression,
            reference => text(&template["Parameters"][text(&reference["!Ref"])?]["Default"])?,
        };
        // An hour is one of the bank's clocks. Without hours it is UTC, in which no hour comes twice or is skipped.
        let has_hours = expression.starts_with("cron") && expression.split(' ').nth(1) != Some("*");
        let zone = &event["ScheduleExpressionTimezone"];
        assert_eq!(*zone, if has_hours { json!({ "!Ref": "BusinessTimeZone" }) } else { Value::Null }, "{function}");
        Ok(((*function).to_owned(), expression.to_owned(), text(&event["Input"])?.to_owned()))
    };
    let found: BTreeSet<_> = events(&template, "ScheduleV2")?.iter().map(of).collect::<Result<_>>()?;
    let local = SCHEDULES.iter().map(|it| (it.function.to_string(), it.expression.to_owned(), it.input.to_owned()));
    assert_eq!(found, local.collect());
    Ok(())
}

/// The functions derive from the time which shards are next.
#[test]
fn runs_begin_as_often_as_the_functions_say() -> Result<()> {
    let expression = |name| SCHEDULES.iter().find(|it| it.name == name).map(|it| it.expression).context("no schedule");
    let sweep = format!("cron(0/{} * * * ? *)", SWEEP_EVERY.num_minutes());
    let redrive = format!("rate({} hour)", REDRIVE_EVERY.num_hours());
    let archive = format!("cron(0/{} 3-5 * * ? *)", ARCHIVE_EVERY.num_minutes());
    for (name, every) in [("sweep", sweep), ("redrive", redrive), ("archive", archive)] {
        assert_eq!(expression(name)?, every, "{name}");
    }
    Ok(())
}
