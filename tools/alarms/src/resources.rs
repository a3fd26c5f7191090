//! The logical ids of what metrics are about: functions by their packages, and what invokes them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::metric::Sample;

/// The logical ids of a template's functions and event source mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    functions: BTreeMap<String, String>,
    mappings: Vec<String>,
}

impl Resources {
    /// Reads the ids of a template, in which `!Ref Name` is `{"!Ref": "Name"}`. SAM names a mapping by function and event.
    ///
    /// # Errors
    /// If the template has no resources, or a function has no events.
    pub fn parse(template: &Value) -> Result<Self> {
        let (mut functions, mut mappings) = (BTreeMap::new(), Vec::new());
        for (id, resource) in template["Resources"].as_object().context("a template has resources")? {
            let Some(package) = resource["Metadata"]["BuildProperties"]["Binary"].as_str() else { continue };
            functions.insert(package.to_owned(), id.clone());
            let events = resource["Properties"]["Events"].as_object().context("a function has events")?.iter();
            let of_sources = events.filter(|(_, event)| event["Type"] == "DynamoDB" || event["Type"] == "SQS");
            mappings.extend(of_sources.map(|(name, _)| format!("{id}{name}")));
        }
        mappings.sort();
        Ok(Self { functions, mappings })
    }

    /// The function of a package.
    ///
    /// # Errors
    /// If there is none.
    pub fn function(&self, package: &str) -> Result<&str> {
        self.functions.get(package).map(String::as_str).with_context(|| format!("no function {package}"))
    }

    /// The event source mappings, in order.
    pub fn mappings(&self) -> &[String] {
        &self.mappings
    }

    /// The event source mapping of a package's function.
    ///
    /// # Errors
    /// If there is none.
    pub fn mapping(&self, package: &str) -> Result<&str> {
        let function = self.function(package)?;
        let mapping = self.mappings.iter().find(|mapping| mapping.starts_with(function));
        mapping.map(String::as_str).with_context(|| format!("no mapping of {package}"))
    }

    /// Reads the samples of a line in the embedded metric format, whose dimension `Function` is a package. The samples have
    /// its function instead, and this time: a line's own is that of a clock which may be ahead.
    ///
    /// # Errors
    /// If the line cannot be read, or is of no function here.
    pub fn samples_of(&self, line: &str, at: DateTime<Utc>) -> Result<Vec<Sample>> {
        let mut samples = Sample::parse_line(line)?;
        for sample in &mut samples {
            let package = sample.metric.dimensions.get_mut("Function").context("whose metric?")?;
            self.function(package)?.clone_into(package);
            sample.at = at;
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resources() -> Resources {
        let function = |binary: &str, events: Value| json!({ "Metadata": { "BuildProperties": { "Binary": binary } }, "Properties": { "Events": events } });
        let template = json!({ "Resources": {
            "SettleFunction": function("settle", json!({ "Report": { "Type": "SQS" } })),
            "SweepFunction": function("sweeper", json!({ "Sweep": { "Type": "ScheduleV2" } })),
            "Queue": { "Type": "AWS::SQS::Queue" },
        } });
        Resources::parse(&template).unwrap()
    }

    #[test]
    fn packages_have_functions_and_mappings() {
        let resources = resources();
        assert_eq!(resources.function("settle").unwrap(), "SettleFunction");
        assert_eq!(resources.mappings(), ["SettleFunctionReport"]);
        assert_eq!(resources.mapping("settle").unwrap(), "SettleFunctionReport");
        assert!(resources.mapping("sweeper").is_err());
        assert!(resources.function("payments").is_err());
    }

    #[test]
    fn a_line_gets_the_logical_id_of_its_function() {
        let line = |package: &str| {
            format!(
                r#"{{"_aws":{{"CloudWatchMetrics":[{{"Namespace":"N","Dimensions":[["Function"]],"Metrics":[{{"Name":"Left"}}]}}],"Timestamp":60000}},"Left":1,"Function":"{package}"}}"#
            )
        };
        let at = DateTime::from_timestamp(600, 0).unwrap();
        let samples = resources().samples_of(&line("settle"), at).unwrap();
        let metric = crate::Metric::new("N", "Left", "Function", "SettleFunction");
        assert_eq!(samples, [Sample { metric, at, value: 1 }]);
        assert!(resources().samples_of(&line("other"), at).is_err());
    }
}
