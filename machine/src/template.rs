//! `template.yaml`, read once into types. What cannot be read is an error with its line.

mod intrinsics;
pub mod yaml;

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};
use chrono::TimeDelta;
use serde::{Deserialize, Deserializer};

use intrinsics::Intrinsics;
use yaml::{Node, YamlError};

pub use intrinsics::Given;

/// The template of this repository, which a program carries along.
pub const OURS: &str = include_str!("../../template.yaml");

static READ: LazyLock<Result<Template, YamlError>> = LazyLock::new(|| Template::read(OURS));

/// The properties of schedules, streams and queues that one machine does not simulate, because they are about EventBridge, metrics, or
/// records that wait for too long. Any other that it does not know is an error.
const NOT_SIMULATED: [&str; 7] = [
    "MaximumRecordAgeInSeconds",
    "MetricsConfig",
    "OmitName",
    "ParallelizationFactor",
    "RetryPolicy",
    "ScheduleExpressionTimezone",
    "StartingPosition",
];

/// The template.
#[derive(Debug)]
pub struct Template {
    /// The functions, in the order of the file.
    pub functions: Vec<DeployedFunction>,
    /// The queues by their logical ids.
    pub queues: Vec<(String, DeployedQueue)>,
    intrinsics: Intrinsics,
}

/// A function.
#[derive(Debug)]
pub struct DeployedFunction {
    /// Its logical id.
    pub id: String,
    /// Its package, which is its name on one machine.
    pub package: String,
    /// How long an invocation may take.
    pub timeout: TimeDelta,
    /// Its memory in MB.
    pub memory: u32,
    /// How many invocations are reserved for it, if any.
    pub concurrency: Option<u32>,
    /// How long an asynchronous invocation may wait, if the template says so.
    pub longest_wait: Option<TimeDelta>,
    /// Its schedules.
    pub schedules: Vec<ScheduleSpec>,
    /// The streams that it reads.
    pub streams: Vec<StreamSource>,
    /// The queues that it reads.
    pub queues: Vec<QueueSource>,
    /// Its variables behind those of all functions.
    variables: Vec<(String, Node)>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ScheduleSpec {
    /// Its event's name, in words: `archive-begins` for `ArchiveBegins`.
    #[serde(skip)]
    pub name: String,
    /// The package that it invokes.
    #[serde(skip)]
    pub package: String,
    /// When: a rate, or a cron expression.
    #[serde(rename = "ScheduleExpression")]
    pub expression: String,
    /// The input of the function, in JSON.
    pub input: String,
    #[serde(default)]
    state: State,
}

/// Whether a schedule runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    #[default]
    Enabled,
    Disabled,
}

/// An event source mapping of a stream.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct StreamSource {
    /// The stream, as an attribute of its table.
    pub stream: String,
    /// Whether it is polled.
    #[serde(default = "yes")]
    pub enabled: bool,
    pub(crate) batch_size: usize,
    #[serde(default, rename = "MaximumBatchingWindowInSeconds", deserialize_with = "seconds")]
    pub(crate) window: TimeDelta,
    #[serde(rename = "FilterCriteria")]
    pub(crate) filters: Filters,
    #[serde(default, rename = "FunctionResponseTypes")]
    pub(crate) responses: Vec<ResponseType>,
    #[serde(default)]
    pub(crate) bisect_batch_on_function_error: bool,
    /// -1 is for ever.
    pub(crate) maximum_retry_attempts: i64,
    #[serde(rename = "TumblingWindowInSeconds")]
    pub(crate) tumbling_window: Option<i64>,
    #[serde(rename = "DestinationConfig")]
    pub(crate) destination: Option<DestinationConfig>,
}

/// What a function declares that names the records or messages that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum ResponseType {
    ReportBatchItemFailures,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Filters {
    pub(crate) filters: [Pattern; 1],
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Pattern {
    pub(crate) pattern: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct DestinationConfig {
    pub(crate) on_failure: Destination,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "Type", content = "Destination")]
pub(crate) enum Destination {
    /// The attribute of a queue.
    #[serde(rename = "SQS")]
    Queue(String),
}

/// An event source mapping of a queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct QueueSource {
    /// The queue, as an attribute of its resource.
    pub queue: String,
    /// Whether it is polled.
    #[serde(default = "yes")]
    pub enabled: bool,
    pub(crate) batch_size: usize,
    #[serde(default, rename = "FunctionResponseTypes")]
    pub(crate) responses: Vec<ResponseType>,
    #[serde(rename = "ScalingConfig")]
    pub(crate) scaling: Scaling,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Scaling {
    pub(crate) maximum_concurrency: usize,
}

/// A queue.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeployedQueue {
    pub(crate) visibility_timeout: Option<i64>,
    pub(crate) redrive_policy: Option<Redrive>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Redrive {
    pub(crate) dead_letter_target_arn: String,
    pub(crate) max_receive_count: u32,
}

/// The properties of a function that one machine reads, or those of all functions.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Properties {
    #[serde(default, deserialize_with = "some_seconds")]
    timeout: Option<TimeDelta>,
    memory_size: Option<u32>,
    reserved_concurrent_executions: Option<u32>,
    event_invoke_config: Option<Asynchronous>,
}

#[derive(Deserialize)]
struct Asynchronous {
    #[serde(rename = "MaximumEventAgeInSeconds", deserialize_with = "seconds")]
    longest_wait: TimeDelta,
}

fn yes() -> bool {
    true
}

fn seconds<'n, D: Deserializer<'n>>(from: D) -> Result<TimeDelta, D::Error> {
    u32::deserialize(from).map(|seconds| TimeDelta::seconds(seconds.into()))
}

