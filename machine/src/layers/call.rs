//! A try of a call, its reply, and the layers that it passes.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::engine::respond;

/// The operations that write.
pub const WRITES: [&str; 5] = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"];

/// The result of a try of a call.
pub type Answer = Result<Reply, ConnectorError>;

/// One try of one SDK call, before it is sent.
#[derive(Debug)]
pub struct Call {
    /// The number of the try among all that the layers have seen, from 0. A layer may number calls instead.
    pub number: usize,
    /// The number of the try within its call, from 0.
    pub tried: usize,
    /// The operation, such as `PutItem`.
    pub operation: String,
    /// The fate of the try.
    pub fate: Fate,
    request: HttpRequest,
    input: OnceLock<Arc<Value>>,
    tells_capacity: bool,
}

/// The fate of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The try is sent.
    Pass,
    /// The try is rejected with this status and error code, and not sent.
    Refuse(u16, &'static str),
    /// The try is a transaction, and is cancelled for this reason of its first action.
    CancelTransaction(&'static str),
    /// The try never arrives.
    LoseRequest,
    /// The engine executes the try, but the response is lost.
    LoseReply,
    /// The try is a SendMessageBatch, and SQS rejects its first entry. Only a simulated SQS can do that.
    RefuseFirstEntry,
    /// The process is killed before the try is sent.
    KillBefore,
    /// The process is killed after the try is done.
    KillAfter,
}

/// The engine's reply to a try.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    body: Bytes,
    json: OnceLock<Arc<Value>>,
}

/// A layer. A closure of a call and the way on is one.
#[async_trait]
pub trait Layer: Send + Sync {
    /// Carries a try to its answer.
    async fn carry(&self, call: Call, next: Next) -> Answer;
}

#[async_trait]
impl<Carry, Done> Layer for Carry
where
    Carry: Fn(Call, Next) -> Done + Send + Sync,
    Done: Future<Output = Answer> + Send + 'static,
{
    async fn carry(&self, call: Call, next: Next) -> Answer {
        self(call, next).await
    }
}

/// The way on to the engine.
#[derive(Clone)]
pub struct Next {
    layers: Arc<[Arc<dyn Layer>]>,
    passed: usize,
    engine: SharedHttpConnector,
}

/// An HTTP client for the SDK that carries each try through layers. Clones share them, and the numbers of tries.
#[derive(Clone)]
pub struct Layers {
    layers: Arc<[Arc<dyn Layer>]>,
    engine: SharedHttpClient,
    tries: Arc<AtomicUsize>,
}

impl Call {
    fn new(request: HttpRequest, number: usize) -> Self {
        let header = |name| request.headers().get(name).unwrap_or_default();
        // `amz-sdk-request: attempt=1; max=3`
        let attempt = header("amz-sdk-request").split("; ").find_map(|pair| pair.strip_prefix("attempt="));
        let tried = attempt.and_then(|attempt| attempt.parse::<usize>().ok()).unwrap_or(1).saturating_sub(1);
        let operation = header("x-amz-target").rsplit('.').next().unwrap_or_default().to_owned();
        let input = OnceLock::new();
        Self { number, tried, operation, fate: Fate::Pass, request, input, tells_capacity: false }
    }

    fn header(&self, name: &str) -> &str {
        self.request.headers().get(name).unwrap_or_default()
    }

    /// Whether the call is to SQS, and not to DynamoDB.
    pub fn is_to_sqs(&self) -> bool {
        self.header("x-amz-target").starts_with("AmazonSQS.")
    }

    /// The SDK's id of the call, which all of its tries share.
    pub fn invocation_id(&self) -> &str {
        self.header("amz-sdk-invocation-id")
    }

    /// The input. It is parsed on first use, because parsing takes about as long as the rest of the call.
    pub fn input(&self) -> &Value {
        self.parsed()
    }

    /// The input, for those who need it after the call was sent.
    pub fn shared_input(&self) -> Arc<Value> {
        Arc::clone(self.parsed())
    }

    fn parsed(&self) -> &Arc<Value> {
        let body = || self.request.body().bytes().unwrap_or_default();
        self.input.get_or_init(|| serde_json::from_slice(body()).unwrap_or(Value::Null).into())
    }

    /// Replaces the input.
    pub fn set_input(&mut self, input: Value) {
        self.set_body(input.to_string().into_bytes());
        self.input = Arc::new(input).into();
    }

