//! Looks for all weaknesses, and writes the months that show them.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use payments_lab::{Case, SEEDS, Weakness, search, table};
use payments_machine::progress::Progress;

use crate::arguments::Arguments;
use crate::each::each;
use crate::show::command;

/// Looks for the weaknesses, and writes the months that show them.
pub(crate) fn find_weaknesses(arguments: &Arguments, file: &Path) -> Result<ExitCode> {
    let known = known_cases(file)?;
    let is_wanted = |weakness: &Weakness| arguments.weakness.is_none_or(|only| only == *weakness);
    let wanted: Vec<Weakness> = Weakness::all().iter().copied().filter(is_wanted).collect();
    let (progress, looked) = (Progress::on_stderr(u64::try_from(wanted.len())?, &["found"])?, AtomicU64::new(0));
    let found = each(wanted.len(), arguments.threads(), |place| {
        let months = (arguments.days, arguments.payments());
        let case = search(wanted[place], months, |smaller| progress.say(command(smaller)))?;
        let seeds = case.as_ref().map_or("not".to_owned(), |case| format!("by seed {}", case.seed));
        eprintln!("{}: found {seeds}", wanted[place].name());
        progress.show(&[looked.fetch_add(1, Ordering::Relaxed) + 1]);
        Ok(case)
    })?;
    progress.clear();
    let missed = wanted.iter().zip(&found).filter(|(_, case)| case.is_none());
    let missed: Vec<String> = missed.map(|(weakness, _)| weakness.name()).collect();
    let mut cases: Vec<Case> = found.into_iter().flatten().collect();
    ensure!(!cases.is_empty(), "no weakness was found in {SEEDS} seeds");
    let is_new = |case: &Case| cases.iter().any(|new| new.weakness == case.weakness);
    let stays = |case: &Case| arguments.weakness.is_some() && !is_new(case);
    let kept: Vec<Case> = known.into_iter().filter(stays).collect();
    cases.extend(kept);
    cases.sort_by_key(|case| case.weakness);
    std::fs::write(file, serde_json::to_string_pretty(&cases)? + "\n").with_context(|| file.display().to_string())?;
    write!(io::stdout(), "{}", table(&cases))?;
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(io::stdout(), "not found in {SEEDS} seeds: {}", missed.join(", "))?;
    Ok(ExitCode::FAILURE)
}

/// Reads the cases that a file has, and shows that it can be written.
fn known_cases(file: &Path) -> Result<Vec<Case>> {
    let open = OpenOptions::new().append(true).create(true).open(file);
    open.with_context(|| format!("{} cannot be written, so nothing was looked for", file.display()))?;
    let text = std::fs::read_to_string(file)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).with_context(|| format!("{} has no cases of weaknesses", file.display()))
}
