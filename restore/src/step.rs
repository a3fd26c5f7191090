//! Steps of a restore: each asks the world before it acts, and again after it has acted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::call::{Call, Ran};
pub(crate) use crate::value::Want;
use crate::value::{includes, short};

/// The time between two questions.
const PAUSE: Duration = Duration::from_secs(10);

/// Errors of calls that come too early: DynamoDB accepts one change of a table at a time, and backs up a new table after a while.
const EARLY: [&str; 3] =
    ["(ResourceInUseException)", "(ContinuousBackupsUnavailableException)", "(LimitExceededException)"];

/// Errors of calls that are throttled.
const THROTTLES: [&str; 6] = [
    "(TooManyRequestsException)",
    "(ThrottlingException)",
    "(Throttling)",
    "(ThrottledException)",
    "(ProvisionedThroughputExceededException)",
    "(RequestLimitExceeded)",
];

/// The most times that a throttled call is tried again: five minutes.
const MAX_THROTTLED: u32 = 30;

/// The most failed steps that the end names. Each was told when it failed.
const NAMED: usize = 20;

/// The source of a fact.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    /// The answer of a program that changes nothing.
    Run(Call),
    /// The bytes of a file of this folder, or null.
    Size(PathBuf),
    /// Whether a file has this line.
    Line(PathBuf, String),
}

/// A fact of the world: where it is read, the expected value, and what to do if there is another.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// Its name, for the operator.
    pub(crate) name: String,
    pub(crate) read: Read,
    /// The part of the answer, as a JSON pointer.
    pub(crate) part: String,
    /// The element of a list: a field and its value.
    pub(crate) of: Option<(&'static str, String)>,
    pub(crate) want: Want,
    pub(crate) remedy: String,
}

/// The action of a step.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Waits until the facts after it are true.
    Wait,
    /// Runs programs, one after the other.
    Run(Vec<Call>),
    /// Runs a program. Its failure stops no later step, and is told at the end.
    Try(Call),
    /// Runs a program until this part of its answer has this value.
    RunUntil(Call, &'static str, Value),
    /// Runs a program, and writes its output to a file.
    Save(Call, PathBuf),
    /// Writes a file.
    Write(PathBuf, String),
}

/// A step of a restore.
#[derive(Debug, Clone)]
pub struct Step {
    /// The step in a few words, for the operator.
    pub(crate) what: String,
    /// Facts that must be true before it.
    pub(crate) needs: Vec<Fact>,
    pub(crate) act: Act,
    /// Facts that are true after it. If they are true before, the step is done.
    pub(crate) done: Vec<Fact>,
    /// A fact that says that it has failed.
    pub(crate) failed: Option<Fact>,
    /// The longest time until the facts after it are true.
    pub(crate) within: Duration,
}

/// Runs steps, or shows them.
pub struct Runner<'r> {
    /// Runs a program.
    pub run: &'r mut dyn FnMut(&Call) -> Result<Ran>,
    /// Waits.
    pub pause: &'r mut dyn FnMut(Duration),
    /// Shows the operator a line.
    pub say: &'r mut dyn FnMut(&str),
    /// The folder of the files.
    pub folder: PathBuf,
    /// Whether steps are run, and not only shown.
    pub is_apply: bool,
}

