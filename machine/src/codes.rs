//! Codes: secret texts, each of which stands for a value for a minute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};

/// The most open codes. Of more, the oldest goes.
const MOST: usize = 100;

/// The lifetime of a code. RFC 6749 recommends at most ten minutes for codes of tokens; a script
/// needs a moment, and a click too.
pub const LIFETIME: TimeDelta = TimeDelta::seconds(60);

/// The open codes, the oldest first, each with the time of its opening and its value.
#[derive(Debug)]
pub struct Codes<T>(Mutex<VecDeque<(String, DateTime<Utc>, T)>>);

impl<T> Default for Codes<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Codes<T> {
    /// Opens a code, and returns its text.
    pub fn open(&self, value: T, now: DateTime<Utc>) -> Result<String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        let text = URL_SAFE_NO_PAD.encode(secret);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() == MOST {
            open.pop_front();
        }
        open.push_back((text.clone(), now, value));
        Ok(text)
    }

    /// Takes a code out. None if there is no such code, or no longer.
    pub fn take(&self, text: &str, now: DateTime<Utc>) -> Option<T> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|(open, ..)| open == text)?;
        let (_, opened, value) = open.remove(place)?;
        (now - opened < LIFETIME).then_some(value)
    }

    /// The value of a code, which stays open. None if the code is unknown or expired.
    pub fn look(&self, text: &str, now: DateTime<Utc>) -> Option<T>
    where
        T: Clone,
    {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, opened, value) = open.iter().find(|(open, ..)| open == text)?;
        (now - *opened < LIFETIME).then(|| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_for_a_minute_and_is_taken_once() {
        let codes = Codes::default();
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        for (seconds, works) in [(0, true), (59, true), (60, false), (3_600, false)] {
            let text = codes.open("it", at(0)).unwrap();
            for _ in 0..2 {
                assert_eq!(codes.look(&text, at(seconds)).is_some(), works, "after {seconds} s");
            }
            assert_eq!(codes.take(&text, at(seconds)).is_some(), works, "after {seconds} s");
            assert!(codes.take(&text, at(0)).is_none(), "twice");
        }
        assert!(codes.take("", at(0)).is_none());
    }

    #[test]
    fn the_oldest_of_too_many_codes_goes() {
        let codes = Codes::default();
        let texts: Vec<_> = (0..=MOST).map(|_| codes.open((), DateTime::UNIX_EPOCH).unwrap()).collect();
        let works = |text: &String| codes.take(text, DateTime::UNIX_EPOCH).is_some();
        assert_eq!(texts.iter().map(works).filter(|works| *works).count(), MOST);
        assert!(!works(&texts[0]));
    }
}