fn some_seconds<'n, D: Deserializer<'n>>(from: D) -> Result<Option<TimeDelta>, D::Error> {
    seconds(from).map(Some)
}

impl Template {
    /// Returns the template of this repository.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn ours() -> Result<&'static Self> {
        READ.as_ref().map_err(|error| anyhow!("template.yaml, {error}"))
    }

    /// Reads a template.
    ///
    /// # Errors
    /// If it is not YAML, has an intrinsic function that one machine does not know, or a value of another type; with the line.
    pub fn read(text: &str) -> Result<Self, YamlError> {
        let document = Node::parse(text)?;
        let globals = document.field("Globals")?.field("Function")?;
        let resources = document.field("Resources")?;
        let intrinsics = Intrinsics {
            parameters: document.field("Parameters")?.clone(),
            conditions: document.field("Conditions")?.clone(),
            resources: resources.fields().iter().map(|(id, _)| id.clone()).collect(),
        };
        let of_all = intrinsics.resolved(globals)?;
        let (mut functions, mut queues) = (Vec::new(), Vec::new());
        for (id, resource) in resources.fields() {
            let properties = || intrinsics.resolved(resource.field("Properties")?);
            match resource.field("Type")?.text() {
                Some("AWS::Serverless::Function") => {
                    let mut function = DeployedFunction::read(id, resource, &properties()?, &of_all)?;
                    for properties in [globals, resource.field("Properties")?] {
                        let variables = properties.get("Environment").and_then(|it| it.get("Variables"));
                        function.variables.extend(variables.into_iter().flat_map(Node::fields).cloned());
                    }
                    functions.push(function);
                }
                Some("AWS::SQS::Queue") => queues.push((id.clone(), DeployedQueue::deserialize(&properties()?)?)),
                _ => {}
            }
        }
        Ok(Self { functions, queues, intrinsics })
    }

    /// Returns the function of a package.
    ///
    /// # Errors
    /// If there is none.
    pub fn function(&self, package: &str) -> Result<&DeployedFunction> {
        let mut functions = self.functions.iter();
        functions.find(|it| it.package == package).with_context(|| format!("the template has no function {package}"))
    }

    /// Returns every schedule that is enabled.
    pub fn schedules(&self) -> impl Iterator<Item = &ScheduleSpec> {
        self.functions.iter().flat_map(|function| &function.schedules).filter(|it| it.state == State::Enabled)
    }

    /// Returns the default of a parameter.
    ///
    /// # Errors
    /// If there is no such parameter.
    pub fn default_of(&self, parameter: &str) -> Result<String> {
        Ok(self.intrinsics.text(self.intrinsics.parameters.field(parameter)?.field("Default")?, &|_| None)?)
    }

    /// Returns a variable of a function, where what is given takes the place of parameters, names of resources and conditions. None if the
    /// function has no such variable.
    ///
    /// # Errors
    /// If there is no such function, or the variable's value cannot be read.
    pub fn variable(&self, package: &str, name: &str, given: Given<'_>) -> Result<Option<String>> {
        let mut variables = self.function(package)?.variables.iter().rev();
        let value = variables.find(|(known, _)| known == name).map(|(_, value)| self.intrinsics.text(value, given));
        Ok(value.transpose()?)
    }

    /// Reads every variable of every function, as a start does: one that cannot be read is not one that is absent.
    ///
    /// # Errors
    /// The line of the first variable that cannot be read.
    pub fn check_variables(&self, given: Given<'_>) -> Result<()> {
        for (_, value) in self.functions.iter().flat_map(|function| &function.variables) {
            self.intrinsics.text(value, given)?;
        }
        Ok(())
    }
}

impl DeployedFunction {
    /// Returns the names of its variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    fn read(id: &str, resource: &Node, properties: &Node, globals: &Node) -> Result<Self, YamlError> {
        let (own, of_all) = (Properties::deserialize(properties)?, Properties::deserialize(globals)?);
        let binary = resource.field("Metadata")?.field("BuildProperties")?.field("Binary")?;
        let package = binary.text().ok_or_else(|| binary.error("the name of a package is a text"))?;
        let missing = |name: &str| properties.error(&format!("{id} has no {name}"));
        let mut function = Self {
            id: id.to_owned(),
            package: package.to_owned(),
            timeout: own.timeout.or(of_all.timeout).ok_or_else(|| missing("Timeout"))?,
            memory: own.memory_size.or(of_all.memory_size).ok_or_else(|| missing("MemorySize"))?,
            concurrency: own.reserved_concurrent_executions,
            longest_wait: own.event_invoke_config.map(|it| it.longest_wait),
            schedules: Vec::new(),
            streams: Vec::new(),
            queues: Vec::new(),
            variables: Vec::new(),
        };
        for (name, event) in properties.field("Events")?.fields() {
            let (kind, settings) = (event.field("Type")?, event.field("Properties")?.without(&NOT_SIMULATED));
            match kind.text() {
                Some("HttpApi") => {}
                Some("ScheduleV2") => {
                    let (name, package) = (in_words(name), package.to_owned());
                    function.schedules.push(ScheduleSpec { name, package, ..ScheduleSpec::deserialize(&settings)? });
                }
                Some("DynamoDB") => function.streams.push(StreamSource::deserialize(&settings)?),
                Some("SQS") => function.queues.push(QueueSource::deserialize(&settings)?),
                _ => return Err(kind.error("one machine has no such event")),
            }
        }
        Ok(function)
    }
}

/// Returns a name of CloudFormation as one machine writes it.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests;
