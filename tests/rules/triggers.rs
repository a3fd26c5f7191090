//! Compares the triggers of functions in `template.yaml` with the expectations, which are written by hand.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use archive::ARCHIVE_EVERY;
use daily_due_sweeper::{REDRIVE_EVERY, SWEEP_EVERY};
use payments_machine::Queues;
use payments_machine::yaml::from_str;
use payments_tests::deployed;
use serde_json::{Value, json};

use crate::template::{FUNCTION, http_events, name_of_bucket, package, resources, template};

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

/// The table of expectations.
const EXPECTATIONS: &str = include_str!("expectations.yaml");

/// The value at a path of the template, or of its resources.
fn at(template: &Value, path: &str) -> Option<Value> {
    let below = |root: &Value| path.split('.').try_fold(root.clone(), |value, name| value.get(name).cloned());
    below(template).or_else(|| below(&template["Resources"]))
}

#[test]
fn what_protects_money_and_order_is_what_was_expected_by_hand() -> Result<()> {
    let template = template()?;
    let expected: BTreeMap<String, Value> = from_str(EXPECTATIONS)?;
    assert_eq!(events(&template, "ScheduleV2")?.len(), 8, "a schedule that the table does not expect");
    for (path, wanted) in expected {
        // A default is one of something that exists.
        let (parent, _) = path.rsplit_once('.').context("no path")?;
        ensure!(at(&template, parent).is_some(), "there is no {parent}");
        assert_eq!(at(&template, &path).unwrap_or_default(), wanted, "{path}");
    }
    Ok(())
}

#[test]
fn one_machine_reads_the_template() -> Result<()> {
    deployed()?.check_variables(&name_of_bucket)
}

/// Lambda requires at least six times the function's timeout.
#[test]
fn a_result_is_hidden_for_longer_than_settle_may_take() -> Result<()> {
    let deployed = deployed()?;
    let results = Queues::from_template(&deployed)?.results;
    ensure!(results.settings().visibility_timeout >= deployed.function("settle")?.timeout * 6);
    Ok(())
}

#[test]
fn every_queue_has_a_dead_letter_queue_or_is_one() -> Result<()> {
    let template = template()?;
    let (queues, mut ends) = (resources(&template, "AWS::SQS::Queue")?, BTreeSet::new());
    for (_, queue) in &queues {
        let policy = &queue["Properties"]["RedrivePolicy"];
        ends.extend(policy["deadLetterTargetArn"]["!GetAtt"].as_str());
    }
    for (_, mapping) in events(&template, "DynamoDB")? {
        ends.extend(mapping["DestinationConfig"]["OnFailure"]["Destination"]["!GetAtt"].as_str());
    }
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
        // Changes that are counted while the rest is paused are written to the journal, too. The
        // look writes nothing, and payments that are paused over midnight wait on a date that has
        // passed.
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
        // Changes that are counted while the rest is paused are delivered, too.
        ("publish", json!(true)),
        // The stream keeps changes for a day: uncounted ones must be repaired.
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
        // A mapping needs concurrency that is left over, or its records wait.
        let is_of_stream = events(&template, "DynamoDB")?.into_iter().any(|(function, _)| function == package);
        let can_be = is_of_api || (scheduled.contains(package) && !is_of_stream);
        assert_eq!(reserved["!If"][0] == "ReservesConcurrency", can_be, "{package}");
        let most = if package == "daily-due-sweeper" { 2 } else { 1 };
        ensure!(is_of_api || reserved.is_null() || reserved["!If"][1] == most, "{package}: {reserved}");
    }
    Ok(())
}

/// An hour is one of the bank's clocks. Without hours it is UTC, in which no hour comes twice or is skipped.
#[test]
fn a_schedule_with_hours_is_one_of_the_banks_clocks() -> Result<()> {
    let template = template()?;
    for (function, event) in events(&template, "ScheduleV2")? {
        let expression = event["ScheduleExpression"].as_str().unwrap_or_default();
        let has_hours = expression.starts_with("cron") && expression.split(' ').nth(1) != Some("*");
        let zone = if has_hours { json!({ "!Ref": "BusinessTimeZone" }) } else { Value::Null };
        assert_eq!(event["ScheduleExpressionTimezone"], zone, "{function}");
    }
    Ok(())
}

/// The functions derive from the time which shards are next.
#[test]
fn runs_begin_as_often_as_the_functions_say() -> Result<()> {
    let deployed = deployed()?;
    let expression = |name| {
        let spec = deployed.schedules().find(|it| it.name == name);
        spec.map(|it| it.expression.clone()).context("no schedule")
    };
    let sweep = format!("cron(0/{} * * * ? *)", SWEEP_EVERY.num_minutes());
    let redrive = format!("rate({} hour)", REDRIVE_EVERY.num_hours());
    let archive = format!("cron(0/{} 3-5 * * ? *)", ARCHIVE_EVERY.num_minutes());
    for (name, every) in [("sweep", sweep), ("redrive", redrive), ("archive", archive)] {
        assert_eq!(expression(name)?, every, "{name}");
    }
    Ok(())
}
