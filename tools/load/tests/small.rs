//! Small loads, against every kind of bank, and against banks that lose something. Nothing here looks
//! at how long anything takes.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use payments_load::{Bank, Place, Progress, Settings, Size, Summary};
use payments_local::client::{Client, Request as Ask};
use payments_local::{Call, Fate, Recorder};
use payments_model::BusinessZone;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};

const PAYMENTS: u64 = 200;

fn zone() -> Result<BusinessZone> {
    Ok("Europe/London".parse()?)
}

fn settings() -> Result<Settings> {
    Ok(Settings { patience: Duration::from_secs(10), ..Settings::of(PAYMENTS, zone()?) })
}

async fn load(settings: &Settings, bank: Bank) -> Result<Summary> {
    let summary = payments_load::run(settings, &bank, &Progress::hidden()?).await?;
    bank.close().await?;
    Ok(summary)
}

async fn in_process(wire: Recorder) -> Result<Bank> {
    Bank::in_process(&Place::default(), zone()?, Some(wire)).await
}

/// Asserts that a load found what it put in, and returns its JSON.
fn whole(summary: &Summary) -> Result<Value> {
    summary.check()?;
    let told = summary.json();
    for name in ["payments", "acknowledged", "counted", "recounted"] {
        assert_eq!(told[name], PAYMENTS, "{name} in {told}");
    }
    for name in ["errors", "lost"] {
        assert_eq!(told[name], 0, "{name} in {told}");
    }
    for name in ["seconds", "perSecond", "p50Millis", "p99Millis", "drainSeconds"] {
        assert!(told[name].is_number(), "{name} in {told}");
    }
    Ok(told)
}

#[tokio::test]
async fn a_load_in_process_finds_what_it_put_in_and_spends_its_budget() -> Result<()> {
    for batch in [100, 1] {
        let settings = Settings { batch, ..settings()? };
        let told = whole(&load(&settings, in_process(Recorder::new()).await?).await?)?;
        assert_eq!(told["writeUnitsPerPayment"], 10, "{told}");
        assert_eq!(told["countersExact"], true, "{told}");
    }
    Ok(())
}

#[tokio::test]
async fn small_payments_cost_less() -> Result<()> {
    let settings = Settings { size: Size::Bytes(1_000), ..settings()? };
    let told = whole(&load(&settings, in_process(Recorder::new()).await?).await?)?;
    assert_eq!(told["writeUnitsPerPayment"], 3, "{told}");
    Ok(())
}

#[tokio::test]
async fn a_load_over_http_finds_what_it_put_in_beside_what_was_there() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place { data: Some(folder.path().to_owned()), endpoint: None };
    for batch in [100, 1] {
        let settings = Settings { batch, ..settings()? };
        let told = whole(&load(&settings, Bank::local(&place, zone()?).await?).await?)?;
        assert_eq!((&told["writeUnitsPerPayment"], &told["countersExact"]), (&Value::Null, &Value::Null));
    }
    Ok(())
}

#[tokio::test]
async fn a_mixed_load_ends_with_everything_settled() -> Result<()> {
    let settings = Settings { mixed: true, rate: Some(200), ..settings()? };
    let told = whole(&load(&settings, in_process(Recorder::new()).await?).await?)?;
    assert_eq!(told["settled"], PAYMENTS, "{told}");
    for asked in ["feed", "create", "listByAccount", "listByDate", "counts"] {
        assert!(told["requests"][asked]["requests"].as_u64() > Some(0), "{asked} in {told}");
    }
    Ok(())
}

#[tokio::test]
async fn a_write_that_never_succeeds_is_an_error_and_a_payment_lost() -> Result<()> {
    let victim = OnceLock::new();
    let decide = move |call: &Call| {
        let is_head = call.operation == "PutItem" && call.input()["TableName"] == "payments";
        let is_victim =
            is_head && *victim.get_or_init(|| call.input()["Item"]["sk"].clone()) == call.input()["Item"]["sk"];
        if is_victim { Fate::Refuse(500, "InternalServerError") } else { Fate::Pass }
    };
    let summary = load(&settings()?, in_process(Recorder::with_fate(decide)).await?).await?;
    let told = summary.json();
    for (name, want) in [("errors", 1), ("lost", 1), ("acknowledged", PAYMENTS - 1), ("recounted", PAYMENTS - 1)] {
        assert_eq!(told[name], want, "{name} in {told}");
    }
    assert!(told["retries"].as_u64() > Some(0), "{told}");
    let error = summary.check().err().context("a payment is lost")?.to_string();
    assert!(error.contains("1 payments are lost") && error.contains("a payment was refused"), "{error}");
    Ok(())
}

