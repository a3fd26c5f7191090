//! Compares the alarms with the runbook and the code: each has an entry, an emitted metric and a topic.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use payments_alarms::Alarm;
use serde_json::Value;

use crate::template::{FUNCTION, package, resources, template, text};

const ALARM: &str = "AWS::CloudWatch::Alarm";

#[test]
fn every_alarm_has_an_entry_in_the_runbook() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runbook.md");
    let runbook = std::fs::read_to_string(path)?;
    let (_, alarms) = runbook.split_once("\n## Alarms\n").context("no alarms")?;
    let (alarms, _) = alarms.split_once("\n## ").context("no end of the alarms")?;
    let entries: BTreeSet<&str> = alarms.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let template = template()?;
    let found: BTreeSet<&str> = resources(&template, ALARM)?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, entries);
    for (name, alarm) in resources(&template, ALARM)? {
        let properties = &alarm["Properties"];
        let description = text(&properties["AlarmDescription"])?;
        assert!(description.ends_with(&format!("See docs/runbook.md, {name}.")), "{description}");
        assert_eq!(properties["AlarmActions"][0]["!Ref"], "AlarmTopic", "{name}");
    }
    Ok(())
}

/// The journeys evaluate them over the metrics of a day, and of faults.
#[test]
fn every_alarm_can_be_evaluated() -> Result<()> {
    let template = template()?;
    let evaluated: Vec<String> = Alarm::all(&template)?.into_iter().map(|alarm| alarm.name).collect();
    let all: Vec<&str> = resources(&template, ALARM)?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(evaluated, all);
    Ok(())
}

/// The metrics of the alarms, each with the logical id of its function.
fn own_metrics(alarm: &Value) -> Vec<(&str, &str)> {
    let properties = &alarm["Properties"];
    let several = properties["Metrics"].as_array().into_iter().flatten();
    let metrics = several.map(|metric| &metric["MetricStat"]["Metric"]).chain([properties]);
    let own = metrics.filter(|metric| metric["Namespace"] == "ScheduledPayments");
    own.filter_map(|metric| Some((metric["MetricName"].as_str()?, metric["Dimensions"][0]["Value"]["!Ref"].as_str()?)))
        .collect()
}

#[test]
fn every_metric_of_an_alarm_is_emitted() -> Result<()> {
    let (template, mut checked) = (template()?, 0);
    let functions = resources(&template, FUNCTION)?;
    for (name, alarm) in resources(&template, ALARM)? {
        for (metric, id) in own_metrics(alarm) {
            let (_, function) = functions.iter().find(|(known, _)| *known == id).with_context(|| id.to_owned())?;
            let package = package(function)?;
            let mut sources = crate::tree::sources(&format!("functions/{package}/src"))?;
            sources.extend(crate::tree::sources("shared/http/src")?);
            let emits = sources.iter().any(|(_, text)| is_emitted(metric, text));
            assert!(emits, "{name}: {package} has no metric {metric}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked} metrics");
    Ok(())
}

/// Whether a source emits a metric: as a field's name, or by a name that is given.
fn is_emitted(metric: &str, source: &str) -> bool {
    let field = snake_case(metric);
    let fields = [format!(" {field}: u64,"), format!(" {field}: Option<u64>,")];
    let named = [format!("#[entry(name = \"{metric}\")]"), format!("writer.value(\"{metric}\", ")];
    source.lines().any(|line| fields.iter().any(|field| line.ends_with(field)))
        || named.iter().any(|named| source.contains(named))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
