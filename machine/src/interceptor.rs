//! An interceptor between the AWS SDK and an engine: a closure sees each try of a call and decides what happens to it.
//!
//! It sits below the SDK, so that retries, timeouts and error types are the real ones.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What a try of a call returns to the SDK.
pub type Answer = Result<HttpResponse, ConnectorError>;

type Handle = dyn Fn(Call, Next) -> HttpConnectorFuture + Send + Sync;

/// One try of one SDK call, before it is sent.
#[derive(Debug)]
pub struct Call {
    /// The number of the try among all that the interceptor has seen, from 0. A closure may number calls instead.
    pub number: usize,
    /// Which try of the call this is, from 0.
    pub tried: usize,
    /// The operation, such as `PutItem`.
    pub operation: String,
    request: HttpRequest,
    input: OnceLock<Arc<Value>>,
}

/// The way on to the engine.
#[derive(Debug, Clone)]
pub struct Next(SharedHttpConnector);

/// An HTTP client for the SDK that passes each try to a closure. Clones share the closure and the numbers.
#[derive(Clone)]
pub struct Interceptor {
    inner: SharedHttpClient,
    handle: Arc<Handle>,
    tries: Arc<AtomicUsize>,
}

/// What happens to a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is sent.
    Pass,
    /// It is rejected with this status and error code, and not sent.
    Refuse(u16, &'static str),
    /// It is a transaction, and is cancelled for this reason of its first action.
    CancelTransaction(&'static str),
    /// It never arrives.
    LoseRequest,
    /// The engine executes it, but the response is lost.
    LoseReply,
    /// It is a SendMessageBatch, and SQS rejects its first entry. Only a simulated SQS can do that.
    RefuseFirstEntry,
    /// The process is killed before it is sent.
    KillBefore,
    /// The process is killed after it is done.
    KillAfter,
}

/// A process that a [`Fate`] can kill. Clones are the same process.
#[derive(Debug, Clone, Default)]
pub struct Process(Arc<Notify>);

impl Call {
    fn new(request: HttpRequest, number: usize) -> Self {
        let header = |name| request.headers().get(name).unwrap_or_default();
        // `amz-sdk-request: attempt=1; max=3`
        let attempt = header("amz-sdk-request").split("; ").find_map(|pair| pair.strip_prefix("attempt="));
        let attempt = attempt.and_then(|attempt| attempt.parse::<usize>().ok()).unwrap_or(1);
        let operation = header("x-amz-target").rsplit('.').next().unwrap_or_default().to_owned();
        Self { number, tried: attempt.saturating_sub(1), operation, request, input: OnceLock::new() }
    }

    fn header(&self, name: &str) -> &str {
        self.request.headers().get(name).unwrap_or_default()
    }

    /// The service's name in the protocol: `DynamoDB_20120810` or `AmazonSQS`.
    pub fn service(&self) -> &str {
        self.header("x-amz-target").split('.').next().unwrap_or_default()
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

    /// Lets DynamoDB say what the call uses, of the table and of each index. [`Self::input`] stays as it was, if it was
    /// parsed before.
    pub fn ask_for_capacity(&mut self) {
        let Some(fields) = self.request.body().bytes().and_then(|body| body.strip_suffix(b"}")) else { return };
        let comma: &[u8] = if fields.ends_with(b"{") { b"" } else { b"," };
        self.set_body([fields, comma, br#""ReturnConsumedCapacity":"INDEXES"}"#].concat());
    }

    fn set_body(&mut self, body: Vec<u8>) {
        self.request.headers_mut().insert("content-length", body.len().to_string());
        *self.request.body_mut() = SdkBody::from(body);
    }
}

impl Next {
    /// Sends the call.
    pub async fn send(&self, call: Call) -> Answer {
        self.0.call(call.request).await
    }
}

impl Interceptor {
    /// Creates an interceptor in front of `inner`.
    pub fn over<F: Future<Output = Answer> + Send + 'static>(
        inner: impl HttpClient + 'static,
        handle: impl Fn(Call, Next) -> F + Send + Sync + 'static,
    ) -> Self {
        let handle = Arc::new(move |call, next| HttpConnectorFuture::new(handle(call, next)));
        Self { inner: SharedHttpClient::new(inner), handle, tries: Arc::default() }
    }
}

impl fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interceptor({} tries)", self.tries.load(Ordering::Relaxed))
    }
}

impl HttpClient for Interceptor {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let next = Next(self.inner.http_connector(settings, components));
        SharedHttpConnector::new(Connector { interceptor: self.clone(), next })
    }
}

