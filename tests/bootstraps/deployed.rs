//! The functions as the template deploys them: their programs and their variables.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use payments_machine::Environment;
use payments_tests::template;
use serde_json::Value;

/// A function of the template.
#[derive(Debug, Clone)]
pub(crate) struct Deployed {
    /// Its logical id.
    pub(crate) id: String,
    /// The package it is built from.
    pub(crate) package: String,
    /// The variables with their values in the template: texts, defaults of parameters, or null for resources.
    variables: BTreeMap<String, Value>,
}

/// Values that only the test knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'p> {
    /// The folder of the reports.
    pub(crate) reports: &'p str,
}

impl Deployed {
    /// All functions.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let template = template()?;
        let resources = template["Resources"].as_object().context("no resources")?.iter();
        let functions = resources.filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function");
        let default = |value: &Value| match value["!Ref"].as_str() {
            Some(parameter) => template["Parameters"][parameter]["Default"].clone(),
            None => value.clone(),
        };
        let of = |owner: &Value| {
            let variables = owner["Environment"]["Variables"].as_object().into_iter().flatten();
            variables.map(|(name, value)| (name.clone(), default(value))).collect::<BTreeMap<_, _>>()
        };
        let functions: Vec<_> = functions
            .map(|(id, function)| {
                let package = function["Metadata"]["BuildProperties"]["Binary"].as_str();
                let package = package.with_context(|| format!("{id} is built from no package"))?.to_owned();
                let mut variables = of(&template["Globals"]["Function"]);
                variables.extend(of(&function["Properties"]));
                Ok(Self { id: id.clone(), package, variables })
            })
            .collect::<Result<_>>()?;
        ensure!(!functions.is_empty(), "the template has no functions");
        Ok(functions)
    }

    /// The function that is built from this package.
    pub(crate) fn of_package(package: &str) -> Result<Self> {
        let found = Self::all()?.into_iter().find(|function| function.package == package);
        found.with_context(|| format!("the template deploys no {package}"))
    }

    /// The names of its variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Its variables in a test: those of the template, with the values that the handlers have in process. A variable
    /// without such a value has the template's.
    pub(crate) fn variables(&self, environment: &Environment, places: Places<'_>) -> Result<BTreeMap<String, String>> {
        let value = |name: &str, written: &Value| match name {
            "REPORTS_URL" | "JOURNAL_URL" => Some(format!("file://{}", places.reports)),
            "ATTEMPTS_URL" => Some(format!("file://{}/attempts", places.reports)),
            _ => environment.get(name).or_else(|| match written {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            }),
        };
        let named = self.variables.iter().map(|(name, written)| {
            let value = value(name, written).with_context(|| format!("what is {name} of {} in a test?", self.package));
            Ok((name.clone(), value?))
        });
        named.collect()
    }
}
