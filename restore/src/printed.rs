//! The texts of programs as an operator may see them: without escapes and control characters, and not too long.

/// The most characters of a failed program's output that are shown: half a page of a terminal.
pub(crate) const FAILURE: usize = 2_000;

/// The most characters that are shown of an output that was not expected.
pub(crate) const SAMPLE: usize = 300;

/// Returns a text without escape sequences and control characters other than line ends, or its beginning.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut left = most;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // The sequence of a terminal ends with a letter, as in ESC [ 31 m.
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            continue;
        }
        if c.is_control() && c != '\n' {
            continue;
        }
        // One character is for the sign that there is more.
        if left == 1 && chars.peek().is_some() {
            shown.push('…');
            break;
        }
        shown.push(c);
        left -= 1;
    }
    shown
}

/// The beginning of a text, in one line.
pub(crate) fn sample(text: &str) -> String {
    plain(text, SAMPLE).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_control_characters_are_left_out() {
        for (text, wanted) in [
            ("", ""),
            ("plain\nlines", "plain\nlines"),
            ("\u{1b}[1;31mred\u{1b}[0m\r\n\u{7}bell\u{9b}", "red\nbell"),
            ("\u{1b}]0;title", "]0;title"),
            ("cut \u{1b}[", "cut "),
        ] {
            assert_eq!(plain(text, FAILURE), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(plain("12345", 5), "12345");
        assert_eq!(plain("123456", 5), "1234…");
        assert_eq!(sample(&"é\n".repeat(1_000)).chars().count(), SAMPLE);
    }
}
