//! `cargo local listen`: a bank's messages are verified, shown and forwarded, and the endpoint is deleted at the end.

use payments_tests::prelude::*;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use payments_local::listen::{Listener, Settings};
use scheduled_payments::{TOLERANCE, verify};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

use super::sandbox::receiver;
use super::{create, exchange, fixed_clock, get, post, request, start};

/// Longer than a message takes.
const SOON: Duration = Duration::from_secs(20);

/// Starts a listener. Returns it, and its lines as they come.
async fn listen(bank: &str, forward_to: Option<&str>) -> Result<(Listener, UnboundedReceiver<String>)> {
    let (sends, lines) = mpsc::unbounded_channel();
    let settings = Settings { bank: bank.to_owned(), forward_to: forward_to.map(str::to_owned), ..Settings::default() };
    let mut listener = Listener::open(&settings, &fixed_clock(), move |line| drop(sends.send(line.to_owned()))).await?;
    listener.begin().await?;
    Ok((listener, lines))
}

/// Returns the next line with this text, and those before it.
async fn line_with(lines: &mut UnboundedReceiver<String>, text: &str) -> Result<String> {
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains(text)) {
        let line = timeout(SOON, lines.recv()).await.with_context(|| format!("no {text}: {seen:?}"))?;
        seen.push(line.context("it ended")?);
    }
    Ok(seen.join("\n"))
}

async fn test(api: &str, listener: &Listener) -> Result<()> {
    let path = format!("/webhook-endpoints/{}/test", listener.endpoint());
    post(api, &path, "", "").await?.with_status(202).map(drop)
}

#[tokio::test]
async fn a_message_is_verified_shown_and_forwarded_as_it_came() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let (api, (url, mut requests)) = (system.api_url(), receiver().await?);
    let (listener, mut lines) = listen(&api, Some(&url)).await?;
    let welcome = line_with(&mut lines, "Ctrl-C").await?;
    let secret = welcome.split_whitespace().find(|word| word.starts_with("whsec_")).context("no secret")?;

    test(&api, &listener).await?;
    let told = line_with(&mut lines, "-> ").await?;
    assert!(
        told.contains("2026-11-20 10:00:00  webhook.test") && told.ends_with(&format!("-> 200 OK from {url}")),
        "{told}"
    );
    let forwarded = timeout(SOON, requests.recv()).await?.context("nothing is forwarded")?;
    let (head, body) = forwarded.split_once("\r\n\r\n").context("no body")?;
    let mut headers = HeaderMap::new();
    for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        headers.append(HeaderName::try_from(name)?, HeaderValue::from_str(value)?);
    }
    let events = verify(&[secret], &headers, body.as_bytes(), fixed_clock().instant(), TOLERANCE)?;
    assert_eq!(events.iter().map(|event| &*event.r#type).collect::<Vec<_>>(), ["webhook.test"], "{forwarded}");
    assert!(headers["user-agent"].to_str()?.starts_with("scheduled-payments-webhooks/"), "{forwarded}");

    create(&api).await?.with_status(201)?;
    // Only the bank's clock moves: signatures have the machine's.
    post(&api, "/sandbox/clock", "", r#"{"advanceSeconds":3600}"#).await?.with_status(200)?;
    let told = line_with(&mut lines, "-> 200").await?;
    assert!(told.contains("payment.scheduled  acc-1 to acc-2  "), "{told}");

    // Anybody can send to its port.
    let forged = request("POST", "/", "webhook-id: msg_1\nwebhook-timestamp: 1\nwebhook-signature: v1,AAAA\n", "{}");
    exchange(&listener.url(), &forged).await?.with_status(400)?;
    line_with(&mut lines, "NOT VERIFIED").await?;
    let long = request("POST", "/", "", &"x".repeat(1 + (1 << 20)));
    exchange(&listener.url(), &long).await?.with_status(413)?;
    line_with(&mut lines, "NOT READ, so it is not forwarded").await?;
    // One for the test, one for the payment.
    assert!(requests.recv().await.is_some() && requests.try_recv().is_err(), "a forged message is forwarded");

    let path = format!("/webhook-endpoints/{}", listener.endpoint());
    get(&api, &path).await?.with_status(200)?;
    listener.stop().await?;
    get(&api, &path).await?.with_status(404)?;
    system.stop().await
}

/// Starts a program that answers each request so, with so many bytes. Returns its URL.
async fn answering(status: &'static str, bytes: usize) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.read(&mut vec![0; 64 * 1024]).await);
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
            drop(stream.write_all(&[head.into_bytes(), vec![b'x'; bytes]].concat()).await);
        }
    });
    Ok(url)
}

#[tokio::test]
async fn the_bank_gets_a_502_while_the_program_does_not_answer_and_its_status_otherwise() -> Result<()> {
    let system = start(|options| options.sandbox = true).await?;
    let api = system.api_url();
    let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
    for (forward_to, said, seen) in [
        (
            Some(format!("http://127.0.0.1:{port}/")),
            "start your program there, and send the test again",
            json!(["refused", 502]),
        ),
        // No route of the API: it answers 404.
        (Some(format!("{api}/no-such-route")), "-> 404 Not Found from", json!(["refused", 404])),
        (Some(answering("200 OK", 17 << 20).await?), "the response has more than 16 MB", json!(["refused", 502])),
        (
            Some(answering("410 Gone", 0).await?),
            "the bank disables this endpoint and sends nothing more. Let your program answer something else",
            json!(["gone", 410]),
        ),
        (None, "webhook.test", json!(["accepted", null])),
    ] {
        let (listener, mut lines) = listen(&api, forward_to.as_deref()).await?;
        test(&api, &listener).await?;
        line_with(&mut lines, said).await?;
        let path = format!("/webhook-endpoints/{}", listener.endpoint());
        let delivered = async {
            loop {
                let state = get(&api, &path).await?.json()?;
                if let Some(delivery) = state["deliveries"].get(0) {
                    return Ok::<_, anyhow::Error>(json!([delivery["outcome"], delivery["status"]]));
                }
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(timeout(SOON, delivered).await??, seen, "{forward_to:?}");
        listener.stop().await?;
    }
    system.stop().await
}

#[tokio::test]
async fn an_error_says_what_to_do_next() -> Result<()> {
    let system = start(|options| options.require_tokens = true).await?;
    let api = system.api_url();
    let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
    for (bank, forward_to, says) in [
        (format!("http://127.0.0.1:{port}"), None, "start a bank in another terminal with `cargo local --sandbox`"),
        (api.clone(), None, "give --token an access token"),
        ("bank".to_owned(), None, "give --bank one such as http://127.0.0.1:8080"),
        (api.clone(), Some("localhost:3000"), "give the URL of your program"),
    ] {
        let error = listen(&bank, forward_to).await.err().with_context(|| format!("{bank} makes an endpoint"))?;
        assert!(format!("{error:#}").contains(says), "{says}: {error:#}");
    }
    system.stop().await
}
