//! The sender of webhooks: signed requests with limits, over one pool of connections for each URL.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use payments_model::UtcSecond;
use payments_model::webhook::{EndpointSecret, EndpointUrl, MessageId};
use tokio::time::timeout;

use super::answer::{Answer, SendError};
use super::connector::{Connector, Reach};
use super::network::{Encryption, Machine, Network};

/// The time limit of a request, from the name's resolution to the response's headers. Receivers are
/// told to answer at once, and work later; 15 seconds also suffice for one that has to start first.
/// The response's body adds at most [`REPLY_TIMEOUT`].
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The time limit of the response's body. The body is read only so that the connection can be used again.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The bytes of a response's body after which no more is read, and the connection is closed.
pub const MAX_REPLY_BYTES: usize = 4 * 1024;

/// The most bytes of a response's head. Frameworks send 1 KB.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Time for which a connection is kept for the next request. Servers commonly keep one for 60
/// seconds or more, some for 5.
const KEEP_IDLE: Duration = Duration::from_secs(4);

/// The name of the sender in its requests.
const AGENT: &str = concat!("scheduled-payments-webhooks/", env!("CARGO_PKG_VERSION"));

type Client = legacy::Client<Connector, Full<Bytes>>;

/// Sends webhooks. The sender follows no redirect, and uses no proxy, whatever the environment says.
///
/// Each URL has its own connections, which are kept for some seconds.
pub struct Sender {
    network: Arc<dyn Network>,
    reach: Reach,
    clients: Mutex<HashMap<EndpointUrl, Client>>,
}

impl Sender {
    /// Creates a sender that sends over the internet: encrypted, to public hosts alone. The machine's certificates are trusted.
    ///
    /// # Errors
    /// The machine's certificates cannot be read.
    #[cfg(feature = "aws")]
    pub fn internet() -> std::io::Result<Self> {
        Ok(Self::internet_over(Arc::new(Machine), Arc::new(super::tls::Tls::with_system_roots()?)))
    }

    /// Creates a sender that sends to this machine alone, for `cargo local` and tests.
    #[must_use]
    pub fn loopback() -> Self {
        Self::loopback_over(Arc::new(Machine))
    }

    /// Like [`Sender::internet`], with another network and encryption, for tests. Addresses are still checked.
    pub fn internet_over(network: Arc<dyn Network>, encryption: Arc<dyn Encryption>) -> Self {
        Self { network, reach: Reach::Internet(encryption), clients: Mutex::default() }
    }

    /// Like [`Sender::loopback`], over another network, for tests.
    pub fn loopback_over(network: Arc<dyn Network>) -> Self {
        Self { network, reach: Reach::Loopback, clients: Mutex::default() }
    }

    /// Returns the same sender without any connection. Each run should have its own: connections
    /// that were open while Lambda froze the sandbox may be dead.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { network: Arc::clone(&self.network), reach: self.reach.clone(), clients: Mutex::default() }
    }

    /// Sends a message, signed with each of the secrets. During a rotation there are two.
    ///
    /// The same body is sent again under the same id, and another `at`.
    ///
    /// # Errors
    /// [`SendError`] if there is no answer.
    pub async fn send(
        &self,
        url: &EndpointUrl,
        secrets: &[EndpointSecret],
        message: &MessageId,
        at: UtcSecond,
        body: Bytes,
    ) -> Result<Answer, SendError> {
        let request = request(url, secrets, message, at, body)?;
        let sent = timeout(REQUEST_TIMEOUT, self.client(url).request(request)).await;
        let (parts, mut reply) = sent.map_err(|_| SendError::TimedOut)?.map_err(SendError::from_client)?.into_parts();
        let read = async {
            let mut left = MAX_REPLY_BYTES;
            while let Some(Ok(frame)) = reply.frame().await {
                match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        };
        // The status is known, so a fault of the body changes nothing.
        let _ = timeout(REPLY_TIMEOUT, read).await;
        Ok(Answer::from_response(parts.status, &parts.headers, at))
    }

    fn client(&self, url: &EndpointUrl) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.entry(url.clone()).or_insert_with(|| self.new_client()).clone()
    }

    fn new_client(&self) -> Client {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(KEEP_IDLE).http1_max_buf_size(MAX_HEAD_BYTES);
        builder.build(Connector::new(Arc::clone(&self.network), self.reach.clone()))
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("reach", &self.reach).field("network", &self.network).finish_non_exhaustive()
    }
}

/// The request of a message, by Standard Webhooks.
fn request(
    url: &EndpointUrl,
    secrets: &[EndpointSecret],
    message: &MessageId,
    at: UtcSecond,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, SendError> {
    if secrets.is_empty() {
        return Err(SendError::Unsigned);
    }
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(message, at, &body)).collect();
    Request::post(url.as_str())
        .header("webhook-id", message.as_str())
        .header("webhook-timestamp", at.as_chrono().timestamp())
        .header("webhook-signature", signatures.join(" "))
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .body(Full::new(body))
        .map_err(|_| SendError::NotPermitted)
}

#[cfg(test)]
#[cfg(feature = "aws-tests")]
mod tests;
#[cfg(test)]
mod vectors;
