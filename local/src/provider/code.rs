//! The grant of an authorization code, and the proof of its client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::token::Grant;

/// The length of a verifier, as RFC 7636, section 4.1 has it.
const VERIFIER: std::ops::RangeInclusive<usize> = 43..=128;

/// The grant of a code, and its proof.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) redirect: String,
    pub(super) challenge: String,
}

impl Code {
    /// Whether the verifier is the one whose hash the challenge is.
    pub(super) fn is_proven_by(&self, verifier: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        VERIFIER.contains(&verifier.len())
            && verifier.bytes().all(allowed)
            && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == self.challenge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_proves_its_own_challenge() {
        let code = |challenge: &str| {
            let grant = Grant { client: "c", subject: "s", scopes: String::new(), accounts: vec![], lifetime: 1 };
            Code { grant, redirect: String::new(), challenge: challenge.to_owned() }
        };
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let own = code("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(own.is_proven_by(verifier));
        for wrong in ["", &verifier[1..], &verifier.to_lowercase(), &format!("{verifier}=")] {
            assert!(!own.is_proven_by(wrong), "{wrong}");
        }
        let of_nothing = code(&URL_SAFE_NO_PAD.encode(Sha256::digest("")));
        assert!(!of_nothing.is_proven_by(""), "too short, although it is right");
    }
}
