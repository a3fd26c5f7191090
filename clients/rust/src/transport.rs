//! Exchanges one request for its response.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri};

use crate::errors::{BoxError, Error};

/// Exchanges one request for its response. A transport does not repeat requests, and needs no timeout.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, which has a whole URL, and returns the whole response, whatever its status.
    ///
    /// # Errors
    /// If there is no whole response. The request may have taken effect.
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BoxError>;
}

/// A transport with a timeout.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) timeout: Duration,
}

impl Line {
    /// Returns the whole response to a request, whatever its status.
    pub(crate) async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let host = host(request.uri());
        let reason = match tokio::time::timeout(self.timeout, self.transport.exchange(request)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => causes(error.as_ref()),
            Err(_) => format!("nothing within {:?}", self.timeout),
        };
        Err(Error::NoAnswer { host, reason })
    }
}

/// Returns the host of a URL, with its port if the URL names one.
fn host(url: &Uri) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}{port}", url.host().unwrap_or_default())
}

/// Returns an error with its causes.
fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
