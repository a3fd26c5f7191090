//! `cargo local` over real HTTP: what the README shows, flags, and clear errors.

use std::net::TcpListener;

use anyhow::{Context as _, Result};
use payments_boot::Clock;
use payments_local::{Options, System, welcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) fn options() -> Result<Options> {
    let time_zone = "Europe/London".parse()?;
    // Deleted with the process's other temporary files; nothing in it outlives a test.
    let reports = tempfile::tempdir()?.keep();
    Ok(Options { api_port: 0, dynamodb_port: 0, data: None, reports, time_zone, endpoint: None, require_tokens: false })
}

/// One HTTP/1.1 exchange, written by hand so that our code is on one side only.
pub(crate) async fn exchange(url: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").context("a URL")?).await?;
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    Ok(reply)
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\nHost: bank\nConnection: close\n{headers}Content-Length: {length}\n\n{body}")
}

fn create() -> String {
    let body = r#"{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"2027-01-01"}"#;
    post("/accounts/acc-1/payments", "Content-Type: application/json\nIdempotency-Key: rent-1\n", body)
}

pub(crate) fn fixed_clock() -> Clock {
    Clock::simulated(|| chrono::DateTime::from_timestamp(1_795_168_800, 0).unwrap_or_default(), |_| {})
}

#[tokio::test]
async fn a_payment_is_created_listed_and_cancelled_over_http() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let api = system.api_url();
    let first = exchange(&api, &create()).await?;
    assert!(first.starts_with("HTTP/1.1 201 Created"), "{first}");
    assert!(first.contains("location: /accounts/acc-1/payments/"), "{first}");
    let again = exchange(&api, &create()).await?;
    assert!(again.contains("idempotent-replayed: true"), "{again}");
    let listing = "GET /accounts/acc-1/payments HTTP/1.1\nHost: bank\nConnection: close\n\n";
    let list = exchange(&api, listing).await?;
    assert_eq!(list.matches("\"paymentId\"").count(), 1, "{list}");
    let id = first.split("/accounts/acc-1/payments/").nth(1).and_then(|rest| rest.lines().next()).context("an id")?;
    for _ in 0..2 {
        let cancelled = exchange(&api, &post(&format!("/accounts/acc-1/payments/{id}/cancel"), "", "")).await?;
        assert!(cancelled.starts_with("HTTP/1.1 200 OK") && cancelled.contains("\"CANCELLED\""), "{cancelled}");
    }
    let encoded = exchange(&api, &listing.replace("acc-1", "acc%2D1")).await?;
    assert!(encoded.contains("\"CANCELLED\""), "path parameters are decoded: {encoded}");
    system.stop().await
}

#[tokio::test]
async fn kept_data_survives_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options { data: Some(folder.path().join("bank")), ..options()? };
    for want in [false, true] {
        let system = System::start(&options, &fixed_clock()).await?;
        let reply = exchange(&system.api_url(), &create()).await?;
        assert_eq!(reply.contains("idempotent-replayed: true"), want, "{reply}");
        system.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_busy_port_is_an_error_that_names_the_flag() -> Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    for (options, flag) in [
        (Options { api_port: port, ..options()? }, "--api-port"),
        (Options { dynamodb_port: port, ..options()? }, "--dynamodb-port"),
    ] {
        let error = System::start(&options, &fixed_clock()).await.err().context("the port is taken")?;
        assert!(format!("{error:#}").contains(flag), "{error:#}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unusable_folder_is_an_error_that_names_it() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    let options = Options { data: Some(file.path().to_owned()), ..options()? };
    let error = System::start(&options, &fixed_clock()).await.err().context("a file is no folder")?;
    assert!(format!("{error:#}").contains("--data"), "{error:#}");
    Ok(())
}

#[tokio::test]
async fn the_gateway_rejects_a_body_over_its_limit() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let huge = "x".repeat(11 * 1024 * 1024);
    let reply = exchange(&system.api_url(), &post("/payment-batches", "Content-Type: application/json\n", &huge)).await;
    // The connection's reset may cut off the answer, but the server goes on.
    assert!(reply.is_err() || reply.is_ok_and(|reply| reply.contains("413")));
    assert!(exchange(&system.api_url(), &create()).await?.contains("201 Created"));
    system.stop().await
}

#[test]
fn the_welcome_shows_commands_for_today() -> Result<()> {
    let text = welcome::text(
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8000",
        "(in memory)",
        "reports",
        "2026-11-20".parse()?,
    )?;
    assert!(text.contains("\"scheduledFor\":\"2026-11-27\""), "{text}");
    // The id is that of the create above.
    assert!(text.contains("/payments/8d9a1951-d187-5122-b51e-d0e412752c83/cancel"), "{text}");
    Ok(())
}
