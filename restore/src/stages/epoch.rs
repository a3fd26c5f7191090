//! The log's epoch: what must be true before it ends, and before the next one begins.

use anyhow::{Context as _, Result, bail, ensure};
use chrono::TimeDelta;
use payments_model::UtcSecond;
use payments_store::{LogHead, LogStage, Store};
use serde_json::json;

use crate::call::Call;
use crate::note::{Kind, Note, Origin, Table};
use crate::stack::{StackNow, describe};
use crate::stages::clients::{closed, closed_until};
use crate::stages::tables::{expiry, streamed};
use crate::stages::{describe_table, fact, wait};
use crate::step::{Act, Fact, Runner, Step, Want};

/// The mapping by which the hot table's changes are counted.
const COUNTS: &str = "StreamAggregatorFunctionHeadChanged";

/// An invocation may begin five minutes after it was asked for, and runs for up to ten.
const LAST_INVOCATION: TimeDelta = TimeDelta::minutes(15);

/// By then the API's limits hold everywhere, and what was accepted before them is written.
const CLOSING: TimeDelta = TimeDelta::minutes(3);

/// For how long back the age of the stream's records is read.
const AGES: TimeDelta = TimeDelta::minutes(10);

/// A minute: changes that are older wait to be counted.
const COUNTED_MILLISECONDS: u64 = 60_000;

/// The steps before the epoch ends. `is_counted` is whether the old stream must have been counted.
///
/// # Errors
/// If the stack is not this system's.
pub fn before_begin(note: &Note, stack: &StackNow, is_counted: bool, now: UtcSecond) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    if note.hot.is_new() {
        let mut paused = stack.paused()?;
        paused.push(closed(stack)?);
        steps.push(needed("The stack is paused, and the API is closed", paused));
        if is_counted {
            steps.push(counted(stack, now)?);
        }
        steps.push(quiet(stack, now));
    }
    Ok(steps)
}

/// Waits until the changes of the old stream are counted: a change that is not counted by now never comes into the log.
fn counted(stack: &StackNow, now: UtcSecond) -> Result<Step> {
    let function = stack.resource("StreamAggregatorFunction")?;
    let from = now.saturating_add(-AGES);
    let call = Call::aws_with(
        "cloudwatch get-metric-statistics --namespace AWS/Lambda --metric-name IteratorAge --dimensions \
         Name=FunctionName,Value={} --start-time {} --end-time {} --period 60 --statistics Maximum --query",
        &[function, &from.to_string(), &now.to_string()],
    )
    .with("sort_by(Datapoints, &Timestamp)[-1].Maximum");
    let remedy = "run this again in a few minutes, or with --uncounted if the old table has lost its stream";
    let age = fact("IteratorAge of stream-aggregator", call, "", Want::Below(COUNTED_MILLISECONDS), remedy);
    let closing = closed_until(stack, now.saturating_add(-CLOSING))?;
    // A stream without changes has no age, and neither has one that nobody takes.
    Ok(needed("The old stream is counted", vec![stack.mapping(COUNTS, "Enabled")?, closing, age]))
}

/// No invocation from before the last update runs any more.
fn quiet(stack: &StackNow, now: UtcSecond) -> Step {
    let since = now.saturating_add(-LAST_INVOCATION);
    let remedy = "run this again a quarter of an hour after the last deployment has ended";
    let status = describe(&stack.name).with("--query").with("Stacks[0].StackStatus");
    // The last event of a stack whose update has ended is this end. `LastUpdatedTime` is when an update began.
    let words = "cloudformation describe-stack-events --stack-name {} --max-items 1 --query";
    let event = Call::aws_with(words, &[&stack.name]).with("StackEvents[0].Timestamp");
    let facts = vec![
        fact("StackStatus", status, "", Want::Ends("_COMPLETE"), remedy),
        fact("the last event of the stack", event, "", Want::Until(since), remedy),
    ];
    needed("No invocation from before the last deployment runs any more", facts)
}

/// The steps before the published files are copied: nothing old publishes any more.
pub fn before_files(note: &Note, stack: &StackNow, now: UtcSecond) -> Vec<Step> {
    if note.hot.is_new() { vec![quiet(stack, now)] } else { Vec::new() }
}

/// A step that does nothing, and is refused until these facts are true.
pub(super) fn needed(what: &str, facts: Vec<Fact>) -> Step {
    Step { needs: facts.clone(), ..wait(what, facts) }
}

/// The step that publishes until the journal is at the log's end.
///
/// # Errors
/// If the stack is not this system's.
pub fn published(stack: &StackNow) -> Result<Vec<Step>> {
    let call = Call::invoke(stack.resource("PublishFunction")?, &json!({"action": "publish"}));
    let act = Act::RunUntil(call, "/journalSegmentsBehind", json!(0));
    Ok(vec![Step { act, ..wait("Publish until the journal is at the log's end", Vec::new()) }])
}

