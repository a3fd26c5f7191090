//! Compares `template.yaml` with the expectations, which are written by hand: `expectations.yaml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use payments_machine::yaml::from_str;
use serde_json::Value;

use crate::template::{resources, template};
use crate::triggers::events;

/// The values at a path of the template: in a section, in a resource, or in each resource of a type.
fn at<'t>(template: &'t Value, path: &str) -> Result<Vec<&'t Value>> {
    let mut names = path.split('.');
    let first = names.next().unwrap_or_default();
    let roots = match template.get(first).or_else(|| template["Resources"].get(first)) {
        Some(root) => vec![root],
        None => resources(template, first)?.into_iter().map(|(_, resource)| resource).collect(),
    };
    roots.into_iter().map(|root| names.clone().try_fold(root, member).with_context(|| format!("no {path}"))).collect()
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    name.parse::<usize>().map_or_else(|_| value.get(name), |place| value.get(place))
}

#[test]
fn what_protects_money_and_order_is_what_was_expected_by_hand() -> Result<()> {
    let template = template()?;
    let expected: BTreeMap<String, Value> = from_str(include_str!("expectations.yaml"))?;
    let invoked = ["ScheduleV2", "DynamoDB", "SQS"].map(|kind| events(&template, kind).map(|events| events.len()));
    assert_eq!(invoked.into_iter().collect::<Result<Vec<_>>>()?, [10, 3, 1], "what the table does not expect");
    for (path, wanted) in expected {
        // A default is one of something that exists.
        let (parent, name) = path.rsplit_once('.').context("no path")?;
        for parent in at(&template, parent)? {
            assert_eq!(member(parent, name).cloned().unwrap_or_default(), wanted, "{path}");
        }
    }
    Ok(())
}