impl Runner<'_> {
    /// Reads the answer of a program that changes nothing.
    pub(crate) fn read(&mut self, call: &Call) -> Result<Value> {
        call.answer(&self.ran(call)?)
    }

    /// Runs a program, again while it is throttled.
    fn ran(&mut self, call: &Call) -> Result<Ran> {
        for _ in 0..MAX_THROTTLED {
            let ran = (self.run)(call)?;
            if !is_throttled(call, &ran) {
                return Ok(ran);
            }
            (self.pause)(PAUSE);
        }
        (self.run)(call)
    }

    /// Shows the steps, or runs those that are not done yet. Returns whether all are done.
    ///
    /// # Errors
    /// If the world is not as a step needs it, a program fails, or the world is not as expected after a step.
    pub fn go(&mut self, steps: &[Step]) -> Result<bool> {
        let (mut known, mut is_next) = (HashMap::new(), true);
        let mut failed = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let (number, what) = (index + 1, &step.what);
            // A later step may be done only after the steps before it, and what it asks about may not exist yet.
            let is_asked = self.is_apply || is_next;
            if is_asked && !step.done.is_empty() && self.find_false(&step.done, &mut known)?.is_none() {
                (self.say)(&format!("{number}. [done] {what}"));
                continue;
            }
            (self.say)(&format!("{number}. [to do] {what}"));
            step.lines().iter().for_each(|line| (self.say)(&format!("       {line}")));
            if !is_asked {
                continue;
            }
            is_next = false;
            if let Some((fact, found)) = self.find_false(&step.needs, &mut known)? {
                bail!("step {number} is refused: {}", fact.refusal(&found));
            }
            if !self.is_apply {
                continue;
            }
            match (&step.act, self.act(step)) {
                // Such steps do not depend on each other, so known facts stay true.
                (Act::Try(_), Err(error)) => {
                    let error = format!("{error:#}");
                    (self.say)(&format!("       failed: {error}"));
                    failed.push(format!("step {number}, {what}: {}", error.lines().last().unwrap_or_default()));
                }
                (Act::Try(_), Ok(())) => {}
                (_, acted) => {
                    acted.with_context(|| format!("step {number}, {what}"))?;
                    known.clear();
                }
            }
        }
        ensure!(failed.is_empty(), "{}", failure(&failed, steps.len()));
        Ok(is_next || self.is_apply)
    }

    /// Returns the steps that are not done.
    pub(crate) fn left<'s>(&mut self, steps: &'s [Step]) -> Result<Vec<&'s str>> {
        let mut known = HashMap::new();
        let left = steps.iter().map(|step| Ok(self.find_false(&step.done, &mut known)?.map(|_| &*step.what)));
        left.filter_map(Result::transpose).collect()
    }

    fn act(&mut self, step: &Step) -> Result<()> {
        let mut said = String::new();
        let mut left = step.within.as_secs().div_ceil(PAUSE.as_secs());
        match &step.act {
            Act::Wait => {}
            Act::Run(calls) => calls.iter().try_for_each(|call| self.accepted(call, &mut left).map(drop))?,
            Act::Try(call) => said = format!("; the answer was {}", self.accepted(call, &mut left)?),
            Act::RunUntil(call, part, wanted) => loop {
                let answer = self.accepted(call, &mut left)?;
                let found = answer.pointer(part).unwrap_or(&Value::Null);
                if found == wanted {
                    break;
                }
                ensure!(left > 0, "{part} is {found}, expected {wanted}; run this again");
                left -= 1;
                (self.pause)(PAUSE);
            },
            Act::Save(call, path) => {
                let ran = (self.run)(call)?;
                ensure!(ran.is_ok, "{call}\nfailed: {}", ran.errors);
                write(&self.folder.join(path), &ran.output)?;
            }
            Act::Write(path, text) => write(&self.folder.join(path), text)?,
        }
        loop {
            let Some((fact, found)) = self.find_false(&step.done, &mut HashMap::new())? else { return Ok(()) };
            if let Some(failed) = &step.failed
                && failed.want.is_met(&self.found(failed, &mut HashMap::new())?)
            {
                bail!("{}", failed.remedy);
            }
            ensure!(left > 0, "it is not done: {}{said}", fact.refusal(&found));
            left -= 1;
            (self.pause)(PAUSE);
        }
    }

    /// Runs a program, again if it came too early.
    fn accepted(&mut self, call: &Call, left: &mut u64) -> Result<Value> {
        loop {
            let ran = self.ran(call)?;
            if ran.is_ok || *left == 0 || !EARLY.iter().any(|code| ran.errors.contains(code)) {
                ensure!(ran.is_ok, "{call}\nfailed: {}", ran.errors);
                return call.answer(&ran);
            }
            *left -= 1;
            (self.pause)(PAUSE);
        }
    }

    /// Returns the first fact that has another value than the expected one, and that value.
    fn find_false<'f>(
        &mut self,
        facts: &'f [Fact],
        known: &mut HashMap<String, Value>,
    ) -> Result<Option<(&'f Fact, Value)>> {
        for fact in facts {
            let found = self.found(fact, known)?;
            if !fact.want.is_met(&found) {
                return Ok(Some((fact, found)));
            }
        }
        Ok(None)
    }

    fn found(&mut self, fact: &Fact, known: &mut HashMap<String, Value>) -> Result<Value> {
        let answer = match &fact.read {
            Read::Run(call) => {
                let key = call.to_string();
                if !known.contains_key(&key) {
                    known.insert(key.clone(), self.read(call)?);
                }
                known[&key].clone()
            }
            Read::Size(path) => std::fs::metadata(self.folder.join(path)).map_or(Value::Null, |file| file.len().into()),
            Read::Line(path, line) => {
                let text = std::fs::read_to_string(self.folder.join(path));
                text.is_ok_and(|text| text.lines().any(|it| it == line)).into()
            }
        };
        let part = answer.pointer(&fact.part).unwrap_or(&Value::Null);
        let found = match &fact.of {
            None => Some(part),
            Some((field, value)) => part.as_array().into_iter().flatten().find(|it| it[*field] == **value),
        };
        Ok(found.cloned().unwrap_or(Value::Null))
    }
}

