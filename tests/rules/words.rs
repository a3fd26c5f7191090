//! Words that the glossary in `ARCHITECTURE.md` has retired.

use std::path::Path;

use anyhow::Result;

use crate::tree::files;

/// The retired words, in all their forms, and the words to say instead.
const RETIRED: [(&[&str], &str); 14] = [
    (&["plant", "plants"], "triggers"),
    (&["wire", "wires", "wired", "wiring"], "layer; to build, to connect"),
    (&["ledger", "ledgers"], "capacity use; invariant checker"),
    (&["dice"], "random source"),
    (&["storm", "storms", "stormy"], "fault plan"),
    (&["verdict", "verdicts"], "name what was judged, or outcome"),
    (&["patience"], "redrive schedule"),
    (
        &["hand over", "hands over", "handed over", "handing over", "handover", "handovers", "hand overs"],
        "dispatch; attempt",
    ),
    (&["put in", "puts in", "putting in"], "create"),
    (&["send away", "sent away"], "dispatch"),
    (&["does not do", "do not do"], "is invalid"),
    (&["has to be told", "have to be told"], "name the thing"),
    (&["what becomes of", "what became of"], "say what happens to it"),
    (&["amiss"], "drift; wrong"),
];

/// Files that may use some of these words, because they are history or name what others have named.
const MAY: [(&str, &[&str]); 1] = [("tests/rules/words.rs", &["*"])];

/// The part of a document that lists the words itself.
const GLOSSARY: (&str, &str) = ("ARCHITECTURE.md", "## Glossary");

#[test]

fn no_retired_word_is_used() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for (path, bytes) in files("")? {
        let path = path.strip_prefix(&root)?;
        let name = path.display().to_string();
        if !is_prose_or_code(path) {
            continue;
        }
        let text = String::from_utf8(bytes)?;
        let text = if name == GLOSSARY.0 { without_section(&text, GLOSSARY.1) } else { text };
        let may = MAY.iter().filter(|(file, _)| *file == name).flat_map(|(_, words)| *words);
        let may: Vec<&str> = may.copied().collect();
        for (line, word, instead) in retired_in(&text) {
            if !may.contains(&"*") && !may.contains(&word) {
                found.push(format!("{name}:{line}: {word} (say: {instead})"));
            }
        }
    }
    assert!(found.is_empty(), "{} retired words: {found:#?}", found.len());
    Ok(())
}

#[test]
fn a_retired_word_is_found_in_names_and_across_lines() {
    let found = |text| retired_in(text).into_iter().map(|(line, word, _)| (line, word)).collect::<Vec<_>>();
    assert_eq!(found("let the_wire = 1;\nstruct WireTap; // Wires"), [(1, "wire"), (2, "wire"), (2, "wires")]);
    assert_eq!(found("/// It is handed\n    /// over, a hand-over."), [(1, "handed over"), (2, "hand over")]);
    assert_eq!(found("fn put_in(); put. In short, wireless, PutItem, eplant, put (in)"), [(1, "put in")]);
}

/// The retired words of a text, with their lines.
fn retired_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words_of(text);
    let mut found = Vec::new();
    for (place, first) in words.iter().enumerate() {
        for (forms, instead) in RETIRED {
            let is_here = |form: &&&str| {
                form.split(' ').enumerate().all(|(n, part)| {
                    words.get(place + n).is_some_and(|word| word.text == part && (n == 0 || word.follows))
                })
            };
            found.extend(forms.iter().find(is_here).map(|form| (first.line, *form, instead)));
        }
    }
    found
}

/// A word in lower case. Those of `snake_case` and `CamelCase` names are words too.
struct Word {
    text: String,
    line: usize,
    /// Whether only space, or what joins names and comments, is between it and the word before.
    follows: bool,
}

fn words_of(text: &str) -> Vec<Word> {
    let mut words = Vec::<Word>::new();
    let mut line = 1;
    let mut follows = true;
    let mut before = ' ';
    for c in text.chars() {
        let begins = !before.is_alphabetic() || (c.is_uppercase() && before.is_lowercase());
        match words.last_mut() {
            _ if !c.is_alphabetic() => {
                line += usize::from(c == '\n');
                follows &= c.is_whitespace() || "-_/!#|".contains(c);
            }
            Some(word) if !begins => word.text.extend(c.to_lowercase()),
            _ => {
                words.push(Word { text: c.to_lowercase().collect(), line, follows });
                follows = true;
            }
        }
        before = c;
    }
    words
}

fn is_prose_or_code(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["rs", "md", "yaml", "yml", "toml"].contains(&ending) || path.starts_with(".ci")
}

/// A document without one of its sections.
fn without_section(text: &str, heading: &str) -> String {
    let mut inside = false;
    let keep = |line: &&str| {
        if line.starts_with("## ") {
            inside = *line == heading;
        }
        !inside
    };
    text.lines().filter(keep).collect::<Vec<_>>().join("\n")
}
