//! Deliveries that the sender makes, as cases for receivers in other languages; and these cases, checked in Rust.
//!
//! `.ci/try-webhooks.sh` runs it: `webhooks make FOLDER`, then `webhooks check FOLDER/cases.jsonl`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::TimeDelta;
use payments_boot::Clock;
use payments_files::JournalObject;
use payments_model::UtcSecond;
use payments_model::webhook::{EndpointSecret, EndpointUrl, SecretGeneration};
use publish::webhook::{Answer, Sender};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The block of docs/events.md; the script compares them.
mod document {
    // Rust's block of docs/events.md.
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use http::HeaderMap;
    use sha2::Sha256;

    /// Whether the bank sent this body within the five minutes before `now`, in seconds since 1970.
    pub(super) fn verify(secret: &str, headers: &HeaderMap, body: &[u8], now: i64) -> bool {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (id, sent) = (header("webhook-id"), header("webhook-timestamp"));
        let is_of_now = sent.parse().is_ok_and(|sent: i64| sent.abs_diff(now) <= 300);
        let Ok(key) = STANDARD.decode(secret.trim_start_matches("whsec_")) else { return false };
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return false };
        mac.update(format!("{id}.{sent}.").as_bytes());
        mac.update(body);
        let fits = |one: &str| {
            let signature = one.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
            signature.is_some_and(|bytes| mac.clone().verify_slice(&bytes).is_ok())
        };
        is_of_now && header("webhook-signature").split(' ').any(fits)
    }
}

const BODY: &str = r#"{"events":[{"id":"7-a-1","reference":"Zoë → 雪 \"quoted\""},{"id":"7-b-1"}]}"#;

/// A request, and whether a receiver with this secret must accept it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Case {
    name: String,
    accepted: bool,
    secret: String,
    headers: HashMap<String, String>,
    body: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", folder] => make(Path::new(folder)).await,
        ["check", file] => check(Path::new(file)),
        _ => bail!("usage: webhooks make FOLDER | webhooks check FILE"),
    }
}

/// Writes the cases, and a journal.
async fn make(folder: &Path) -> Result<()> {
    let lines: Vec<String> = cases().await?.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    std::fs::write(folder.join("cases.jsonl"), lines.join("\n") + "\n")?;
    write_journal(folder)
}

/// A generation of an endpoint's secret.
fn secret(endpoint: &str, generation: u32) -> Result<EndpointSecret> {
    let master = "a master secret for these cases, of no worth".parse()?;
    let generation = SecretGeneration::from_stored(generation).context("a generation")?;
    Ok(EndpointSecret::derive(&master, &endpoint.parse()?, generation))
}

/// Sends messages to a receiver in this process, and makes cases of the received requests.
async fn cases() -> Result<Vec<Case>> {
    let now = Clock::system().now();
    let (old, new) = (secret("erp", 1)?, secret("erp", 2)?);
    let first = deliver(std::slice::from_ref(&old), now).await?;
    let both = deliver(&[new.clone(), old.clone()], now).await?;
    let rotated = deliver(std::slice::from_ref(&new), now).await?;
    let [late, early] = [-600, 600].map(|seconds| now.saturating_add(TimeDelta::seconds(seconds)));
    let (late, early) =
        (deliver(std::slice::from_ref(&old), late).await?, deliver(std::slice::from_ref(&old), early).await?);
    let case = |name: &str, accepted, secret: &EndpointSecret, (headers, body): &(HashMap<_, _>, String)| {
        let name = name.to_owned();
        let headers = headers.clone();
        let body = body.clone();
        Case { name, accepted, secret: secret.reveal(), headers, body }
    };
    let with = |name: &str, value: &str| {
        let (mut headers, body) = first.clone();
        headers.insert(name.to_owned(), value.to_owned());
        (headers, body)
    };
    let without = |name: &str| {
        let (mut headers, body) = first.clone();
        headers.remove(name);
        (headers, body)
    };
    let [signature, at] = ["webhook-signature", "webhook-timestamp"].map(|name| first.0[name].clone());
    let another_time = (at.parse::<i64>()? + 1).to_string();
    let another_version = signature.replace("v1,", "v2,");
    Ok(vec![
        case("a first message", true, &old, &first),
        case("both secrets sign, and the new one is known", true, &new, &both),
        case("both secrets sign, and the old one is known", true, &old, &both),
        case("the new secret signs alone", true, &new, &rotated),
        case("a retired secret", false, &old, &rotated),
        case("a secret that is not in force yet", false, &new, &first),
        case("another endpoint's secret", false, &secret("erp2", 1)?, &first),
        case("a tampered body", false, &old, &(first.0.clone(), BODY.replace("7-b-1", "7-b-2"))),
        case("a body with a space more", false, &old, &(first.0.clone(), format!("{BODY} "))),
        case("a body that was parsed and written again", false, &old, &(first.0.clone(), BODY.replace('ë', "\\u00eb"))),
        case("an empty body", false, &old, &(first.0.clone(), String::new())),
        case("another id", false, &old, &with("webhook-id", "msg_2")),
        case("another timestamp", false, &old, &with("webhook-timestamp", &another_time)),
        case("a timestamp of ten minutes ago", false, &old, &late),
        case("a timestamp in ten minutes", false, &old, &early),
        case("a timestamp that is not a number", false, &old, &with("webhook-timestamp", "now")),
        case("a signature of another version", false, &old, &with("webhook-signature", &another_version)),
        case("a cut signature", false, &old, &with("webhook-signature", &signature[..20])),
        case("a signature without its version", false, &old, &with("webhook-signature", &signature[3..])),
        case("an empty signature", false, &old, &with("webhook-signature", "")),
        case("no signature", false, &old, &without("webhook-signature")),
        case("no timestamp", false, &old, &without("webhook-timestamp")),
        case("no id", false, &old, &without("webhook-id")),
    ])
}

