//! Small loads on every kind of target, and on targets that lose a payment. No test depends on how long anything takes.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use payments_load::{Progress, Settings, Size, Summary, Target};
use payments_machine::client::{Client, Request as ApiRequest};
use payments_machine::payload::DataKind;
use payments_machine::{Call, EngineChoice, Fate, Recorder};
use payments_model::BusinessZone;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};

const PAYMENTS: u64 = 200;

fn zone() -> Result<BusinessZone> {
    Ok("Europe/London".parse()?)
}

fn settings() -> Result<Settings> {
    Ok(Settings { wait: 10, ..Settings::new(PAYMENTS, zone()?) })
}

async fn load(settings: &Settings, target: Target) -> Result<Summary> {
    let summary = payments_load::run(settings, &target, &Progress::hidden()?).await?;
    target.close().await?;
    Ok(summary)
}

async fn in_process(recorder: Recorder) -> Result<Target> {
    Target::in_process(EngineChoice::default(), zone()?, Some(recorder)).await
}

/// Asserts that a load found everything that it created, and returns its JSON.
fn complete(summary: &Summary) -> Result<Value> {
    summary.check()?;
    let json = summary.json();
    for name in ["payments", "acknowledged", "counted", "recounted"] {
        assert_eq!(json[name], PAYMENTS, "{name} in {json}");
    }
    for name in ["errors", "lost"] {
        assert_eq!(json[name], 0, "{name} in {json}");
    }
    for name in ["seconds", "perSecond", "p50Millis", "p99Millis", "drainSeconds"] {
        assert!(json[name].is_number(), "{name} in {json}");
    }
    Ok(json)
}

#[tokio::test]
async fn a_load_in_process_finds_all_payments_and_uses_the_units_of_their_data() -> Result<()> {
    for (single, data_kind, units) in [
        (false, DataKind::Structured, 4),
        (true, DataKind::Structured, 4),
        (false, DataKind::Prose, 6),
        (false, DataKind::Incompressible, 10),
        (false, DataKind::Small, 3),
    ] {
        let settings = Settings { single, data_kind, ..settings()? };
        let json = complete(&load(&settings, in_process(Recorder::new()).await?).await?)?;
        assert_eq!(
            (&json["writeUnitsPerPayment"], &json["dataKind"]),
            (&json!(units), &json!(data_kind.name())),
            "{json}"
        );
        assert_eq!(json["countersExact"], true, "{json}");
    }
    Ok(())
}

#[tokio::test]
async fn a_payment_of_1_kb_uses_3_write_units() -> Result<()> {
    let settings = Settings { size: Size::Bytes(1_000), ..settings()? };
    let json = complete(&load(&settings, in_process(Recorder::new()).await?).await?)?;
    assert_eq!(json["writeUnitsPerPayment"], 3, "{json}");
    Ok(())
}

#[tokio::test]
async fn a_load_over_http_finds_all_payments_beside_earlier_ones() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for single in [false, true] {
        let settings = Settings { single, ..settings()? };
        let json = complete(
            &load(&settings, Target::local(EngineChoice::Folder(folder.path().to_owned()), zone()?).await?).await?,
        )?;
        assert_eq!((&json["writeUnitsPerPayment"], &json["countersExact"]), (&Value::Null, &Value::Null));
    }
    Ok(())
}

#[tokio::test]
async fn a_mixed_load_ends_with_all_payments_settled() -> Result<()> {
    let settings = Settings { mixed: true, rate: Some(200), ..settings()? };
    let json = complete(&load(&settings, in_process(Recorder::new()).await?).await?)?;
    assert_eq!(json["settled"], PAYMENTS, "{json}");
    for kind in ["feed", "create", "listByAccount", "listByDate", "counts"] {
        assert!(json["requests"][kind]["requests"].as_u64() > Some(0), "{kind} in {json}");
    }
    Ok(())
}