    /// Asks DynamoDB to report the capacity that the call uses, of the table and of each index.
    /// [`Self::input`] stays as it was, if it was parsed before.
    pub fn ask_for_capacity(&mut self) {
        let Some(fields) = self.request.body().bytes().and_then(|body| body.strip_suffix(b"}")) else { return };
        if std::mem::replace(&mut self.tells_capacity, true) {
            return;
        }
        let comma: &[u8] = if fields.ends_with(b"{") { b"" } else { b"," };
        self.set_body([fields, comma, br#""ReturnConsumedCapacity":"INDEXES"}"#].concat());
    }

    fn set_body(&mut self, body: Vec<u8>) {
        self.request.headers_mut().insert("content-length", body.len().to_string());
        *self.request.body_mut() = SdkBody::from(body);
    }
}

impl Reply {
    /// Creates a reply.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), json: OnceLock::new() }
    }

    /// Creates a reply of JSON.
    pub fn from_json(status: u16, json: Value) -> Self {
        let body = json.to_string();
        Self { json: Arc::new(json).into(), ..Self::new(status, body) }
    }

    /// Creates an error with DynamoDB's namespace before its code, as DynamoDB sends it.
    pub fn refusal(status: u16, code: &str, message: &str) -> Self {
        let code = format!("com.amazonaws.dynamodb.v20120810#{code}");
        Self::from_json(status, json!({ "__type": code, "message": message }))
    }

    /// The body, parsed on first use; null if it is not JSON.
    pub fn json(&self) -> &Arc<Value> {
        self.json.get_or_init(|| Arc::new(serde_json::from_slice(&self.body).unwrap_or_default()))
    }

    /// Changes the body, if `change` says that it did.
    pub fn change(&mut self, change: impl FnOnce(&mut Value) -> bool) {
        self.json();
        let Some(json) = self.json.get_mut() else { return };
        if change(Arc::make_mut(json)) {
            self.body = json.to_string().into();
        }
    }
}

impl Next {
    /// Sends the call.
    pub async fn send(&self, call: Call) -> Answer {
        if let Some(layer) = self.layers.get(self.passed) {
            return layer.carry(call, Self { passed: self.passed + 1, ..self.clone() }).await;
        }
        let response = self.engine.call(call.request).await?;
        let status = response.status().as_u16();
        let body = ByteStream::new(response.into_body()).collect().await;
        Ok(Reply::new(status, body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes()))
    }
}

impl Layers {
    /// Begins with no layer over an engine or over another HTTP client.
    pub fn over(engine: impl HttpClient + 'static) -> Self {
        Self { layers: Arc::default(), engine: SharedHttpClient::new(engine), tries: Arc::default() }
    }

    /// Adds a layer that a call passes after those before.
    pub fn with(self, layer: impl Layer + 'static) -> Self {
        Self { layers: self.layers.iter().cloned().chain([Arc::new(layer) as _]).collect(), ..self }
    }

    /// Adds a layer that is a closure.
    pub fn with_fn<Done: Future<Output = Answer> + Send + 'static>(
        self,
        carry: impl Fn(Call, Next) -> Done + Send + Sync + 'static,
    ) -> Self {
        self.with(carry)
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({} tries)", self.tries.load(Ordering::Relaxed))
    }
}

impl HttpClient for Layers {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let engine = self.engine.http_connector(settings, components);
        let next = Next { layers: Arc::clone(&self.layers), passed: 0, engine };
        SharedHttpConnector::new(Connector { next, tries: Arc::clone(&self.tries) })
    }
}

struct Connector {
    next: Next,
    tries: Arc<AtomicUsize>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let call = Call::new(request, self.tries.fetch_add(1, Ordering::Relaxed));
        let next = self.next.clone();
        HttpConnectorFuture::new(async move {
            {
                let Reply { status, body, .. } = next.send(call).await?;
                respond(status, body)
            }
        })
    }
}

/// Returns the same client over another HTTP client, such as [`Layers`].
pub fn client_over(client: &Client, http_client: impl HttpClient + 'static) -> Client {
    Client::from_conf(client.config().to_builder().http_client(http_client).build())
}

/// Returns a quota of retries that no other client has. Quotas belong to the process.
pub fn own_quota() -> RetryPartition {
    static QUOTAS: AtomicUsize = AtomicUsize::new(0);
    RetryPartition::new(format!("own-{}", QUOTAS.fetch_add(1, Ordering::Relaxed)))
}

/// Whether a call is about a table.
pub fn names(input: &Value, table: &str) -> bool {
    let transaction = input["TransactItems"].as_array().into_iter().flatten();
    let of_transaction = transaction.flat_map(|action| action.as_object().into_iter().flat_map(|all| all.values()));
    of_transaction.chain([input]).any(|action| action["TableName"] == table)
}
