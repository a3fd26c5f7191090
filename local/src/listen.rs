//! `cargo local listen`: an endpoint at a running bank, whose messages are shown, verified and forwarded.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use axum::Router;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{HeaderMap, Request, StatusCode, Uri};
use payments_boot::Clock;
use payments_machine::server::{Limits, Server, listen};
use scheduled_payments::{Bank, EndpointOrder, Error, Event, Http, Retries, TOLERANCE, Transport as _, verify};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// The longest wait for the program's answer: a second less than the bank waits.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(14);

/// The longest that the bank may take to send a request's head, and its connections may last after the end.
const LIMITS: Limits = Limits { head: Some(Duration::from_secs(60)), end: Some(Duration::from_secs(1)) };

/// The longest wait for the bank to delete the endpoint, so that the end is at hand even if the bank does not answer.
const GOODBYE: Duration = Duration::from_secs(3);

/// The most bytes of a message. The bank's have 250 KB, or a single event, which is shorter than an item of 400 KB.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// The type of a test's event, which the bank sends once.
const TEST: &str = "webhook.test";

/// The effect of the answer 410, and the remedy.
const GONE: &str = ", so the bank disables this endpoint and sends nothing more. Let your program answer something else, press \
                    Ctrl-C, and start again";

/// The settings of a listener.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The URL of the bank.
    pub bank: String,
    /// The URL of the program that gets each message; `None` only shows them.
    pub forward_to: Option<String>,
    /// The access token, if the bank requires one.
    pub token: Option<String>,
    /// Of the events of status changes, only those of these types; empty for all.
    pub types: BTreeSet<String>,
    /// Of the events that name an account, only those of these; empty for all.
    pub accounts: BTreeSet<String>,
}

/// A listener with its endpoint at the bank.
pub struct Listener {
    settings: Settings,
    forward_to: Option<Uri>,
    clock: Clock,
    print: Arc<Print>,
    bank: Bank,
    address: SocketAddr,
    /// The port, until it is served.
    socket: Option<TcpListener>,
    server: Option<Server>,
}

/// The lines for the person who watches.
type Print = dyn Fn(&str) + Send + Sync;

/// The state that requests share.
struct Shared {
    secrets: Vec<String>,
    forward_to: Option<Uri>,
    clock: Clock,
    http: Http,
    print: Arc<Print>,
}

impl Listener {
    /// Takes a free port. `print` gets each line for the person who watches.
    pub async fn open(
        settings: &Settings,
        clock: &Clock,
        print: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        let forward_to = settings.forward_to.as_deref().map(target).transpose()?;
        let builder = Bank::builder(&settings.bank).retries(Retries { attempts: 1, ..Retries::default() });
        let builder = settings.token.iter().fold(builder, |builder, token| builder.token(token.as_str()));
        let bank = builder.build().context("give --bank one such as http://127.0.0.1:8080")?;
        let socket = listen(0, "another start").await?;
        Ok(Self {
            settings: settings.clone(),
            forward_to,
            clock: clock.clone(),
            print: Arc::new(print),
            bank,
            address: socket.local_addr()?,
            socket: Some(socket),
            server: None,
        })
    }

    /// Creates an endpoint at the bank and begins to listen. If it fails or is abandoned, [`stop`](Self::stop) deletes the
    /// endpoint, which the bank may have made.
    pub async fn begin(&mut self) -> Result<()> {
        let (settings, endpoint) = (&self.settings, self.endpoint());
        let order = EndpointOrder {
            url: format!("{}/", self.url()),
            description: "cargo local listen".to_owned(),
            types: settings.types.clone(),
            accounts: settings.accounts.clone(),
            ..EndpointOrder::default()
        };
        let explain = |error| explained(&error, &settings.bank);
        self.bank.put_webhook_endpoint(&endpoint, &order).await.map_err(explain)?;
        let secrets = self.bank.webhook_secrets(&endpoint).await.map_err(explain)?;
        let secrets: Vec<String> = secrets.into_iter().map(|secret| secret.secret).collect();
        (self.print)(&welcome(settings, &endpoint, secrets.first().context("the endpoint has no secret")?));
        let shared = Shared {
            secrets,
            forward_to: self.forward_to.clone(),
            clock: self.clock.clone(),
            http: Http::new(),
            print: Arc::clone(&self.print),
        };
        let router = Router::new().route("/", post(receive)).layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES));
        let socket = self.socket.take().context("it has begun before")?;
        self.server = Some(Server::start(socket, router.with_state(Arc::new(shared)), LIMITS)?);
        Ok(())
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the id of the endpoint. The port is this process's alone, so another listener has another endpoint.
    pub fn endpoint(&self) -> String {
        format!("listen-{}", self.address.port())
    }

    /// Deletes the endpoint and stops after the messages that are under way. Waits for the bank for some seconds.
    pub async fn stop(self) -> Result<()> {
        let endpoint = self.endpoint();
        let left = |why: &str| {
            let bank = self.settings.bank.trim_end_matches('/');
            let remedy = format!("delete it: curl -X DELETE {bank}/webhook-endpoints/{endpoint}");
            Err(anyhow!("the endpoint {endpoint} may still be at the bank ({why}); {remedy}"))
        };
        let deleted = match timeout(GOODBYE, self.bank.delete_webhook_endpoint(&endpoint)).await {
            Ok(Err(error)) if error.status() != Some(404) => left(&error.to_string()),
            Ok(_) => Ok(()),
            Err(_) => left(&format!("no answer within {} seconds", GOODBYE.as_secs())),
        };
        if let Some(server) = self.server {
            server.stop().await?;
        }
        deleted
    }
}

