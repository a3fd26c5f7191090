//! `template.yaml`, parsed once into types. For a part that cannot be read, the error names the line.

mod intrinsics;
pub mod yaml;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, bail};
use chrono::TimeDelta;
use payments_delivery::queue::QueueMappingSettings;
use payments_delivery::{StreamSettings, seconds};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use intrinsics::Intrinsics;
use yaml::{Content, Node, YamlError};

use crate::schedule::ScheduleSpec;

pub use intrinsics::Given;

/// The text of this repository's template, which is compiled into the program.
pub const OURS: &str = include_str!("../../template.yaml");

/// The parameters of each stage.
const CONFIG: &str = include_str!("../../samconfig.toml");

static READ: LazyLock<Result<Template, YamlError>> = LazyLock::new(|| Template::read(OURS));
static SENDING_PAUSED: LazyLock<Result<Template, YamlError>> =
    LazyLock::new(|| Template::read_while(OURS, Some("sending")));
static SETTLING_PAUSED: LazyLock<Result<Template, YamlError>> =
    LazyLock::new(|| Template::read_while(OURS, Some("settling")));

/// The attributes of functions, events and queues that one machine does not simulate: they configure AWS itself, routes, or
/// the retention of waiting records. `Environment` is among them, because variables are read when a function asks for
/// them. Any other unknown attribute is an error.
const NOT_SIMULATED: [&str; 24] = [
    "ApiId",
    "Architectures",
    "Auth",
    "CodeUri",
    "Description",
    "Environment",
    "Handler",
    "KmsMasterKeyId",
    "LoggingConfig",
    "MaximumRecordAgeInSeconds",
    "MessageRetentionPeriod",
    "Method",
    "MetricsConfig",
    "OmitName",
    "ParallelizationFactor",
    "Path",
    "PropagateTags",
    "RetryPolicy",
    "Role",
    "Runtime",
    "ScheduleExpressionTimezone",
    "SqsManagedSseEnabled",
    "StartingPosition",
    "Tags",
];

/// The parsed template.
#[derive(Debug)]
pub struct Template {
    /// The functions, in the order of the file.
    pub functions: Vec<DeployedFunction>,
    /// The queues with their logical ids.
    pub queues: Vec<(String, DeployedQueue)>,
    intrinsics: Intrinsics,
}

/// A function of the template.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct DeployedFunction {
    /// The function's logical id.
    #[serde(skip)]
    pub id: String,
    /// The function's package, which is its name on one machine.
    #[serde(skip)]
    pub package: String,
    /// The timeout of an invocation.
    #[serde(deserialize_with = "seconds")]
    pub timeout: TimeDelta,
    /// The function's memory in MB.
    #[serde(rename = "MemorySize")]
    pub memory: u32,
    /// The function's reserved concurrency, if any.
    #[serde(rename = "ReservedConcurrentExecutions")]
    pub concurrency: Option<u32>,
    event_invoke_config: Option<Asynchronous>,
    /// The function's schedules.
    #[serde(skip)]
    pub schedules: Vec<ScheduleSpec>,
    /// The function's stream mappings.
    #[serde(skip)]
    pub streams: Vec<StreamSettings>,
    /// The function's queue mappings.
    #[serde(skip)]
    pub queues: Vec<QueueMappingSettings>,
    /// The function's own variables, and the variables that all functions have.
    #[serde(skip)]
    variables: Vec<(String, Node)>,
}

/// The settings of a function's asynchronous invocations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asynchronous {
    #[serde(rename = "MaximumEventAgeInSeconds", deserialize_with = "seconds")]
    longest_wait: TimeDelta,
    #[serde(rename = "MaximumRetryAttempts", deserialize_with = "no_retry")]
    _retries: (),
}

/// A trigger of a function.
#[derive(Deserialize)]
#[serde(tag = "Type", content = "Properties", deny_unknown_fields)]
enum Event {
    HttpApi {},
    ScheduleV2(ScheduleSpec),
    DynamoDB(StreamSettings),
    #[serde(rename = "SQS")]
    Queue(QueueMappingSettings),
}

/// A queue of the template.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
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

/// Rejects retries of asynchronous invocations, because one machine does not simulate them.
fn no_retry<'n, D: Deserializer<'n>>(from: D) -> Result<(), D::Error> {
    let retries = u32::deserialize(from)?;
    (retries == 0).then_some(()).ok_or_else(|| D::Error::custom("one machine repeats no run that failed"))
}

