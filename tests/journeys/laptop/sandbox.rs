//! The sandbox over real HTTP: outcomes that references choose, and a clock that is moved.

use payments_tests::prelude::*;
use std::time::Duration;

use payments_boot::Clock;
use payments_local::{Options, System};
use payments_machine::transaction_service::Chosen;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{exchange, fixed_clock, get, options, request, start};

/// Sends a request and returns its answer, which must have this status.
async fn ask(api: &str, (method, path): (&str, &str), headers: &str, body: &str, status: u16) -> Result<Value> {
    let headers = format!("Content-Type: application/json\n{headers}");
    exchange(api, &request(method, path, &headers, body)).await?.with_status(status)?.json()
}

/// Moves the clock.
async fn move_clock(api: &str, body: &str, status: u16) -> Result<Value> {
    ask(api, ("POST", "/sandbox/clock"), "", body, status).await
}

/// Creates a payment of `acc-1`.
async fn create(api: &str, key: &str, order: &Value) -> Result<Value> {
    let key = format!("Idempotency-Key: {key}\n");
    ask(api, ("POST", "/accounts/acc-1/payments"), &key, &order.to_string(), 201).await
}

/// A receiver of webhooks that accepts everything: its URL, and the requests that it gets.
pub(super) async fn receiver() -> Result<(String, mpsc::UnboundedReceiver<String>)> {
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
    let list = get(api, "/accounts/acc-1/payments").await?.json()?;
    let mut all: Vec<_> = list["payments"].as_array().context("a list")?.iter().collect();
    all.sort_by_key(|payment| payment["amountMinor"].as_u64());
    Ok(all.iter().map(|payment| payment["status"].as_str().unwrap_or_default().to_owned()).collect())
}

#[tokio::test]
async fn references_choose_outcomes_and_a_moved_clock_shows_them() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let api = system.api_url();
    let before = get(&api, "/sandbox/clock").await?.with_status(200)?.json()?;
    assert_eq!(before["now"], "2026-11-20T10:00:00Z");
    let words = Chosen::ALL.map(|(_, word)| format!("{word} 117"));
    for (number, reference) in words.into_iter().chain(["plain".to_owned()]).enumerate() {
        let order = order_with("2026-12-01", json!({ "amountMinor": number + 1, "reference": reference }));
        create(&api, &format!("key-{number}"), &order).await?;
    }
    let moved = move_clock(&api, r#"{"to":"2026-12-01T00:00:30Z"}"#, 200).await?;
    assert!(moved["now"].as_str() >= Some("2026-12-01T00:00:30Z"), "{moved}");
    assert_eq!(statuses(&api).await?, ["FAILED", "PENDING", "PROCESSED", "PROCESSED", "PENDING", "PROCESSED"]);
    move_clock(&api, r#"{"advanceSeconds":7200}"#, 200).await?;
    assert_eq!(statuses(&api).await?, ["FAILED", "PROCESSED", "PROCESSED", "PROCESSED", "PENDING", "PROCESSED"]);
    move_clock(&api, r#"{"to":"2026-11-30T00:00:00Z"}"#, 400).await?;
    system.stop().await
}

#[tokio::test]
async fn without_the_sandbox_there_is_no_clock_and_references_choose_nothing() -> Result<()> {
    let system = start(|_| {}).await?;
    let problem = get(&system.api_url(), "/sandbox/clock").await?.with_status(404)?.json()?;
    assert_eq!(problem["title"], "No such route", "{problem}");
    system.stop().await
}

/// Receivers verify with their own clocks, which nobody moves. The clock of this machine stands still here, so no schedule is due.
#[tokio::test]
async fn webhooks_are_signed_by_the_machines_clock_and_tests_are_sent_at_once() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let (api, (url, mut requests)) = (system.api_url(), receiver().await?);
    let put = json!({ "url": url }).to_string();
    ask(&api, ("PUT", "/webhook-endpoints/erp"), "", &put, 201).await?;
    move_clock(&api, r#"{"advanceSeconds":86400}"#, 200).await?;
    let asked = ask(&api, ("POST", "/webhook-endpoints/erp/test"), "", "", 202).await?;
    assert_eq!(asked["testAskedAt"], "2026-11-21T10:00:00Z", "{asked}");
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
        create(&api, key, &order(&date.to_string())).await?;
    }
    move_clock(&api, &json!({ "to": format!("{last}T00:00:00Z") }).to_string(), 200).await?;
    let page = get(&api, "/events?limit=100").await?.json()?;
    let types: Vec<_> = page["events"].as_array().context("no events")?.iter().map(|event| &event["type"]).collect();
    assert!(!types.contains(&&json!("log.gap")), "{types:?}");
    assert_eq!(types.len(), 9, "{types:?}");
    system.stop().await
}
