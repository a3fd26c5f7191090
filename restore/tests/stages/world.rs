//! A world without AWS: a table of answers of the AWS CLI, and what each command changes in it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use payments_restore::{Call, Note, Ran, Runner, StackNow, Step};
use serde_json::{Value, json};

/// The stack and its tables before a restore.
const ANSWERS: &str = include_str!("answers.txt");

/// The effects of commands, by their first words: an answer after `=>`, and answers of reads that change, in part.
const EFFECTS: &str = include_str!("effects.txt");

/// The read of the API's limits.
const STAGE: &str = "aws apigatewayv2 get-stage --api-id api --stage-name '$default'";

/// The world, and the commands that changed it.
pub(crate) struct World {
    pub(crate) answers: BTreeMap<String, Value>,
    pub(crate) acts: Vec<String>,
    /// The answer of this command is lost, although it takes effect.
    pub(crate) lost: Option<usize>,
    /// Commands with this text are throttled once.
    pub(crate) throttled: Vec<String>,
    /// The answers that each command sets as well.
    pub(crate) failing: Vec<String>,
    pub(crate) said: Vec<String>,
    pub(crate) folder: tempfile::TempDir,
    /// The outputs of reads, as they are.
    pub(crate) printed: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        let mut world = Self {
            answers: BTreeMap::new(),
            acts: Vec::new(),
            lost: None,
            throttled: Vec::new(),
            failing: Vec::new(),
            said: Vec::new(),
            folder: tempfile::tempdir()?,
            printed: BTreeMap::new(),
        };
        for line in ANSWERS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            world.set(line)?;
        }
        Ok(world)
    }

    /// Sets an answer, or a part of it: `READ => JSON`.
    pub(crate) fn set(&mut self, line: &str) -> Result<()> {
        let (read, value) = line.split_once(" => ").context("no answer")?;
        merge(self.answers.entry(read.trim().to_owned()).or_default(), serde_json::from_str(value)?);
        Ok(())
    }

    fn answer(&mut self, call: &Call) -> Result<Ran> {
        let line = call.to_string();
        let ok = |output: &str| Ran { is_ok: true, output: output.to_owned(), errors: String::new() };
        if let Some(output) = self.printed.get(&line) {
            return Ok(ok(output));
        }
        if let Some(answer) = self.answers.get(&line) {
            return Ok(match answer {
                Value::Null => ok(""),
                answer => ok(&answer.to_string()),
            });
        }
        if ["describe-", "get-", "list-", "query"].iter().any(|read| line.contains(&format!(" {read}"))) {
            let errors = "An error occurred (ResourceNotFoundException)".to_owned();
            return Ok(Ran { is_ok: false, output: String::new(), errors });
        }
        self.acts.push(line.clone());
        if let Some(index) = self.throttled.iter().position(|text| line.contains(text.as_str())) {
            self.throttled.remove(index);
            let errors = "An error occurred (TooManyRequestsException) when calling Invoke".to_owned();
            return Ok(Ran { is_ok: false, output: String::new(), errors });
        }
        if let Some((_, to)) = line.strip_prefix("aws s3 cp s3://").and_then(|line| line.split_once(' ')) {
            let path = self.folder.path().join(to);
            std::fs::create_dir_all(path.parent().context("no folder")?)?;
            std::fs::write(path, "old")?;
        }
        // A change of an endpoint or the switch: `update-item` sets what `get-item` reads.
        if let Some((key, _)) = line.split_once(" --update-expression ") {
            let read = format!("{} --consistent-read", key.replace("update-item", "get-item"));
            let is_stopped = !line.contains("stopped = :no");
            let holds = line.split_once("\":holds\":").map(|(_, holds)| {
                serde_json::Deserializer::from_str(holds).into_iter::<Value>().next().context("no holds")
            });
            let item = json!({
                "disabledAt": {"S": "now"}, "stopped": {"BOOL": is_stopped}, "by": {"S": "b:restore"},
                "heldDates": holds.transpose()?.transpose()?,
            });
            self.set(&format!("{read} => {}", json!({ "Item": item })))?;
        }
        if let Some((_, settings)) = line.split_once("--route-settings ") {
            let settings = settings.trim_matches('\'');
            self.set(&format!("{STAGE} => {{\"RouteSettings\":{settings}}}"))?;
        }
        let mut found = false;
        let mut answer = ok("");
        // A cancel: the head of the payment becomes cancelled, if the world has one that is scheduled.
        if let Some((_, path)) = line.split_once("\"path\":\"/accounts/") {
            let (id, is_cancel) = (path.split('/').nth(2).context("no payment")?, path.contains("/cancel"));
            let status = self.answers.iter_mut().find(|(read, _)| read.contains(id)).map(|(_, status)| status);
            answer = match status {
                Some(status) if is_cancel && *status == "SCHEDULED" => {
                    *status = json!("CANCELLED");
                    ok("{\"statusCode\":200}{\"StatusCode\":200}")
                }
                Some(_) => ok("{\"statusCode\":409}{\"StatusCode\":200}"),
                None => ok("{\"statusCode\":404}{\"StatusCode\":200}"),
            };
        }
        for effect in EFFECTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(sets) = effect.strip_prefix("    ") {
                if found {
                    match sets.strip_prefix("=> ") {
                        Some(output) => answer = ok(output),
                        None => self.set(sets)?,
                    }
                }
            } else {
                found = line.starts_with(effect);
            }
        }
        for line in self.failing.clone() {
            self.set(&line)?;
        }
        if self.lost == Some(self.acts.len() - 1) {
            bail!("the connection was lost");
        }
        Ok(answer)
    }

    /// Runs what makes steps, and then the steps.
    pub(crate) fn go(
        &mut self,
        is_apply: bool,
        steps: impl FnOnce(&mut Runner<'_>) -> Result<Vec<Step>>,
    ) -> Result<bool> {
        let world = std::cell::RefCell::new(&mut *self);
        let folder = world.borrow().folder.path().to_owned();
        let mut runner = Runner {
            folder,
            run: &mut |call| world.borrow_mut().answer(call),
            pause: &mut |_: Duration| world.borrow_mut().pass(),
            say: &mut |line| world.borrow_mut().said.push(line.to_owned()),
            is_apply,
        };
        let steps = steps(&mut runner)?;
        runner.go(&steps)
    }

    /// A stage of a note, with the stack as it is.
    pub(crate) fn stage(
        &mut self,
        is_apply: bool,
        note: &Note,
        stage: impl FnOnce(&Note, &StackNow, &mut Runner<'_>) -> Result<Vec<Step>>,
    ) -> Result<bool> {
        self.go(is_apply, |runner| {
            let stack = StackNow::for_note(note, runner)?;
            stage(note, &stack, runner)
        })
    }

    /// Time passes: tables that are created or changed become active.
    fn pass(&mut self) {
        for answer in self.answers.values_mut() {
            if let Some(status) = answer.pointer_mut("/Table/TableStatus") {
                *status = json!("ACTIVE");
            }
        }
    }
}

/// Puts the fields of a value into another.
fn merge(into: &mut Value, value: Value) {
    match (into, value) {
        (Value::Object(into), Value::Object(value)) => {
            value.into_iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
        }
        (into, value) => *into = value,
    }
}
