//! Limits of the AWS clients, and a DynamoDB client for other engines.

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

pub(crate) fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_timeout(OPERATION_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
}

pub(crate) fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS)
}

/// Credentials for an engine other than AWS's, which accepts any.
pub(crate) fn any_credentials(access_key: &str) -> Credentials {
    Credentials::new(access_key, "local", None, None, "any")
}

/// Creates a DynamoDB client for another engine at `endpoint`, over HTTP without TLS.
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
