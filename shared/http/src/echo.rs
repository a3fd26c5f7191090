//! Texts of a request that its answer repeats: cut, so that no answer grows with its request.
//!
//! Lambda accepts answers of up to 6 MB, in which an answer's JSON is a JSON string once more: a control character
//! takes 7 bytes then. A batch has up to 100 problems, each with at most 10 faults of at most two texts of
//! [`MAX_ECHOED_BYTES`] beside the code's own words: 1.2 MB at the very worst, 1.6 MB in base64.

use std::borrow::Cow;

/// The longest text of a request that an answer repeats, in bytes. Every name and id of the API is shorter.
pub const MAX_ECHOED_BYTES: usize = 64;

/// The longest `detail` of a problem, in bytes. The code's own words are shorter.
pub const MAX_DETAIL_BYTES: usize = 1_024;

/// The replacement of a cut text's rest.
const REST: &str = "…";

/// A text of a request as an answer repeats it: cut after the last whole character within [`MAX_ECHOED_BYTES`].
pub(crate) fn echoed(text: &str) -> Cow<'_, str> {
    cut(text.into(), MAX_ECHOED_BYTES)
}

/// A text of a request within `most` bytes, for answers that repeat it as the client sent it.
#[must_use]
pub fn bounded(text: &str, most: usize) -> String {
    cut(text.into(), most).into_owned()
}

/// A `detail` within [`MAX_DETAIL_BYTES`].
pub(crate) fn detail(text: String) -> String {
    cut(text.into(), MAX_DETAIL_BYTES).into_owned()
}

/// Cuts a text after the last whole character that leaves room for [`REST`].
fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let (kept, _) = text.split_at(text.floor_char_boundary(most - REST.len()));
    format!("{kept}{REST}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (text, want) in [
            (String::new(), String::new()),
            ("é".repeat(32), "é".repeat(32)),
            ("x".repeat(64), "x".repeat(64)),
            ("x".repeat(65), format!("{}…", "x".repeat(61))),
            ("é".repeat(33), format!("{}…", "é".repeat(30))),
            ("\u{1f600}".repeat(17), format!("{}…", "\u{1f600}".repeat(15))),
            ("\u{1}".repeat(2_000_000), format!("{}…", "\u{1}".repeat(61))),
        ] {
            assert_eq!(echoed(&text), want);
            assert!(echoed(&text).len() <= MAX_ECHOED_BYTES);
        }
        assert_eq!(detail("x".repeat(1_025)).len(), MAX_DETAIL_BYTES);
    }
}