/// Parses the URL of a program of this machine or its network.
fn target(url: &str) -> Result<Uri> {
    let uri: Option<Uri> = url.parse().ok();
    let uri = uri.filter(|uri| {
        uri.scheme() == Some(&Scheme::HTTP) && uri.authority().is_some_and(|to| !to.as_str().contains('@'))
    });
    uri.with_context(|| {
        // A password is not printed.
        let shown = if url.contains('@') { "a URL with a name or a password" } else { url };
        format!("--forward-to is {shown}; give the URL of your program, such as http://127.0.0.1:3000/hooks")
    })
}

fn welcome(settings: &Settings, endpoint: &str, secret: &str) -> String {
    let bank = settings.bank.trim_end_matches('/');
    let to = settings.forward_to.as_deref().unwrap_or("nobody: give --forward-to URL to forward them");
    format!(
        "Listening to {bank}. Each message is verified, and forwarded to {to}\n\n  \
         Endpoint   {endpoint}\n  Secret     {secret}   your program verifies with it\n  \
         Send one   curl -X POST {bank}/webhook-endpoints/{endpoint}/test\n\nCtrl-C deletes the endpoint and ends.\n"
    )
}

/// Returns the error of a bank that does not make the endpoint, and the remedy.
fn explained(error: &Error, bank: &str) -> anyhow::Error {
    let remedy = match (error, error.status()) {
        (Error::NoAnswer { .. }, _) => {
            "start a bank in another terminal with `cargo local --sandbox`, or give --bank the URL of yours"
        }
        (_, Some(401)) => "give --token an access token; `cargo local --require-tokens` prints how to get one",
        (_, Some(403)) => "give --token a machine's token with the scope payments/webhooks",
        (_, Some(404)) => "give --bank the bank's own URL, without a path of its API",
        _ => "mend that, and start again",
    };
    anyhow!("the bank at {bank} makes no endpoint: {error}; {remedy}")
}

/// Verifies, shows and forwards a message. The bank gets the program's answer.
async fn receive(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(error) => {
            (shared.print)(&format!("NOT READ, so it is not forwarded: {error}; a message has at most 1 MB"));
            return error.into_response();
        }
    };
    let events = match verify(&shared.secrets, &headers, &body, shared.clock.instant(), TOLERANCE) {
        Ok(events) => events,
        Err(error) => {
            (shared.print)(&format!("NOT VERIFIED, so it is not forwarded: {error}"));
            return StatusCode::BAD_REQUEST.into_response();
        }
    };
    events.iter().for_each(|event| (shared.print)(&line(event)));
    let Some(to) = &shared.forward_to else { return StatusCode::NO_CONTENT.into_response() };
    match forward(&shared.http, to, headers, body).await {
        Ok((status, retry_after)) => {
            let gone = if status == StatusCode::GONE { GONE } else { "" };
            (shared.print)(&format!("  -> {status} from {to}{gone}"));
            let mut response = status.into_response();
            response.headers_mut().extend(retry_after.map(|wait| (RETRY_AFTER, wait)));
            response
        }
        Err(error) => {
            let next = match events.iter().all(|event| event.r#type == TEST) {
                true => "start your program there, and send the test again",
                false => "start your program there; the bank tries again in about a minute",
            };
            (shared.print)(&format!("  -> 502, because {to} does not answer: {error:#}; {next}"));
            StatusCode::BAD_GATEWAY.into_response()
        }
    }
}

/// Returns an event as one line.
fn line(event: &Event) -> String {
    let mut line = format!("{}  {}", event.at.format("%Y-%m-%d %H:%M:%S"), event.r#type);
    if let (Some(from), Some(to)) = (&event.account_id, &event.payee_account_id) {
        line += &format!("  {from} to {to}");
    }
    event.payment_id.iter().for_each(|payment| line += &format!("  {payment}"));
    line
}

/// Sends a message on as it came. Returns the status of the answer, and the wait that it asks for.
async fn forward(
    http: &Http,
    to: &Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Option<http::HeaderValue>)> {
    // These headers belong to the connection, not to the message.
    for name in [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let mut request = Request::post(to).body(body)?;
    *request.headers_mut() = headers;
    match timeout(FORWARD_TIMEOUT, http.exchange(request)).await {
        Ok(Ok(response)) => Ok((response.status(), response.headers().get(RETRY_AFTER).cloned())),
        Ok(Err(error)) => Err(anyhow::Error::from_boxed(error)),
        Err(_) => bail!("nothing within {} seconds", FORWARD_TIMEOUT.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_url_of_a_program_is_forwarded_to() {
        for url in ["http://127.0.0.1:3000", "http://localhost:3000/hooks?x=1"] {
            assert_eq!(target(url).unwrap().to_string().trim_end_matches('/'), url);
        }
        for url in ["", "3000", "localhost:3000", "/hooks", "https://localhost:3000/", "ftp://localhost"] {
            let error = target(url).unwrap_err().to_string();
            assert!(error.contains("such as http://127.0.0.1:3000/hooks"), "{error}");
        }
    }
}
