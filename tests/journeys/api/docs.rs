//! Compares `docs/problems.md` with the code: it has every problem, in the order of reporting.
//!
//! The cases `create-faults-…`, `create-token-…`, `cancel-faults-…` and `list-faults-…` show the order.

use payments_tests::prelude::*;
use std::path::Path;

use payments_http::problem::{ProblemKind, TYPE_BASE};

#[test]
fn every_problem_is_documented_in_the_order_of_reporting() -> Result<()> {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/problems.md"))?;
    assert!(document.contains(TYPE_BASE));
    let (_, table) = document.split_once("\n## Every problem\n").context("no table of problems")?;
    let (table, _) = table.split_once("\n## ").context("no end of the table")?;
    let documented: Vec<(&str, &str)> = table.lines().filter_map(row).collect();
    let kinds = ProblemKind::ALL.map(|kind| (kind.status().to_string(), format!("`{}`", kind.slug())));
    let kinds: Vec<(&str, &str)> = kinds.iter().map(|(status, slug)| (status.as_str(), slug.as_str())).collect();
    assert_eq!(documented, kinds);
    Ok(())
}

/// The status and type of a table's row.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let (status, slug) = (cells.next()?, cells.next()?);
    status.parse::<u16>().is_ok().then_some((status, slug))
}
