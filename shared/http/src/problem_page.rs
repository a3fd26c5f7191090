//! The pages of problems, for people, at the addresses in the problems' `help`.
//!
//! Their texts are those of the table in `docs/problems.md`. They are at `$default`, beside the
//! routes: a page is the same for all readers, and reads nothing.

use crate::problem_kind::{PAGES, ProblemKind};

const DOCUMENT: &str = include_str!("../../../docs/problems.md");

/// Returns the page at a path: of one problem, or the list of all.
pub(crate) fn at(path: &str) -> Option<String> {
    if path == PAGES.trim_end_matches('/') {
        let line = |kind: ProblemKind| format!("{} {} ({})\n", kind.page(), kind.title(), kind.status());
        return Some(ProblemKind::ALL.map(line).concat());
    }
    let slug = path.strip_prefix(PAGES)?;
    let kind = ProblemKind::ALL.into_iter().find(|kind| kind.slug() == slug)?;
    let (when, what_to_do) = row(kind)?;
    let title = kind.title();
    let status = kind.status();
    let of = kind.type_of();
    Some(format!("{title} ({status})\n{of}\n\nWhen: {when}.\n\nWhat to do: {what_to_do}.\n"))
}

/// The cause of a problem and its remedy, from the document's table.
fn row(kind: ProblemKind) -> Option<(String, String)> {
    let start = format!("| {} | `{}` | ", kind.status(), kind.slug());
    let rest = DOCUMENT.lines().find_map(|line| line.strip_prefix(&start))?;
    let (when, what_to_do) = rest.strip_suffix(" |")?.split_once(" | ")?;
    Some((plain(when), plain(what_to_do)))
}

/// Markdown without the marks of code, and with links as their texts.
fn plain(markdown: &str) -> String {
    let mut text = markdown.replace('`', "");
    while let Some((before, (name, after))) = text.split_once('[').and_then(|(before, rest)| {
        let (name, link) = rest.split_once("](")?;
        Some((before, (name, link.split_once(')')?.1)))
    }) {
        text = format!("{before}{name}{after}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_page_and_a_line_in_the_list() {
        let list = at("/problems").unwrap();
        for kind in ProblemKind::ALL {
            let page = at(&kind.page()).unwrap();
            assert!(page.starts_with(&format!(
                "{} ({})\nurn:scheduled-payments:problem:{}\n\nWhen: ",
                kind.title(),
                kind.status(),
                kind.slug()
            )));
            assert!(!page.contains(['`', '[', '|']), "{page}");
            assert!(list.contains(&format!("{} {}", kind.page(), kind.title())));
        }
        assert_eq!(
            at("/problems/payment-too-large").unwrap(),
            "Payment too large (413)\nurn:scheduled-payments:problem:payment-too-large\n\nWhen: the bytes in UTF-8 of accountId, \
             payeeAccountId, scheduledFor, dateRule, reference and data, plus 640, are more than 8,192.\n\nWhat to do: shorten data by excessBytes.\n"
        );
    }

    #[test]
    fn a_type_is_a_name_without_a_place_and_help_is_the_page() {
        let [kind, help] =
            ["type", "help"].map(|name| serde_json::to_value(ProblemKind::Internal).unwrap()[name].clone());
        assert_eq!((kind, help), ("urn:scheduled-payments:problem:internal".into(), "/problems/internal".into()));
    }

    #[test]
    fn no_other_path_is_a_page() {
        for path in [
            "",
            "/",
            "/problems/",
            "/problems/x",
            "/problems/internal/",
            "/problems//internal",
            "/Problems",
            "problems",
        ] {
            assert_eq!(at(path), None, "{path:?}");
        }
    }

    #[test]
    fn markdown_becomes_plain() {
        assert_eq!(plain("send `a`: see [below](#here), or [there](x.md)."), "send a: see below, or there.");
        assert_eq!(plain("an [unfinished link"), "an [unfinished link");
    }
}
