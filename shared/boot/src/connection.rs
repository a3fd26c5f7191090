//! The connections of a function: one kind of HTTP client for every service, and the first connection to
//! DynamoDB opened before the first event, because a name's look-up and a TLS handshake are most of what a
//! cold function's first call costs.

use std::fmt;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::endpoint::{DefaultResolver, Params, ResolveEndpoint as _};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{
    HttpConnector as _, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::byte_stream::ByteStream;

use crate::client::CONNECT_TIMEOUT;

/// The longest a function's start waits for its first connection, its answer included. Where it takes
/// longer, the first call opens another.
const OPENING_TIMEOUT: Duration = Duration::from_secs(2);

/// A pool of connections, with TLS, for any client.
#[must_use]
pub fn connector() -> SharedHttpConnector {
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build();
    let tls = Provider::Rustls(CryptoMode::AwsLc);
    SharedHttpConnector::new(Connector::builder().connector_settings(settings).tls_provider(tls).build())
}

/// An HTTP client whose connections are all of one pool.
pub(crate) fn client_over(connector: &SharedHttpConnector) -> SharedHttpClient {
    let connector = connector.clone();
    http_client_fn(move |_, _| connector.clone())
}

/// Opens a connection to DynamoDB, and leaves it in the pool. The request is the one that DynamoDB answers
/// to anybody (`healthy: dynamodb.eu-west-2.amazonaws.com`), so it needs no permission and costs nothing;
/// any other answer does as well. That it fails is no reason not to start: the first call tries again.
pub(crate) async fn open(connector: &SharedHttpConnector, config: &SdkConfig) {
    let opened = async {
        let request = HttpRequest::get(endpoint(config).await?).map_err(said)?;
        let answer = connector.call(request).await.map_err(said)?;
        // Only a connection whose answer was read to its end goes back into the pool.
        ByteStream::new(answer.into_body()).collect().await.map_err(said)
    };
    match tokio::time::timeout(OPENING_TIMEOUT, opened).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(error, "no connection to DynamoDB could be opened yet"),
        Err(_) => tracing::warn!("opening a connection to DynamoDB took too long"),
    }
}

/// Where DynamoDB is, by the rules the client itself follows. (With credentials that name their account it
/// would be the account's own endpoint; those of Lambda do not.)
async fn endpoint(config: &SdkConfig) -> Result<String, String> {
    if let Some(url) = config.endpoint_url() {
        return Ok(url.to_owned());
    }
    let params = Params::builder()
        .set_region(config.region().map(ToString::to_string))
        .set_use_fips(config.use_fips())
        .set_use_dual_stack(config.use_dual_stack());
    let params = params.build().map_err(said)?;
    DefaultResolver::new().resolve_endpoint(&params).await.map(|found| found.url().to_owned()).map_err(said)
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}
