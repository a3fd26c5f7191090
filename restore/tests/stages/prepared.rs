//! The stages, and a world in which the stages before one have run.

use std::path::Path;

use anyhow::{Context as _, Result};
use payments_model::UtcSecond;
use payments_restore::stages::{
    Allowed, Start, before_begin, before_files, before_finish, changes, clients, endpoints, files, import, published,
    resume, start, template,
};
use payments_restore::{Note, Origin, Runner, StackNow, Step};

use crate::world::World;

pub(crate) const T: &str = "2026-11-20T09:00:00Z";
pub(crate) const NOW: &str = "2026-11-20T10:00:00Z";

pub(crate) fn at(text: &str) -> Option<UtcSecond> {
    text.parse().ok()
}

/// The hot table is restored to T.
pub(crate) fn hot() -> Start {
    let stack = "payments-prod".to_owned();
    Start { stack, to: at(T), history: false, history_to: None, log: None, log_to: None, used: false, number: 1 }
}

/// All tables are restored.
pub(crate) fn all() -> Start {
    Start { history: true, ..log(Origin::Table, at(T)) }
}

/// The log is restored, or begins empty.
pub(crate) fn log(origin: Origin, to: Option<UtcSecond>) -> Start {
    Start { to, log: Some(origin), log_to: at("2026-11-20T09:30:00Z"), ..hot() }
}

/// Runs the start, and reads its file.
pub(crate) fn noted(world: &mut World, choices: &Start) -> Result<Note> {
    let apply = |runner: &mut Runner<'_>| {
        let stack = StackNow::read(&choices.stack, runner)?;
        start(choices, &stack, Path::new("restore.json"), &runner.folder, NOW.parse()?)
    };
    world.go(true, apply)?;
    world.said.clear();
    Note::read(&world.folder.path().join("restore.json"))
}

pub(crate) fn tables(note: &Note, stack: &StackNow, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    payments_restore::stages::tables(note, stack, NOW.parse()?, runner)
}

/// The steps of a stage.
pub(crate) type Steps = fn(&Note, &StackNow, &mut Runner<'_>) -> Result<Vec<Step>>;

/// A stage: its name, whether all tables are restored, and its steps.
pub(crate) type Stage = (&'static str, bool, Steps);

/// The stages in the order of docs/restore.md. The log's epoch, and what is brought back, are tested over an engine.
pub(crate) const STAGES: [Stage; 12] = [
    ("close", false, |note, stack, _| clients(note, stack, Allowed::Reads)),
    ("begin", false, |note, stack, _| Ok([before_begin(note, stack, true, NOW.parse()?)?, published(stack)?].concat())),
    ("tables", false, tables),
    ("tables-all", true, tables),
    ("endpoints", true, |note, _, runner| endpoints(note, runner)),
    ("files", true, |note, stack, runner| {
        let folders = (Path::new("reports"), Some(Path::new("journal")));
        Ok([before_files(note, stack, NOW.parse()?), files(note, stack, folders, runner)?].concat())
    }),
    ("finish", false, |note, stack, _| before_finish(note, stack, false, NOW.parse()?)),
    ("template", false, |note, stack, runner| template(note, stack, &runner.folder)),
    ("changes", false, changes),
    ("import", false, import),
    ("resume", true, |note, _, _| resume(note, NOW.parse()?)),
    ("open", false, |note, stack, _| clients(note, stack, Allowed::All)),
];

/// The webhook endpoints of the restored long-term table, and this month's audit trail of the old one.
pub(crate) const ENDPOINTS: &str = concat!(
    "aws dynamodb query --table-name payments-prod-restored-history-1 --key-condition-expression ",
    "'pk = :webhooks AND sk >= :first' --expression-attribute-values ",
    r#"'{":first":{"S":"-"},":webhooks":{"S":"WEBHOOK#ENDPOINTS"}}' => "#,
    r#"{"Items":[{"sk":{"S":"books"}},{"sk":{"S":"app"}}]}"#
);
/// The switch of the old long-term table.
pub(crate) const HELD: &str = concat!(
    r#"aws dynamodb get-item --table-name history --key '{"pk":{"S":"CONTROL"},"sk":{"S":"SWITCH"}}' --consistent-read => "#,
    r#"{"Item":{"heldDates":{"L":[{"M":{"from":{"S":"2026-12-01"},"to":{"S":"2026-12-02"}}}]}}}"#
);
pub(crate) const AUDIT: &str = concat!(
    "aws dynamodb query --table-name history --key-condition-expression 'pk = :month' --expression-attribute-values ",
    r#"'{":month":{"S":"AUDIT#2026-11"}}' => {"Items":[]}"#
);

pub(crate) fn stage(name: &str) -> Result<(bool, Steps)> {
    STAGES.iter().find(|(stage, ..)| *stage == name).context("no stage").map(|(.., all, steps)| (*all, *steps))
}

/// Stages before this one have run, and somebody has committed the template.
pub(crate) fn ready(world: &mut World, name: &str) -> Result<Note> {
    let (is_all, _) = stage(name)?;
    world.set(ENDPOINTS)?;
    world.set(HELD)?;
    world.set(AUDIT)?;
    let template = "\
Resources:
  PaymentsTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: !If [IsProd, Retain, Delete]
    UpdateReplacePolicy: !If [IsProd, Retain, Delete]
    Properties:
      BillingMode: PAY_PER_REQUEST
";
    std::fs::write(world.folder.path().join("template.yaml"), template)?;
    let note = Note { rebuilt: at(NOW), ..noted(world, &if is_all { all() } else { hot() })? };
    if is_all {
        world.stage(true, &note, stage("close")?.1)?;
    }
    for (.., steps) in STAGES.iter().take_while(|(other, ..)| *other != name).filter(|(_, all, _)| *all == is_all) {
        world.stage(true, &note, steps)?;
    }
    world.acts.clear();
    world.said.clear();
    Ok(note)
}
