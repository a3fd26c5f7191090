//! The program itself, over an embedded engine, and with a stand-in for the AWS CLI.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use payments_machine::{EngineChoice, Stack};
use payments_store::schema::{PAYMENTS, Table, create_table};
use serde_json::{Value, json};
use tempfile::TempDir;

const TO: &str = "2026-11-20T09:00:00Z";
const PAYMENT: &str = "acct-1/0b1c2d3e-0000-5000-8000-000000000000";

/// The AWS CLI: the stack, and whether each command is called with JSON as its output.
const AWS: &str = r#"#!/bin/sh
[ "$AWS_DEFAULT_OUTPUT" = json ] || exit 1
echo "$*" >> calls.txt
case "$*" in
  *describe-stacks*SourceBucket*) exit 1 ;;
  *describe-stacks*StackStatus*) echo '"UPDATE_COMPLETE"' ;;
  *describe-stack-events*) echo '"2026-11-20T08:00:00Z"' ;;
  *describe-stacks*LogTableName*) echo '"payments-log"' ;;
  *describe-stacks*) cat stack.json ;;
  *list-stack-resources*) echo '{"StackResourceSummaries": [
      {"LogicalResourceId": "StreamAggregatorFunction", "PhysicalResourceId": "counts"},
      {"LogicalResourceId": "PublishFunction", "PhysicalResourceId": "publish"}]}' ;;
  "lambda invoke --function-name publish"*) cat > event.json; echo '{"journalSegmentsBehind": 0}{"StatusCode": 200}' ;;
  *list-event-source-mappings*) ;;
  *list-objects-v2*) cat files.json ;;
  *describe-table*) cat table.json ;;
  *) echo "An error occurred (AccessDenied) $*" >&2; exit 254 ;;
esac
"#;

/// A folder with a restore's file, and the AWS CLI in `bin`.
fn folder(origin: &str, log: &str, stream: &str) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("bin"))?;
    std::fs::write(path("bin/aws"), AWS)?;
    std::fs::set_permissions(path("bin/aws"), PermissionsExt::from_mode(0o755))?;
    let parameters = [("ReadShards", "1"), ("Stage", "dev")];
    let parameters = parameters.map(|(name, value)| json!({"ParameterKey": name, "ParameterValue": value}));
    let stack = json!({"StackId": "arn:aws:cloudformation:eu-west-2:1:stack/s/1", "Parameters": parameters});
    std::fs::write(path("stack.json"), json!({"Stacks": [stack]}).to_string())?;
    std::fs::write(path("table.json"), json!({"Table": {"LatestStreamArn": stream}}).to_string())?;
    let kept = |name: &str| json!({"old": name, "new": name, "origin": "kept"});
    let note = json!({
        "stack": "s", "stack_id": "arn:aws:cloudformation:eu-west-2:1:stack/s/1", "number": 1, "begun": TO, "shards": 1, "history": kept("payment-history"),
        "hot": {"old": "payments", "new": "payments", "origin": origin, "to": TO},
        "log": {"old": "payments-log", "new": "payments-log", "origin": log, "to": if log == "kept" { None } else { Some(TO) }},
    });
    std::fs::write(path("restore.json"), note.to_string())?;
    Ok(folder)
}