#[derive(Debug)]
struct Connector {
    interceptor: Interceptor,
    next: Next,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let number = self.interceptor.tries.fetch_add(1, Ordering::Relaxed);
        (self.interceptor.handle)(Call::new(request, number), self.next.clone())
    }
}

impl Fate {
    /// Applies the fate to a try of `process`. `send` sends it.
    pub async fn carry_out<F: Future<Output = Answer>>(
        self,
        call: Call,
        process: &Process,
        send: impl FnOnce(Call) -> F,
    ) -> Answer {
        match self {
            Self::Pass | Self::RefuseFirstEntry => send(call).await,
            Self::Refuse(status, code) => refuse(status, code, "injected"),
            Self::CancelTransaction(reason) => respond(400, cancellation(call.input(), reason).to_string()),
            Self::LoseRequest => Err(lost()),
            Self::LoseReply => {
                drop(send(call).await);
                Err(lost())
            }
            Self::KillBefore => process.kill().await,
            Self::KillAfter => {
                drop(send(call).await);
                process.kill().await
            }
        }
    }
}

impl Process {
    /// Runs a handler in this process. Returns nothing if the process is killed first.
    pub async fn until_killed<T>(&self, handler: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.notified() => None,
            done = handler => Some(done),
        }
    }

    async fn kill(&self) -> Answer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Returns the body of a response, read to its end, with the status.
pub async fn read_whole(
    response: HttpResponse,
) -> Result<(u16, impl Deref<Target = [u8]> + Into<SdkBody>), ConnectorError> {
    let status = response.status().as_u16();
    let body = ByteStream::new(response.into_body()).collect().await;
    Ok((status, body.map_err(|error| ConnectorError::io(error.into()))?.into_bytes()))
}

/// Returns a response with a JSON body.
pub fn respond(status: u16, body: impl Into<SdkBody>) -> Answer {
    let status = status.try_into().map_err(|_| ConnectorError::other("no such status".into(), None))?;
    let mut response = HttpResponse::new(status, body.into());
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

/// Returns an error response with DynamoDB's namespace before its code, as DynamoDB sends it.
pub fn refuse(status: u16, code: &str, message: &str) -> Answer {
    let code = format!("com.amazonaws.dynamodb.v20120810#{code}");
    respond(status, json!({ "__type": code, "message": message }).to_string())
}

/// Returns DynamoDB's answer to a transaction that it cancels: a reason for each action, in their order.
fn cancellation(input: &Value, reason: &str) -> Value {
    let actions = input["TransactItems"].as_array().map_or(0, Vec::len);
    let of_action = |index| json!({ "Code": if index == 0 { reason } else { "None" } });
    let reasons: Vec<Value> = (0..actions).map(of_action).collect();
    json!({ "__type": "TransactionCanceledException", "Message": "injected", "CancellationReasons": reasons })
}

/// Returns the same client over another HTTP client, such as an [`Interceptor`].
pub fn client_over(client: &Client, http_client: impl HttpClient + 'static) -> Client {
    Client::from_conf(client.config().to_builder().http_client(http_client).build())
}

fn lost() -> ConnectorError {
    ConnectorError::io("the connection was lost".into())
}
