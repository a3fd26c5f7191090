//! The text of the header `Idempotency-Key`: as it is, or a string of RFC 8941 in double quotes.

use std::borrow::Cow;

/// Returns the key that a header's value names: the text inside of double quotes, else the value itself. `None` if it begins with a
/// double quote and is not a string of RFC 8941, section 3.3.3, alone.
#[must_use]
pub fn key_of(value: &str) -> Option<Cow<'_, str>> {
    let Some(quoted) = value.strip_prefix('"') else { return Some(Cow::Borrowed(value)) };
    let inside = quoted.strip_suffix('"')?;
    let mut text = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => characters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?,
            '"' => return None,
            plain => plain,
        });
    }
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_no_part_of_a_key() {
        for (value, key) in [
            ("rent-1", Some("rent-1")),
            ("", Some("")),
            (r#"a"b"#, Some(r#"a"b"#)),
            (r#"rent-1""#, Some(r#"rent-1""#)),
            (r#""rent-1""#, Some("rent-1")),
            (r#""""#, Some("")),
            (r#""\"a\\b\"""#, Some(r#""a\b""#)),
            (r#"""#, None),
            (r#""rent-1"#, None),
            (r#""rent-1\""#, None),
            (r#""a"b""#, None),
            (r#""a\b""#, None),
            (r#""a";v=1"#, None),
        ] {
            assert_eq!(key_of(value).as_deref(), key, "{value}");
        }
    }
}
