//! The triggers of functions: queues with dead letters, schedules by the bank's clocks, reserved concurrency.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use archive::ARCHIVE_EVERY;
use chrono::TimeDelta;
use daily_due_sweeper::{REDRIVE_EVERY, SWEEP_EVERY};
use payments_machine::Queues;
use payments_tests::deployed;
use serde_json::{Value, json};

use crate::template::{FUNCTION, http_events, name_of_bucket, package, resources, template};

/// The events of one type, each with its function.
pub(crate) fn events<'t>(template: &'t Value, kind: &str) -> Result<Vec<(&'t str, &'t Value)>> {
    let mut found = Vec::new();
    for (_, function) in resources(template, FUNCTION)? {
        let events = function["Properties"]["Events"].as_object().context("no events")?.values();
        for event in events.filter(|event| event["Type"] == kind) {
            found.push((package(function)?, &event["Properties"]));
        }
    }
    Ok(found)
}

#[test]
fn one_machine_reads_the_template() -> Result<()> {
    deployed()?.check_variables(&name_of_bucket)
}

/// Lambda recommends at least six times the function's timeout, and the window besides.
#[test]
fn a_result_is_hidden_for_longer_than_settle_may_take() -> Result<()> {
    let deployed = deployed()?;
    let results = Queues::from_template(&deployed)?.results;
    let settle = deployed.function("settle")?;
    let window = settle.queues.iter().map(|mapping| TimeDelta::seconds(mapping.batching_window)).sum();
    let taken = settle.timeout * 6 + window;
    ensure!(results.settings().visibility_timeout >= taken, "{taken} of {}", results.settings().visibility_timeout);
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
fn each_function_but_publish_can_have_concurrency_of_its_own() -> Result<()> {
    let template = template()?;
    assert_eq!(template["Parameters"]["ReserveConcurrency"]["Default"], "false", "an account may have none to reserve");
    for (_, function) in resources(&template, FUNCTION)? {
        let package = package(function)?;
        let reserved = &function["Properties"]["ReservedConcurrentExecutions"];
        let is_of_api = http_events(function).next().is_some();
        // Delivery to others is the only work that may wait. A mapping has as much as it can take, or its records would wait.
        assert_eq!(reserved["!If"][0] == "ReservesConcurrency", package != "publish", "{package}");
        let wanted = match package {
            "daily-due-sweeper" => json!(2),
            "settle" => json!({ "!Ref": "SettleConcurrency" }),
            // A stream shard each: 40 of the warmest table, and as many again while they split.
            "dispatch" | "stream-aggregator" => json!(2 * 40),
            _ => json!(1),
        };
        ensure!(is_of_api || reserved.is_null() || reserved["!If"][1] == wanted, "{package}: {reserved}");
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
