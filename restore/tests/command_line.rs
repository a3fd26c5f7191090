//! The program itself, over an embedded engine.

use std::process::{Command, Output};

use anyhow::Result;
use payments_machine::{EngineChoice, Stack};

fn run(endpoint: &str, step: &[&str]) -> Result<Output> {
    let tables = ["--payments", "payments", "--history", "payment-history", "--log", "payments-log"];
    let program = Command::new(env!("CARGO_BIN_EXE_restore"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .args(tables)
        .args(["--endpoint", endpoint])
        .args(step)
        .output();
    Ok(program?)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_says_what_it_did() -> Result<()> {
    let stack = Stack::on(EngineChoice::Memory).start().await?;
    let endpoint = &stack.environment.endpoint;
    let stream = stack.stream().await?.arn().to_owned();
    let to = "2026-11-20T09:00:00Z";
    for step in [&["begin"][..], &["finish", "--stream", &stream, "--to", to]] {
        let output = run(endpoint, step)?;
        let text = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.starts_with("The log has never begun, so there is nothing to do."), "{text}");
    }
    for (step, want) in [
        (&["finish", "--stream", &stream][..], "--to <INSTANT>"),
        (&["finish", "--stream", "arn", "--to", to], "give --stream the LatestStreamArn"),
        (&["finish", "--stream", &stream, "--to", "today"], "invalid value 'today'"),
        (&["plan", "--to", to, "--shards", "1"], "--reports <FOLDER>"),
        (&["plan", "--to", to, "--shards", "1", "--reports", "nowhere"], "nowhere is no folder"),
        (&["plan", "--to", to, "--shards", "1", "--reports", "."], "the log has no head: give --journal"),
        (
            &["plan", "--to", to, "--shards", "1", "--reports", ".", "--except", "type=payment.pending"],
            "is never left out",
        ),
        (&["apply", "--to", to, "--shards", "1", "--reports", ".", "--no-log"], "payments has a stream"),
    ] {
        let output = run(endpoint, step)?;
        let text = String::from_utf8(output.stderr)?;
        assert!(!output.status.success() && text.contains(want), "{text}");
    }
    for (more, want) in [
        (&[][..], "\n0 payments, of 0 events\n        2 to look at: GAP\nNothing is left to do.\n"),
        (
            &["--json"],
            "\n{\"events\":0,\"payments\":0,\"changes\":{},\"findings\":{\"gap\":2},\"counters\":[],\"forgotten\":0}\n",
        ),
    ] {
        let step = [&["plan", "--to", to, "--shards", "1", "--reports", ".", "--no-log"], more].concat();
        let output = run(endpoint, &step)?;
        let text = String::from_utf8(output.stdout)?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("neither log nor journal was read") && text.ends_with(want), "{text}");
    }
    stack.stop().await
}
