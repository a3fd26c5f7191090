//! A transport over HTTP, with TLS if the feature `http` is on.

#[cfg(feature = "http")]
use std::sync::OnceLock;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, uri::Scheme};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
#[cfg(feature = "http")]
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::errors::BoxError;
use crate::transport::Transport;

#[cfg(not(feature = "http"))]
const WITHOUT_TLS: &str = "https needs the feature `http` of scheduled-payments; use a URL that begins with http://";

/// The most bytes of a response, which is in memory. API Gateway returns at most 10 MB.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

const TOO_LONG: &str = "the response has more than 16 MB, and was not read to its end";

/// Connections over HTTP/1.1 that are kept for later requests. The machine's certificates are trusted. It uses no proxy.
#[derive(Debug)]
pub struct Http {
    plain: Client<HttpConnector, Full<Bytes>>,
    /// With the machine's certificates, which are read for the first request that needs them.
    #[cfg(feature = "http")]
    secure: OnceLock<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

impl Http {
    /// Creates a transport without connections.
    pub fn new() -> Self {
        Self {
            plain: client().build_http(),
            #[cfg(feature = "http")]
            secure: OnceLock::new(),
        }
    }

    #[cfg(feature = "http")]
    fn secure(&self) -> Result<&Client<HttpsConnector<HttpConnector>, Full<Bytes>>, BoxError> {
        if let Some(client) = self.secure.get() {
            return Ok(client);
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let connector = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        Ok(self.secure.get_or_init(|| client().build(connector.https_only().enable_http1().build())))
    }
}

fn client() -> hyper_util::client::legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new());
    builder
}

#[async_trait]
impl Transport for Http {
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
        let is_secure = request.uri().scheme() == Some(&Scheme::HTTPS);
        let request = request.map(Full::new);
        #[cfg(feature = "http")]
        let sent = if is_secure { self.secure()?.request(request) } else { self.plain.request(request) };
        #[cfg(not(feature = "http"))]
        let sent = if is_secure { return Err(WITHOUT_TLS.into()) } else { self.plain.request(request) };
        let (parts, body) = sent.await?.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        let body = body.map_err(|error| if error.is::<LengthLimitError>() { TOO_LONG.into() } else { error })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}
