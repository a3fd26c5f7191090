//! AWS clients, with a bound on everything they wait for.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;

use crate::connection::{client_over, connector, open};

/// The most tries of one call, the first included, as far as they fit into [`OPERATION_TIMEOUT`].
const MAX_ATTEMPTS: u32 = 3;

/// The longest one call may take, all tries and the waiting between them together.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest one try may take: DynamoDB answers within tens of milliseconds or is in trouble.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// What every client has in common.
fn bounded(connector: &SharedHttpConnector) -> ConfigLoader {
    let timeouts =
        TimeoutConfig::builder().operation_timeout(OPERATION_TIMEOUT).operation_attempt_timeout(ATTEMPT_TIMEOUT);
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(client_over(connector))
        .timeout_config(timeouts.build())
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS))
}

/// An SQS client, with the function's own role.
pub async fn sqs() -> aws_sdk_sqs::Client {
    aws_sdk_sqs::Client::new(&bounded(&connector()).load().await)
}

/// A DynamoDB client with its first connection open: of AWS, with the function's own role, or of the
/// engine at `endpoint`, which takes any credentials.
pub async fn dynamodb(endpoint: Option<&str>) -> Client {
    let connector = connector();
    let mut loader = bounded(&connector);
    if let Some(endpoint) = endpoint {
        let any = Credentials::new("local", "local", None, None, "any");
        loader = loader.endpoint_url(endpoint).credentials_provider(any).region(Region::from_static("us-east-1"));
    }
    let config = loader.load().await;
    open(&connector, &config).await;
    Client::new(&config)
}
