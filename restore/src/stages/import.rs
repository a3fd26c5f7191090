//! The change set that gives the restored tables to the stack.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::call::Call;
use crate::changes::ExpectedChanges;
use crate::note::Note;
use crate::stack::{StackNow, describe};
use crate::stages::clients::closed;
use crate::stages::epoch::needed;
use crate::stages::tables::endpoints;
use crate::stages::template::{line_of, successor};
use crate::stages::{HOURS, describe_table, fact, step, wait};
use crate::step::{Act, Fact, Runner, Step, Want};

/// The stack of sam, which has the bucket of deployments.
const SAM: &str = "aws-sam-cli-managed-default";

fn name(note: &Note) -> String {
    format!("restored-{}", note.number)
}

fn describe_set(note: &Note) -> Call {
    let (stack, set) = (&note.stack, name(note));
    Call::aws_with("cloudformation describe-change-set --stack-name {} --change-set-name {}", &[stack, &set])
}

fn of_set(note: &Note, part: &str, want: Want, remedy: &str) -> Fact {
    fact(format!("{part} of the change set {}", name(note)), describe_set(note), &format!("/{part}"), want, remedy)
}

/// The commit whose template the change set has.
fn commit(runner: &mut Runner<'_>) -> Result<String> {
    let commit = runner.read(&Call::program("git", "rev-parse HEAD", &[]))?;
    Ok(format!(
        "commit {}",
        commit.as_str().context("git has no commit; run this in the folder of the deployed commit")?
    ))
}

fn delete(note: &Note) -> String {
    let set = name(note);
    format!(
        "`aws cloudformation delete-change-set --stack-name {} --change-set-name {set}`, then run `cargo restore \
         changes --apply` again",
        note.stack
    )
}

/// The step that builds the committed template, and makes a change set of it.
///
/// # Errors
/// If the stack is not this system's, or was never deployed by sam.
pub fn changes(note: &Note, stack: &StackNow, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    let query = "Stacks[0].Outputs[?OutputKey=='SourceBucket'].OutputValue | [0]";
    let bucket = runner.read(&describe(SAM).with("--query").with(query))?;
    let bucket = bucket.as_str().with_context(|| format!("{SAM} has no bucket; was the stack deployed by sam?"))?;
    let stage = stack.parameter("Stage")?;
    let commit = commit(runner)?;
    let key = format!("{}/restored-{}.yaml", note.stack, note.number);
    let parameters: Vec<Value> = stack
        .parameters()
        .map(|name| match name {
            // Nothing may be swept or sent before the tables are what the log says.
            "Paused" if note.hot.is_new() => json!({"ParameterKey": name, "ParameterValue": "settling"}),
            _ => json!({"ParameterKey": name, "UsePreviousValue": true}),
        })
        .collect();
    let create = Call::aws_with(
        "cloudformation create-change-set --stack-name {} --change-set-name {} --change-set-type UPDATE \
         --import-existing-resources --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --tags \
         Key=Application,Value=scheduled-payments Key=Stage,Value={} --template-url \
         https://s3.{}.amazonaws.com/{}/{} --parameters",
        &[&note.stack, &name(note), stage, stack.region(), bucket, &key],
    );
    let calls = vec![
        Call::program("sam", "build --config-env {}", &[stage]),
        Call::program(
            "sam",
            "package --config-env {} --s3-bucket {} --output-template-file packaged.yaml",
            &[stage, bucket],
        ),
        Call::aws_with("s3 cp packaged.yaml s3://{}/{}", &[bucket, &key]),
        create.with(Value::from(parameters).to_string()).with("--description").with(&commit),
    ];
    let git = Call::program("git", "status --porcelain --untracked-files=no -- template.yaml", &[]);
    let remedy = "commit the template; from now on deploy only this commit and its successors";
    let mut needs = vec![fact("an uncommitted change", git, "", Want::Missing, remedy)];
    needs.extend(note.each().into_iter().filter(|(_, table)| table.is_new()).map(|(_, table)| {
        let remedy = "run `cargo restore template --apply`, and commit the template";
        Fact { remedy: remedy.to_owned(), ..line_of(table, Path::new("template.yaml")) }
    }));
    let remedy = format!("wait while it is made; if it failed or is of another commit, {}", delete(note));
    needs.push(of_set(note, "Status", Want::Missing, &remedy));
    let remedy = format!("look why, then {}", delete(note));
    let done = vec![
        of_set(note, "Status", Want::Is(json!("CREATE_COMPLETE")), &remedy),
        of_set(note, "Description", Want::Is(commit.into()), &remedy),
    ];
    let what = "Build the committed template, and make a change set of it, which changes nothing yet".to_owned();
    let failed = of_set(note, "Status", Want::Is(json!("FAILED")), &format!("the change set failed: {remedy}"));
    let act = Act::Run(calls);
    Ok(vec![Step { needs, act, failed: Some(failed), ..step(what, describe_set(note), done) }])
}

