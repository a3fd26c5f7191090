//! The stack as it is now: its parameters, outputs and resources.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::call::Call;
use crate::note::{Kind, Note};
use crate::step::{Fact, Read, Runner, Want};

/// The stack as it is now.
#[derive(Debug, Clone)]
pub struct StackNow {
    pub(crate) name: String,
    pub(crate) id: String,
    parameters: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
}

/// Returns the pairs of a list of objects.
fn pairs(list: &Value, name: &str, value: &str) -> BTreeMap<String, String> {
    let pair = |it: &Value| Some((it[name].as_str()?.to_owned(), it[value].as_str()?.to_owned()));
    list.as_array().into_iter().flatten().filter_map(pair).collect()
}

impl StackNow {
    /// Reads the stack.
    ///
    /// # Errors
    /// If the name cannot be a stack's, or the AWS CLI fails.
    pub fn read(name: &str, runner: &mut Runner<'_>) -> Result<Self> {
        ensure!(
            is_stack(name),
            "{name:?} is not a stack's name: expected a letter, then up to 127 letters, digits and -"
        );
        let described = runner.read(&describe(name))?;
        let resources = runner.read(&Call::aws_with("cloudformation list-stack-resources --stack-name {}", &[name]))?;
        let stack = &described["Stacks"][0];
        Ok(Self {
            name: name.to_owned(),
            id: stack["StackId"].as_str().context("the stack has no id")?.to_owned(),
            parameters: pairs(&stack["Parameters"], "ParameterKey", "ParameterValue"),
            outputs: pairs(&stack["Outputs"], "OutputKey", "OutputValue"),
            resources: pairs(&resources["StackResourceSummaries"], "LogicalResourceId", "PhysicalResourceId"),
        })
    }

    /// Reads the stack of a restore.
    ///
    /// # Errors
    /// If it is another stack of this name, or the AWS CLI fails.
    pub fn for_note(note: &Note, runner: &mut Runner<'_>) -> Result<Self> {
        let stack = Self::read(&note.stack, runner)?;
        ensure!(
            stack.id == note.stack_id,
            "{} is {}, expected {}; use the profile and the region of `cargo restore start`",
            stack.name,
            stack.id,
            note.stack_id
        );
        Ok(stack)
    }

    pub(crate) fn parameter(&self, name: &str) -> Result<&str> {
        let value = self.parameters.get(name);
        Ok(value.with_context(|| format!("the stack {} has no parameter {name}; is it this system's?", self.name))?)
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<u64> {
        self.parameter(name)?.parse().with_context(|| format!("the parameter {name} is not a number"))
    }

    /// The parameters' names.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.keys().map(String::as_str)
    }

    pub(crate) fn output(&self, name: &str) -> Result<&str> {
        let value = self.outputs.get(name);
        Ok(value.with_context(|| format!("the stack {} has no output {name}; is it this system's?", self.name))?)
    }

    /// The table that the stack has.
    pub(crate) fn table(&self, kind: Kind) -> Result<&str> {
        self.output(kind.output())
    }

    /// The physical id of a resource.
    pub(crate) fn resource(&self, id: &str) -> Result<&str> {
        let value = self.resources.get(id);
        Ok(value.with_context(|| format!("the stack {} has no resource {id}; is it this system's?", self.name))?)
    }

    /// The logical id of the resource with a physical id.
    pub(crate) fn logical(&self, physical: &str) -> Result<&str> {
        let found = self.resources.iter().find(|(_, it)| *it == physical).map(|(id, _)| id.as_str());
        found.with_context(|| format!("the stack {} has no resource {physical}; did it change meanwhile?", self.name))
    }

    pub(crate) fn region(&self) -> &str {
        self.id.split(':').nth(3).unwrap_or_default()
    }

    /// The ARN of a table beside the stack.
    pub(crate) fn table_arn(&self, table: &str) -> String {
        let mut parts = self.id.splitn(6, ':');
        let partition = parts.nth(1).unwrap_or("aws");
        let account = parts.nth(2).unwrap_or_default();
        format!("arn:{partition}:dynamodb:{}:{account}:table/{table}", self.region())
    }

    /// The stack is paused as far as `settling`, and neither mapping nor schedule was enabled by hand since.
    pub(crate) fn paused(&self) -> Result<Vec<Fact>> {
        let query = "Stacks[0].Parameters[?ParameterKey=='Paused'].ParameterValue | [0]";
        let mut facts = vec![Fact {
            name: "the stack's parameter Paused".to_owned(),
            read: Read::Run(describe(&self.name).with("--query").with(query)),
            part: String::new(),
            of: None,
            want: Want::Is(json!("settling")),
            remedy: "deploy Paused=settling, as docs/operations.md says in Pause and resume".to_owned(),
        }];
        // One call reads all mappings, and another all schedules.
        for id in ["DispatchFunctionBecamePending", "SettleFunctionReport"] {
            facts.push(self.mapping(id, "Disabled")?);
        }
        for id in SCHEDULES {
            facts.push(Fact {
                name: format!("the schedule {id}"),
                read: Read::Run(Call::aws("scheduler list-schedules")),
                part: "/Schedules".to_owned(),
                of: Some(("Name", self.resource(id)?.to_owned())),
                want: Want::Is(json!({"State": "DISABLED"})),
                remedy: format!("somebody enabled it: run `schedule {id} DISABLED`"),
            });
        }
        Ok(facts)
    }

    /// A mapping is enabled or disabled.
    pub(crate) fn mapping(&self, id: &str, state: &str) -> Result<Fact> {
        let word = if state == "Disabled" { "--no-enabled" } else { "--enabled" };
        Ok(Fact {
            name: format!("the mapping {id}"),
            read: Read::Run(Call::aws("lambda list-event-source-mappings")),
            part: "/EventSourceMappings".to_owned(),
            of: Some(("UUID", self.resource(id)?.to_owned())),
            want: Want::Is(json!({"State": state})),
            remedy: format!("somebody changed it: run `mapping {id} {word}`"),
        })
    }

    /// The stack has this table.
    pub(crate) fn has_table(&self, kind: Kind, table: &str) -> Fact {
        let query = format!("Stacks[0].Outputs[?OutputKey=='{}'].OutputValue | [0]", kind.output());
        Fact {
            name: format!("the stack's output {}", kind.output()),
            read: Read::Run(describe(&self.name).with("--query").with(query)),
            part: String::new(),
            of: None,
            want: Want::Is(json!(table)),
            remedy: "import the restored tables first: `cargo restore import`".to_owned(),
        }
    }
}

/// The schedules that Paused=settling disables.
const SCHEDULES: [&str; 7] = [
    "DailyDueSweeperFunctionSweep",
    "DailyDueSweeperFunctionRedrive",
    "ReportFunctionReport",
    "ArchiveFunctionArchiveBegins",
    "ArchiveFunctionArchive",
    "SealFunctionSeal",
    "RecountFunctionRecount",
];

pub(crate) fn describe(stack: &str) -> Call {
    Call::aws_with("cloudformation describe-stacks --stack-name {}", &[stack])
}

/// Whether CloudFormation accepts a stack's name.
fn is_stack(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= 128 && name.chars().all(rest)
}
