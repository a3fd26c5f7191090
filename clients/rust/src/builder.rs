//! Makes the client of a bank from its URL, a token, and other settings.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;

use crate::bank::Bank;
use crate::errors::Error;
use crate::retries::{Retries, SystemTimer, Timer};
use crate::sender::Sender;
use crate::tokens::Token;
use crate::transport::{Line, Transport};

/// API Gateway waits 30 seconds for a response. After these, the connection is taken for lost.
const TIMEOUT: Duration = Duration::from_secs(35);

/// The settings of a bank's client.
#[derive(Debug)]
pub struct Builder {
    url: String,
    transport: Arc<dyn Transport>,
    token: Option<Token>,
    retries: Retries,
    timeout: Duration,
    timer: Arc<dyn Timer>,
}

impl Bank {
    /// Creates the client of a bank that needs no token.
    ///
    /// # Errors
    /// If this is not the URL of an API.
    #[cfg(feature = "plain-http")]
    pub fn new(url: &str) -> Result<Self, Error> {
        Self::builder(url).build()
    }

    /// Begins to make the client of a bank.
    #[cfg(feature = "plain-http")]
    pub fn builder(url: &str) -> Builder {
        Self::over(Arc::new(crate::over_http::Http::new()), url)
    }

    /// Begins to make the client of a bank that is reached over this transport.
    pub fn over(transport: Arc<dyn Transport>, url: &str) -> Builder {
        Builder {
            url: url.to_owned(),
            transport,
            token: None,
            retries: Retries::default(),
            timeout: TIMEOUT,
            timer: Arc::new(SystemTimer::default()),
        }
    }
}

impl Builder {
    /// Sends a token with each request.
    pub fn token(self, token: impl Into<Token>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// Changes the number of attempts of a request.
    pub fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }

    /// Changes the timeout of one attempt, which is 35 seconds by default.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Changes the clock, the waits, and the random part of pauses.
    pub fn timer(self, timer: Arc<dyn Timer>) -> Self {
        Self { timer, ..self }
    }

    /// Creates the client.
    ///
    /// # Errors
    /// If the URL is not that of an API.
    pub fn build(self) -> Result<Bank, Error> {
        let shown = if self.url.contains('@') { "a text with @" } else { &self.url };
        let invalid = || Error::Invalid(format!("{shown:?} is not the URL of an API"));
        let base = self.url.trim_end_matches('/');
        let parsed: Uri = base.parse().map_err(|_| invalid())?;
        let is_plain = parsed.query().is_none() && !base.contains('#') && parsed.authority().is_some_and(is_host);
        if !matches!(parsed.scheme_str(), Some("http" | "https")) || !is_plain {
            return Err(invalid());
        }
        let line = Line { transport: self.transport, timeout: self.timeout };
        Ok(Bank::with_sender(base, Sender::new(self.token, line, self.retries, self.timer)))
    }
}

/// Whether this is a host, perhaps with a port, and nothing else: a name or a password in it would
/// be ignored, and so would a port that is not a number.
fn is_host(authority: &Authority) -> bool {
    let (host, port) = (authority.host(), authority.port_u16());
    authority.as_str() == port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;
    use crate::errors::BoxError;

    /// A transport on which no response comes.
    #[derive(Debug)]
    struct Silent;

    #[async_trait]
    impl Transport for Silent {
        async fn exchange(&self, _: Request<Bytes>) -> Result<Response<Bytes>, BoxError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_takes_35_seconds_at_most() {
        let timer = SystemTimer::default();
        let retries = Retries { attempts: 1, ..Retries::default() };
        let bank = Bank::over(Arc::new(Silent), "http://127.0.0.1:9").retries(retries).build().unwrap();
        let error = bank.get("a", "b").await.unwrap_err();
        assert_eq!(error.to_string(), "No response from 127.0.0.1:9: nothing within 35s");
        assert_eq!(timer.now().as_secs(), 35);
    }

    /// Glued to the bank's URL, each of these would name another host, and the token would go there.
    #[tokio::test]
    async fn a_request_that_is_no_path_is_not_sent() {
        let bank = Bank::over(Arc::new(Silent), "https://127.0.0.1").token("secret").build().unwrap();
        for uri in ["counts", "@127.0.0.2", ".example", "https://127.0.0.2/counts", "*"] {
            let error = bank.send(Request::get(uri).body(Bytes::new()).unwrap()).await.unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{uri}: {error}");
        }
    }

    #[test]
    fn an_invalid_url_is_an_error() {
        let ports = ["http://bank:99999", "http://bank:8080x", "http://bank:"];
        let others = ["", "bank", "127.0.0.1:8080", "ftp://bank", "http://bank/?stage=1", "https://bank/#x"];
        for url in others.into_iter().chain(ports) {
            let error = Bank::over(Arc::new(Silent), url).build().unwrap_err();
            assert_eq!(error.to_string(), format!("{url:?} is not the URL of an API"));
        }
        let error = Bank::over(Arc::new(Silent), "https://user:secret@bank").build().unwrap_err();
        assert_eq!(error.to_string(), "\"a text with @\" is not the URL of an API");
        Bank::over(Arc::new(Silent), "http://[::1]:8080").build().unwrap();
        Bank::over(Arc::new(Silent), "https://127.0.0.1:8080/stage/").build().unwrap();
    }
}
