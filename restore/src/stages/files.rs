//! Copies of the files that were published since an hour before the restored instant.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use payments_model::UtcSecond;
use serde_json::{Value, json};

use crate::call::Call;
use crate::note::Note;
use crate::stack::StackNow;
use crate::stages::step;
use crate::step::{Fact, Read, Runner, Step, Want};

/// As the margin of the events: clocks differ.
const MARGIN: TimeDelta = TimeDelta::hours(1);

/// The most missing files that a refusal names.
const NAMED: usize = 5;

/// The steps that copy the reports and, if the log is lost, the journal: each file to its own name in the folder.
///
/// # Errors
/// If the bucket cannot be read.
pub fn files(
    note: &Note,
    stack: &StackNow,
    (reports, journal): (&Path, Option<&Path>),
    runner: &mut Runner<'_>,
) -> Result<Vec<Step>> {
    let to = note.hot.to.context("the hot table was not restored, so no file is needed")?;
    let bucket = stack.output("ReportsBucketName")?;
    // The journal's file before proves that none is missing.
    let folders = [("reports/", Some(reports), 0), ("journal/", journal, 1)];
    let mut steps = Vec::new();
    for (prefix, folder, before) in folders {
        let Some(folder) = folder else { continue };
        let list = Call::aws(&format!("s3api list-objects-v2 --bucket {bucket} --prefix {prefix}"));
        for (key, size) in chosen(&runner.read(&list)?, to, before)? {
            let path = folder.join(key.strip_prefix(prefix).unwrap_or(&key));
            let name = path.display().to_string();
            let done = Fact {
                name: format!("the size of {name}"),
                read: Read::Size(path),
                part: String::new(),
                of: None,
                want: Want::Is(json!(size)),
                remedy: "delete the file, then run this again".to_owned(),
            };
            let copy = Call::aws("s3 cp").with(format!("s3://{bucket}/{key}")).with(&name);
            steps.push(step(format!("Copy {key}"), copy, vec![done]));
        }
    }
    Ok(steps)
}

/// Refuses an incomplete copy: a payment that a missing report has would come back, and be billed twice.
///
/// # Errors
/// If the bucket cannot be read, or a file is not copied.
pub fn ensure_copied(
    note: &Note,
    stack: &StackNow,
    folders: (&Path, Option<&Path>),
    runner: &mut Runner<'_>,
) -> Result<()> {
    let steps = files(note, stack, folders, runner)?;
    let left = runner.left(&steps)?;
    let with = if folders.1.is_some() { " --journal" } else { "" };
    ensure!(
        left.is_empty(),
        "{} files are not copied: {}; run `cargo restore files{with} --apply` first",
        left.len(),
        left.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

/// Returns the files that were written since an hour before an instant, and so many before them, with their sizes.
fn chosen(list: &Value, to: UtcSecond, before: usize) -> Result<Vec<(String, u64)>> {
    let since = to.saturating_add(-MARGIN).to_string();
    let mut files = Vec::new();
    for file in list["Contents"].as_array().into_iter().flatten() {
        let written = file["LastModified"].as_str().and_then(|text| text.get(..19)).context("a file without a time")?;
        let key = file["Key"].as_str().context("a file without a name")?;
        ensure!(!key.contains("..") && !key.starts_with('/'), "{key} is not a file of this system");
        files.push((format!("{written}Z"), key.to_owned(), file["Size"].as_u64().context("a file without a size")?));
    }
    files.sort();
    let first = files.iter().filter(|(written, ..)| *written < since).count().saturating_sub(before);
    Ok(files.into_iter().skip(first).map(|(_, key, size)| (key, size)).collect())
}
