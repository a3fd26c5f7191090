//! Compares the alarms with docs/alarms.md and the code: each has an entry, a row, an emitted metric and a topic.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use payments_alarms::Alarm;
use serde_json::Value;

use crate::template::{FUNCTION, package, resources, template, text};
use crate::tree::read;

const ALARM: &str = "AWS::CloudWatch::Alarm";

#[test]
fn every_alarm_has_an_entry() -> Result<()> {
    let page = read("docs/alarms.md")?;
    let (_, entries) = page.split_once("\n## Entries\n").context("no entries")?;
    let entries: BTreeSet<&str> = entries.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let template = template()?;
    let found: BTreeSet<&str> = resources(&template, ALARM)?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, entries);
    for (name, alarm) in resources(&template, ALARM)? {
        let properties = &alarm["Properties"];
        let description = text(&properties["AlarmDescription"])?;
        assert!(description.ends_with(&format!("See docs/alarms.md, {name}.")), "{description}");
    }
    Ok(())
}

#[test]
fn the_table_links_each_alarm_once_with_a_command_that_exists() -> Result<()> {
    let template = template()?;
    let page = read("docs/alarms.md")?;
    let names = read("docs/commands.sh")?;
    let (table, _) = page.split_once("\n## Entries\n").context("no entries")?;
    let mut found = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [alarms, _money, _within, command] = cells[..] else { bail!("{row} has not four cells") };
        let command =
            command.strip_prefix('`').and_then(|command| command.strip_suffix('`')).context(row.to_owned())?;
        let name = command.split(' ').next().unwrap_or_default();
        assert!(names.contains(&format!("\n{name}() {{")), "{row}: docs/commands.sh has no {name}");
        for link in alarms.split(", ") {
            let link = link.strip_prefix('[').and_then(|link| link.strip_suffix(')')?.split_once("](#"));
            let (name, anchor) = link.context(row.to_owned())?;
            assert_eq!(anchor, name.to_lowercase(), "{row}");
            found.push(name.to_owned());
        }
    }
    let all: Vec<&str> = resources(&template, ALARM)?.into_iter().map(|(name, _)| name).collect();
    found.sort();
    assert_eq!(found, BTreeSet::from_iter(all).into_iter().collect::<Vec<_>>());
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

/// CloudWatch charges for each metric, so the functions name those that an alarm or the dashboard reads.
#[test]
fn the_metrics_that_functions_name_are_those_that_somebody_reads() -> Result<()> {
    let template = template()?;
    let alarms = resources(&template, ALARM)?;
    let mut read: Vec<&str> =
        alarms.iter().flat_map(|(_, alarm)| own_metrics(alarm)).map(|(metric, _)| metric).collect();
    let body =
        template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["!Sub"].as_str().context("no dashboard")?;
    let shown = body.split("[\"ScheduledPayments\", \"").skip(1).filter_map(|rest| rest.split('"').next());
    read.extend(shown);
    read.sort_unstable();
    read.dedup();
    assert_eq!(payments_boot::READ_METRICS.as_slice(), read);
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
