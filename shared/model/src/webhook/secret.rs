//! Secrets of webhook endpoints, derived from one master secret, and their signatures (Standard Webhooks).

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use sha2::Sha256;

use crate::calendar::instant::UtcSecond;
use crate::webhook::endpoint_id::EndpointId;
use crate::webhook::message_id::MessageId;

/// The fewest characters of a master secret. 32 of Secrets Manager's letters and digits have 190 bits.
pub const MIN_MASTER_CHARS: usize = 32;

/// The text that the derivation signs before endpoint and generation, so that the master secret
/// signs nothing else with it.
const DERIVATION: &[u8] = b"scheduled-payments webhook endpoint secret, version 1";

/// The secret from which the secrets of all endpoints are derived. It is never shown.
#[derive(Clone)]
pub struct MasterSecret(Vec<u8>);

/// Why a text is not a master secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MasterSecretError {
    /// The text is too short.
    #[error("the master secret of webhooks must have at least {MIN_MASTER_CHARS} characters, but this one has {0}")]
    TooShort(usize),
}

impl FromStr for MasterSecret {
    type Err = MasterSecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.chars().count() {
            count if count < MIN_MASTER_CHARS => Err(MasterSecretError::TooShort(count)),
            _ => Ok(Self(text.as_bytes().to_vec())),
        }
    }
}

impl std::fmt::Debug for MasterSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterSecret(hidden)")
    }
}

/// The generation of an endpoint's secret. A rotation raises it; both generations sign for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SecretGeneration(u32);

impl SecretGeneration {
    /// The generation of a new endpoint.
    pub const FIRST: Self = Self(1);

    /// Reads a stored number.
    #[must_use]
    pub const fn from_stored(number: u32) -> Option<Self> {
        if number >= 1 { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The generation after this one; `None` after the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The generation before this one, if there is one.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        Self::from_stored(self.0 - 1)
    }
}

/// The secret of one generation of an endpoint: 32 bytes, which sign its messages.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointSecret([u8; 32]);

impl EndpointSecret {
    /// Derives a secret. The same master, endpoint and generation always give the same one.
    #[must_use]
    pub fn derive(master: &MasterSecret, endpoint: &EndpointId, generation: SecretGeneration) -> Self {
        // Of fixed length, or without a NUL and followed by one: no two endpoints or generations give the same bytes.
        Self(hmac(&master.0, &[DERIVATION, b"\0", endpoint.as_str().as_bytes(), b"\0", &generation.0.to_be_bytes()]))
    }

    /// Returns the secret as Standard Webhooks writes it, `whsec_<base64>`, to show it to its owner. Never log it.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// Signs a message that is sent at an instant: `v1,<base64>`, for the header `webhook-signature`.
    #[must_use]
    pub fn sign(&self, message: &MessageId, at: UtcSecond, body: &[u8]) -> String {
        let timestamp = at.as_chrono().timestamp().to_string();
        let signature = hmac(&self.0, &[message.as_str().as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(signature))
    }
}

impl std::fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EndpointSecret(hidden)")
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: &str = "0123456789abcdefghijklmnopqrstuv";

    fn secret(endpoint: &str, generation: u32) -> EndpointSecret {
        let generation = SecretGeneration::from_stored(generation).unwrap();
        EndpointSecret::derive(&MASTER.parse().unwrap(), &endpoint.parse().unwrap(), generation)
    }

    #[test]
    fn each_endpoint_and_generation_has_a_secret_of_its_own_that_never_changes() {
        // Computed by Python's hmac. Another value would make every receiver reject every message.
        assert_eq!(secret("erp", 1).reveal(), "whsec_IAWrQ365OdhsYgk7s49LVdokNHb9bKsthPs/bi6hhUI=");
        let secrets = [secret("erp", 1), secret("erp", 2), secret("erp1", 1), secret("ERP", 1), secret("erp", 256)];
        for (i, one) in secrets.iter().enumerate() {
            assert!(secrets[i + 1..].iter().all(|other| other != one), "{i}");
        }
        let other = "0123456789abcdefghijklmnopqrstuw".parse().unwrap();
        let other = EndpointSecret::derive(&other, &"erp".parse().unwrap(), SecretGeneration::FIRST);
        assert_ne!(other, secret("erp", 1));
    }

    #[test]
    fn a_signature_is_that_of_the_specification() {
        // The example of the specification of Standard Webhooks.
        let bytes = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let parts: [&[u8]; 5] =
            [b"msg_p5jXN8AQM9LWM0D4loKWxJek", b".", b"1614265330", b".", br#"{"test": 2432232314}"#];
        assert_eq!(STANDARD.encode(hmac(&bytes, &parts)), "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        // Computed by Python's hmac.
        let at = "2026-12-01T08:00:00Z".parse().unwrap();
        let signed = secret("erp", 1).sign(&"msg_1".parse().unwrap(), at, br#"{"events":[]}"#);
        assert_eq!(signed, "v1,PQ9mXe+O978twMaAuEErorUgmJ4w4XkLTTEwrZIfEeY=");
    }

    #[test]
    fn secrets_are_shown_only_where_that_is_asked_for() {
        let master: MasterSecret = MASTER.parse().unwrap();
        assert_eq!(format!("{master:?} {:?}", secret("erp", 1)), "MasterSecret(hidden) EndpointSecret(hidden)");
        assert_eq!("short".parse::<MasterSecret>().unwrap_err(), MasterSecretError::TooShort(5));
    }
}
