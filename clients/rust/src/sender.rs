//! Sends each request with a token, again if that helps, and turns every other response into an error.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};

use crate::errors::Error;
use crate::retries::{Retries, Timer};
use crate::tokens::{Source, Token};
use crate::transport::Line;

/// Sends the requests of a bank's methods.
#[derive(Debug)]
pub(crate) struct Sender {
    source: Source,
    line: Line,
    pub(crate) retries: Retries,
    pub(crate) timer: Arc<dyn Timer>,
}

impl Sender {
    pub(crate) fn new(token: Option<Token>, line: Line, retries: Retries, timer: Arc<dyn Timer>) -> Self {
        Self { source: Source::new(token), line, retries, timer }
    }

    /// Returns a success, or an error.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let mut tries = self.retries.begin(&self.timer);
        loop {
            let error = match self.exchange(request.clone()).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => Error::from_response(&response),
                Err(error) => error,
            };
            if !tries.again(&error).await {
                return Err(error);
            }
        }
    }

    /// Sends a request once, and returns its response, whatever its status.
    pub(crate) async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        if let Some(token) = self.source.token(&self.line, self.timer.as_ref()).await? {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| Error::Token(error.into()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        self.line.exchange(request).await
    }
}
