//! The tables in `docs/performance.md`: slow tests check them, and write them with `UPDATE_DOCS=1`.

use std::fs;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use payments_boot::Lookup;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/performance.md");

/// Two tests may write at once.
static WRITING: Mutex<()> = Mutex::new(());

/// Checks that the section between `<!-- name -->` and `<!-- /name -->` is this text, or writes it.
///
/// # Errors
/// If the section is missing or another.
pub fn holds(name: &str, text: &str) -> Result<()> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let document = fs::read_to_string(PATH).context(PATH)?;
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = document.split_once(&begin).with_context(|| format!("{begin} is missing"))?;
    let (section, after) = rest.split_once(&end).with_context(|| format!("{end} is missing"))?;
    if Lookup::environment().text("UPDATE_DOCS").is_some() {
        fs::write(PATH, [before, &begin, text, &end, after].concat())?;
        return Ok(());
    }
    ensure!(
        section == text,
        "docs/performance.md differs from this run; the same test with UPDATE_DOCS=1 writes it:\n{text}"
    );
    Ok(())
}
