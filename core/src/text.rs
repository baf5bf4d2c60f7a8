//! Escapes control characters in foreign text (from a target, a file or a report) before weft
//! prints the text.
//!
//! A control character can move the cursor of a terminal, hide printed text or set the title.
//! Therefore every printer of weft prints control characters as escapes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Returns `text` with control characters as escapes (`\x1b`, `\u{202e}`). Line feeds and tabs
/// stay.
///
/// ```
/// assert_eq!(weft_core::text::visible("a\u{1b}[2Jb\n"), "a\\x1b[2Jb\n");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Returns `text` like [`visible`], but with line feeds and tabs as escapes, too. Text from a peer
/// therefore cannot start a new line that looks like output of weft.
///
/// ```
/// assert_eq!(weft_core::text::visible_in_line("done\nweft: 0 errors"), "done\\x0aweft: 0 errors");
/// ```
#[must_use]
pub fn visible_in_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) || matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a `String` never fails.
        let _ = match u32::from(c) {
            _ if !is_hidden(c) => shown.write_char(c),
            code @ ..0x100 => write!(shown, "\\x{code:02x}"),
            code => write!(shown, "\\u{{{code:x}}}"),
        };
    }
    shown.into()
}

/// Returns whether `c` is a control character other than line feed or tab, or a Unicode character
/// that changes the text direction or starts a new line.
fn is_hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A writer that applies [`visible`] to all text before it writes the text. Bytes that are not
/// UTF-8 are written unchanged. Such bytes are not formatted text, because a formatter writes only
/// UTF-8.
#[derive(Debug)]
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match str::from_utf8(octets) {
            Ok(text) => self.0.write_all(visible(text).as_bytes())?,
            Err(_) => self.0.write_all(octets)?,
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escapes() {
        assert_eq!(visible("plain\ttext ü\n"), "plain\ttext ü\n");
        assert_eq!(visible("\r\x07\x7f\u{9b}31m\0"), "\\x0d\\x07\\x7f\\x9b31m\\x00");
        assert_eq!(visible("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
        assert_eq!(visible_in_line("plain text ü"), "plain text ü");
        assert_eq!(visible_in_line("a\tb\nc\x1b"), "a\\x09b\\x0ac\\x1b");
        let mut out = Visible(Vec::new());
        write!(out, "\x1b]0;title\x07: {}", 7).unwrap();
        assert_eq!(out.0, b"\\x1b]0;title\\x07: 7");
    }
}
