//! The functions as the template deploys them: their programs and their variables.

use std::collections::BTreeMap;
use std::ops::Deref;

use anyhow::{Context as _, Result};
use payments_machine::Environment;
use payments_machine::template::{DeployedFunction, Template};

/// A function of the template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deployed(&'static DeployedFunction);

impl Deref for Deployed {
    type Target = DeployedFunction;

    fn deref(&self) -> &DeployedFunction {
        self.0
    }
}

/// Values that only the test knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'p> {
    /// The folder of the reports.
    pub(crate) reports: &'p str,
}

impl Deployed {
    /// All functions.
    pub(crate) fn all() -> Result<impl Iterator<Item = Self>> {
        Ok(Template::ours()?.functions.iter().map(Self))
    }

    /// The function that is built from this package.
    pub(crate) fn for_package(package: &str) -> Result<Self> {
        Template::ours()?.function(package).map(Self)
    }

    /// The function's variables in a test: those of the template, with the values of the handlers in process.
    pub(crate) fn variables(&self, environment: &Environment, places: Places<'_>) -> Result<BTreeMap<String, String>> {
        let value = |name: &str| match name {
            "REPORTS_URL" | "JOURNAL_URL" | "UNDO_URL" | "SEALED_URL" => Some(format!("file://{}", places.reports)),
            "ATTEMPTS_URL" => Some(format!("file://{}/attempts", places.reports)),
            _ => environment.get(&self.package, name),
        };
        let named = self.names().map(|name| {
            let value = value(name).with_context(|| format!("what is {name} of {} in a test?", self.package));
            Ok((name.to_owned(), value?))
        });
        named.collect()
    }
}
