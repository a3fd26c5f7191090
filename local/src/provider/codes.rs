//! The codes that nobody has changed for a token yet.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest as _, Sha256};

use crate::token::Grant;

/// The most open codes. Of more, the oldest goes.
const MOST: usize = 100;

/// How long a code works. RFC 6749 recommends at most ten minutes; a script needs a moment.
const LIFETIME: TimeDelta = TimeDelta::seconds(60);

/// The length of a verifier, as RFC 7636, section 4.1 has it.
const VERIFIER: std::ops::RangeInclusive<usize> = 43..=128;

/// What a code stands for.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) redirect: String,
    pub(super) challenge: String,
    pub(super) made: DateTime<Utc>,
}

/// The open codes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<VecDeque<(String, Code)>>);

impl Code {
    /// Whether the verifier is the one whose hash the challenge is.
    pub(super) fn is_proven_by(&self, verifier: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        VERIFIER.contains(&verifier.len())
            && verifier.bytes().all(allowed)
            && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == self.challenge
    }
}

impl Codes {
    /// Opens a code, and returns its text.
    pub(super) fn open(&self, code: Code) -> Result<String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        let text = URL_SAFE_NO_PAD.encode(secret);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == MOST {
            open.pop_front();
        }
        open.push_back((text.clone(), code));
        Ok(text)
    }

    /// Takes a code out. None if there is no such code, or no longer.
    pub(super) fn take(&self, text: &str, now: DateTime<Utc>) -> Option<Code> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|(open, _)| open == text)?;
        let (_, code) = open.remove(place)?;
        (now - code.made < LIFETIME).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(challenge: &str) -> Code {
        let grant = Grant { client: "c", subject: "s", scopes: String::new(), accounts: vec![], lifetime: 1 };
        Code { grant, redirect: String::new(), challenge: challenge.to_owned(), made: DateTime::UNIX_EPOCH }
    }

    #[test]
    fn a_verifier_proves_its_own_challenge() {
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

    #[test]
    fn a_code_works_once_and_for_a_minute() {
        let codes = Codes::default();
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        for (seconds, works) in [(0, true), (59, true), (60, false), (3_600, false)] {
            let text = codes.open(code("")).unwrap();
            assert_eq!(codes.take(&text, at(seconds)).is_some(), works, "after {seconds} s");
            assert!(codes.take(&text, at(0)).is_none(), "twice");
        }
        assert!(codes.take("", at(0)).is_none());
    }

    #[test]
    fn the_oldest_of_too_many_codes_goes() {
        let codes = Codes::default();
        let texts: Vec<_> = (0..=MOST).map(|_| codes.open(code("")).unwrap()).collect();
        let works = |text: &String| codes.take(text, DateTime::UNIX_EPOCH).is_some();
        assert_eq!(texts.iter().map(works).filter(|works| *works).count(), MOST);
        assert!(!works(&texts[0]));
    }
}
