//! Verifies the requests that the bank sends to a webhook endpoint, by Standard Webhooks.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use serde::Deserialize;
use sha2::Sha256;

use crate::events::Event;

/// The usual tolerance of [`verify`]: five minutes.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// The fewest bytes of a secret: Standard Webhooks knows no shorter one. The bank's have 32.
const MIN_SECRET_BYTES: usize = 24;

/// A fault of a request, which must then not be trusted. Answer it with 400.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// A header is missing or empty.
    #[error("missing-header: the header {0} is missing or empty; pass all headers of the request")]
    MissingHeader(&'static str),
    /// The bank did not sign this body with one of the secrets.
    #[error(
        "wrong-signature: no signature fits; use this endpoint's secrets, and the bytes of the body as they were received"
    )]
    WrongSignature,
    /// The message was signed this many seconds ago.
    #[error("too-old: it was signed {0} seconds ago; somebody sent it again, or this machine's clock is ahead")]
    TooOld(u64),
    /// The message was signed this many seconds ahead of the clock.
    #[error("too-new: it was signed {0} seconds ahead of this machine's clock, which may be behind")]
    TooNew(u64),
    /// The body differs from openapi.yaml.
    #[error("not-events: not the message that openapi.yaml describes: {0}")]
    NotEvents(#[from] serde_json::Error),
    /// A secret is invalid, or there is no secret. The text of the error never shows it.
    #[error("invalid-secret: a secret must be the text whsec_… that the bank shows for the endpoint")]
    InvalidSecret,
}

/// The body of a request.
#[derive(Deserialize)]
struct Message {
    events: Vec<Event>,
}

/// Returns the events of a request, if the bank signed these bytes within `tolerance` of `now`. Give all secrets that you
/// know: one has to fit.
///
/// # Errors
/// [`WebhookError`] if the request must not be trusted, or a secret is invalid.
pub fn verify<S: AsRef<str>>(
    secrets: &[S],
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
    tolerance: Duration,
) -> Result<Vec<Event>, WebhookError> {
    let keys = secrets.iter().map(|secret| key(secret.as_ref())).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(WebhookError::InvalidSecret);
    }
    let id = header(headers, "webhook-id")?;
    let sent = header(headers, "webhook-timestamp")?;
    let signatures = header(headers, "webhook-signature")?;
    let is_signed = keys.into_iter().any(|mut mac| {
        mac.update(format!("{id}.{sent}.").as_bytes());
        mac.update(body);
        signatures.split(' ').any(|one| fits(&mac, one))
    });
    let is_number = sent.bytes().all(|byte| byte.is_ascii_digit());
    let sent: i64 = sent.parse().ok().filter(|_| is_signed && is_number).ok_or(WebhookError::WrongSignature)?;
    let now = now.timestamp();
    match now.abs_diff(sent) {
        seconds if seconds <= tolerance.as_secs() => Ok(serde_json::from_slice::<Message>(body)?.events),
        seconds if sent < now => Err(WebhookError::TooOld(seconds)),
        seconds => Err(WebhookError::TooNew(seconds)),
    }
}

fn key(secret: &str) -> Result<Hmac<Sha256>, WebhookError> {
    let text = secret.strip_prefix("whsec_").unwrap_or(secret);
    let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() >= MIN_SECRET_BYTES);
    bytes.and_then(|bytes| Hmac::new_from_slice(&bytes).ok()).ok_or(WebhookError::InvalidSecret)
}

fn header<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<&'h str, WebhookError> {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty());
    value.ok_or(WebhookError::MissingHeader(name))
}

/// Returns whether this is the signature. The comparison always takes the same time.
fn fits(mac: &Hmac<Sha256>, signature: &str) -> bool {
    let bytes = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok());
    bytes.is_some_and(|bytes| mac.clone().verify_slice(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::Value;

    use super::*;

    /// The messages that the bank's sender signed.
    const VECTORS: &str = include_str!("../../vectors/webhooks.json");

    const SECRET: &str = "whsec_lqvatgnzuFa7cbhOnMJRg69xkd0ZZ4+yw9ExT9lLcCY=";

    #[derive(Deserialize)]
    struct Vectors {
        now: i64,
        vectors: Vec<Vector>,
    }

    #[derive(Deserialize)]
    struct Vector {
        name: String,
        error: Option<String>,
        secrets: Vec<String>,
        headers: HashMap<String, String>,
        body: String,
    }

    fn vectors() -> (DateTime<Utc>, Vec<(Vector, HeaderMap)>) {
        let Vectors { now, vectors } = serde_json::from_str(VECTORS).unwrap();
        let with_headers = vectors.into_iter().map(|vector| {
            let headers = (&vector.headers).try_into().unwrap();
            (vector, headers)
        });
        (DateTime::from_timestamp(now, 0).unwrap(), with_headers.collect())
    }

    #[test]
    fn what_the_sender_signed_is_verified_and_nothing_else() {
        let (now, vectors) = vectors();
        for (vector, headers) in vectors {
            let verified = verify(&vector.secrets, &headers, vector.body.as_bytes(), now, TOLERANCE);
            let kind = verified.as_ref().err().map(|error| error.to_string().split(':').next().unwrap().to_owned());
            assert_eq!(kind, vector.error, "{}", vector.name);
            if let Ok(events) = verified {
                let body: Value = serde_json::from_str(&vector.body).unwrap();
                let ids: Vec<_> = body["events"].as_array().unwrap().iter().map(|event| event["id"].as_str()).collect();
                let found: Vec<_> = events.iter().map(|event| Some(event.id.as_str())).collect();
                assert_eq!(found, ids, "{}", vector.name);
            }
        }
    }

    #[test]
    fn the_tolerance_is_a_choice() {
        let (now, vectors) = vectors();
        let (first, headers) = &vectors[0];
        let seen = |later: u64, tolerance: u64| {
            let now = now + Duration::from_secs(later);
            verify(&first.secrets, headers, first.body.as_bytes(), now, Duration::from_secs(tolerance))
        };
        assert_eq!(seen(10, 10).unwrap().len(), 2);
        assert!(matches!(seen(11, 10), Err(WebhookError::TooOld(11))));
        assert!(seen(86_400, 86_400).is_ok());
    }

    #[test]
    fn a_signature_does_not_make_a_time_of_any_text() {
        let (now, _) = vectors();
        for sent in ["now", "+1796083513", "1796083513.5"] {
            let mut mac = key(SECRET).unwrap();
            mac.update(format!("msg_1.{sent}.").as_bytes());
            let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
            let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
            let values = ["msg_1", sent, &signature].map(|value| value.parse().unwrap());
            let headers = names.map(http::HeaderName::from_static).into_iter().zip(values).collect();
            let verified = verify(&[SECRET], &headers, b"", now, TOLERANCE);
            assert!(matches!(verified, Err(WebhookError::WrongSignature)), "{sent}: {verified:?}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_secret_is_an_error_that_does_not_show_it() {
        let (now, vectors) = vectors();
        let (first, headers) = &vectors[0];
        let long = format!("{SECRET}%");
        for secrets in [vec![], vec![""], vec!["whsec_"], vec!["whsec_c2hvcnQ="], vec![SECRET, &long]] {
            let error = verify(&secrets, headers, first.body.as_bytes(), now, TOLERANCE).unwrap_err();
            assert!(matches!(error, WebhookError::InvalidSecret), "{error}");
            assert!(!format!("{error} {error:?}").contains("c2hvcnQ"), "{error:?}");
        }
    }
}
