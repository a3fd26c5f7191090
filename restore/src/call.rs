//! Command lines of other programs, the AWS CLI above all, and what the programs answer.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Errors of the AWS CLI that say that a thing is missing: then what is read of it is null.
const MISSING: [&str; 4] =
    ["(ResourceNotFoundException)", "(TableNotFoundException)", "(ChangeSetNotFound)", "(NotFoundException)"];

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    program: &'static str,
    args: Vec<String>,
    input: Option<String>,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Whether it succeeded.
    pub is_ok: bool,
    /// Its output.
    pub output: String,
    /// Its errors.
    pub errors: String,
}

impl Call {
    /// A command of the AWS CLI: its words in one text, then arguments as they are.
    pub(crate) fn aws(words: &str) -> Self {
        Self::program("aws", words)
    }

    /// A command of another program.
    pub(crate) fn program(program: &'static str, words: &str) -> Self {
        Self { program, args: words.split(' ').map(str::to_owned).collect(), input: None }
    }

    /// The same with another argument, which may have spaces.
    pub(crate) fn with(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Invokes a Lambda function with an event. Its answer comes first.
    pub(crate) fn invoke(function: &str, event: &Value) -> Self {
        // Both versions of the AWS CLI take the bytes of a file as they are, and a function may take a quarter of an hour.
        let words = format!(
            "lambda invoke --function-name {function} --cli-read-timeout 0 --payload fileb:///dev/stdin /dev/stdout"
        );
        Self { input: Some(event.to_string()), ..Self::aws(&words) }
    }

    /// Runs the program, and waits for its end.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn run(&self) -> Result<Ran> {
        let mut child = Command::new(self.program)
            .args(&self.args)
            .envs([("AWS_DEFAULT_OUTPUT", "json"), ("AWS_PAGER", "")])
            .stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{0} cannot be started; install {0}, then run this again", self.program))?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), &self.input) {
            pipe.write_all(input.as_bytes())?;
        }
        let ended = child.wait_with_output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Ran { is_ok: ended.status.success(), output: text(ended.stdout), errors: text(ended.stderr) })
    }

    /// Returns what the program answered: its first JSON value, or its text if it prints no JSON. Null if it prints nothing, or
    /// the thing is missing.
    pub(crate) fn answer(&self, ran: &Ran) -> Result<Value> {
        if !ran.is_ok && MISSING.iter().any(|code| ran.errors.contains(code)) {
            return Ok(Value::Null);
        }
        if !ran.is_ok {
            bail!("{self}\nfailed: {}{}", ran.output, ran.errors);
        }
        let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&ran.output).into_iter().collect();
        let Ok(values) = values else { return Ok(Value::String(ran.output.clone())) };
        if let Some(error) = values.iter().find_map(|value| value.get("FunctionError")) {
            bail!("{self}\nthe function failed, {error}: {}", values[0]);
        }
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.input {
            write!(f, "echo {} | ", quoted(input))?;
        }
        f.write_str(self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// An argument as a shell takes it.
fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(is_plain) {
        return arg.to_owned();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}
