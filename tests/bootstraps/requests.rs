//! A stand-in for SQS: it puts a bootstrap's messages into the world's queue of requests.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Utc};
use payments_queue::Queue;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The stand-in; it ends with its runtime.
#[derive(Debug)]
pub(crate) struct Requests {
    address: SocketAddr,
    /// The URL of its queue.
    pub(crate) queue_url: String,
}

#[derive(Debug)]
struct Backend {
    queue: Queue,
    queue_url: String,
    now: DateTime<Utc>,
}

impl Requests {
    /// Passes messages on to `queue`, at `now`.
    pub(crate) async fn start(queue: Queue, now: DateTime<Utc>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let queue_url = format!("http://{address}/000000000000/{}", queue.settings().name);
        let backend = Arc::new(Backend { queue, queue_url: queue_url.clone(), now });
        let router = Router::new().fallback(answer).with_state(backend);
        tokio::spawn(async { axum::serve(listener, router).await });
        Ok(Self { address, queue_url })
    }

    /// The endpoint for `AWS_ENDPOINT_URL_SQS`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn answer(State(backend): State<Arc<Backend>>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    match backend.take(&headers, &body) {
        Ok(reply) => (StatusCode::OK, reply.to_string()),
        Err(error) => {
            (StatusCode::BAD_REQUEST, json!({ "__type": "Stand-in", "message": format!("{error:#}") }).to_string())
        }
    }
}

impl Backend {
    /// The only call that the functions make: `SendMessageBatch`, in SQS's JSON protocol.
    fn take(&self, headers: &HeaderMap, body: &[u8]) -> Result<Value> {
        let target = headers.get("x-amz-target").context("no target")?;
        ensure!(target == "AmazonSQS.SendMessageBatch", "not stood in for: {target:?}");
        let call: Value = serde_json::from_slice(body)?;
        ensure!(call["QueueUrl"] == self.queue_url.as_str(), "another queue: {call}");
        let entries = call["Entries"].as_array().context("no entries")?;
        let taken = entries.iter().map(|entry| {
            let message = entry["MessageBody"].as_str().context("no body")?;
            let message_id = self.queue.send(message, self.now)?.to_string();
            Ok(json!({ "Id": entry["Id"], "MessageId": message_id, "MD5OfMessageBody": "" }))
        });
        Ok(json!({ "Successful": taken.collect::<Result<Vec<_>>>()?, "Failed": [] }))
    }
}
