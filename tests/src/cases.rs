//! The cases of the crash tests, for the list `tests/cases.txt`.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use payments_boot::Lookup;

/// Notes a case in the file that `CRASH_CASES` names: the harness, the fate of the call, and the call's number. Without that
/// variable it does nothing. A harness notes only a case whose call was made.
///
/// # Errors
/// The file cannot be written.
pub fn note_case(harness: &str, fate: impl Display, call: usize) -> Result<()> {
    let Some(path) = Lookup::environment().text("CRASH_CASES") else { return Ok(()) };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    // One write for each line: other tests, also of other processes, write to the same file.
    let line = format!("{harness}\t{fate}\t{call}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes())).with_context(|| format!("cannot write {path}"))
}
