//! The law of the journal: its files do not overlap, and hold the log's events in the order of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use payments_files::JournalObject;
use payments_store::LogPosition;
use serde_json::Value;

/// Returns the events of all files, in the order of the files.
///
/// # Errors
/// An error if a file cannot be read, or does not begin where the file before it in the same epoch ended.
pub async fn journaled(files: &Arc<dyn ObjectStore>) -> Result<Vec<Value>> {
    let found: Vec<ObjectMeta> = files.list(Some(&Path::from("journal"))).try_collect().await?;
    let mut places = found.iter().map(|file| place_of(&file.location)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    let (mut events, mut last) = (Vec::new(), None::<LogPosition>);
    for first in places {
        let path = JournalObject::path(first);
        let bytes = files.get(&path).await?.bytes().await?;
        let object = JournalObject::decode(first, &bytes).with_context(|| path.to_string())?;
        let follows = last.is_none_or(|last| last == first || (last.epoch < first.epoch && first.number == 1));
        ensure!(follows, "the journal's file {path} does not begin where the one before it ended: {last:?}");
        for event in &object.events {
            events.push(serde_json::from_str(event)?);
        }
        last = Some(object.after);
    }
    Ok(events)
}

/// The place of the first event of a file, by the file's name.
fn place_of(path: &Path) -> Result<LogPosition> {
    let parts: Vec<_> = path.parts().collect();
    let [_, epoch, name] = parts.as_slice() else { anyhow::bail!("not a name of the journal: {path}") };
    let number: u64 = name.as_ref().trim_end_matches(".jsonl.gz").parse().with_context(|| path.to_string())?;
    Ok(format!("{}.{number}.0", epoch.as_ref()).parse()?)
}

/// Compares the journal with the events that a reader of the log has `seen`. The journal may also have events that were
/// `lost` with the log. Returns the violation, if there is one.
pub(crate) async fn check(
    files: &Arc<dyn ObjectStore>,
    seen: &[Value],
    lost: (Option<u64>, &[Value]),
) -> Option<String> {
    let events = journaled(files).await.map_err(|error| format!("{error:#}"));
    match events.and_then(|events| known(events, seen, lost).map_err(|error| format!("the journal: {error}"))) {
        Ok(events) if events == seen => None,
        Ok(events) => {
            let same = events.iter().zip(seen).take_while(|(theirs, ours)| theirs == ours).count();
            let (journal, log) = (events.len(), seen.len());
            Some(format!("the journal has {journal} events and the log {log}, of which the first {same} are the same"))
        }
        Err(error) => Some(error),
    }
}

/// Returns the events of `theirs` that the log still has, or all of them if no log was lost.
///
/// # Errors
/// An error if another event is of a later epoch than the lost epoch, or if an event differs from the event of the same id
/// that a reader saw `before` the loss.
pub(crate) fn known(
    theirs: Vec<Value>,
    log: &[Value],
    (lost_epoch, before): (Option<u64>, &[Value]),
) -> Result<Vec<Value>, String> {
    let Some(lost_epoch) = lost_epoch else { return Ok(theirs) };
    let seen: BTreeMap<&str, &Value> = before.iter().filter_map(|event| Some((event["id"].as_str()?, event))).collect();
    let differs = |event: &&Value| event["id"].as_str().and_then(|id| seen.get(id)).is_some_and(|seen| seen != event);
    if let Some(event) = theirs.iter().find(differs) {
        return Err(format!("{event} is another event in the log that was lost"));
    }
    let ids: BTreeSet<&str> = log.iter().filter_map(|event| event["id"].as_str()).collect();
    let (known, unknown): (Vec<Value>, Vec<Value>) =
        theirs.into_iter().partition(|event| event["id"].as_str().is_some_and(|id| ids.contains(id)));
    match unknown.iter().find(|event| event["epoch"].as_u64().is_none_or(|epoch| epoch > lost_epoch)) {
        Some(event) => Err(format!("{event} is not in the log, and was not lost with it")),
        None => Ok(known),
    }
}
