//! The sandbox over real HTTP: outcomes that references choose, and a clock that is moved.

use std::time::Duration;

use anyhow::{Context as _, Result};
use payments_boot::Clock;
use payments_local::{Options, System};
use payments_machine::transaction_service::Chosen;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::laptop::gateway::{exchange, fixed_clock, options};

/// Sends a request and returns the status and the JSON of the answer.
async fn ask(api: &str, method: &str, path: &str, headers: &str, body: &str) -> Result<(u16, Value)> {
    let head =
        format!("{method} {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nContent-Type: application/json\n");
    let reply = exchange(api, &format!("{head}{headers}Content-Length: {}\n\n{body}", body.len())).await?;
    let (head, body) = reply.split_once("\r\n\r\n").context("a body")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, serde_json::from_str(body)?))
}

/// A receiver of webhooks that accepts everything: its URL, and the requests that it gets.
async fn receiver() -> Result<(String, mpsc::UnboundedReceiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (url, (sends, requests)) = (format!("http://{}/", listener.local_addr()?), mpsc::unbounded_channel());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 * 1024];
            let read = stream.read(&mut request).await.unwrap_or(0);
            drop(sends.send(String::from_utf8_lossy(&request[..read]).into_owned()));
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await);
        }
    });
    Ok((url, requests))
}

async fn statuses(api: &str) -> Result<Vec<String>> {
    let (_, list) = ask(api, "GET", "/accounts/acc-1/payments", "", "").await?;
    let mut all: Vec<_> = list["payments"].as_array().context("a list")?.iter().collect();
    all.sort_by_key(|payment| payment["amountMinor"].as_u64());
    Ok(all.iter().map(|payment| payment["status"].as_str().unwrap_or_default().to_owned()).collect())
}

#[tokio::test]
async fn references_choose_outcomes_and_a_moved_clock_shows_them() -> Result<()> {
    let system = System::start(&Options { sandbox: true, ..options()? }, &fixed_clock()).await?;
    let api = system.api_url();
    let (status, before) = ask(&api, "GET", "/sandbox/clock", "", "").await?;
    assert_eq!((status, &before["now"]), (200, &json!("2026-11-20T10:00:00Z")));
    let words = Chosen::ALL.map(|(_, word)| format!("{word} 117"));
    for (number, reference) in words.into_iter().chain(["plain".to_owned()]).enumerate() {
        let body = json!({
            "payeeAccountId": "acc-2", "amountMinor": number + 1, "currency": "GBP", "scheduledFor": "2026-12-01",
            "reference": reference,
        });
        let key = format!("Idempotency-Key: key-{number}\n");
        let (status, payment) = ask(&api, "POST", "/accounts/acc-1/payments", &key, &body.to_string()).await?;
        assert_eq!(status, 201, "{payment}");
    }
    let (status, moved) = ask(&api, "POST", "/sandbox/clock", "", r#"{"to":"2026-12-01T00:00:30Z"}"#).await?;
    assert_eq!(status, 200, "{moved}");
    assert!(moved["now"].as_str() >= Some("2026-12-01T00:00:30Z"), "{moved}");
    assert_eq!(statuses(&api).await?, ["FAILED", "PENDING", "PROCESSED", "PROCESSED", "PENDING", "PROCESSED"]);
    let (status, _) = ask(&api, "POST", "/sandbox/clock", "", r#"{"advanceSeconds":7200}"#).await?;
    assert_eq!(status, 200);
    assert_eq!(statuses(&api).await?, ["FAILED", "PROCESSED", "PROCESSED", "PROCESSED", "PENDING", "PROCESSED"]);
    let (status, refused) = ask(&api, "POST", "/sandbox/clock", "", r#"{"to":"2026-11-30T00:00:00Z"}"#).await?;
    assert_eq!(status, 400, "{refused}");
    system.stop().await
}

#[tokio::test]
async fn without_the_sandbox_there_is_no_clock_and_references_choose_nothing() -> Result<()> {
    let system = System::start(&options()?, &fixed_clock()).await?;
    let (status, problem) = ask(&system.api_url(), "GET", "/sandbox/clock", "", "").await?;
    assert_eq!((status, &problem["title"]), (404, &json!("No such route")), "{problem}");
    system.stop().await
}

/// Receivers verify with their own clocks, which nobody moves. The clock of this machine stands still here, so no schedule is due.
#[tokio::test]
async fn webhooks_are_signed_by_the_machines_clock_and_tests_are_sent_at_once() -> Result<()> {
    let system = System::start(&Options { sandbox: true, ..options()? }, &fixed_clock()).await?;
    let (api, (url, mut requests)) = (system.api_url(), receiver().await?);
    let put = json!({ "url": url }).to_string();
    let (status, endpoint) = ask(&api, "PUT", "/webhook-endpoints/erp", "", &put).await?;
    assert_eq!(status, 201, "{endpoint}");
    let (status, _) = ask(&api, "POST", "/sandbox/clock", "", r#"{"advanceSeconds":86400}"#).await?;
    assert_eq!(status, 200);
    let (status, asked) = ask(&api, "POST", "/webhook-endpoints/erp/test", "", "").await?;
    assert_eq!((status, &asked["testAskedAt"]), (202, &json!("2026-11-21T10:00:00Z")), "{asked}");
    let request = timeout(Duration::from_secs(20), requests.recv()).await.context("no test")?.context("no request")?;
    let signed_at = fixed_clock().now().as_chrono().timestamp();
    assert!(request.contains(&format!("webhook-timestamp: {signed_at}\r\n")), "{request}");
    assert!(request.contains("webhook.test") && request.contains("2026-11-21T10:00:0"), "{request}");
    system.stop().await
}

/// Changes that are read after a day are a gap, because the stream may have dropped others. The engine's records have the machine's time.
#[tokio::test]
async fn a_move_of_the_clock_by_weeks_makes_no_gap_and_logs_all_before_it_is_answered() -> Result<()> {
    let options = Options { sandbox: true, time_zone: "UTC".parse()?, ..options()? };
    let system = System::start(&options, &Clock::system()).await?;
    let (api, today) = (system.api_url(), options.time_zone.date_of(Clock::system().now()));
    let last = today.plus_days(33);
    for (key, date) in [("a", today.plus_days(3)), ("b", today.plus_days(20)), ("c", last)] {
        let date = date.to_string();
        let body = json!({ "payeeAccountId": "acc-2", "amountMinor": 1, "currency": "GBP", "scheduledFor": date });
        let headers = format!("Idempotency-Key: {key}\n");
        let (status, payment) = ask(&api, "POST", "/accounts/acc-1/payments", &headers, &body.to_string()).await?;
        assert_eq!(status, 201, "{payment}");
    }
    let to = json!({ "to": format!("{last}T00:00:00Z") }).to_string();
    let (status, moved) = ask(&api, "POST", "/sandbox/clock", "", &to).await?;
    assert_eq!(status, 200, "{moved}");
    let (_, page) = ask(&api, "GET", "/events?limit=100", "", "").await?;
    let types: Vec<_> = page["events"].as_array().context("no events")?.iter().map(|event| &event["type"]).collect();
    assert!(!types.contains(&&json!("log.gap")), "{types:?}");
    assert_eq!(types.len(), 9, "{types:?}");
    system.stop().await
}