#[tokio::test]
async fn a_write_that_never_succeeds_is_an_error_and_a_lost_payment() -> Result<()> {
    let victim = OnceLock::new();
    let decide = move |call: &Call| {
        let is_head = call.operation == "PutItem" && call.input()["TableName"] == "payments";
        let is_victim =
            is_head && *victim.get_or_init(|| call.input()["Item"]["sk"].clone()) == call.input()["Item"]["sk"];
        if is_victim { Fate::Refuse(500, "InternalServerError") } else { Fate::Pass }
    };
    let summary = load(&settings()?, in_process(Recorder::with_fate(decide)).await?).await?;
    let json = summary.json();
    for (name, want) in [("errors", 1), ("lost", 1), ("acknowledged", PAYMENTS - 1), ("recounted", PAYMENTS - 1)] {
        assert_eq!(json[name], want, "{name} in {json}");
    }
    assert!(json["retries"].as_u64() > Some(0), "{json}");
    let error = summary.check().err().context("a payment is lost")?.to_string();
    assert!(error.contains("1 payments are lost") && error.contains("a payment was rejected"), "{error}");
    Ok(())
}

/// An API in front of another. It acknowledges one payment and loses it.
struct Forgetful {
    client: Client,
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
    let mut forwarded = ApiRequest::new(parts.method, path);
    if !key.is_empty() {
        forwarded = forwarded.header("Idempotency-Key", key);
    }
    if let Some(body) = body.ok().filter(|body| !body.is_empty()) {
        forwarded = forwarded.text(body);
    }
    match forgetful.client.send_until(&forwarded, |_| true).await {
        Ok(reply) => (StatusCode::from_u16(reply.status).unwrap_or_default(), reply.text),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}

async fn forgetful(target: &Target) -> Result<(String, JoinHandle<std::io::Result<()>>)> {
    let client = Client::for_url(
        &target.url().context("a target with a URL")?,
        None,
        Arc::new(scheduled_payments::Http::new()),
    )?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let forgetful = Arc::new(Forgetful { client, has_forgotten: AtomicBool::new(false) });
    let router = Router::new().fallback(answer).with_state(forgetful);
    Ok((url, tokio::spawn(async move { axum::serve(listener, router).await })))
}

/// Runs the program. Returns whether it succeeds, its JSON, and its standard error.
async fn program(arguments: &[&str]) -> Result<(bool, Value, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_load"));
    command.args(arguments).args(["--json", "--wait", "8"]).env_remove("DYNAMODB_ENDPOINT");
    let output = spawn_blocking(move || command.output()).await??;
    let error = String::from_utf8(output.stderr)?;
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    Ok((output.status.success(), json, error))
}

#[tokio::test]
async fn the_program_succeeds_if_nothing_is_lost() -> Result<()> {
    let (succeeds, json, error) = program(&["--payments", "200", "--size", "mixed"]).await?;
    assert!(succeeds, "{error}");
    assert_eq!((&json["lost"], &json["recounted"], &json["countersExact"]), (&json!(0), &json!(200), &json!(true)));
    Ok(())
}

#[tokio::test]
async fn the_program_fails_if_an_acknowledged_payment_is_lost() -> Result<()> {
    let target = Target::local(EngineChoice::default(), zone()?).await?;
    let (url, server) = forgetful(&target).await?;
    let (succeeds, json, error) = program(&["--payments", "50", "--single", "--url", &url]).await?;
    assert!(!succeeds && error.contains("1 payments are lost") && error.contains("with --due"), "{error}");
    for (name, want) in [("acknowledged", 50), ("errors", 0), ("lost", 1), ("counted", 49), ("recounted", 49)] {
        assert_eq!(json[name], want, "{name} in {json}");
    }
    server.abort();
    target.close().await
}

#[tokio::test]
async fn an_invalid_option_says_what_to_give() -> Result<()> {
    for (arguments, want) in [
        (vec!["--url", "bank"], "give --url one such as http://127.0.0.1:8080"),
        (vec!["--url", "http://127.0.0.1:1"], "is it running, and is that its URL?"),
        (vec!["--size", "9k"], "give 8k, mixed, or a number of bytes up to 7552"),
        (vec!["--data", "/dev/null"], "give --data a writable folder"),
    ] {
        let (succeeds, _, error) = program(&arguments).await?;
        assert!(!succeeds && error.contains(want), "{arguments:?}: {error}");
    }
    Ok(())
}