fn run(folder: &Path, endpoint: &str, arguments: &[&str]) -> Result<Output> {
    let program = Command::new(env!("CARGO_BIN_EXE_restore"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("PATH", format!("{}:/usr/bin:/bin", folder.join("bin").display()))
        .current_dir(folder)
        .args(["--endpoint", endpoint])
        .args(arguments)
        .output();
    Ok(program?)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_says_what_it_did() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let endpoint = &stack.environment.endpoint;
    let stream = stack.stream().await?.arn().to_owned();
    for (stream, origin, arguments, is_ok, want) in [
        (&*stream, "used", &["begin"][..], true, "Then the epoch of payments-log ends: it has no head now."),
        (&stream, "used", &["begin", "--apply"], true, "The log has never begun, so there is nothing to do."),
        (&stream, "used", &["finish"], true, "Then the next epoch of payments-log begins, for the stream of payments."),
        (&stream, "used", &["finish", "--apply"], true, "The log has never begun, so there is nothing to do."),
        (
            "arn",
            "used",
            &["finish", "--apply"],
            false,
            "arn is not a stream of payments: the stack or the restore's file names another table",
        ),
        (&stream, "used", &["close"], false, "the stack s has no parameter Monitoring; is it this system's?"),
        (&stream, "used", &["files"], false, "the stack s has no output ReportsBucketName"),
        (
            &stream,
            "used",
            &["rebuild"],
            false,
            "reports is not a folder: copy the bucket's folder with `cargo restore files`",
        ),
        (&stream, "used", &["rebuild", "--reports", "."], false, "the log has no head: give --journal"),
        (&stream, "used", &["rebuild", "--except", "type=payment.pending"], false, "is never left out"),
        (&stream, "used", &["rebuild", "--reports", ".", "--no-log", "--apply"], false, "no output ReportsBucketName"),
        (&stream, "used", &["cancel"], false, "the stack still has the old hot table"),
        (&stream, "used", &["cancel", "--payment", "acct-1"], false, "expected ACCOUNT/ID"),
        (&stream, "used", &["cancel", "--from", "no.txt"], false, "no.txt cannot be read"),
        (&stream, "used", &["cancel", "--payment", PAYMENT], false, "no resource IngestFunction"),
        (
            &stream,
            "used",
            &["tables", "--file", "no.json"],
            false,
            "no.json cannot be read; write it with `cargo restore start",
        ),
        (&stream, "used", &["endpoints"], false, "payment-history was not restored, so its endpoints stay"),
        (&stream, "used", &["changes"], false, "SourceBucket"),
        (&stream, "used", &["open"], false, "0 payments are SCHEDULED"),
        (&stream, "used", &["start", "--stack", "s"], false, "--to <INSTANT>"),
        (&stream, "used", &["start", "--stack", "s", "--to", "today"], false, "invalid value 'today'"),
        (&stream, "used", &["start", "--stack", "s", "--to", TO, "--log", "table"], false, "--log-to <INSTANT>"),
    ] {
        let folder = folder(origin, "kept", stream)?;
        let output = run(folder.path(), endpoint, arguments)?;
        let text = String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() == is_ok && text.contains(want), "{arguments:?}: {text}");
    }
    for (more, want) in [
        (&[][..], " before anything is swept.\nNothing is left to do.\n"),
        (
            &["--json"],
            "\n{\"events\":0,\"payments\":0,\"changes\":{},\"findings\":{\"gap\":2},\"counters\":[],\"forgotten\":0,\"contradictions\":0}\n",
        ),
    ] {
        let folder = folder("used", "kept", &stream)?;
        let output = run(folder.path(), endpoint, &[&["rebuild", "--reports", ".", "--no-log"], more].concat())?;
        let text = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("neither log nor journal was read") && text.ends_with(want), "{text}");
    }
    stack.stop().await
}

/// The log's table was restored and is used: its epoch ends, and the next one begins, by two commands.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_log_gets_its_next_epoch() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let endpoint = &stack.environment.endpoint;
    let folder = folder("kept", "empty", stack.stream().await?.arn())?;
    for (command, want) in [("begin", "The epoch has ended at"), ("finish", "The log takes the changes of")] {
        // The second run is done.
        for _ in 0..2 {
            let output = run(folder.path(), endpoint, &[command, "--apply"])?;
            let text = String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.contains(want), "{command}: {text}");
        }
    }
    stack.stop().await
}

/// Restored tables that the stack does not use yet are imported only if the log is as their restore left it.
#[tokio::test(flavor = "multi_thread")]
async fn restored_tables_are_imported_after_their_epoch() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let endpoint = &stack.environment.endpoint;
    let stream = stack.stream().await?.arn().to_owned();
    let lost = || restored("kept", "payments", &stream);
    let hot = |stream: &str| restored("table", "payments", stream);
    let log = lost()?;
    let says = |folder: &TempDir, arguments: &[&str], want: &str| -> Result<()> {
        let output = run(folder.path(), endpoint, arguments)?;
        let text = String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(want), "{arguments:?}: {text}");
        Ok(())
    };
    let missing = "the log has no head, expected an epoch that has ended; run `cargo restore begin --apply`";
    says(&log, &["import"], missing)?;
    says(&log, &["changes", "--apply"], missing)?;
    says(&log, &["begin", "--apply"], "The epoch has ended at")?;
    // The next refusal is of the stack.
    says(&log, &["changes"], "SourceBucket")?;
    says(&log, &["import"], "no resource payments-log-old")?;
    says(&hot(&stream)?, &["import"], "the log takes no changes, expected those of the restored hot table")?;
    says(&log, &["finish", "--apply"], "The log takes the changes of")?;
    says(&log, &["import", "--apply"], "the log takes changes, expected an epoch that has ended")?;
    says(&log, &["changes"], "the log takes changes, expected an epoch that has ended")?;
    says(&hot("other")?, &["import"], "expected those of the restored hot table; run `cargo restore finish --apply`")?;
    says(&hot(&stream)?, &["import"], "no resource payments-old")?;
    // The stream of a new table stays off while the log takes changes.
    says(&restored("table", "payments-new", "other")?, &["finish", "--apply"], "the log still takes the changes of")?;
    stack.stop().await
}

