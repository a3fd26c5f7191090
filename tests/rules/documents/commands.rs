//! Compares the commands of the alarms, the operations and the restore with the template: it has all their names.
//!
//! `.ci/try-deployment.py` executes those that pause, and those of `cargo restore`, on an emulator of AWS.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use payments_lab::Action;
use serde_json::Value;

use crate::template::{FUNCTION, resources, template};
use crate::tree::{files, in_repository, read};

/// The pages for an operator.
const PAGES: [&str; 3] = ["docs/alarms.md", "docs/operations.md", "docs/restore.md"];

/// The functions that all pages use.
const NAMES: &str = "docs/commands.sh";

/// All pages of an operator, and the functions that they use.
fn runbook() -> Result<String> {
    let pages = PAGES.into_iter().map(read).collect::<Result<String>>()?;
    Ok(format!("{pages}\n```sh\n{}```\n", read(NAMES)?))
}

/// The commands of a text: the lines of its shell blocks, and its spans of code.
fn commands(text: &str) -> Vec<String> {
    let (mut commands, mut is_shell) = (Vec::new(), false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            is_shell = trimmed == "```sh";
        } else if is_shell {
            commands.push(trimmed.to_owned());
        } else {
            commands.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    commands
}

/// The shell blocks of a text.
fn shell_blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut is_shell) = (Vec::new(), false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            is_shell = trimmed == "```sh";
            blocks.extend(is_shell.then(String::new));
        } else if let Some(block) = blocks.last_mut().filter(|_| is_shell) {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks
}

/// The arguments after a word of the commands, up to a space or a bracket.
fn arguments<'c>(commands: &'c [String], word: &str) -> BTreeSet<&'c str> {
    let after = |command: &'c String| {
        let begins = command.match_indices(word).filter(|(at, _)| !command[..*at].ends_with(char::is_alphanumeric));
        begins.map(|(at, _)| &command[at + word.len()..]).collect::<Vec<_>>()
    };
    let named = commands.iter().flat_map(after).filter_map(|rest| rest.split([' ', ')', '"']).next());
    // `$1` and `$table` stand for names.
    named.filter(|name| name.starts_with(char::is_uppercase)).collect()
}

/// The names that SAM gives to what it makes of these events: by function and event.
fn made_of(template: &Value, kinds: &[&str]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for (id, function) in resources(template, FUNCTION)? {
        let events = function["Properties"]["Events"].as_object().context("no events")?.iter();
        let of_kinds = events.filter(|(_, event)| event["Type"].as_str().is_some_and(|kind| kinds.contains(&kind)));
        names.extend(of_kinds.map(|(name, _)| format!("{id}{name}")));
    }
    Ok(names)
}

#[test]
fn the_commands_name_what_the_template_has() -> Result<()> {
    let (template, runbook) = (template()?, runbook()?);
    let commands = commands(&runbook);
    let mut checked = 0;
    for (word, section) in [
        ("resource ", "Resources"),
        ("invoke ", "Resources"),
        ("move_back ", "Resources"),
        ("stop_move ", "Resources"),
        ("peek ", "Resources"),
        ("purge ", "Resources"),
        ("output ", "Outputs"),
        ("parameter ", "Parameters"),
    ] {
        for name in arguments(&commands, word) {
            ensure!(!template[section][name].is_null(), "{word}{name}: not in {section}");
            checked += 1;
        }
    }
    ensure!(checked >= 20, "{checked} names");
    let as_texts = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(as_texts(arguments(&commands, "mapping ")), made_of(&template, &["DynamoDB", "SQS"])?);
    assert_eq!(as_texts(arguments(&commands, "schedule ")), made_of(&template, &["ScheduleV2"])?);
    Ok(())
}

/// A block that bash cannot parse fails in the middle of an incident.
#[test]
fn bash_parses_every_shell_block() -> Result<()> {
    let script = format!("```sh\n{}```\n", read(NAMES)?);
    for page in ["docs/operations.md", "docs/deploy.md", NAMES] {
        let blocks = if page == NAMES { shell_blocks(&script) } else { shell_blocks(&read(page)?) };
        ensure!(!blocks.is_empty(), "{page} has no shell blocks");
        for block in blocks {
            let parsed = Command::new("bash").args(["-n", "-c", &block]).output().context("bash")?;
            ensure!(parsed.status.success(), "{page}: {}\n{block}", String::from_utf8_lossy(&parsed.stderr));
        }
    }
    Ok(())
}

#[test]
fn every_value_of_the_parameter_is_deployed_by_a_command() -> Result<()> {
    let (template, runbook) = (template()?, runbook()?);
    for parameter in ["Paused", "RequestGate"] {
        let deployed: BTreeSet<String> = commands(&runbook)
            .iter()
            .filter(|command| command.starts_with("sam deploy "))
            .filter_map(|command| Some(command.split_once(&format!("{parameter}="))?.1.split(' ').next()?.to_owned()))
            .collect();
        let allowed = template["Parameters"][parameter]["AllowedValues"].as_array().context("no values")?;
        assert_eq!(deployed, allowed.iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect());
    }
    Ok(())
}

