//! A stand-in for SQS and Lambda: it works on the world's queues, and accepts invocations.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use chrono::{DateTime, Utc};
use payments_machine::Queues;
use payments_queue::Queue;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The stand-in; it ends with its runtime.
#[derive(Debug)]
pub(crate) struct Services {
    address: SocketAddr,
}

#[derive(Debug)]
struct Backend {
    queues: Queues,
    now: DateTime<Utc>,
}

impl Services {
    /// Works on `queues`, at `now`.
    pub(crate) async fn start(queues: Queues, now: DateTime<Utc>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(Arc::new(Backend { queues, now }));
        tokio::spawn(async { axum::serve(listener, router).await });
        Ok(Self { address })
    }

    /// The variables that lead the SDK here.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        let url = format!("http://{}", self.address);
        ["SQS", "LAMBDA"].map(|service| (format!("AWS_ENDPOINT_URL_{service}"), url.clone()))
    }
}

async fn answer(
    State(backend): State<Arc<Backend>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    match backend.take(&uri, &headers, &body) {
        Ok((status, reply)) => (status, reply.to_string()),
        Err(error) => {
            (StatusCode::BAD_REQUEST, json!({ "__type": "Stand-in", "message": format!("{error:#}") }).to_string())
        }
    }
}

impl Backend {
    fn take(&self, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<(StatusCode, Value)> {
        let Some(target) = headers.get("x-amz-target") else {
            ensure!(uri.path().starts_with("/2015-03-31/functions/"), "not stood in for: {uri}");
            let kind = headers.get("x-amz-invocation-type").context("no type")?;
            ensure!(kind == "Event", "nobody waits for a function here: {kind:?}");
            return Ok((StatusCode::ACCEPTED, Value::Null));
        };
        let call: Value = serde_json::from_slice(body)?;
        let reply = match target.to_str()?.strip_prefix("AmazonSQS.").context("another service")? {
            "SendMessageBatch" => self.send(&call)?,
            "GetQueueAttributes" => self.attributes(&call)?,
            "ReceiveMessage" => self.sample(&call)?,
            "ListMessageMoveTasks" => json!({ "Results": [] }),
            "StartMessageMoveTask" => self.move_back(&call)?,
            other => bail!("not stood in for: {other}"),
        };
        Ok((StatusCode::OK, reply))
    }

    /// The queue of a URL or an ARN.
    fn queue(&self, name: &Value) -> Result<&Queue> {
        let name = name.as_str().and_then(|name| name.rsplit(['/', ':']).next()).context("no queue")?;
        let known = self.queues.by_resource().into_iter().map(|(_, queue)| queue);
        known.into_iter().find(|queue| queue.settings().name == name).with_context(|| format!("another queue: {name}"))
    }

    fn send(&self, call: &Value) -> Result<Value> {
        let (queue, entries) = (self.queue(&call["QueueUrl"])?, call["Entries"].as_array().context("no entries")?);
        let taken = entries.iter().map(|entry| {
            let message = entry["MessageBody"].as_str().context("no body")?;
            let message_id = queue.send(message, self.now)?.to_string();
            Ok(json!({ "Id": entry["Id"], "MessageId": message_id, "MD5OfMessageBody": "" }))
        });
        Ok(json!({ "Successful": taken.collect::<Result<Vec<_>>>()?, "Failed": [] }))
    }

    fn attributes(&self, call: &Value) -> Result<Value> {
        let queue = self.queue(&call["QueueUrl"])?;
        let counts = queue.counts(self.now);
        Ok(json!({ "Attributes": {
            "ApproximateNumberOfMessages": counts.visible.to_string(),
            "ApproximateNumberOfMessagesNotVisible": counts.in_flight.to_string(),
            "QueueArn": format!("arn:aws:sqs:eu-west-2:000000000000:{}", queue.settings().name),
        } }))
    }

    fn sample(&self, call: &Value) -> Result<Value> {
        ensure!(call["VisibilityTimeout"] == 0, "who looks hides nothing: {call}");
        let sampled = self.queue(&call["QueueUrl"])?.sample(self.now).into_iter().map(|message| {
            json!({
                "MessageId": message.message_id.to_string(), "ReceiptHandle": "any", "Body": message.body,
                "Attributes": {
                    "SentTimestamp": message.sent_at.timestamp_millis().to_string(),
                    "ApproximateReceiveCount": message.receive_count.to_string(),
                },
            })
        });
        Ok(json!({ "Messages": sampled.collect::<Vec<_>>() }))
    }

    fn move_back(&self, call: &Value) -> Result<Value> {
        let from = self.queue(&call["SourceArn"])?;
        let source = self.queues.by_resource().into_iter().map(|(_, queue)| queue).find(|queue| {
            let policy = queue.settings().redrive_policy.as_ref();
            policy.is_some_and(|policy| policy.dead_letter_queue.settings().name == from.settings().name)
        });
        from.move_all_to(source.context("no queue of dead letters")?, self.now);
        Ok(json!({ "TaskHandle": "any" }))
    }
}