impl Template {
    /// Returns the template of this repository.
    ///
    /// # Errors
    /// An error with the line, if the template cannot be read.
    pub fn ours() -> Result<&'static Self> {
        READ.as_ref().map_err(|error| anyhow!("template.yaml, {error}"))
    }

    /// Returns the template of this repository, deployed with this value of the parameter `Paused`.
    ///
    /// # Errors
    /// An error of [`ours`](Self::ours), or the parameter has no such value.
    pub fn ours_while(paused: &str) -> Result<&'static Self> {
        let read = match paused {
            "none" => return Self::ours(),
            "sending" => &SENDING_PAUSED,
            "settling" => &SETTLING_PAUSED,
            other => bail!("Paused is none, sending or settling, but not {other:?}"),
        };
        read.as_ref().map_err(|error| anyhow!("template.yaml, {error}"))
    }

    /// Reads a template.
    ///
    /// # Errors
    /// An error with the line, if the text is not YAML, or has an unknown attribute, an unknown intrinsic function or a
    /// value of the wrong type.
    pub fn read(text: &str) -> Result<Self, YamlError> {
        Self::read_while(text, None)
    }

    fn read_while(text: &str, paused: Option<&'static str>) -> Result<Self, YamlError> {
        let document = Node::parse(text)?;
        let globals = document.field("Globals")?.field("Function")?;
        let resources = document.field("Resources")?;
        let intrinsics = Intrinsics {
            parameters: document.field("Parameters")?.clone(),
            conditions: document.field("Conditions")?.clone(),
            paused,
            resources: resources.fields().iter().map(|(id, _)| id.clone()).collect(),
        };
        let (mut functions, mut queues) = (Vec::new(), Vec::new());
        for (id, resource) in resources.fields() {
            match resource.field("Type")?.text() {
                Some("AWS::Serverless::Function") => {
                    functions.push(DeployedFunction::read(id, resource, globals, &intrinsics)?);
                }
                Some("AWS::SQS::Queue") => {
                    let properties = intrinsics.resolved(resource.field("Properties")?)?;
                    queues.push((id.clone(), DeployedQueue::deserialize(&properties.without(&NOT_SIMULATED))?));
                }
                _ => {}
            }
        }
        Ok(Self { functions, queues, intrinsics })
    }

    /// Returns the function of a package.
    ///
    /// # Errors
    /// An error if the template has no function of this package.
    pub fn function(&self, package: &str) -> Result<&DeployedFunction> {
        let mut functions = self.functions.iter();
        functions.find(|it| it.package == package).with_context(|| format!("the template has no function {package}"))
    }

    /// Returns every schedule that is enabled.
    pub fn schedules(&self) -> impl Iterator<Item = &ScheduleSpec> {
        self.functions.iter().flat_map(|function| &function.schedules).filter(|spec| spec.is_enabled())
    }

    /// Returns the default of a parameter.
    ///
    /// # Errors
    /// An error if the template has no such parameter, or the parameter has no default.
    pub fn default_of(&self, parameter: &str) -> Result<String> {
        Ok(self.intrinsics.text(self.intrinsics.parameters.field(parameter)?.field("Default")?, &|_| None)?)
    }

    /// Returns the value of a function's variable; `None` if the function has no such variable. `given` has the values of
    /// parameters, resource names and conditions.
    ///
    /// # Errors
    /// An error if the template has no such function, or if the variable's value cannot be read.
    pub fn variable(&self, package: &str, name: &str, given: Given<'_>) -> Result<Option<String>> {
        let mut variables = self.function(package)?.variables.iter();
        let value = variables.find(|(known, _)| known == name).map(|(_, value)| self.intrinsics.text(value, given));
        Ok(value.transpose()?)
    }

    /// Reads every variable of every function. So a start finds variables that cannot be read, and does not take them for
    /// missing ones.
    ///
    /// # Errors
    /// An error with the line of the first variable that cannot be read.
    pub fn check_variables(&self, given: Given<'_>) -> Result<()> {
        for (_, value) in self.functions.iter().flat_map(|function| &function.variables) {
            self.intrinsics.text(value, given)?;
        }
        Ok(())
    }
}

/// Returns the parameters that `samconfig.toml` sets in an environment.
///
/// # Errors
/// If there is no such environment.
pub fn overrides(environment: &str) -> Result<BTreeMap<String, String>> {
    let section = format!("[{environment}.global.parameters]\n");
    let (_, rest) = CONFIG.split_once(&section).with_context(|| section.clone())?;
    let line = rest.lines().find_map(|line| line.strip_prefix("parameter_overrides = ")).context("no overrides")?;
    let all: Vec<String> = serde_json::from_str(line).context("not a list of texts")?;
    let pair = |it: &String| Some(it.split_once('=')?).map(|(name, value)| (name.to_owned(), value.to_owned()));
    all.iter().map(|it| pair(it).with_context(|| it.clone())).collect()
}

impl DeployedFunction {
    /// Returns the names of the function's variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the longest time that an asynchronous invocation may wait, if the template sets one.
    pub fn longest_wait(&self) -> Option<TimeDelta> {
        self.event_invoke_config.as_ref().map(|config| config.longest_wait)
    }

    fn read(id: &str, resource: &Node, globals: &Node, intrinsics: &Intrinsics) -> Result<Self, YamlError> {
        let written = merged(resource.field("Properties")?, globals);
        let mut properties = intrinsics.resolved(&written)?.without(&NOT_SIMULATED);
        let events = properties.take("Events")?;
        let binary = resource.field("Metadata")?.field("BuildProperties")?.field("Binary")?;
        let mut function = Self {
            id: id.to_owned(),
            package: String::deserialize(binary)?,
            variables: written.field("Environment")?.field("Variables")?.fields().to_vec(),
            ..Self::deserialize(&properties)?
        };
        let package = function.package.clone();
        for (name, event) in events.fields() {
            let package = package.clone();
            match Event::deserialize(event)? {
                Event::HttpApi {} => {}
                Event::ScheduleV2(spec) => function.schedules.push(spec.named(name, package)),
                Event::DynamoDB(settings) => {
                    function.streams.push(StreamSettings { function_name: package, ..settings });
                }
                Event::Queue(settings) => function.queues.push(settings),
            }
        }
        Ok(function)
    }
}

/// Merges the properties of a function with the properties of all functions, as SAM does: mappings field by field.
fn merged(own: &Node, of_all: &Node) -> Node {
    let (Content::Map(added), Content::Map(fields)) = (&own.content, &of_all.content) else { return own.clone() };
    let mut fields = fields.clone();
    for (name, node) in added {
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = merged(node, known),
            None => fields.push((name.clone(), node.clone())),
        }
    }
    Node { line: own.line, content: Content::Map(fields) }
}

#[cfg(test)]
mod tests;