/// A folder of a restore whose tables the stack does not use yet: its log, or its hot table with this name.
fn restored(hot: &str, name: &str, stream: &str) -> Result<TempDir> {
    let log = if hot == "kept" { "empty" } else { "kept" };
    let folder = folder(hot, log, stream)?;
    let path = |name: &str| folder.path().join(name);
    let mut note: Value = serde_json::from_slice(&std::fs::read(path("restore.json"))?)?;
    let (hot_old, log_old) =
        if hot == "kept" { ("payments", "payments-log-old") } else { ("payments-old", "payments-log") };
    (note["hot"]["old"], note["hot"]["new"]) = (hot_old.into(), name.into());
    note["log"]["old"] = log_old.into();
    std::fs::write(path("restore.json"), note.to_string())?;
    let mut stack: Value = serde_json::from_slice(&std::fs::read(path("stack.json"))?)?;
    let outputs = [("PaymentsTableName", hot_old), ("HistoryTableName", "payment-history"), ("LogTableName", log_old)];
    stack["Stacks"][0]["Outputs"] =
        outputs.map(|(name, value)| json!({"OutputKey": name, "OutputValue": value})).to_vec().into();
    std::fs::write(path("stack.json"), stack.to_string())?;
    Ok(folder)
}

/// A restored table has no stream, and its rebuild notes what was chosen.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_notes_its_choices_and_its_end() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let endpoint = &stack.environment.endpoint;
    let stream = stack.stream().await?.arn().to_owned();
    let folder = folder("table", "empty", &stream)?;
    let path = |name: &str| folder.path().join(name);
    let read =
        |name: &str| -> Result<serde_json::Value> { Ok(serde_json::from_str(&std::fs::read_to_string(path(name))?)?) };
    let mut described = read("stack.json")?;
    described["Stacks"][0]["Outputs"] = json!([{"OutputKey": "ReportsBucketName", "OutputValue": "bucket"}]);
    std::fs::write(path("stack.json"), described.to_string())?;
    let report = json!({"Key": "reports/1.csv.gz", "LastModified": TO, "Size": 3});
    std::fs::write(path("files.json"), json!({"Contents": [report]}).to_string())?;
    std::fs::create_dir(path("copies"))?;
    let ask = |arguments: &[&str]| -> Result<(bool, String)> {
        let output = run(folder.path(), endpoint, &[&["rebuild", "--reports", "copies"], arguments].concat())?;
        Ok((output.status.success(), String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr)))
    };
    let refused = |arguments: &[&str], want: &str| -> Result<()> {
        let (is_ok, text) = ask(arguments)?;
        assert!(!is_ok && text.contains(want), "{arguments:?}: {text}");
        Ok(())
    };
    let chosen = ["--no-log", "--accept-gaps", "--except", "type=payment.cancelled", "--apply"];
    // The log began empty.
    refused(&[], "the log was lost or restored, so it lacks changes")?;
    refused(&chosen, "1 files are not copied: Copy reports/1.csv.gz; run `cargo restore files --apply` first")?;
    std::fs::write(path("copies/1.csv.gz"), "new")?;
    refused(&chosen, "payments has a stream")?;
    let mut note = read("restore.json")?;
    assert_eq!((&note["rebuild"], &note["rebuilt"]), (&json!(null), &json!(null)));
    note["hot"]["new"] = json!("restored");
    std::fs::write(path("restore.json"), note.to_string())?;
    let client = payments_boot::dynamodb_at(endpoint, "local");
    create_table(&client, "restored", &Table { stream: None, ..PAYMENTS }).await?;
    // A checkpoint of the old stream, which goes.
    let [pk, sk] = ["CHECKPOINT#counts", "shard"].map(|key| AttributeValue::S(key.to_owned()));
    client.put_item().table_name("restored").item("pk", pk).item("sk", sk).send().await?;
    std::fs::write(path("files.json"), "")?;
    std::fs::remove_file(path("copies/1.csv.gz"))?;
    let said = |arguments: &[&str], want: &str| -> Result<()> {
        let (is_ok, text) = ask(arguments)?;
        assert!(is_ok && text.ends_with(want), "{arguments:?}: {text}");
        Ok(())
    };
    said(&chosen[..4], "\nNothing was changed. Give --apply to do this.\n")?;
    assert_eq!(read("restore.json")?["rebuild"], json!(null));
    said(&chosen, "\nRun this again a quarter of an hour later, until nothing is left to do.\n")?;
    let note = read("restore.json")?;
    let noted = json!({"excepts": ["type=payment.cancelled"], "no_log": true, "accept_gaps": true});
    assert_eq!((&note["rebuild"], &note["rebuilt"]), (&noted, &json!(null)));
    // A later run has the same choices, and no others.
    said(&[], "\nNothing is left to do.\n")?;
    assert_eq!(read("restore.json")?["rebuilt"], json!(null));
    let began = "restore.json says that rebuild began with --no-log --except type=payment.cancelled --accept-gaps: give the same or none";
    refused(&["--except", "type=payment.amended"], began)?;
    refused(&["--journal", "journal", "--apply"], began)?;
    refused(&["--except", "type=payment.amended"], "cargo restore start --number 2")?;
    said(&["--apply"], "\nNothing is left to do.\n")?;
    assert!(read("restore.json")?["rebuilt"].is_string());
    assert_eq!(read("restore.json")?["rebuild"], noted);
    stack.stop().await
}

