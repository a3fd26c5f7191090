//! docs/alarms.md as an operator reads it: each alarm's entry has a line of actions.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

const ALARMS: &str = include_str!("../../../docs/alarms.md");

/// An action of docs/alarms.md. Names of resources are logical ids of the template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Run a sweep.
    RunSweep,
    /// Run a redrive.
    RunRedrive,
    /// Run a report.
    RunReport,
    /// Run the archive.
    RunArchive,
    /// Run a recount.
    RunRecount,
    /// Recount, and repair the counters 25 hours later.
    Repair,
    /// Enable an event source mapping.
    EnableMapping(String),
    /// Enable a schedule.
    ResumeSchedule(String),
    /// Move the dead letters of a queue back.
    MoveBack(String),
    /// Delete dead letters that name no payment of this stack.
    DeleteStrangers(String),
    /// Delete all messages of a queue.
    Purge(String),
    /// Correct damaged items by hand.
    CorrectItem,
    /// End the cause that the log names.
    EndCause,
    /// Correct what the deployment changed, and deploy.
    CorrectTemplate,
    /// Ask the transaction service.
    AskTheService,
    /// Ask the client of a payment.
    AskTheClient,
    /// Raise a parameter of the stack, and deploy.
    Raise(String),
    /// Restore the file of a report.
    RestoreFile,
    /// Tell the readers of the event log what they miss.
    TellReaders,
    /// Deploy newer calendars.
    RenewCalendars,
    /// Move payments of closed dates.
    Redate,
}

impl FromStr for Action {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split(' ');
        let (name, of, more) = (words.next().unwrap_or_default(), words.next(), words.next());
        ensure!(more.is_none(), "{text} has too many words");
        let resource = || of.map(str::to_owned).with_context(|| format!("{name} of what?"));
        let action = match name {
            "enable-mapping" => return Ok(Self::EnableMapping(resource()?)),
            "resume-schedule" => return Ok(Self::ResumeSchedule(resource()?)),
            "move-back" => return Ok(Self::MoveBack(resource()?)),
            "delete-strangers" => return Ok(Self::DeleteStrangers(resource()?)),
            "purge" => return Ok(Self::Purge(resource()?)),
            "raise" => return Ok(Self::Raise(resource()?)),
            "run-sweep" => Self::RunSweep,
            "run-redrive" => Self::RunRedrive,
            "run-report" => Self::RunReport,
            "run-archive" => Self::RunArchive,
            "run-recount" => Self::RunRecount,
            "repair" => Self::Repair,
            "correct-item" => Self::CorrectItem,
            "end-cause" => Self::EndCause,
            "correct-template" => Self::CorrectTemplate,
            "ask-the-service" => Self::AskTheService,
            "ask-the-client" => Self::AskTheClient,
            "restore-file" => Self::RestoreFile,
            "tell-readers" => Self::TellReaders,
            "renew-calendars" => Self::RenewCalendars,
            "redate" => Self::Redate,
            other => bail!("no action is {other}"),
        };
        ensure!(of.is_none(), "{name} is of nothing");
        Ok(action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, of) = match self {
            Self::RunSweep => ("run-sweep", None),
            Self::RunRedrive => ("run-redrive", None),
            Self::RunReport => ("run-report", None),
            Self::RunArchive => ("run-archive", None),
            Self::RunRecount => ("run-recount", None),
            Self::Repair => ("repair", None),
            Self::EnableMapping(of) => ("enable-mapping", Some(of)),
            Self::ResumeSchedule(of) => ("resume-schedule", Some(of)),
            Self::MoveBack(of) => ("move-back", Some(of)),
            Self::DeleteStrangers(of) => ("delete-strangers", Some(of)),
            Self::Purge(of) => ("purge", Some(of)),
            Self::CorrectItem => ("correct-item", None),
            Self::EndCause => ("end-cause", None),
            Self::CorrectTemplate => ("correct-template", None),
            Self::AskTheService => ("ask-the-service", None),
            Self::AskTheClient => ("ask-the-client", None),
            Self::Raise(of) => ("raise", Some(of)),
            Self::RestoreFile => ("restore-file", None),
            Self::TellReaders => ("tell-readers", None),
            Self::RenewCalendars => ("renew-calendars", None),
            Self::Redate => ("redate", None),
        };
        f.write_str(name)?;
        of.map_or(Ok(()), |of| write!(f, " {of}"))
    }
}

/// Returns the actions of each alarm's entry, in the order in which they are taken.
///
/// # Errors
/// If an entry has no line of actions or two, or a line names no action.
pub fn actions() -> Result<BTreeMap<String, Vec<Action>>> {
    actions_of(ALARMS)
}

fn actions_of(page: &str) -> Result<BTreeMap<String, Vec<Action>>> {
    let (_, entries) = page.split_once("\n## Entries\n").context("no entries")?;
    let mut found = BTreeMap::new();
    for entry in entries.split("\n### ").skip(1) {
        let (name, text) = entry.split_once('\n').context("an entry without a text")?;
        // Each entry's line comes right after its heading.
        let line = text.lines().next().and_then(|line| line.strip_prefix("*Actions: ")?.strip_suffix(".*"));
        let line = line.with_context(|| format!("{name} does not begin with its actions"))?;
        let others = text.lines().filter(|line| line.starts_with("*Actions: ")).count();
        ensure!(others == 1, "{name} has {others} lines of actions");
        let actions = line.split(", ").map(str::parse).collect::<Result<Vec<Action>>>();
        found.insert(name.to_owned(), actions.with_context(|| name.to_owned())?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_actions_in_its_first_line() {
        let entry = |text: &str| actions_of(&format!("\n## Entries\n\n### A\n{text}\n"));
        let found = entry("*Actions: run-sweep, move-back Queue.*\nA text.").unwrap();
        assert_eq!(found["A"], [Action::RunSweep, Action::MoveBack("Queue".to_owned())]);
        for wrong in [
            "A text.\n*Actions: run-sweep.*",
            "*Actions: run-sweep.*\n*Actions: run-sweep.*",
            "*Actions: run.*",
            "*Actions: move-back.*",
            "*Actions: run-sweep Queue.*",
            "*Actions: move-back Queue Other.*",
            "*Actions: run-sweep*",
        ] {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_alarm_has_actions_and_an_action_is_written_as_it_is_read() {
        let actions = actions().unwrap();
        let alarms: Vec<_> = crate::world::template::alarms().unwrap().into_iter().map(|alarm| alarm.name).collect();
        assert_eq!(actions.keys().collect::<Vec<_>>(), {
            let mut alarms: Vec<_> = alarms.iter().collect();
            alarms.sort();
            alarms
        });
        for action in actions.into_values().flatten() {
            assert_eq!(action.to_string().parse::<Action>().unwrap(), action);
        }
    }
}
