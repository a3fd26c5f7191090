//! `cargo local` over real HTTP: start, gateway, engine's port, sandbox, demo, listener and description.

mod client;
mod demo;
mod description;
mod engine;
mod examples;
mod gateway;
mod listen;
mod sandbox;
mod start;

use payments_tests::prelude::*;
use std::fmt;

use payments_boot::Clock;
use payments_local::business_days::Dates;
use payments_local::{Options, System};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer over HTTP: its status, all that comes before its body, and its body as far as it is text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The answer, which must have this status.
    pub(crate) fn with_status(self, status: u16) -> Result<Self> {
        ensure!(self.status == status, "{status} is wanted: {self:.800}");
        Ok(self)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == name).map(|it| it.1)
    }

    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| self.to_string())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}\n{}", self.head, self.body))
    }
}

/// One HTTP/1.1 exchange, written by hand so that our code is on one side only.
pub(crate) async fn exchange(url: &str, request: &str) -> Result<Answer> {
    let mut stream = connect(url).await?;
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    let reply = String::from_utf8_lossy(&reply);
    let (head, body) = reply.split_once("\r\n\r\n").with_context(|| format!("no whole reply: {reply}"))?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

async fn connect(url: &str) -> Result<TcpStream> {
    Ok(TcpStream::connect(url.strip_prefix("http://").context("a URL")?).await?)
}

/// The text of a request with these lines of headers.
fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\nHost: 127.0.0.1\nConnection: close\n{headers}Content-Length: {length}\n\n{body}")
}

pub(crate) async fn get(url: &str, path: &str) -> Result<Answer> {
    exchange(url, &request("GET", path, "", "")).await
}

pub(crate) async fn get_with(url: &str, path: &str, headers: &str) -> Result<Answer> {
    exchange(url, &request("GET", path, headers, "")).await
}

pub(crate) async fn post(url: &str, path: &str, headers: &str, body: &str) -> Result<Answer> {
    exchange(url, &request("POST", path, headers, body)).await
}

/// Creates a payment of `acc-1`, always under one key.
async fn create(url: &str) -> Result<Answer> {
    let body = r#"{"payeeAccountId":"acc-2","amountMinor":12050,"currency":"GBP","scheduledFor":"2027-01-01"}"#;
    let headers = "Content-Type: application/json\nIdempotency-Key: rent-1\n";
    post(url, "/accounts/acc-1/payments", headers, body).await
}

fn options() -> Result<Options> {
    Ok(Options {
        api_port: 0,
        dynamodb_port: 0,
        data: None,
        new_bank: false,
        // In the target folder, which `cargo clean` empties: whatever runs last in a test may still write there.
        reports: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?.keep(),
        time_zone: "Europe/London".parse()?,
        dates: Dates::default(),
        paused: "none",
        max_day: None,
        endpoint: None,
        require_tokens: false,
        sandbox: false,
    })
}

pub(crate) fn fixed_clock() -> Clock {
    Clock::simulated(|| chrono::DateTime::from_timestamp(1_795_168_800, 0).unwrap_or_default(), |_| {})
}

/// Starts the system with other options, on a clock that stands still.
pub(crate) async fn start(change: impl FnOnce(&mut Options)) -> Result<System> {
    let mut options = options()?;
    change(&mut options);
    System::start(&options, &fixed_clock()).await
}

/// Starts the system, which must fail with an error that says this.
async fn start_fails(options: &Options, says: &str) -> Result<()> {
    let error = System::start(options, &fixed_clock()).await.err().context("it starts")?;
    ensure!(format!("{error:#}").contains(says), "{says}: {error:#}");
    Ok(())
}