/// Sends one message, and returns the headers and the body that were received.
async fn deliver(secrets: &[EndpointSecret], at: UtcSecond) -> Result<(HashMap<String, String>, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = EndpointUrl::loopback(&format!("http://{}/hooks/bank", listener.local_addr()?))?;
    let (sender, message) = (Sender::loopback(), "msg_1".parse()?);
    let sent = async { Ok(sender.send(&url, secrets, &message, at, BODY.into()).await?) };
    let (answer, received) = tokio::try_join!(sent, receive(&listener))?;
    ensure!(answer == Answer::Accepted, "{answer:?}");
    Ok(received)
}

/// Receives one request.
async fn receive(listener: &TcpListener) -> Result<(HashMap<String, String>, String)> {
    let (mut stream, _) = listener.accept().await?;
    let mut bytes = Vec::new();
    while !bytes.ends_with(BODY.as_bytes()) {
        ensure!(stream.read_buf(&mut bytes).await? > 0, "the request is not whole");
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await?;
    let request = String::from_utf8(bytes)?;
    let (head, body) = request.split_once("\r\n\r\n").context("a head and a body")?;
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    Ok((headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), body.to_owned()))
}

/// Writes a journal of two epochs.
fn write_journal(folder: &Path) -> Result<()> {
    let event = |epoch: u32, payment: &str, version: u32| {
        format!(r#"{{"id":"{epoch}-{payment}-{version}","epoch":{epoch},"paymentId":"{payment}","version":{version}}}"#)
    };
    let other = r#"{"id":"9-irregular-x","epoch":9,"type":"payment.irregular"}"#.to_owned();
    for (first, after, events) in [
        ("9.1.0", "9.3.0", vec![event(9, "a", 1), event(9, "b", 1), event(9, "a", 2)]),
        ("9.3.0", "9.4.0", vec![event(9, "b", 2), other, event(9, "b", 1)]),
        ("9.4.0", "9.5.0", vec![event(9, "c", 1)]),
        ("10.1.0", "10.2.0", vec![event(10, "a", 1)]),
    ] {
        let object = JournalObject { first: first.parse()?, after: after.parse()?, events };
        let path = folder.join(JournalObject::path(object.first).as_ref());
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        std::fs::write(path, object.encode()?)?;
    }
    Ok(())
}

/// Verifies each case with the document's function, and with the library of Standard Webhooks.
fn check(file: &Path) -> Result<()> {
    let now = Clock::system().now().as_chrono().timestamp();
    for line in std::fs::read_to_string(file)?.lines() {
        let case: Case = serde_json::from_str(line)?;
        let headers: http::HeaderMap = (&case.headers).try_into()?;
        let library = standardwebhooks::Webhook::new(&case.secret)?;
        let by_library = library.verify(case.body.as_bytes(), &headers).is_ok();
        let by_document = document::verify(&case.secret, &headers, case.body.as_bytes(), now);
        for (who, accepted) in [("document", by_document), ("library", by_library)] {
            ensure!(accepted == case.accepted, "{who}: {}: accepted is {accepted}", case.name);
            println!("ok {who}: {}", case.name);
        }
    }
    Ok(())
}
