//! Golden files: one of each kind that is stored or sent, in `tests/golden`. The kinds are listed from the code.
//!
//! Today's code writes each golden file exactly, and writes it again unchanged after reading it. Until the first
//! release `UPDATE_GOLDEN=1` writes the files anew. From then on they are promises: see CONTRIBUTING.md.

mod bank;
mod files;
mod forms;
mod items;
mod log;
mod payments;
mod texts;

use payments_boot::Lookup;
use payments_tests::prelude::*;

use forms::{Goldens, Kind, assert_same, folder, golden};
pub(crate) use forms::{golden_details, golden_items};
pub(crate) use payments::orders;

/// Set to anything, it writes the files instead of comparing them.
const UPDATE: &str = "UPDATE_GOLDEN";

/// Whether the files are to be written anew, which ends with the first release.
fn is_update(version: &str, asked: bool) -> Result<bool> {
    ensure!(
        !asked || version.ends_with("-dev"),
        "version {version} is released, so its golden files stay as they are, and {UPDATE} is an error; see CONTRIBUTING.md"
    );
    Ok(asked)
}

/// All that the code writes, by kind.
async fn written() -> Result<Goldens> {
    let mut goldens = items::written().await?;
    goldens.extend(texts::written()?);
    goldens.extend(files::written().await?);
    Ok(goldens)
}

#[tokio::test]
async fn every_kind_has_golden_forms_that_are_read_and_written_again() -> Result<()> {
    let (kinds, written) = (Kind::all(), written().await?);
    if is_update(env!("CARGO_PKG_VERSION"), Lookup::environment().text(UPDATE).is_some())? {
        std::fs::create_dir_all(folder())?;
        for (name, forms) in &written {
            std::fs::write(folder().join(format!("{name}.json")), serde_json::to_string_pretty(forms)? + "\n")?;
        }
    }
    let names: BTreeSet<String> = kinds.iter().map(|kind| format!("{}.json", kind.name())).collect();
    let files = std::fs::read_dir(folder())?.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
    assert_eq!(files.collect::<Result<BTreeSet<_>>>()?, names, "each kind has a file, and each file a kind");
    for kind in &kinds {
        let (name, golden) = (kind.name(), golden(*kind)?);
        assert!(!golden.is_empty(), "{name} has no golden form");
        let today = written.get(&name).with_context(|| format!("nothing writes {name} here"))?;
        assert_same(
            &name,
            today,
            &golden,
            &format!("are written differently; until a release, {UPDATE}=1 writes them"),
        )?;
    }
    for (name, again) in items::again().await? {
        let kind = kinds.iter().find(|kind| kind.name() == name).with_context(|| format!("{name} is not a kind"))?;
        assert_same(&name, &again, &golden(*kind)?, "are written again, and differ from what was read")?;
    }
    for kind in kinds {
        for form in golden(kind)? {
            match kind {
                Kind::Item(_) => {}
                Kind::File(kind) => files::read(kind, &form)?,
                _ => texts::read(kind, form["text"].as_str().context("no text")?)?,
            }
        }
    }
    Ok(())
}

#[test]
fn golden_files_change_until_the_release() -> Result<()> {
    assert!(is_update("0.1.0-dev", true)?);
    assert!(!is_update("0.1.0-dev", false)? && !is_update("0.1.0", false)?);
    assert!(is_update("0.1.0", true).is_err());
    Ok(())
}
