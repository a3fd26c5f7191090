//! Limits of the AWS clients, and a DynamoDB client for other engines.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_http_client::Builder;
use payments_store::CALL_TIMEOUT;

/// The most attempts of one call, the first included, within [`CALL_TIMEOUT`].
const MAX_ATTEMPTS: u32 = 3;

/// The timeout of one attempt; DynamoDB normally answers within tens of milliseconds.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The same two timeouts in functions of the API on AWS. While DynamoDB is slow, each request occupies an invocation
/// for several of them, and all functions share the account's concurrent invocations.
pub const HTTP_CALL_TIMEOUT: Duration = Duration::from_secs(2);
#[cfg(feature = "aws")]
const HTTP_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout of opening a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The same two timeouts in functions that obey the switch: a claim or a send ends that soon after the read before it.
pub const SWITCHED_CALL_TIMEOUT: Duration = Duration::from_secs(3);
const SWITCHED_ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_400);

pub(crate) fn timeouts() -> TimeoutConfig {
    timeouts_of(CALL_TIMEOUT, ATTEMPT_TIMEOUT)
}

#[cfg(feature = "aws")]
pub(crate) fn http_timeouts() -> TimeoutConfig {
    timeouts_of(HTTP_CALL_TIMEOUT, HTTP_ATTEMPT_TIMEOUT)
}

/// The timeouts of functions that obey the switch.
pub fn switched_timeouts() -> TimeoutConfig {
    timeouts_of(SWITCHED_CALL_TIMEOUT, SWITCHED_ATTEMPT_TIMEOUT)
}

fn timeouts_of(call: Duration, attempt: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_timeout(call)
        .operation_attempt_timeout(attempt)
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
