//! The sandbox over real HTTP: outcomes that references choose, and a clock that is moved.

use anyhow::{Context as _, Result};
use payments_local::transaction_service::Chosen;
use payments_local::{Options, System};
use serde_json::{Value, json};

use crate::local::{exchange, fixed_clock, options};

/// Sends a request and returns the status and the JSON of the answer.
async fn ask(api: &str, method: &str, path: &str, headers: &str, body: &str) -> Result<(u16, Value)> {
    let head = format!("{method} {path} HTTP/1.1\nHost: bank\nConnection: close\nContent-Type: application/json\n");
    let reply = exchange(api, &format!("{head}{headers}Content-Length: {}\n\n{body}", body.len())).await?;
    let (head, body) = reply.split_once("\r\n\r\n").context("a body")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, serde_json::from_str(body)?))
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
