//! The gateway of `cargo local`: the README's example, allowed hosts, and answers that come before a function.

use payments_tests::prelude::*;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{connect, create, exchange, get, post, request, start};

#[tokio::test]
async fn a_payment_is_created_listed_and_cancelled_over_http() -> Result<()> {
    let system = start(|_| {}).await?;
    let api = system.api_url();
    let first = create(&api).await?.with_status(201)?;
    let path = first.header("location").context("no location")?;
    assert!(path.starts_with("/accounts/acc-1/payments/"), "{first}");
    assert_eq!(create(&api).await?.header("idempotent-replayed"), Some("true"));
    let list = get(&api, "/accounts/acc-1/payments").await?;
    assert_eq!(list.body.matches("\"paymentId\"").count(), 1, "{list}");
    for _ in 0..2 {
        let cancelled = post(&api, &format!("{path}/cancel"), "", "").await?.with_status(200)?;
        assert!(cancelled.body.contains("\"CANCELLED\""), "{cancelled}");
    }
    let encoded = get(&api, "/accounts/acc%2D1/payments").await?;
    assert!(encoded.body.contains("\"CANCELLED\""), "path parameters are decoded: {encoded}");
    system.stop().await
}

#[tokio::test]
async fn without_tokens_no_other_site_acts_on_the_bank_and_no_other_host_reads_it() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let api = system.api_url();
    let created = create(&api).await?.with_status(201)?;
    let cancel = format!("{}/cancel", created.header("location").context("no location")?);
    let site = "Origin: http://evil.example\nSec-Fetch-Site: cross-site\nContent-Type: text/plain\n";
    for (path, body) in
        [(cancel.as_str(), ""), ("/webhook-endpoints/x/test", ""), ("/sandbox/clock", r#"{"advanceSeconds":1}"#)]
    {
        let reply = post(&api, path, site, body).await?.with_status(403)?;
        assert!(reply.body.contains("another site"), "{path}: {reply}");
    }
    for (hosts, status) in [
        ("Host: evil.example\n", 421),
        ("Host: 127.0.0.1\n", 200),
        ("Host: localhost:8080\n", 200),
        ("Host: \n", 400),
        ("", 400),
        ("Host: 127.0.0.1\nHost: 127.0.0.1\n", 400),
    ] {
        let list =
            format!("GET /accounts/acc-1/payments HTTP/1.1\n{hosts}Sec-Fetch-Site: same-origin\nConnection: close\n\n");
        let reply = exchange(&api, &list).await?;
        assert_eq!((reply.status, reply.body.contains("SCHEDULED")), (status, status == 200), "{hosts}: {reply}");
    }
    system.stop().await
}

#[tokio::test]
async fn a_client_that_closes_its_side_after_its_request_gets_the_answer() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let mut client = connect(&system.api_url()).await?;
    // The request takes so long that the gateway sees the end of the client's side before the answer.
    let request = request("POST", "/sandbox/clock", "", r#"{"advanceSeconds":432000}"#).replace('\n', "\r\n");
    client.write_all(request.as_bytes()).await?;
    client.shutdown().await?;
    let mut reply = String::new();
    client.read_to_string(&mut reply).await?;
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    system.stop().await
}

/// As `invoke` of docs/commands.sh does.
#[tokio::test]
async fn functions_are_invoked_by_hand() -> Result<()> {
    let system = start(|_| {}).await?;
    for (function, headers, input, status, says) in [
        ("daily-due-sweeper", "", r#"{"action":"redrive"}"#, 200, "redriven"),
        ("RecountFunction", "", r#"{"action":"recount","from":"2026-11-20","to":"2026-11-21"}"#, 200, "repaired"),
        ("recount", "", r#"{"action":"guess"}"#, 200, "x-amz-function-error: Unhandled"),
        ("recount", "", "{", 400, "not JSON"),
        ("settle", "", "{}", 404, "there are daily-due-sweeper, report, recount,"),
        // A page of a browser invokes nothing.
        ("archive", "Origin: http://page.invalid\n", r#"{"action":"archive"}"#, 403, ""),
    ] {
        let path = format!("/2015-03-31/functions/{function}/invocations");
        let reply = post(&system.api_url(), &path, headers, input).await?;
        assert!(reply.status == status && reply.to_string().contains(says), "{function}: {reply}");
    }
    system.stop().await
}

#[tokio::test]
async fn a_path_is_decoded_before_its_route_is_looked_for() -> Result<()> {
    let system = start(|_| {}).await?;
    for (method, path, status, says) in [
        ("GET", "/%63ounts", 200, "byStatus"),
        ("GET", "/accounts%2Facc-1%2fpayments", 200, "nextCursor"),
        ("GET", "/accounts/acc%2D1/payments", 200, "nextCursor"),
        ("GET", "/accounts/acc%2F1/payments", 404, "no-such-route"),
        ("POST", "/accounts/acc%2F1/payments", 404, "no-such-route"),
        ("POST", "/%63ounts", 405, "GET"),
        // Decoded once.
        ("GET", "/accounts/acc%252F1/payments", 400, "accountId"),
        // An encoded question mark ends the path, and begins no query.
        ("GET", "/counts%3Ffrom=2026-01-01", 200, "byStatus"),
        ("GET", "/accounts/acc%3F1/payments", 404, "no-such-route"),
    ] {
        let reply = exchange(&system.api_url(), &request(method, path, "", "")).await?;
        assert!(reply.status == status && reply.to_string().contains(says), "{method} {path}: {reply:.400}");
    }
    system.stop().await
}

#[tokio::test]
async fn a_broken_body_is_a_bad_request_and_one_over_the_limit_is_rejected() -> Result<()> {
    let system = start(|_| {}).await?;
    let head = "POST /payment-batches HTTP/1.1\nHost: 127.0.0.1\nConnection: close\nTransfer-Encoding: chunked\n";
    let broken = format!("{head}Content-Type: application/json\n\nnot-a-length\n");
    let reply = exchange(&system.api_url(), &broken).await?.with_status(400)?;
    assert_eq!(reply.body, r#"{"message":"Bad Request"}"#);
    let huge = "x".repeat(11 * 1024 * 1024);
    let reply = post(&system.api_url(), "/payment-batches", "Content-Type: application/json\n", &huge).await;
    // The connection's reset may cut off the answer, but the server keeps running.
    assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status == 413));
    create(&system.api_url()).await?.with_status(201)?;
    system.stop().await
}

#[tokio::test]
async fn half_sent_requests_time_out_and_do_not_delay_the_end() -> Result<()> {
    let system = start(|_| {}).await?;
    let (api, engine) = (system.api_url(), system.dynamodb_url().to_owned());
    let half = "POST /payment-batches HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    let mut clients = Vec::new();
    for (url, sent) in
        [(&api, half.to_owned()), (&engine, half.to_owned()), (&api, format!("{half}Content-Length: 9\r\n\r\n{{"))]
    {
        let mut client = connect(url).await?;
        client.write_all(sent.as_bytes()).await?;
        clients.push(client);
    }
    let [mut head, _engine, mut body] = <[TcpStream; 3]>::try_from(clients).ok().context("three")?;
    // More than the ten seconds that a client has to send a request.
    let patient = Duration::from_secs(30);
    let (mut nothing, mut reply) = (Vec::new(), String::new());
    timeout(patient, head.read_to_end(&mut nothing)).await.context("the connection stays open")??;
    timeout(patient, body.read_to_string(&mut reply)).await.context("the connection stays open")??;
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    timeout(patient, system.stop()).await.context("the engine's client delays the end")?
}
