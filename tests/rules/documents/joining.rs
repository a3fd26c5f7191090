//! Aids for newcomers: marks name tests that exist, templates quote the checklist, the bot watches each manifest.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::tree::{files, in_repository, read, sources};

/// The beginning of a mark, which names the test of the branch below it. In two halves, so that this line has none.
const MARK: &str = concat!("// ", "Test: ");

/// The most marks: they are for the branches at which a reader would ask.
const MAX_MARKS: usize = 10;

/// Files that name dependencies by the beginnings of their names, each with the ecosystem of the dependency bot.
const MANIFESTS: [(&str, &str); 6] = [
    ("Cargo.lock", "cargo"),
    ("go.mod", "gomod"),
    ("package.json", "npm"),
    ("pom.xml", "maven"),
    ("pyproject.toml", "pip"),
    ("requirements", "pip"),
];

#[test]
fn each_mark_names_a_test() -> Result<()> {
    let sources = sources("")?;
    let marks = sources.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| line.trim().strip_prefix(MARK));
    let marks: Vec<_> = marks.collect();
    assert!((1..=MAX_MARKS).contains(&marks.len()), "{} marks, of {MAX_MARKS}", marks.len());
    let lines: Vec<_> = sources.iter().flat_map(|(_, text)| text.lines()).map(str::trim).collect();
    for name in marks {
        // A function, or a row of a macro that makes functions.
        let forms = [format!("async fn {name}() "), format!("fn {name}() "), format!("{name}: ")];
        let tests = lines.iter().filter(|line| forms.iter().any(|form| line.starts_with(form))).count();
        assert_eq!(tests, 1, "tests with the name {name}");
    }
    Ok(())
}

#[test]
fn the_pull_request_template_quotes_the_checklist() -> Result<()> {
    let (checklist, template) = (read("CONTRIBUTING.md")?, read(".github/pull_request_template.md")?);
    let quoted: Vec<_> = template.lines().filter(|line| line.starts_with("- [ ]")).collect();
    assert!(!quoted.is_empty());
    for item in quoted {
        assert!(checklist.lines().any(|line| line == item), "CONTRIBUTING.md does not have {item:?}");
    }
    Ok(())
}

#[test]
fn the_dependency_bot_watches_each_manifest() -> Result<()> {
    let bot: Value = payments_machine::yaml::from_str(&read(".github/dependabot.yml")?)?;
    let watched = bot["updates"].as_array().context("no updates")?.iter().flat_map(|update| {
        let folders = update["directories"].as_array().into_iter().flatten().chain(update.get("directory"));
        folders.map(|folder| (text(&update["package-ecosystem"]), text(folder)))
    });
    let mut manifests = BTreeSet::from([("github-actions".to_owned(), "/".to_owned())]);
    for (path, _) in files("")? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.parent().context("no folder")?.strip_prefix(in_repository(""))?;
        let of = MANIFESTS.iter().find(|(beginning, _)| name.starts_with(beginning));
        manifests.extend(of.map(|(_, ecosystem)| ((*ecosystem).to_owned(), format!("/{}", folder.display()))));
    }
    assert_eq!(watched.collect::<BTreeSet<_>>(), manifests);
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
