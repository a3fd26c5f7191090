//! The outcome of sending a webhook: the receiver's answer, or the reason for its absence.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use httpdate::parse_http_date;
use payments_model::UtcSecond;

use super::connector::ConnectError;

/// The longest wait that a receiver can ask for: an hour. If it asks for more, the next message is sent after an hour.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// A receiver's answer, which is its status alone. Its text is neither kept nor shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// 2xx: the message was received.
    Accepted,
    /// 410: the receiver wants no messages any more.
    Gone,
    /// Anything else, redirects included: the message must be sent again.
    Refused {
        /// The status.
        status: u16,
        /// The shortest wait, if a 429 or 503 states one: up to [`MAX_RETRY_AFTER`].
        retry_after: Option<Duration>,
    },
}

impl Answer {
    /// Returns the meaning of a response to a message that was sent at `now`. Its `Retry-After` may
    /// be a date: the wait is counted from `now`.
    pub(super) fn from_response(status: StatusCode, headers: &HeaderMap, now: UtcSecond) -> Self {
        match status {
            status if status.is_success() => Self::Accepted,
            StatusCode::GONE => Self::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Refused { status: status.as_u16(), retry_after: retry_after(headers, now) }
            }
            other => Self::Refused { status: other.as_u16(), retry_after: None },
        }
    }
}

/// Reads `Retry-After`, which is in seconds or an HTTP date (RFC 9110, 10.2.3) of any of its three forms (5.6.7).
fn retry_after(headers: &HeaderMap, now: UtcSecond) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)).min(MAX_RETRY_AFTER));
    }
    let until = parse_http_date(text).ok()?;
    let wait = until.duration_since(SystemTime::from(now.as_chrono())).unwrap_or_default();
    Some(wait.min(MAX_RETRY_AFTER))
}

/// The reason for a missing answer. Whether the message was received is unknown after
/// [`SendError::Lost`] and [`SendError::TimedOut`].
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// This sender does not send to URLs of this kind: a loopback URL on a deployed bank, or a
    /// public one in `cargo local`.
    #[error("this bank does not send to such URLs")]
    NotPermitted,
    /// There is no secret to sign with. Nothing was sent.
    #[error("there is no secret to sign with")]
    Unsigned,
    /// The host's name does not resolve to an address.
    #[error("the host's name cannot be resolved")]
    Dns(#[source] BoxError),
    /// The host's name has only addresses that are not reachable over the internet. Nothing was sent.
    #[error("the host's name resolves to no public address")]
    NoGlobalAddress,
    /// No address accepts connections.
    #[error("the host accepts no connection")]
    Connect(#[source] BoxError),
    /// The connection cannot be encrypted, or the host's certificate is invalid. Nothing was sent.
    #[error("the TLS handshake failed; check the host's certificate")]
    Tls(#[source] BoxError),
    /// The connection ended without a valid response.
    #[error("the connection ended without a valid HTTP response")]
    Lost(#[source] BoxError),
    /// There was no response in time.
    #[error("there was no response in time")]
    TimedOut,
}

/// The error of a crate underneath, for the log.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl SendError {
    /// The error's kind, as an endpoint shows it: it never changes.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotPermitted => "not-permitted",
            Self::Unsigned => "unsigned",
            Self::Dns(_) => "dns",
            Self::NoGlobalAddress => "no-public-address",
            Self::Connect(_) => "connect",
            Self::Tls(_) => "tls",
            Self::Lost(_) => "lost",
            Self::TimedOut => "timed-out",
        }
    }

    /// Returns the meaning of an error of the HTTP client. The connector's errors are inside it.
    pub(super) fn from_client(error: hyper_util::client::legacy::Error) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            match one.downcast_ref::<ConnectError>() {
                Some(ConnectError::NotPermitted) => return Self::NotPermitted,
                Some(ConnectError::NoGlobalAddress) => return Self::NoGlobalAddress,
                Some(ConnectError::TimedOut) => return Self::TimedOut,
                Some(ConnectError::Dns(_)) => return Self::Dns(error.into()),
                Some(ConnectError::Connect(_)) => return Self::Connect(error.into()),
                Some(ConnectError::Tls(_)) => return Self::Tls(error.into()),
                None => cause = one.source(),
            }
        }
        Self::Lost(error.into())
    }
}