/// Whether a program was throttled, or the function that it invoked.
fn is_throttled(call: &Call, ran: &Ran) -> bool {
    if !ran.is_ok {
        return THROTTLES.iter().any(|code| ran.errors.contains(code));
    }
    call.answer(ran).is_ok_and(|answer| ["429", "503"].contains(&&*answer["statusCode"].to_string()))
}

/// The steps that failed, and their number.
fn failure(failed: &[String], all: usize) -> String {
    let named = &failed[..failed.len().min(NAMED)];
    let more = failed.len() - named.len();
    let more = if more > 0 { format!("\nand {more} more, told above") } else { String::new() };
    format!("{} of {all} steps failed, and the others are done:\n{}{more}", failed.len(), named.join("\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

impl Fact {
    /// The found value, the expected one, and what to do.
    fn refusal(&self, found: &Value) -> String {
        let mut found = found;
        let mut wanted = self.want.to_string();
        let mut field = String::new();
        if let Want::Is(value) = &self.want {
            let mut value = value;
            // Of an object, the first field that differs.
            while let (Value::Object(all), Value::Object(fields)) = (found, value)
                && let Some((name, other)) =
                    fields.iter().find(|(name, it)| !all.get(*name).is_some_and(|found| includes(found, it)))
            {
                field = format!("{name} of {field}");
                found = all.get(name).unwrap_or(&Value::Null);
                value = other;
            }
            wanted = short(value);
        }
        let found = match &self.want {
            Want::Imports(expected) if !found.is_null() => expected.unexpected(found).join("; "),
            _ if found.is_null() => "missing".to_owned(),
            _ => short(found),
        };
        format!("{field}{} is {found}, expected {wanted}; {}", self.name, self.remedy)
    }
}

impl Step {
    /// The equivalent commands, and what is asked afterwards.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = match &self.act {
            Act::Wait => Vec::new(),
            Act::Run(calls) => calls.iter().map(Call::to_string).collect(),
            Act::Try(call) => vec![call.to_string()],
            Act::RunUntil(call, part, wanted) => vec![call.to_string(), format!("again until {part} is {wanted}")],
            Act::Save(call, path) => vec![format!("{call} > {}", path.display())],
            Act::Write(path, _) => vec![format!("writes {}", path.display())],
        };
        lines.extend(self.done.iter().map(|fact| format!("then {} is {}", fact.name, fact.want)));
        lines
    }
}