/// The step that executes the change set, if it imports the restored tables and nothing else.
///
/// # Errors
/// If the stack is not this system's.
pub fn import(note: &Note, stack: &StackNow, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    let new: Vec<_> = note.each().into_iter().filter(|(_, table)| table.is_new()).collect();
    ensure!(!new.is_empty(), "no table was restored under another name, so the stack stays");
    let mut done: Vec<Fact> = new.iter().map(|(kind, table)| stack.has_table(*kind, &table.new)).collect();
    let of_stack =
        |want, remedy: &str| fact("StackStatus", describe(&note.stack), "/Stacks/0/StackStatus", want, remedy);
    done.push(of_stack(Want::Is(json!("UPDATE_COMPLETE")), "look at the stack's events"));
    let mut expected = ExpectedChanges::default();
    for (kind, table) in new.iter().filter(|(kind, table)| stack.table(*kind).is_ok_and(|it| it == table.old)) {
        let id = stack.logical(&table.old)?;
        expected.imported.insert(successor(id));
        expected.removed.insert(id.to_owned());
        expected.replaced.extend(kind.mappings().iter().map(|&id| id.to_owned()));
    }
    let remedy =
        "do not execute it. On a dev stack first deploy a plain `DeletionPolicy: Retain` for all old tables. Then ";
    let remedy = format!("{remedy}{}", delete(note));
    let mut needs = Vec::new();
    if note.history.is_new() {
        let remedy = "run `cargo restore endpoints --apply`";
        let disabled = endpoints(note, runner)?.into_iter().flat_map(|step| step.done);
        needs.extend(disabled.map(|fact| Fact { remedy: remedy.to_owned(), ..fact }));
    }
    for (_, table) in &new {
        let read = |table: &str| describe_table(table).with("--query").with("Table.GlobalSecondaryIndexes[].IndexName");
        let names = runner.read(&read(&table.old))?;
        // A table that is gone does not say which indexes it had.
        if names.is_array() {
            let remedy = "make the missing index, then run this again";
            needs.push(fact(format!("the indexes of {}", table.new), read(&table.new), "", Want::Is(names), remedy));
        }
    }
    needs.extend([
        of_set(note, "Status", Want::Is(json!("CREATE_COMPLETE")), "make it first: `cargo restore changes --apply`"),
        of_set(
            note,
            "Description",
            Want::Is(commit(runner)?.into()),
            &format!("it is of another commit: {}", delete(note)),
        ),
        of_set(
            note,
            "ExecutionStatus",
            Want::Is(json!("AVAILABLE")),
            &format!("look at the stack's events, then {}", delete(note)),
        ),
        of_set(note, "Changes", Want::Imports(expected), &remedy),
        of_set(note, "NextToken", Want::Missing, "the list of changes is not whole: look at it in the console"),
    ]);
    if note.hot.is_new() {
        needs.extend(stack.paused()?);
        needs.push(closed(stack)?);
    }
    let made = runner.read(&describe_set(note))?;
    listed(&made["Changes"]).iter().for_each(|line| (runner.say)(line));
    // A run that was cut off has executed it: the stack takes a while.
    let is_begun = made["ExecutionStatus"] == "EXECUTE_IN_PROGRESS"
        || new.iter().all(|(kind, table)| stack.table(*kind).is_ok_and(|it| it == table.new));
    // An update could open it again.
    let stays_closed =
        if note.hot.is_new() { vec![needed("The API is still closed", vec![closed(stack)?])] } else { Vec::new() };
    let (stack, set) = (&note.stack, name(note));
    let words = "cloudformation execute-change-set --stack-name {} --change-set-name {}";
    let call = Call::aws_with(words, &[stack, &set]);
    let status = describe(&note.stack).with("--query").with("Stacks[0].StackStatus");
    let want = Want::Has(&["ROLLBACK", "FAILED"]);
    let failed = Some(fact("StackStatus", status, "", want, "the stack failed: look at its events"));
    let given = if is_begun {
        wait("Wait until the stack has the restored tables", done)
    } else {
        Step { needs, ..step("Give the restored tables to the stack", call, done) }
    };
    Ok([vec![Step { failed, within: HOURS, ..given }], stays_closed].concat())
}

/// The changes, for a person to look at.
fn listed(changes: &Value) -> BTreeSet<String> {
    let line = |change: &Value| {
        let change = &change["ResourceChange"];
        let text = |name: &str| change[name].as_str().unwrap_or("-").to_owned();
        ["Action", "LogicalResourceId", "ResourceType", "Replacement", "PolicyAction"].map(text).join(" ")
    };
    changes.as_array().into_iter().flatten().map(line).collect()
}
