//! The restored tables in the template: each gets a new logical id, its name, and a plain policy that retains it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::note::{Note, Table};
use crate::stack::StackNow;
use crate::stages::wait;
use crate::step::{Act, Fact, Read, Step, Want};

/// The steps that rewrite the template.
///
/// # Errors
/// If the template is not that of the stack.
pub fn template(note: &Note, stack: &StackNow, folder: &Path) -> Result<Vec<Step>> {
    let path = Path::new("template.yaml");
    let mut text = std::fs::read_to_string(folder.join(path))
        .context("template.yaml cannot be read; run this in the folder of the deployed commit")?;
    let mut steps = Vec::new();
    for (_, table) in note.each().into_iter().filter(|(_, table)| table.is_new()) {
        let line = named(&table.new);
        let mut what = format!("Give the template {}", table.new);
        if !text.lines().any(|it| it == line) {
            let id = stack.logical(&table.old)?;
            text = imported(&text, id, &table.new)?;
            what = format!("{what}, as {} in place of {id}", successor(id));
        }
        let done = line_of(table, path);
        steps.push(Step { act: Act::Write(path.to_owned(), text.clone()), ..wait(what, vec![done]) });
    }
    ensure!(!steps.is_empty(), "no table was restored under another name, so the template stays");
    Ok(steps)
}

/// The logical id of the table that is imported: PaymentsTable2 for PaymentsTable, PaymentsTable3 for that, and so on.
pub(super) fn successor(id: &str) -> String {
    let stem = id.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{stem}{}", id[stem.len()..].parse().unwrap_or(1_u32) + 1)
}

/// The template has the table.
pub(super) fn line_of(table: &Table, path: &Path) -> Fact {
    Fact {
        name: format!("the line TableName: {} in {}", table.new, path.display()),
        read: Read::Line(path.to_owned(), named(&table.new)),
        part: String::new(),
        of: None,
        want: Want::Is(true.into()),
        remedy: "check out the deployed commit, then run this again".to_owned(),
    }
}

fn named(table: &str) -> String {
    format!("      TableName: {table}")
}

/// Returns the template with a table under its new logical id and its name.
fn imported(text: &str, id: &str, table: &str) -> Result<String> {
    let new_id = successor(id);
    let mut lines: Vec<String> = text.lines().map(|line| replaced(line, id, &new_id)).collect();
    let heads: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == format!("  {new_id}:")).collect();
    ensure!(heads.len() == 1, "{id}: {} tables in the template; check out the deployed commit", heads.len());
    let head = heads[0];
    let form =
        ["    Type: AWS::DynamoDB::Table", "    DeletionPolicy: ", "    UpdateReplacePolicy: ", "    Properties:"];
    for (line, begins) in lines.iter().skip(head + 1).zip(form) {
        ensure!(line.starts_with(begins), "{id}: expected {}, found {}", begins.trim(), line.trim());
    }
    lines[head + 2] = "    DeletionPolicy: Retain".to_owned();
    lines[head + 3] = "    UpdateReplacePolicy: Retain".to_owned();
    let own = lines.iter().skip(head + 5).take_while(|line| line.starts_with("      "));
    let own: Vec<usize> =
        own.enumerate().filter(|(_, line)| line.starts_with("      TableName:")).map(|(at, _)| head + 5 + at).collect();
    own.into_iter().for_each(|at| drop(lines.remove(at)));
    lines.insert(head + 5, named(table));
    Ok(lines.join("\n") + "\n")
}

/// Replaces a whole word.
fn replaced(line: &str, word: &str, by: &str) -> String {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        let is_whole = !rest[..at].ends_with(is_inner) && !rest[end..].starts_with(is_inner);
        out.push_str(&rest[..at]);
        out.push_str(if is_whole { by } else { word });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "\
Resources:
  PaymentsTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: !If [IsProd, Retain, Delete]
    UpdateReplacePolicy: !If [IsProd, Retain, Delete]
    Properties:
      BillingMode: PAY_PER_REQUEST
Outputs:
  PaymentsTableName:
    Value: !Ref PaymentsTable
";

    #[test]
    fn a_table_is_imported_under_its_next_id() -> Result<()> {
        let first = imported(TEMPLATE, "PaymentsTable", "restored-1")?;
        let wanted = "\
Resources:
  PaymentsTable2:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: restored-1
      BillingMode: PAY_PER_REQUEST
Outputs:
  PaymentsTableName:
    Value: !Ref PaymentsTable2
";
        assert_eq!(first, wanted);
        let second = imported(&first, "PaymentsTable2", "restored-2")?;
        assert_eq!(second, wanted.replace("Table2", "Table3").replace("restored-1", "restored-2"));
        Ok(())
    }

    #[test]
    fn another_template_is_refused() {
        let refused = |text: &str| imported(text, "PaymentsTable", "new").unwrap_err().to_string();
        assert_eq!(refused("Resources:\n"), "PaymentsTable: 0 tables in the template; check out the deployed commit");
        let other = TEMPLATE.replace("    DeletionPolicy: !If [IsProd, Retain, Delete]\n", "");
        assert!(refused(&other).starts_with("PaymentsTable: expected DeletionPolicy:, found UpdateReplacePolicy:"));
    }
}
