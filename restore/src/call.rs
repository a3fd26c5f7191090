//! Command lines of other programs, the AWS CLI above all, and what the programs answer.

use std::fmt;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::printed::{FAILURE, plain, sample};

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
        Self::program("aws", words, &[])
    }

    /// A command of the AWS CLI. Each `{}` in its words is a value, which may have spaces.
    pub(crate) fn aws_with(words: &str, values: &[&str]) -> Self {
        Self::program("aws", words, values)
    }

    /// A command of another program. Each `{}` in its words is a value, which may have spaces.
    pub(crate) fn program(program: &'static str, words: &str, values: &[&str]) -> Self {
        let mut values = values.iter();
        let arg = |word: &str| {
            let mut parts = word.split("{}");
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |arg, part| arg + values.next().unwrap_or(&"") + part)
        };
        Self { program, args: words.split(' ').map(arg).collect(), input: None }
    }

    /// The same with another argument, which may have spaces.
    pub(crate) fn with(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Invokes a Lambda function with an event. Its answer comes first.
    pub(crate) fn invoke(function: &str, event: &Value) -> Self {
        // Both versions of the AWS CLI take the bytes of a file as they are, and a function may take a quarter of an hour.
        let words = "lambda invoke --function-name {} --cli-read-timeout 0 --payload fileb:///dev/stdin /dev/stdout";
        Self { input: Some(event.to_string()), ..Self::aws_with(words, &[function]) }
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
            bail!(self.failure(ran));
        }
        let Some(values) = values(ran) else { return Ok(Value::String(ran.output.clone())) };
        if let Some(error) = values.iter().find_map(|value| value.get("FunctionError")) {
            bail!("{self}\nthe function failed, {error}: {}", plain(&values[0].to_string(), FAILURE));
        }
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }

    /// Returns what a program answered that was only asked: the AWS CLI must print JSON then, or nothing.
    pub(crate) fn read(&self, ran: &Ran) -> Result<Value> {
        let answer = self.answer(ran)?;
        let is_json = self.program != "aws" || !ran.is_ok || values(ran).is_some();
        ensure!(is_json, "{self}\nprinted something else than JSON: {}", sample(&ran.output));
        Ok(answer)
    }

    /// Says how the program failed.
    pub(crate) fn failure(&self, ran: &Ran) -> String {
        format!("{self}\nfailed: {}", plain(&format!("{}{}", ran.output, ran.errors), FAILURE))
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

/// The JSON values of an output. None if it has anything else.
fn values(ran: &Ran) -> Option<Vec<Value>> {
    serde_json::Deserializer::from_str(&ran.output).into_iter().collect::<Result<_, _>>().ok()
}

/// An argument as a shell takes it.
fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(is_plain) {
        return arg.to_owned();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_programs_output_is_shown_in_part() {
        let errors = format!("\u{1b}[31mAn error occurred\u{7}: {}", "long ".repeat(10_000));
        let ran = Ran { is_ok: false, output: String::new(), errors };
        let told = Call::aws("s3 ls").answer(&ran).unwrap_err().to_string();
        assert!(told.starts_with("aws s3 ls\nfailed: An error occurred: long "), "{told}");
        assert!(told.chars().count() < 2_100, "{} characters", told.chars().count());
    }
}
