//! Clients for AWS over one pool of connections, with a connection to DynamoDB opened before the first event.
//!
//! The DNS look-up and the TLS handshake are most of the time of a cold function's first call.

use std::fmt;
use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::endpoint::{DefaultResolver, Params, ResolveEndpoint as _};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::byte_stream::ByteStream;
use payments_store::Store;

use crate::client::{CONNECT_TIMEOUT, any_credentials, http_timeouts, retries, switched_timeouts, timeouts};
use crate::config::DataConfig;

/// Time that a function's start waits for its first connection and an answer on it. After that, the
/// first call opens another.
const OPENING_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates a pool of TLS connections that any client can use.
pub fn connector() -> SharedHttpConnector {
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build();
    // AWS maintains AWS-LC for its own SDK, and it has a FIPS build. ring is 2 MB smaller, and has fewer maintainers.
    let tls = Provider::Rustls(CryptoMode::AwsLc);
    SharedHttpConnector::new(Connector::builder().connector_settings(settings).tls_provider(tls).build())
}

/// The settings that all clients share.
fn settings(connector: &SharedHttpConnector) -> ConfigLoader {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(client_over(connector))
        .timeout_config(timeouts())
        .retry_config(retries())
}

/// Creates an SQS client with the function's own role.
pub async fn sqs() -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&settings(&connector()).load().await)
}

/// Creates an SQS client of a function that obeys the switch: its calls have less time.
pub async fn switched_sqs() -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&settings(&connector()).timeout_config(switched_timeouts()).load().await)
}

/// Creates a client of Lambda with the function's own role.
pub async fn lambda() -> aws_sdk_lambda::Client {
    aws_sdk_lambda::Client::new(&settings(&connector()).load().await)
}

/// Creates a client of EventBridge with the function's own role.
pub async fn event_bridge() -> aws_sdk_eventbridge::Client {
    aws_sdk_eventbridge::Client::new(&settings(&connector()).load().await)
}

/// Creates a client of Secrets Manager with the function's own role.
pub(crate) async fn secrets_manager() -> aws_sdk_secretsmanager::Client {
    aws_sdk_secretsmanager::Client::new(&settings(&connector()).load().await)
}

/// Creates the store of a function.
pub async fn store(data: &DataConfig) -> Store {
    Store::new(dynamodb(data.endpoint.as_deref()).await, data.tables.clone())
}

/// Creates the store of a function of the API: its calls have less time. An engine on one machine may be slower than
/// AWS, and has no concurrency to protect.
pub async fn http_store(data: &DataConfig) -> Store {
    store_within(data, http_timeouts()).await
}

/// Creates the store of a function that obeys the switch: its calls have less time, as those of the API have.
pub async fn switched_store(data: &DataConfig) -> Store {
    store_within(data, switched_timeouts()).await
}

async fn store_within(data: &DataConfig, timeouts: TimeoutConfig) -> Store {
    match &data.endpoint {
        Some(_) => store(data).await,
        None => Store::new(dynamodb_within(None, timeouts).await, data.tables.clone()),
    }
}

/// Creates a DynamoDB client and opens its first connection: to AWS with the function's own role, or to the engine
/// at `endpoint`, which accepts any credentials.
pub async fn dynamodb(endpoint: Option<&str>) -> Client {
    dynamodb_within(endpoint, timeouts()).await
}

async fn dynamodb_within(endpoint: Option<&str>, timeouts: TimeoutConfig) -> Client {
    let connector = connector();
    let mut loader = settings(&connector).timeout_config(timeouts);
    if let Some(endpoint) = endpoint {
        let region = Region::from_static("us-east-1");
        loader = loader.endpoint_url(endpoint).credentials_provider(any_credentials("local")).region(region);
    }
    let config = loader.load().await;
    open(&connector, &config).await;
    Client::new(&config)
}

/// Creates an HTTP client that uses this pool.
fn client_over(connector: &SharedHttpConnector) -> SharedHttpClient {
    let connector = connector.clone();
    http_client_fn(move |_, _| connector.clone())
}

/// Opens a connection to DynamoDB and leaves it in the pool.
///
/// The request is DynamoDB's health check (`healthy: dynamodb.eu-west-2.amazonaws.com`), which needs no permission
/// and costs nothing; any answer will do. A failure does not stop the function's start: the first call tries again.
async fn open(connector: &SharedHttpConnector, config: &SdkConfig) {
    let opened = async {
        let request = HttpRequest::get(endpoint(config).await?).map_err(text)?;
        let answer = connector.call(request).await.map_err(text)?;
        // A connection returns to the pool only after its answer is read to the end.
        ByteStream::new(answer.into_body()).collect().await.map_err(text)
    };
    match tokio::time::timeout(OPENING_TIMEOUT, opened).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::warn!(error, "the first connection to DynamoDB failed; the first call opens another")
        }
        Err(_) => tracing::warn!("the first connection to DynamoDB took too long; the first call opens another"),
    }
}

/// The endpoint of DynamoDB, by the client's own rules. (Credentials that name their account would give the
/// account's own endpoint; Lambda's do not.)
async fn endpoint(config: &SdkConfig) -> Result<String, String> {
    if let Some(url) = config.endpoint_url() {
        return Ok(url.to_owned());
    }
    let params = Params::builder()
        .set_region(config.region().map(ToString::to_string))
        .set_use_fips(config.use_fips())
        .set_use_dual_stack(config.use_dual_stack());
    let params = params.build().map_err(text)?;
    DefaultResolver::new().resolve_endpoint(&params).await.map(|found| found.url().to_owned()).map_err(text)
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}