/// Lambda's pollers receive messages although the function may not run, and each receive counts towards the dead letters.
#[test]
fn nothing_is_paused_by_its_concurrency() -> Result<()> {
    // In two halves, so that this file passes.
    let forbidden = [concat!("put-function", "-concurrency"), concat!("reserved-concurrent-executions", " 0")];
    let root = in_repository("");
    for (path, bytes) in files("")? {
        let text = String::from_utf8_lossy(&bytes);
        let found = forbidden.iter().find(|words| text.contains(**words));
        assert_eq!(found, None, "{}", path.strip_prefix(&root)?.display());
    }
    let template = template()?;
    for (name, function) in resources(&template, FUNCTION)? {
        let reserved = &function["Properties"]["ReservedConcurrentExecutions"];
        let is_zero = reserved.to_string().split(|letter: char| !letter.is_ascii_digit()).any(|number| number == "0");
        assert!(!is_zero, "{name}: {reserved}");
    }
    Ok(())
}

/// The simulated month's operator takes the actions from there.
#[test]
fn every_alarm_has_actions_that_are_explained_and_name_what_the_template_has() -> Result<()> {
    let template = template()?;
    let actions = payments_lab::actions()?;
    let alarms: BTreeSet<&str> =
        resources(&template, "AWS::CloudWatch::Alarm")?.into_iter().map(|(name, _)| name).collect();
    assert_eq!(actions.keys().map(String::as_str).collect::<BTreeSet<_>>(), alarms);
    let simulation = read("docs/simulation.md")?;
    let (_, explained) = simulation.split_once("\n### Actions\n").context("no actions")?;
    let (explained, _) = explained.split_once("\n## ").context("no end of the actions")?;
    let (mappings, schedules) = (made_of(&template, &["DynamoDB", "SQS"])?, made_of(&template, &["ScheduleV2"])?);
    for (alarm, action) in actions.iter().flat_map(|(alarm, actions)| actions.iter().map(move |action| (alarm, action)))
    {
        let is_known = match action {
            Action::EnableMapping(id) => mappings.contains(id),
            Action::ResumeSchedule(id) => schedules.contains(id),
            Action::MoveBack(id) | Action::DeleteStrangers(id) | Action::Purge(id) => {
                template["Resources"][id]["Type"] == "AWS::SQS::Queue"
            }
            Action::Raise(id) => !template["Parameters"][id].is_null(),
            _ => true,
        };
        ensure!(is_known, "{alarm}: {action} names nothing of the template");
        let name = action.to_string();
        let name = name.split(' ').next().unwrap_or_default();
        ensure!(explained.contains(&format!("`{name}`")), "{name} is not explained");
    }
    Ok(())
}

/// Runs a script in the repository's folder. Returns whether it succeeded, and its output.
fn bash(script: &str) -> Result<(bool, String)> {
    let ran = Command::new("bash").args(["-c", script]).current_dir(in_repository("")).output().context("bash")?;
    Ok((ran.status.success(), String::from_utf8(ran.stdout)? + &String::from_utf8(ran.stderr)?))
}

/// Runs a command as an operator who trains.
fn train(command: &str) -> Result<(bool, String)> {
    bash(&format!(". {NAMES} local; {command}"))
}

/// An operator who trains changes nothing of a stack, even with credentials at hand.
#[test]
fn for_cargo_local_no_command_reaches_aws() -> Result<()> {
    for command in [
        "move_back RequestDeadLetters",
        "schedule X ENABLED",
        "sam deploy",
        "purge DispatchFailures",
        "cargo restore close --apply",
    ] {
        let (succeeds, says) = train(command)?;
        ensure!(!succeeds && says.contains("A stack would get: "), "{command}: {says}");
    }
    let (succeeds, says) = train("type invoke get send | grep local_url && run nothing")?;
    ensure!(!succeeds && says.contains("run what?"), "{says}");
    Ok(())
}

/// A first command at night must not change anything, nor reach a stack that nobody named.
#[test]
fn commands_without_an_argument_only_show() -> Result<()> {
    for (command, calls) in [
        ("mapping X", "aws lambda get-event-source-mapping "),
        ("schedule X", "aws scheduler get-schedule "),
        ("access_log", r#"--since 1h --filter-pattern { $.status = "5*" }"#),
        ("access_log all 2h", r#"--since 2h --filter-pattern { $.status = "*" }"#),
    ] {
        let (_, says) = train(command)?;
        ensure!(says.contains(calls) && !says.contains("update-"), "{command}: {says}");
    }
    assert_eq!(train("TOKEN=mine token payments/inspect")?, (true, "mine\n".to_owned()));
    for command in ["mapping", "schedule"] {
        let (succeeds, says) = train(command)?;
        ensure!(!succeeds && says.contains(&format!("which {command}?")) && !says.contains("A stack"), "{says}");
    }
    for stack in ["", "'local '", "'a b'"] {
        let (succeeds, says) = bash(&format!(". {NAMES} {stack}; status=$?; type output; exit $status"))?;
        ensure!(!succeeds && says.contains("Usage: ") && says.contains("output: not found"), "{stack}: {says}");
    }
    Ok(())
}

#[test]
fn commands_are_found_in_blocks_and_spans() {
    let found = commands("Run `a b`, or\n```sh\nc d  # e\n```\n  ```json\n  x\n  ```\n`f`");
    assert_eq!(found, ["a b", "c d  # e", "f"]);
    let commands = ["x \"$(resource Table)\" resource Queue", "resource $1", "resources Other"].map(str::to_owned);
    assert_eq!(arguments(&commands, "resource "), BTreeSet::from(["Queue", "Table"]));
}
