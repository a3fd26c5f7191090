//! Compares the inputs of `sam local` with the template: environments, and the events of `docs/sam-local.md`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::template::{FUNCTION, package, resources, sam_local_environment, template};
use crate::tree::{in_repository, read};

#[test]
fn every_function_gets_declared_variables_only() -> Result<()> {
    let (template, environment) = (template()?, sam_local_environment()?);
    let global = &template["Globals"]["Function"]["Environment"]["Variables"];
    let mut left: BTreeSet<&String> = environment.keys().collect();
    for (name, function) in resources(&template, FUNCTION)? {
        let own = &function["Properties"]["Environment"]["Variables"];
        // A variable that names a resource of AWS in the template has no resource on one machine.
        for (variable, value) in [global, own].into_iter().filter_map(Value::as_object).flatten() {
            let reference = value["!Ref"].as_str().or_else(|| value["!Sub"].as_str());
            let is_parameter = reference.is_some_and(|id| !template["Parameters"][id].is_null());
            let is_given = environment.contains_key(variable);
            assert!(reference.is_none() || is_parameter || is_given, "{name} does not get {variable}");
            left.remove(variable);
        }
    }
    ensure!(left.is_empty(), "no function declares {left:?}, so sam would ignore them");
    Ok(())
}

/// The rows of the document's table: a logical id, and an event's file.
fn rows(document: &str) -> impl Iterator<Item = (String, String)> {
    let code = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned());
    let row = move |line: &str| {
        let mut cells = line.split('|').skip(1);
        Some((code(cells.next()?)?, code(cells.next()?)?))
    };
    document.lines().filter_map(row).filter(|(_, event)| event.starts_with("events/"))
}

/// A command of the document: the same.
fn command(line: &str) -> Option<(String, String)> {
    let mut words = line.strip_prefix("sam local invoke ")?.split_whitespace();
    let function = words.next()?.to_owned();
    words.find(|word| *word == "-e")?;
    Some((function, words.next()?.to_owned()))
}

#[test]
fn the_document_names_functions_and_events_that_exist() -> Result<()> {
    let (template, document) = (template()?, read("docs/sam-local.md")?);
    let functions = resources(&template, FUNCTION)?;
    let commands: Vec<_> = document.lines().filter_map(command).collect();
    ensure!(!commands.is_empty(), "no command");
    let named: Vec<_> = commands.into_iter().chain(rows(&document)).collect();
    let mut left: BTreeSet<&str> = functions.iter().map(|(name, _)| *name).collect();
    for (id, event) in &named {
        let (_, function) = functions.iter().find(|(name, _)| name == id).with_context(|| format!("no {id}"))?;
        let package = package(function)?;
        let is_its = event.strip_prefix("events/").is_some_and(|name| name.starts_with(&format!("{package}/")));
        ensure!(is_its && in_repository(event).is_file(), "{event} is not an event of {id}");
        left.remove(id.as_str());
    }
    ensure!(left.is_empty(), "the document has no event for {left:?}");
    Ok(())
}
