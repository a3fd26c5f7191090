//! DynamoDB and SQS clients, with a limit on everything they wait for.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_http_client::Builder;

/// The most attempts of one call, the first included, within [`OPERATION_TIMEOUT`].
const MAX_ATTEMPTS: u32 = 3;

/// The timeout of one call, with all its attempts and the waits between them.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of one attempt; DynamoDB normally answers within tens of milliseconds.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The timeout of opening a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_timeout(OPERATION_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS)
}

/// Credentials for an engine other than AWS's, which accepts any.
fn any_credentials(access_key: &str) -> Credentials {
    Credentials::new(access_key, "local", None, None, "any")
}

/// Creates a DynamoDB client for another engine at `endpoint`, over HTTP without TLS.
#[must_use]
pub fn dynamodb_at(endpoint: &str, access_key: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(any_credentials(access_key))
        .endpoint_url(endpoint)
        .http_client(Builder::new().build_http())
        .timeout_config(timeouts())
        .retry_config(retries());
    Client::from_conf(config.build())
}

#[cfg(feature = "aws")]
pub use on_aws::{dynamodb, sqs, store};

#[cfg(feature = "aws")]
mod on_aws {
    use aws_config::{BehaviorVersion, ConfigLoader};
    use aws_smithy_runtime_api::client::http::SharedHttpConnector;
    use payments_store::Store;

    use super::*;
    use crate::DataConfig;
    use crate::connection::{client_over, connector, open};

    /// The settings that all clients share.
    fn bounded(connector: &SharedHttpConnector) -> ConfigLoader {
        aws_config::defaults(BehaviorVersion::latest())
            .http_client(client_over(connector))
            .timeout_config(timeouts())
            .retry_config(retries())
    }

    /// Creates an SQS client with the function's own role.
    pub async fn sqs() -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&bounded(&connector()).load().await)
    }

    /// Creates the store of a function.
    pub async fn store(data: &DataConfig) -> Store {
        Store::new(dynamodb(data.endpoint.as_deref()).await, data.tables.clone())
    }

    /// Creates a DynamoDB client and opens its first connection: to AWS with the function's own role, or to the
    /// engine at `endpoint`, which accepts any credentials.
    pub async fn dynamodb(endpoint: Option<&str>) -> Client {
        let connector = connector();
        let mut loader = bounded(&connector);
        if let Some(endpoint) = endpoint {
            let region = Region::from_static("us-east-1");
            loader = loader.endpoint_url(endpoint).credentials_provider(any_credentials("local")).region(region);
        }
        let config = loader.load().await;
        open(&connector, &config).await;
        Client::new(&config)
    }
}
