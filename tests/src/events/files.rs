//! The files of events and of their answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use insta::Settings;

/// Reads the text of an event's file.
pub fn event_text(name: &str) -> Result<String> {
    let path = event_path(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The path of an event's file, if the event has one.
pub(crate) fn event_path(name: &str) -> PathBuf {
    in_repository("../events").join(format!("{name}.json"))
}

/// The names of the events that are files: `<function>/<case>`.
pub fn event_files() -> Result<BTreeSet<String>> {
    names("../events", ".json")
}

/// The names of the events whose answers are stored.
pub fn answers() -> Result<BTreeSet<String>> {
    names("journeys/snapshots", ".snap")
}

/// Reads the answer in an event's snapshot.
pub fn answer(name: &str) -> Result<String> {
    let path = in_repository("journeys/snapshots").join(format!("{name}.snap"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    // insta's metadata stands between two lines of dashes.
    let answer = text.splitn(3, "---\n").nth(2).with_context(|| format!("{name} has no answer"))?;
    Ok(answer.trim_end().to_owned())
}

/// The settings of an event's snapshot, and its name. Each function has a folder of them.
pub fn snapshot_of(name: &str) -> (Settings, &str) {
    let (function, case) = name.split_once('/').unwrap_or_default();
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(format!("snapshots/{function}"));
    (settings, case)
}

/// The package of the function that an event is for.
pub fn function_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(function, _)| function)
}

/// The names of the files in the folders of a folder, as `<folder>/<file>` without the ending.
fn names(root: &str, ending: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in fs::read_dir(in_repository(root)).with_context(|| root.to_owned())? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = format!("{}/{}", folder.file_name().display(), file?.file_name().display());
            names.extend(file.strip_suffix(ending).map(str::to_owned));
        }
    }
    ensure!(!names.is_empty(), "{root} has no */*{ending}");
    Ok(names)
}

pub(crate) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
