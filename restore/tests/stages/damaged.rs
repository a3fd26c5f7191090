//! Files and outputs that are damaged, partial, of something else, or of somebody else's choice.

use std::path::Path;

use anyhow::Result;
use payments_restore::stages::files;
use payments_restore::{Runner, Step};
use serde_json::json;

use super::*;
use crate::prepared::*;
use crate::refusals::BACKUPS;

/// The list of the published reports.
const REPORTS: &str = "aws s3api list-objects-v2 --bucket bucket --prefix reports/";

/// Outputs that are not a whole list of JSON, although the program succeeds.
const OUTPUTS: [&str; 9] = [
    "An error occurred (Throttling)",
    "<html><body>Sign in</body></html>",
    "[]",
    "{}",
    r#"{"Items":{},"Contents":{}}"#,
    r#"{"Items":[{"pk":{"S":"AUDIT#2026-11"}}],"Contents":["#,
    "A new version is available\n{\"Items\":[],\"Contents\":[]}",
    r#"{"Items":[],"Contents":[],"NextToken":"more"}"#,
    r#"{"Items":[],"Contents":[],"IsTruncated":true}"#,
];

/// The reads that make or fill the steps of a stage.
fn read_of(name: &str, line: &str) -> String {
    match name {
        "files" => REPORTS.to_owned(),
        _ => line.split(" => ").next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn an_output_that_is_not_a_whole_list_is_refused() -> Result<()> {
    let mut accepted = Vec::new();
    for (name, line) in [("endpoints", ENDPOINTS), ("files", ""), ("tables-all", AUDIT)] {
        for output in OUTPUTS {
            let mut world = World::new()?;
            let note = ready(&mut world, name)?;
            world.printed.insert(read_of(name, line), output.to_owned());
            match world.stage(true, &note, stage(name)?.1) {
                Ok(_) => accepted.push((name, output)),
                Err(error) => {
                    let text = format!("{error:#}");
                    let told = text.split_once("printed ").map(|(_, told)| told.chars().count());
                    assert!(told.is_some_and(|told| told < 450), "{name}: {text}");
                }
            }
            assert!(world.acts.is_empty(), "{name}, {output}: {:?}", world.acts);
            let trail = world.folder.path().join("audit-1-2026-11.json");
            assert!(name != "tables-all" || !trail.exists(), "{output}");
        }
    }
    assert!(accepted.is_empty(), "{accepted:#?}");
    Ok(())
}

fn reports_alone(note: &Note, stack: &StackNow, runner: &mut Runner<'_>) -> Result<Vec<Step>> {
    files(note, stack, (Path::new("reports"), None), runner)
}

/// An empty folder has no list: the AWS CLI prints nothing, or what it was not charged.
#[test]
fn an_empty_folder_has_no_file() -> Result<()> {
    for output in ["", r#"{"RequestCharged": null, "Prefix": "reports/"}"#] {
        let mut world = World::new()?;
        let note = ready(&mut world, "files")?;
        world.printed.insert(REPORTS.to_owned(), output.to_owned());
        assert!(world.stage(false, &note, reports_alone)?, "{output}");
    }
    Ok(())
}

#[test]
fn only_files_of_the_folder_are_copied() -> Result<()> {
    let copied = |key: &str| {
        let mut world = World::new()?;
        let note = ready(&mut world, "files")?;
        let file = json!({"Key": key, "LastModified": "2026-11-20T09:00:00Z", "Size": 3});
        world.printed.insert(REPORTS.to_owned(), json!({"Contents": [file]}).to_string());
        let shown = world.stage(false, &note, reports_alone);
        let command = world.said.into_iter().map(|line| line.trim().to_owned()).find(|line| line.starts_with("aws "));
        anyhow::Ok(shown.err().map(|error| error.to_string()).or(command).unwrap_or_default())
    };
    for (key, wanted) in [
        ("reports/1.csv", "aws s3 cp s3://bucket/reports/1.csv reports/1.csv"),
        ("reports/a b.csv", "aws s3 cp 's3://bucket/reports/a b.csv' 'reports/a b.csv'"),
        ("reports/", ""),
        ("reports/2026/", ""),
        ("journal/1.csv", r#""journal/1.csv" is not a file of reports/"#),
        ("/etc/passwd", r#""/etc/passwd" is not a file of reports/"#),
        ("reports/../1.csv", r#""reports/../1.csv" is not a file of reports/"#),
        ("--recursive", r#""--recursive" is not a file of reports/"#),
    ] {
        assert_eq!(copied(key)?, wanted, "{key}");
    }
    Ok(())
}

/// A file that is there is not enough: it must be the trail of its month.
#[test]
fn an_audit_trail_is_kept_whole_and_for_each_month() -> Result<()> {
    let mut world = World::new()?;
    let choices = Start { to: at("2026-10-31T23:59:59Z"), number: 2, ..all() };
    let note = noted(&mut world, &choices)?;
    world.stage(true, &note, stage("close")?.1)?;
    let trail = |month: &str| json!({"Items": [{"pk": {"S": format!("AUDIT#{month}")}}], "NextToken": null});
    for month in ["2026-10", "2026-11"] {
        world.set(&format!("{} => {}", read_of("", AUDIT).replace("2026-11", month), trail(month)))?;
    }
    let file = |month: &str| world.folder.path().join(format!("audit-2-{month}.json"));
    let [october, november] = [file("2026-10"), file("2026-11")];
    for damaged in ["", "{}", r#"{"Items":["#, &trail("2026-09").to_string()] {
        std::fs::write(&october, damaged)?;
        // The tables of this number are not in the world's effects.
        world.stage(true, &note, tables).unwrap_err();
        let kept = [&october, &november].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        assert_eq!(kept, [trail("2026-10").to_string(), trail("2026-11").to_string()], "{damaged}");
    }
    Ok(())
}

#[test]
fn a_damaged_note_is_written_again() -> Result<()> {
    let mut world = World::new()?;
    let note = noted(&mut world, &hot())?;
    let path = world.folder.path().join("restore.json");
    let text = std::fs::read_to_string(&path)?;
    // A character of its beginning is another one, so the size stays.
    for damaged in [text.replacen('{', "[", 1), text.replace("payments-prod", "payments-prof"), "null".to_owned()] {
        std::fs::write(&path, &damaged)?;
        let again = noted(&mut world, &hot());
        if damaged.contains("prof") {
            assert!(again.is_err(), "the note of another stack");
            std::fs::write(&path, &text)?;
            continue;
        }
        assert_eq!(again?, note, "{damaged}");
    }
    // The note lacks its instant.
    std::fs::write(&path, text.replace(&format!("\"begun\": \"{NOW}\""), "\"begun\": null"))?;
    assert_eq!(noted(&mut world, &hot())?, note);
    Ok(())
}

/// After a loss of a part of the note, its tables are there already.
#[test]
fn a_cut_note_is_written_again_for_its_own_tables() -> Result<()> {
    let new = "aws dynamodb describe-table --table-name payments-prod-restored-hot-1";
    let arn = "arn:aws:dynamodb:eu-west-2:111122223333:table/";
    for (source, to, is_own) in
        [("hot", T, true), ("hot", "2026-11-20T09:00:01Z", false), ("other", T, false), ("", T, false)]
    {
        let mut world = World::new()?;
        let note = noted(&mut world, &hot())?;
        let made = match source {
            "" => json!(null),
            _ => json!({"SourceTableArn": format!("{arn}{source}"), "RestoreDateTime": to}),
        };
        world.set(&format!("{new} => {}", json!({"Table": {"TableName": "new", "RestoreSummary": made}})))?;
        let path = world.folder.path().join("restore.json");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, &text[..text.len() / 2])?;
        let again = noted(&mut world, &hot());
        assert_eq!(again.is_ok_and(|again| again == note), is_own, "{source} {to}");
    }
    Ok(())
}

#[test]
fn a_start_is_refused_for_what_is_not_over_and_for_another_name() -> Result<()> {
    let refused = |choices: &Start| -> Result<String> {
        Ok(noted(&mut World::new()?, choices).expect_err("a start").to_string())
    };
    let later = at("2026-11-20T10:00:01Z");
    let told = "2026-11-20T10:00:01Z is not over: it is 2026-11-20T10:00:00Z; give an instant before the loss";
    assert_eq!(refused(&Start { to: later, ..hot() })?, told);
    assert_eq!(refused(&Start { log_to: later, ..log(Origin::Table, at(T)) })?, told);
    let told = "2026-10-15T09:59:59Z is more than 36 days ago: the log has no older changes, and payments that were open then may be \
                sealed now; restore to a later instant";
    assert_eq!(refused(&Start { to: at("2026-10-15T09:59:59Z"), used: true, ..hot() })?, told);
    assert_eq!(
        refused(&Start { history_to: at("2026-10-15T09:59:59Z"), to: at("2026-10-15T09:59:59Z"), ..hot() })?,
        told
    );
    for name in ["", "1", "-x", "payments prod", "payments_prod", "pay\nments", "zahlung-ü", &"a".repeat(129)] {
        let told = refused(&Start { stack: name.to_owned(), ..hot() })?;
        assert!(told.contains("is not a stack's name"), "{told}");
    }
    Ok(())
}

/// A name with a space stays one argument.
#[test]
fn a_value_is_one_argument() -> Result<()> {
    let mut world = World::new()?;
    let stack = &world.answers["aws cloudformation describe-stacks --stack-name payments-prod"].to_string();
    let stack = stack.replace(r#""OutputValue":"hot""#, r#""OutputValue":"hot --no-sign-request""#);
    world.set(&format!("aws cloudformation describe-stacks --stack-name payments-prod => {stack}"))?;
    world.set(&format!("{} => {}", BACKUPS.replace("hot", "'hot --no-sign-request'"), world.answers[BACKUPS]))?;
    let note = noted(&mut world, &hot())?;
    world.stage(true, &note, stage("close")?.1)?;
    world.stage(false, &note, tables)?;
    let wanted = "--source-table-name 'hot --no-sign-request' --target-table-name payments-prod-restored-hot-1";
    assert!(world.said.iter().any(|line| line.contains(wanted)), "{:#?}", world.said);
    Ok(())
}