/// Arguments that nobody can mean, refused before anything is asked.
#[test]
fn wrong_arguments_are_refused() -> Result<()> {
    for (arguments, want) in [
        (
            &["rebuild", "--except", "from=2026-11-20T10:00:00Z,to=2026-11-20T09:59:59Z"][..],
            "from is after to, so nothing would be left out",
        ),
        (&["start", "--stack", "s", "--to", TO, "--number", "0"], "0 is not in 1.."),
        (&["start", "--stack", "s t", "--to", TO], "is not a stack's name"),
    ] {
        let folder = folder("used", "kept", "arn")?;
        let output = run(folder.path(), "http://127.0.0.1:1", arguments)?;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(want), "{arguments:?}: {text}");
        assert!(!folder.path().join("calls.txt").exists(), "{arguments:?}");
    }
    // The stack of the note is asked for before the folder is read.
    let output =
        run(folder("used", "kept", "arn")?.path(), "http://127.0.0.1:1", &["rebuild", "--reports", "restore.json"])?;
    assert!(String::from_utf8_lossy(&output.stderr).contains("restore.json is not a folder"));
    Ok(())
}

/// Every command has an example that begins as it is called.
#[test]
fn every_help_has_an_example() -> Result<()> {
    let help = |arguments: &[&str]| -> Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_restore")).args(arguments).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let all = help(&["--help"])?;
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: Vec<&str> = commands.into_iter().filter(|name| !["", "help"].contains(name)).collect();
    let order = "start close begin tables endpoints files rebuild finish template changes import resume open cancel";
    assert_eq!(commands.join(" "), order);
    assert!(all.contains("For example: cargo restore start"), "{all}");
    // The page names them in this order.
    let page = include_str!("../../docs/restore.md");
    let (_, section) = page.split_once("\n## Come back from a restore\n").context("no section")?;
    let mut rest = section;
    for command in &commands {
        let at = rest
            .find(&format!("`cargo restore {command}"))
            .with_context(|| format!("{command} is not in its place"))?;
        rest = &rest[at..];
    }
    for command in commands {
        let text = help(&[command, "--help"])?;
        assert!(text.contains(&format!("For example: cargo restore {command}")), "{text}");
    }
    Ok(())
}
