//! The HTTP client for S3: the AWS SDK's, so the function has one TLS stack and one set of root certificates.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::Request;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

/// Creates HTTP clients for object_store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SdkTransport {
    /// The longest one try may take, including the response's body.
    pub(crate) attempt: Duration,
}

impl HttpConnector for SdkTransport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(SdkService { connector: payments_boot::connector(), attempt: self.attempt }))
    }
}

/// One HTTP client.
#[derive(Debug)]
struct SdkService {
    connector: SharedHttpConnector,
    attempt: Duration,
}

#[async_trait::async_trait]
impl HttpService for SdkService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match tokio::time::timeout(self.attempt, self.carry(request)).await {
            Ok(answered) => answered,
            Err(elapsed) => Err(HttpError::new(HttpErrorKind::Timeout, elapsed)),
        }
    }
}

impl SdkService {
    /// Sends a request, and reads the whole response. No response is larger than a sealed part.
    async fn carry(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = http::Request::from_parts(parts, SdkBody::from(body));
        let request = Request::try_from(request).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let answer = self.connector.call(request).await.map_err(failed)?;
        let answer = answer.try_into_http1x().map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
        let (parts, body) = answer.into_parts();
        let body = ByteStream::new(body).collect().await;
        let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?.into_bytes();
        Ok(http::Response::from_parts(parts, HttpResponseBody::from(body)))
    }
}

/// Converts an error to object_store's kinds, which decide whether it retries.
fn failed(error: ConnectorError) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_io() {
        HttpErrorKind::Interrupted
    } else {
        HttpErrorKind::Unknown
    };
    HttpError::new(kind, error)
}
