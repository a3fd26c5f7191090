//! The client's own JSON: kept byte for byte, without constructs that other readers reject.

use serde_json::value::RawValue;

/// The greatest depth of nested arrays and objects. Many readers stop at 100 or 128 levels, and the
/// client's JSON is one or two levels deep in messages and answers.
pub const MAX_JSON_DEPTH: usize = 64;

/// A piece of JSON text, kept byte for byte.
///
/// ```
/// # use payments_model::JsonText;
/// // Spaces and the zeros of a number stay as the client sent them.
/// let sent = r#"{ "note": "rent", "share": 0.50 }"#;
/// assert_eq!(JsonText::new(serde_json::from_str(sent)?)?.as_str(), sent);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

as_text!(JsonText);

/// Why a JSON value is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    /// Arrays and objects are nested too deep.
    #[error("its arrays and objects are nested more than {MAX_JSON_DEPTH} levels deep")]
    TooDeep,
    /// An escape such as `\ud800` stands for half a character. JSON's grammar permits it, but Unicode does not.
    #[error("it has half of a surrogate pair, such as \\ud800, which is not a character")]
    LoneSurrogate,
}

impl JsonText {
    /// Keeps the text of a parsed JSON value.
    ///
    /// # Errors
    /// [`JsonTextError`] for JSON that some readers reject.
    pub fn new(value: &RawValue) -> Result<Self, JsonTextError> {
        let text = value.get();
        if depth_of(text)? > MAX_JSON_DEPTH { Err(JsonTextError::TooDeep) } else { Ok(Self(text.to_owned())) }
    }

    /// Checks a stored text. Depth and surrogates were checked when it was accepted, or it was accepted before they
    /// were checked.
    ///
    /// # Errors
    /// An error if the text is not one JSON value.
    pub fn from_stored(text: String) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<serde::de::IgnoredAny>(&text).map(|_| Self(text))
    }
}

/// The depth of a JSON text, whose grammar was checked before: 0 for a scalar, 1 for an array of scalars.
fn depth_of(text: &str) -> Result<usize, JsonTextError> {
    let mut depth = 0_usize;
    let mut deepest = 0;
    let mut rest = text;
    while let Some((byte, after)) = split_at_first(rest, b"\"[{]}") {
        rest = after;
        match byte {
            b'"' => rest = after_string(rest)?,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            _ => depth = depth.saturating_sub(1),
        }
    }
    Ok(deepest)
}

/// The text after a string whose opening quote was read.
fn after_string(mut rest: &str) -> Result<&str, JsonTextError> {
    while let Some((byte, after)) = split_at_first(rest, b"\"\\") {
        if byte == b'"' {
            return Ok(after);
        }
        rest = after_escape(after)?;
    }
    Ok("")
}

/// The text after an escape whose backslash was read.
fn after_escape(escape: &str) -> Result<&str, JsonTextError> {
    match code_unit(escape) {
        Some((0xd800..=0xdbff, after)) => match after.strip_prefix('\\').and_then(code_unit) {
            Some((0xdc00..=0xdfff, after)) => Ok(after),
            _ => Err(JsonTextError::LoneSurrogate),
        },
        Some((0xdc00..=0xdfff, _)) => Err(JsonTextError::LoneSurrogate),
        Some((_, after)) => Ok(after),
        // One of the escapes of a single letter.
        None => Ok(escape.get(1..).unwrap_or_default()),
    }
}

/// The UTF-16 code unit of an escape such as `u00e9`, and the text after it.
fn code_unit(escape: &str) -> Option<(u16, &str)> {
    let (digits, after) = escape.strip_prefix('u')?.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, after))
}

/// The first of these ASCII bytes in a text, and the text after it.
fn split_at_first<'t>(text: &'t str, bytes: &[u8]) -> Option<(u8, &'t str)> {
    let (at, byte) = text.bytes().enumerate().find(|(_, byte)| bytes.contains(byte))?;
    Some((byte, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accept(text: &str) -> Result<String, JsonTextError> {
        let raw = RawValue::from_string(text.to_owned());
        let Ok(raw) = raw else { panic!("{text} is not JSON") };
        JsonText::new(&raw).map(|kept| kept.to_string())
    }

    #[test]
    fn nesting_is_bounded() {
        let nested =
            |open: &str, close: &str, levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[[],{"b":"#, "}]")] {
            let each = open.matches(['[', '{']).count() - open.matches([']', '}']).count();
            let most = MAX_JSON_DEPTH / each;
            assert!(accept(&nested(open, close, most)).is_ok(), "{open}");
            for deeper in [most + 1, 100_000] {
                assert_eq!(accept(&nested(open, close, deeper)), Err(JsonTextError::TooDeep), "{open}");
            }
        }
        let wide = format!("[{}[]]", "[[]],".repeat(1_000));
        assert_eq!(accept(&wide), Ok(wide));
        let quoted = format!("{:?}", "[{".repeat(1_000));
        assert_eq!(accept(&quoted), Ok(quoted));
    }

    #[test]
    fn surrogates_come_in_pairs() {
        for text in [
            r#""\ud83d\ude00""#,
            r#""\uD83D\uDE00 \u00e9\ud7ff\ue000""#,
            r#""\\ud800""#,
            r#""\\\\ud800""#,
            r#"{"\ud83d\ude00":"\""}"#,
            r#"["\"", "\\", "ud800"]"#,
            "\"\u{1f600}\"",
        ] {
            assert_eq!(accept(text), Ok(text.to_owned()), "{text}");
        }
        for text in [
            r#""\ud800""#,
            r#""\udfff""#,
            r#""\uDBFF!""#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\ude00\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83d\u0041""#,
            r#""\\\ud800""#,
            r#"{"\ud800":1}"#,
            r#"[1,{"a":["x","\udc00"]}]"#,
        ] {
            assert_eq!(accept(text), Err(JsonTextError::LoneSurrogate), "{text}");
        }
    }

    proptest! {
        #[test]
        fn strings_are_accepted_as_by_a_reader_that_decodes_them(
            pieces in prop::collection::vec(
                prop::sample::select(vec![r"\ud83d", r"\uDE00", r"\u0041", r"\n", r"\\", r#"\""#, "a", "\u{e9}", "[{"]),
                0..8,
            ),
        ) {
            let text = format!(r#"{{"k":["{}"]}}"#, pieces.concat());
            let decoded = serde_json::from_str::<serde_json::Value>(&text);
            prop_assert_eq!(accept(&text).is_ok(), decoded.is_ok(), "{}", text);
        }
    }
}
