//! Habits of translated English in prose, and habits of the code that are as hard to read, each with the remedy.

mod code;
mod prose;

use std::path::Path;

use anyhow::Result;

use crate::tree::{files, in_repository};

/// Lines that keep a habit, with their files: at most ten.
const EXCEPTIONS: [(&str, &str); 0] = [];

const MAX_EXCEPTIONS: usize = 10;

/// The examples of these rules are wrong on purpose.
const OWN: &str = "tests/rules/habits/";

#[test]
fn the_tree_is_free_of_the_habits() -> Result<()> {
    assert!(EXCEPTIONS.len() <= MAX_EXCEPTIONS, "{} exceptions, of {MAX_EXCEPTIONS}", EXCEPTIONS.len());
    let root = in_repository("");
    let mut found = Vec::new();
    let mut occurring = Vec::new();
    for (path, bytes) in files("")? {
        let path = path.strip_prefix(&root)?;
        let name = path.display().to_string();
        if name.starts_with(OWN) || !is_checked(path) {
            continue;
        }
        let text = String::from_utf8(bytes)?;
        let lines: Vec<&str> = text.lines().collect();
        let mut habits = prose::habits(&name, &lines);
        if name.ends_with(".rs") {
            habits.extend(code::habits(&text));
        }
        for (line, habit) in habits {
            let content = lines[line - 1].trim();
            match EXCEPTIONS.iter().find(|(file, text)| *file == name && content.contains(text)) {
                Some(exception) => occurring.push(exception),
                None => found.push(format!("{name}:{line}: {habit}: {content}")),
            }
        }
    }
    assert!(found.is_empty(), "{} habits: {found:#?}", found.len());
    let gone: Vec<_> = EXCEPTIONS.iter().filter(|exception| !occurring.contains(exception)).collect();
    assert!(gone.is_empty(), "exceptions that no longer occur: {gone:#?}");
    Ok(())
}

fn is_checked(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "rs" || ending == "md")
}
