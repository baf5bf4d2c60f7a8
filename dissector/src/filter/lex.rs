//! Splits a filter into tokens: words, strings and operators. Words such as `10.0.0.1`, `aa:bb:cc`
//! or `in` are not classified, because their meaning depends on the context.

use std::ops::Range;

use super::error::FilterError;

/// A token and the range of its octets in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub kind: TokenKind<'t>,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind<'t> {
    /// A name, a number, an address, octets or a keyword.
    Word(&'t str),
    /// The text between quotation marks, with escapes resolved.
    Str(Vec<u8>),
    /// An operator or other punctuation, for example `==`, `!=` or `&&`.
    Sign(&'static str),
}

/// All operators. Longer operators come first. Otherwise `===` would be read as `==` and `=`.
const OPERATORS: [&str; 19] =
    ["===", "!==", "==", "!=", "~=", ">=", "<=", "&&", "||", ">", "<", "!", "~", "(", ")", "{", "}", ",", "&"];

/// Splits `text` into tokens.
pub(super) fn lex(text: &str) -> Result<Vec<Token<'_>>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, len) = if c == '"' {
            string(text, at, at + 1, false)?
        } else if rest.starts_with("r\"") {
            let (kind, len) = string(text, at, at + 2, true)?;
            (kind, len + 1)
        } else if let Some(sign) = OPERATORS.iter().find(|sign| rest.starts_with(**sign)) {
            (TokenKind::Sign(sign), sign.len())
        } else {
            let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            if len == 0 {
                let what = match c {
                    '\'' => "write strings in quotation marks: \"...\"".to_owned(),
                    '=' => "use == instead of =".to_owned(),
                    '|' => "use || instead of |".to_owned(),
                    '[' => "parts of a field cannot be selected; use the operator `contains` or `matches`".to_owned(),
                    c => format!("unexpected character {c:?}"),
                };
                return Err(FilterError::new(text, &(at..at + c.len_utf8()), what));
            }
            (TokenKind::Word(&rest[..len]), len)
        };
        tokens.push(Token { kind, span: at..at + len });
        at += len;
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

/// Reads a string that starts at `start`. Its content starts at `from`, after the opening quotation
/// mark. Returns the string, and the length of the string in the text.
fn string(text: &str, start: usize, from: usize, raw: bool) -> Result<(TokenKind<'_>, usize), FilterError> {
    let octets = text.as_bytes();
    let (mut value, mut at) = (Vec::new(), from);
    loop {
        match octets.get(at) {
            None => {
                return Err(FilterError::new(text, &(start..text.len()), "this string has no closing quotation mark"));
            }
            Some(b'"') => return Ok((TokenKind::Str(value), at + 1 - start - usize::from(raw))),
            Some(b'\\') if !raw => {
                let (octet, used) = escape(text, at)?;
                match octet {
                    Some(octet) => value.push(octet),
                    // An unknown escape is not changed, because it can be part of a regular
                    // expression.
                    None => value.extend_from_slice(&octets[at..(at + used).min(octets.len())]),
                }
                at += used;
            }
            Some(octet) => {
                value.push(*octet);
                at += 1;
            }
        }
    }
}

/// Reads the escape at offset `at`. Returns the octet that the escape represents (`None` for an
/// unknown escape), and the length of the escape in the text.
fn escape(text: &str, at: usize) -> Result<(Option<u8>, usize), FilterError> {
    let octets = text.as_bytes();
    let octet = match octets.get(at + 1) {
        Some(b'"') => b'"',
        Some(b'\\') => b'\\',
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'0') => 0,
        Some(b'x') => {
            let digits = text.get(at + 2..at + 4).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let Some(octet) = digits else {
                let span = at..(at + 2).min(text.len());
                return Err(FilterError::new(text, &span, "\\x takes two hexadecimal digits"));
            };
            return Ok((Some(octet), 4));
        }
        _ => return Ok((None, 1)),
    };
    Ok((Some(octet), 2))
}