/// A bank in front of another that says yes to one payment and forgets it.
struct Forgetful {
    bank: Client,
    has_forgotten: AtomicBool,
}

async fn answer(State(forgetful): State<Arc<Forgetful>>, request: Request) -> (StatusCode, String) {
    let (parts, body) = request.into_parts();
    if parts.method == "POST" && !forgetful.has_forgotten.swap(true, Ordering::Relaxed) {
        return (StatusCode::CREATED, "{}".to_owned());
    }
    let body = to_bytes(body, usize::MAX).await.map(|body| String::from_utf8_lossy(&body).into_owned());
    let key = parts.headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut ask = Ask::new(parts.method, path);
    if !key.is_empty() {
        ask = ask.header("Idempotency-Key", key);
    }
    if let Some(body) = body.ok().filter(|body| !body.is_empty()) {
        ask = ask.text(body);
    }
    match forgetful.bank.send_until(&ask, |_| true).await {
        Ok(reply) => (StatusCode::from_u16(reply.status).unwrap_or_default(), reply.text),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}

async fn forgetful(bank: &Bank) -> Result<(String, JoinHandle<std::io::Result<()>>)> {
    let bank = Client::of_url(&bank.url().context("a bank that answers over HTTP")?, None, payments_boot::connector())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let forgetful = Arc::new(Forgetful { bank, has_forgotten: AtomicBool::new(false) });
    let router = Router::new().fallback(answer).with_state(forgetful);
    Ok((url, tokio::spawn(async move { axum::serve(listener, router).await })))
}

/// What the program prints, and whether it ends well.
async fn program(arguments: &[&str]) -> Result<(bool, Value, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_load"));
    command.args(arguments).args(["--json", "--patience", "8"]).env_remove("DYNAMODB_ENDPOINT");
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8(output.stderr)?;
    let told = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Ok((output.status.success(), told, said))
}

#[tokio::test]
async fn the_program_ends_well_where_all_is_well() -> Result<()> {
    let (ends_well, told, said) = program(&["--payments", "200", "--size", "mixed"]).await?;
    assert!(ends_well, "{said}");
    assert_eq!((&told["lost"], &told["recounted"], &told["countersExact"]), (&json!(0), &json!(200), &json!(true)));
    Ok(())
}

#[tokio::test]
async fn the_program_fails_where_a_bank_says_yes_and_forgets() -> Result<()> {
    let bank = Bank::local(&Place::default(), zone()?).await?;
    let (url, server) = forgetful(&bank).await?;
    let (ends_well, told, said) = program(&["--payments", "50", "--single", "--url", &url]).await?;
    assert!(!ends_well && said.contains("1 payments are lost") && said.contains("with --due"), "{said}");
    for (name, want) in [("acknowledged", 50), ("errors", 0), ("lost", 1), ("counted", 49), ("recounted", 49)] {
        assert_eq!(told[name], want, "{name} in {told}");
    }
    server.abort();
    bank.close().await
}

#[tokio::test]
async fn what_cannot_be_done_says_what_to_do() -> Result<()> {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")?;
    let nowhere = format!("http://{}", closed.local_addr()?);
    drop(closed);
    for (arguments, want) in [
        (vec!["--url", "bank"], "give --url one such as http://127.0.0.1:8080"),
        (vec!["--url", &nowhere], "is it running, and is that its URL?"),
        (vec!["--size", "9k"], "give 8k, mixed, or a number of bytes up to 8192"),
        (vec!["--data", "/dev/null"], "give --data a writable folder"),
    ] {
        let (ends_well, _, said) = program(&arguments).await?;
        assert!(!ends_well && said.contains(want), "{arguments:?}: {said}");
    }
    Ok(())
}
