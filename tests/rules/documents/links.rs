//! Documents are short, and their links and each "see docs/page.md, Heading" lead to files and headings that exist.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::tree::{files, in_repository, read};

/// Pages that texts of the code and the template refer to by their headings, with the most bytes that each may have.
const PAGES: [(&str, usize); 3] =
    [("docs/alarms.md", 38 * 1024 + 768), ("docs/operations.md", 26 * 1024), ("docs/restore.md", 14_080)];

/// Pages that a newcomer reads first, with the most bytes that each may have.
const FIRST: [(&str, usize); 2] = [("README.md", 7 * 1024), ("ARCHITECTURE.md", 26 * 1024)];

/// The most bytes of all documents, and of one.
const MAX_ALL: usize = 340 * 1024;
const MAX_PAGE: usize = 40 * 1024;

const MAX_GLOSSARY: usize = 50;
const MAX_LINE: usize = 110;

#[test]
fn pages_are_short() -> Result<()> {
    for (page, most) in PAGES.into_iter().chain(FIRST) {
        let bytes = read(page)?.len();
        assert!(bytes <= most, "{page} has {bytes} bytes, of {most}");
    }
    Ok(())
}

#[test]
fn documents_are_short_in_all() -> Result<()> {
    let documents = files("")?.into_iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "md"));
    let sizes: Vec<(PathBuf, usize)> = documents.map(|(path, bytes)| (path, bytes.len())).collect();
    let long: Vec<_> = sizes.iter().filter(|(_, bytes)| *bytes > MAX_PAGE).collect();
    assert!(long.is_empty(), "documents of more than {MAX_PAGE} bytes: {long:#?}");
    let all: usize = sizes.iter().map(|(_, bytes)| bytes).sum();
    assert!(all <= MAX_ALL, "{all} bytes of documents, of {MAX_ALL}");
    Ok(())
}

#[test]
fn the_glossary_is_short() -> Result<()> {
    let page = read("ARCHITECTURE.md")?;
    let glossary = page.split("\n## ").find_map(|section| section.strip_prefix("Glossary\n"));
    let entries = glossary.context("no glossary")?.lines().filter(|line| line.starts_with("| ")).skip(1).count();
    assert!((1..=MAX_GLOSSARY).contains(&entries), "{entries} entries, of {MAX_GLOSSARY}");
    Ok(())
}

/// Tables, blocks of code and a span of code on a line of its own cannot be cut.
#[test]
fn lines_of_documents_are_short() -> Result<()> {
    let mut long = Vec::new();
    for (path, bytes) in files("")?.into_iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "md")) {
        let (text, mut is_code) = (String::from_utf8(bytes)?, false);
        for (index, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            is_code ^= trimmed.starts_with("```");
            let is_span = trimmed.starts_with('`') && trimmed.matches('`').count() == 2;
            let may = is_code || is_span || trimmed.starts_with('|');
            if !may && line.chars().count() > MAX_LINE {
                long.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert!(long.is_empty(), "lines of more than {MAX_LINE} characters: {long:#?}");
    Ok(())
}

#[test]
fn every_link_leads_to_a_heading() -> Result<()> {
    let mut wrong = Vec::new();
    for (path, bytes) in files("")?.into_iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "md")) {
        let text = String::from_utf8(bytes)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { plain(&folder.join(file)) };
            let is_page = target.extension().is_some_and(|it| it == "md");
            let leads = target.exists()
                && (anchor.is_empty()
                    || !is_page
                    || headings(&std::fs::read_to_string(&target)?).iter().any(|heading| slug(heading) == anchor));
            if !leads {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere: {wrong:#?}");
    Ok(())
}

#[test]
fn every_text_that_names_a_heading_names_one_that_exists() -> Result<()> {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    let rules = in_repository("tests/rules");
    for (path, bytes) in files("")?.into_iter().filter(|(path, _)| !path.starts_with(&rules)) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(concat!("docs/run", "book.md")), "{}", path.display());
        for (page, _) in PAGES {
            let headings = headings(&read(page)?);
            for (at, found) in text.match_indices(&format!("{page}, ")) {
                let rest = &text[at + found.len()..];
                checked += 1;
                if !rest.starts_with("docs/") && !headings.iter().any(|heading| rest.starts_with(heading.as_str())) {
                    wrong.push(format!("{}: {page}, {}", path.display(), rest.lines().next().unwrap_or_default()));
                }
            }
        }
    }
    assert!(checked >= 70, "{checked} texts");
    assert!(wrong.is_empty(), "headings that are gone: {wrong:#?}");
    Ok(())
}

/// The targets of a page's links: those in brackets, and those that `[name]: target` defines.
fn links(text: &str) -> Vec<String> {
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let defined = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).map(|(_, link)| link);
    inline.chain(defined).filter(|link| !link.contains(' ')).map(str::to_owned).collect()
}

/// The headings of a page, without those in blocks of code.
fn headings(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('#') {
            found.push(line.trim_start_matches('#').trim().to_owned());
        }
    }
    found
}

/// The anchor that GitHub gives to a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir && plain.file_name().is_some() {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[test]
fn links_headings_and_anchors_are_found() {
    assert_eq!(links("[a](b.md#c) and [d][e]\n\n[e]: f.md"), ["b.md#c", "f.md"]);
    assert_eq!(headings("# A b\n```sh\n# c\n```\n## `D`, e"), ["A b", "`D`, e"]);
    assert_eq!(slug("`D`, e_f-G"), "d-e_f-g");
}
