//! A server that gives the responses of a list, and keeps the requests: for responses that no healthy bank sends.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use scheduled_payments::{Bank, Builder, Timer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::world::builder;

const PROBLEMS: &str = "urn:scheduled-payments:problem:";

/// The id of the payment that the server returns.
pub(crate) const PAYMENT_ID: &str = "61ecab5a-6d56-55ab-977e-6dab3db8c000";

/// The time between the bytes of a slow body.
const BETWEEN_BYTES: Duration = Duration::from_millis(5);

/// The place at which the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// After the whole response, by either side.
    Nowhere,
    /// Before the response.
    Before,
    /// Within its body.
    Within,
    /// Not at all: there is no response.
    Never,
    /// Not at all: the body comes byte by byte, without an end.
    Slow,
}

/// A response of the server.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    status: u16,
    body: String,
    retry_after: Option<u64>,
    replayed: bool,
    cut: Cut,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// A clock that only pauses move, and a chosen random number.
#[derive(Debug, Default)]
pub(crate) struct FakeTimer {
    now: Mutex<Duration>,
    pauses: Mutex<Vec<Duration>>,
    random: u32,
}

/// The server, and a bank's client for it that keeps its pauses instead of waiting.
pub(crate) struct Fake {
    pub(crate) url: String,
    pub(crate) bank: Bank,
    pub(crate) timer: Arc<FakeTimer>,
    seen: Arc<Mutex<Vec<Seen>>>,
    server: JoinHandle<()>,
}

/// Returns a payment.
pub(crate) fn payment() -> Value {
    json!({
        "paymentId": PAYMENT_ID,
        "accountId": "acc-1",
        "payeeAccountId": "acc-2",
        "amountMinor": 12050,
        "currency": "GBP",
        "scheduledFor": "2090-06-15",
        "dueAt": "2090-06-14T23:00:00Z",
        "dueDate": "2090-06-15",
        "status": "SCHEDULED",
        "version": 1,
        "createdAt": "2090-05-20T09:00:00Z",
        "updatedAt": "2090-05-20T09:00:00Z",
        "trail": [{"status": "SCHEDULED", "at": "2090-05-20T09:00:00Z", "by": {"kind": "client", "name": "app"}}],
    })
}

/// Returns the body of a problem, with more members.
pub(crate) fn problem(status: u16, kind: &str, more: &Value) -> Value {
    let (kind_of, help) = (format!("{PROBLEMS}{kind}"), format!("/problems/{kind}"));
    let problem = json!({"type": kind_of, "title": kind, "status": status, "help": help, "detail": "It is so."});
    with(problem, more)
}

/// Returns an object with more members.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    if let (Some(members), Some(more)) = (object.as_object_mut(), more.as_object()) {
        members.extend(more.clone());
    }
    object
}

/// Returns a response.
pub(crate) fn planned(status: u16, body: &Value) -> Planned {
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Planned { status, body, retry_after: None, replayed: false, cut: Cut::Nowhere }
}

/// Returns the response with a payment that was created.
pub(crate) fn created() -> Planned {
    planned(201, &payment())
}

/// Returns the response with a payment that an earlier request amended.
pub(crate) fn amended() -> Planned {
    Planned { replayed: true, ..planned(200, &payment()) }
}

/// Returns API Gateway's response for a function that is too slow.
pub(crate) fn gateway_slow() -> Planned {
    planned(504, &json!({"message": "Endpoint request timed out"}))
}

/// Returns the response of a bank that has too much work.
pub(crate) fn throttled(seconds: u64) -> Planned {
    let body = problem(503, "throttled", &json!({"retryAfterSeconds": seconds}));
    Planned { retry_after: Some(seconds), ..planned(503, &body) }
}

/// Returns a response that is cut.
pub(crate) fn cut(cut: Cut) -> Planned {
    Planned { cut, ..created() }
}

impl Fake {
    /// Starts a server with these responses.
    pub(crate) async fn new(planned: impl IntoIterator<Item = Planned>) -> Result<Self> {
        Self::with(planned, 0, |builder| builder).await
    }

    /// Starts a server with these responses, and a client that differs. Chance returns `random`.
    pub(crate) async fn with(
        planned: impl IntoIterator<Item = Planned>,
        random: u32,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self> {
        let (planned, seen) = (Arc::new(Mutex::new(planned.into_iter().collect())), Arc::default());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = tokio::spawn(serve(listener, planned, Arc::clone(&seen)));
        let timer = Arc::new(FakeTimer { random, ..FakeTimer::default() });
        let bank = change(builder(&url).token("t").timer(timer.clone())).build()?;
        Ok(Self { url, bank, timer, seen, server })
    }

    /// Returns the requests that arrived.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Seen {
    /// Returns a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl FakeTimer {
    /// Sets the time.
    pub(crate) fn set(&self, seconds: u64) {
        *lock(&self.now) = Duration::from_secs(seconds);
    }

    /// Returns the pauses in milliseconds.
    pub(crate) fn pauses(&self) -> Vec<u128> {
        lock(&self.pauses).iter().map(Duration::as_millis).collect()
    }
}

#[async_trait]
impl Timer for FakeTimer {
    fn now(&self) -> Duration {
        *lock(&self.now)
    }

    async fn wait(&self, pause: Duration) {
        lock(&self.pauses).push(pause);
        *lock(&self.now) += pause;
    }

    fn random(&self) -> u32 {
        self.random
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, planned: Arc<Mutex<VecDeque<Planned>>>, seen: Arc<Mutex<Vec<Seen>>>) {
    // The connections end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (planned, seen) = (Arc::clone(&planned), Arc::clone(&seen));
        let service = service_fn(move |request| respond(request, Arc::clone(&planned), Arc::clone(&seen)));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Keeps a request and gives the next response of the list. An error closes the connection.
async fn respond(
    request: Request<Incoming>,
    planned: Arc<Mutex<VecDeque<Planned>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<BoxBody<Bytes, io::Error>>> {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await?.to_bytes().into())?;
    lock(&seen).push(Seen { path: head.uri.to_string(), headers: head.headers, body });
    let none_left = || self::planned(418, &json!({"message": "no response is left"}));
    let planned = lock(&planned).pop_front().unwrap_or_else(none_left);
    match planned.cut {
        Cut::Before => anyhow::bail!("cut"),
        Cut::Never => Err::<_, Infallible>(std::future::pending().await)?,
        Cut::Within | Cut::Slow | Cut::Nowhere => {}
    }
    let mut response = Response::builder().status(planned.status).header("content-type", "application/json");
    if planned.cut == Cut::Slow {
        let bytes = futures::stream::unfold((), |()| async {
            tokio::time::sleep(BETWEEN_BYTES).await;
            Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
        });
        return Ok(response.body(BoxBody::new(StreamBody::new(bytes)))?);
    }
    response = response.header("content-length", planned.body.len());
    if let Some(seconds) = planned.retry_after {
        response = response.header("retry-after", seconds);
    }
    if planned.replayed {
        response = response.header("idempotent-replayed", "true");
    }
    let content = Bytes::from(planned.body);
    let frames = match planned.cut {
        Cut::Within => vec![Ok(content.slice(..content.len() / 2)), Err(io::Error::other("cut"))],
        _ => vec![Ok(content)],
    };
    let frames = frames.into_iter().map(|frame| frame.map(Frame::data));
    Ok(response.body(BoxBody::new(StreamBody::new(futures::stream::iter(frames))))?)
}
