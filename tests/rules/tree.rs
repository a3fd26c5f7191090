//! The shape of the tree: small files with opening lines, rooms of a few files, thin programs, few decisions, no scans.
//! (Clippy limits the length of functions.)

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const MAX_FILE_LINES: usize = 400;
const MAX_OPENING: usize = 120;
const MAX_MAIN_LINES: usize = 20;
const MAX_FILES_BESIDE: usize = 20;
const MAX_DECISIONS: usize = 41;
const MAX_DECISION_LINES: usize = 15;

/// The folders with a leading dot that are ours; others are git's and tools'.
const OUR_DOT_FOLDERS: [&str; 2] = [".cargo", ".ci"];

#[test]
fn every_rust_file_opens_with_a_short_line_that_names_it() -> Result<()> {
    let long = |(path, text): (PathBuf, String)| {
        let opening = text.lines().next().unwrap_or_default().to_owned();
        let is_good = opening.starts_with("//! ")
            && opening.chars().count() <= MAX_OPENING
            && !opening.contains(concat!("has ", "to be told"));
        (!is_good).then(|| format!("{}: {opening}", path.display()))
    };
    let long: Vec<_> = sources("")?.into_iter().filter_map(long).collect();
    assert!(long.is_empty(), "files that do not open with a //! line of {MAX_OPENING} characters at most: {long:#?}");
    Ok(())
}

#[test]
fn every_rust_file_is_small() -> Result<()> {
    let is_long = |text: &str| text.lines().count() > MAX_FILE_LINES;
    let long: Vec<_> = sources("")?.into_iter().filter(|(_, text)| is_long(text)).map(path).collect();
    assert!(long.is_empty(), "files of more than {MAX_FILE_LINES} lines: {long:#?}");
    Ok(())
}

#[test]
fn folders_have_neither_one_file_nor_too_many() -> Result<()> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for (path, _) in sources("")? {
        folders.entry(path.parent().context("no folder")?.to_owned()).or_default().push(path);
    }
    // Cargo and cargo-fuzz name these, and a module's unit tests have a folder beside it.
    let is_own = |folder: &Path| ["src", "tests", "examples", "fuzz_targets"].iter().any(|name| folder.ends_with(name));
    let is_wrong = |(folder, files): &(PathBuf, Vec<PathBuf>)| match &files[..] {
        [only] => !is_own(folder) && !only.ends_with("tests.rs"),
        files => files.len() > MAX_FILES_BESIDE,
    };
    let wrong: Vec<_> = folders.into_iter().filter(is_wrong).map(path).collect();
    assert!(wrong.is_empty(), "folders for one file, or of more than {MAX_FILES_BESIDE} beside each other: {wrong:#?}");
    Ok(())
}

#[test]
fn every_main_only_builds_and_runs() -> Result<()> {
    let mains: Vec<_> = sources("functions")?.into_iter().filter(|(path, _)| path.ends_with("src/main.rs")).collect();
    assert!(!mains.is_empty());
    for (path, text) in mains {
        let lines = text.lines().count();
        assert!(lines <= MAX_MAIN_LINES, "{} has {lines} lines, of {MAX_MAIN_LINES}", path.display());
    }
    Ok(())
}

#[test]
fn decisions_are_few_and_short_and_the_index_has_each() -> Result<()> {
    let (index, mut decisions) = (read("docs/decisions/README.md")?, files("docs/decisions")?);
    decisions.retain(|(path, _)| !path.ends_with("README.md"));
    assert!(decisions.len() <= MAX_DECISIONS, "{} decisions, of {MAX_DECISIONS}", decisions.len());
    for (path, text) in decisions {
        let (name, text) = (path.file_name().context("no name")?.to_string_lossy(), String::from_utf8(text)?);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() <= MAX_DECISION_LINES, "{name} has {} lines, of {MAX_DECISION_LINES}", lines.len());
        let (title, last) = (lines[0].trim_start_matches("# "), lines[lines.len() - 1]);
        assert!(last.starts_with("One-way") || last.starts_with("Reversible"), "{name} ends with {last:?}");
        assert!(index.contains(&format!("- [{title}]({name})")), "the index does not have {name} by its title");
    }
    Ok(())
}

#[test]
fn nothing_scans_a_table() -> Result<()> {
    // For an operator after a restore, who asks for it. No function may call it, and no role allows it.
    const MAY: (&str, &str) = ("shared/store/src/restore/pages.rs", "all_details_page");
    for (path, text) in [sources("functions")?, sources("shared")?].concat() {
        if path.ends_with(MAY.0) {
            continue;
        }
        assert!(!text.contains(&format!("{}(", MAY.1)), "{} scans", path.display());
        let scan = text.lines().position(|line| line.contains(".scan("));
        assert_eq!(scan, None, "{} scans", path.display());
    }
    Ok(())
}

#[test]
fn nothing_names_places_outside_the_repository() -> Result<()> {
    // In two halves each, so that this file passes.
    let outside = [concat!("/wo", "rk/"), concat!("/op", "t/"), concat!("../shared/", "design")];
    for (path, bytes) in files("")? {
        // The crate of paced work has a name like one of them.
        let text = String::from_utf8_lossy(&bytes).replace("shared/work/", "");
        for place in outside {
            let line = text.lines().position(|line| line.contains(place)).map(|index| index + 1);
            assert_eq!(line, None, "{} names {place}", path.display());
        }
    }
    Ok(())
}

fn path<T>((path, _): (PathBuf, T)) -> PathBuf {
    path
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> Result<String> {
    fs::read_to_string(in_repository(path)).with_context(|| path.to_owned())
}

pub(crate) fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The Rust files in a folder of the repository, with their text.
pub(crate) fn sources(folder: &str) -> Result<Vec<(PathBuf, String)>> {
    let rust =
        files(folder)?.into_iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|(path, bytes)| Ok((path, String::from_utf8(bytes)?))).collect()
}

/// The files in a folder of the repository, with their content.
pub(crate) fn files(folder: &str) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut folders = vec![in_repository(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_file() {
                files.push((entry.path(), fs::read(entry.path())?));
            } else if kind.is_dir() && is_ours(&entry.file_name().to_string_lossy()) {
                folders.push(entry.path());
            }
        }
    }
    Ok(files)
}

fn is_ours(folder: &str) -> bool {
    folder != "target" && (!folder.starts_with('.') || OUR_DOT_FOLDERS.contains(&folder))
}