/// The steps before the next epoch begins. `is_ended` is whether the epoch of a lost log was ended in its old table.
///
/// # Errors
/// If rebuild has something left to do, or the stack is not this system's.
pub fn before_finish(note: &Note, stack: &StackNow, is_ended: bool, now: UtcSecond) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    if note.hot.is_new() {
        let remedy =
            "run `cargo restore rebuild --apply`, again a quarter of an hour later, until nothing is left to do";
        ensure!(
            note.rebuilt.is_some(),
            "the restore's file does not say that rebuild has nothing left to do; {remedy}"
        );
        steps.extend([streamed(Kind::Hot, &note.hot), expiry(Kind::Hot, &note.hot)]);
    }
    if note.log.is_new() && !note.hot.is_new() {
        steps.push(needed("The stack uses the new log", vec![stack.has_table(Kind::Log, &note.log.new)]));
        if !is_ended {
            steps.push(quiet(stack, now));
        }
    }
    if note.hot.origin == Origin::Used {
        let function = stack.resource("StreamAggregatorFunction")?;
        let query =
            format!("EventSourceMappings[?!contains(EventSourceArn, ':table/{}/')].EventSourceArn | [0]", note.hot.new);
        let read =
            Call::aws_with("lambda list-event-source-mappings --function-name {} --query", &[function]).with(query);
        let remedy = "disable and delete the mapping of the old stream, then run this again";
        let other = fact("another stream that stream-aggregator takes", read, "", Want::Missing, remedy);
        steps.push(needed("Only the new stream is counted", vec![other]));
    }
    Ok(steps)
}

/// The log's epoch must have ended before a table is restored.
///
/// # Errors
/// If it has not, or the log cannot be read.
pub async fn ensure_closed(store: &Store) -> Result<()> {
    let stage = store.log_head().await?.map(|head| head.stage());
    ensure!(
        stage != Some(LogStage::Open),
        "the log takes changes, expected an epoch that has ended; run `cargo restore begin --apply`"
    );
    Ok(())
}

/// The stack may use the restored tables: the log is as their restore left it. A restored log takes the changes of the old stream
/// until its epoch has ended, and would give its next numbers again.
///
/// # Errors
/// If it is not, or cannot be read.
pub async fn ensure_usable(note: &Note, stack: &StackNow, store: &Store, runner: &mut Runner<'_>) -> Result<()> {
    let is_used = |kind, table: &Table| !table.is_new() || stack.table(kind).is_ok_and(|used| used == table.new);
    if note.each().into_iter().all(|(kind, table)| is_used(kind, table)) {
        return Ok(());
    }
    let head = store.log_head().await.context("the log cannot be read; run `cargo restore tables --apply` first")?;
    let (stage, found) = match head.as_ref().map(LogHead::stage) {
        None => (None, "has no head"),
        Some(LogStage::Open) => (Some(LogStage::Open), "takes changes"),
        Some(stage) => (Some(stage), "takes no changes"),
    };
    if note.hot.is_new() {
        let stream = stream(note, runner)?;
        // A log that never began is begun by the new stream's changes.
        let is_next = head.map_or(!note.log.is_new(), |head| head.source == stream);
        let wanted = "those of the restored hot table; run `cargo restore finish --apply`";
        ensure!(is_next, "the log {found}, expected {wanted}");
    } else {
        let wanted = "an epoch that has ended; run `cargo restore begin --apply`";
        ensure!(stage == Some(LogStage::Ended), "the log {found}, expected {wanted}");
    }
    Ok(())
}

/// The new hot table's stream stays off while the log takes the changes of the old one.
///
/// # Errors
/// If the log takes them.
pub fn ensure_ended(note: &Note, head: Option<&LogHead>) -> Result<()> {
    let of_table = format!(":table/{}/stream/", note.hot.new);
    if let Some(head) = head.filter(|head| head.stage() == LogStage::Open && !head.source.contains(&of_table)) {
        bail!("the log still takes the changes of {}; run `cargo restore begin --apply` first", head.source);
    }
    Ok(())
}

/// Reads the stream that the hot table has now.
///
/// # Errors
/// If it has none.
pub fn stream(note: &Note, runner: &mut Runner<'_>) -> Result<String> {
    let table = runner.read(&describe_table(&note.hot.new))?;
    let arn = table["Table"]["LatestStreamArn"].as_str();
    Ok(arn.with_context(|| format!("{} has no stream; switch it on, then run this again", note.hot.new))?.to_owned())
}
