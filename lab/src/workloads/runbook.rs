//! docs/alarms.md as an operator reads it: each alarm's entry has a line of actions.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};

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

/// The actions without a resource, by their names.
static PLAIN: [(&str, Action); 15] = [
    ("run-sweep", Action::RunSweep),
    ("run-redrive", Action::RunRedrive),
    ("run-report", Action::RunReport),
    ("run-archive", Action::RunArchive),
    ("run-recount", Action::RunRecount),
    ("repair", Action::Repair),
    ("correct-item", Action::CorrectItem),
    ("end-cause", Action::EndCause),
    ("correct-template", Action::CorrectTemplate),
    ("ask-the-service", Action::AskTheService),
    ("ask-the-client", Action::AskTheClient),
    ("restore-file", Action::RestoreFile),
    ("tell-readers", Action::TellReaders),
    ("renew-calendars", Action::RenewCalendars),
    ("redate", Action::Redate),
];

/// Makes an action of a resource.
type OfResource = fn(String) -> Action;

/// The actions of a resource, by their names.
static OF_RESOURCES: [(&str, OfResource); 6] = [
    ("enable-mapping", Action::EnableMapping),
    ("resume-schedule", Action::ResumeSchedule),
    ("move-back", Action::MoveBack),
    ("delete-strangers", Action::DeleteStrangers),
    ("purge", Action::Purge),
    ("raise", Action::Raise),
];

impl FromStr for Action {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split(' ');
        let name = words.next().unwrap_or_default();
        let of = words.next();
        let more = words.next();
        ensure!(more.is_none(), "{text} has too many words");
        if let Some((_, of_resource)) = OF_RESOURCES.iter().find(|(known, _)| *known == name) {
            return Ok(of_resource(of.with_context(|| format!("{name} of what?"))?.to_owned()));
        }
        let plain = PLAIN.iter().find(|(known, _)| *known == name);
        let (_, action) = plain.with_context(|| format!("no action is {name}"))?;
        ensure!(of.is_none(), "{name} is of nothing");
        Ok(action.clone())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = PLAIN.iter().find(|(_, plain)| plain == self) {
            return f.write_str(name);
        }
        let (Self::EnableMapping(of)
        | Self::ResumeSchedule(of)
        | Self::MoveBack(of)
        | Self::DeleteStrangers(of)
        | Self::Purge(of)
        | Self::Raise(of)) = self
        else {
            return Ok(());
        };
        let named = OF_RESOURCES.iter().find(|(_, of_resource)| of_resource(of.clone()) == *self);
        named.map_or(Ok(()), |(name, _)| write!(f, "{name} {of}"))
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
