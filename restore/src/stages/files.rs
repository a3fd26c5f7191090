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

/// The steps that copy the reports and, if the log is lost, the journal: each file to its own name in this folder.
///
/// # Errors
/// If the bucket cannot be read.
pub fn files(note: &Note, stack: &StackNow, with_journal: bool, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    let to = note.hot.to.context("the hot table was not restored, so no file is needed")?;
    let bucket = stack.output("ReportsBucketName")?;
    // The journal's file before proves that none is missing.
    let folders = [("reports", 0), ("journal", 1)];
    let mut steps = Vec::new();
    for (folder, before) in folders.into_iter().take(if with_journal { 2 } else { 1 }) {
        let list = Call::aws(&format!("s3api list-objects-v2 --bucket {bucket} --prefix {folder}/"));
        for (key, size) in chosen(&runner.read(&list)?, to, before)? {
            let done = Fact {
                name: format!("the size of {key}"),
                read: Read::Size(Path::new(&key).to_owned()),
                part: String::new(),
                of: None,
                want: Want::Is(json!(size)),
                remedy: "delete the file, then run this again".to_owned(),
            };
            steps.push(step(format!("Copy {key}"), Call::aws(&format!("s3 cp s3://{bucket}/{key} {key}")), vec![done]));
        }
    }
    Ok(steps)
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
