//! Tokens, as the server's file of them tells them.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Characters of a token at least: 20 of a base64 alphabet are 120 bits.
const SHORTEST: usize = 20;
/// Characters of a token at most.
const LONGEST: usize = 512;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read everything.
    Viewer,
    /// Start and stop runs too.
    Operator,
}

impl Role {
    /// Its name, as the file has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
        }
    }
}

/// Who has a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) role: Role,
    /// Which token of the file, from 0.
    pub(crate) token: usize,
}

/// Why a file of tokens cannot be used. No token stands in the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A line is not understood; counted from 1.
    #[error("line {0}: expected `viewer TOKEN` or `operator TOKEN`")]
    Line(usize),
    /// A token could be guessed, or cannot be sent.
    #[error(
        "line {0}: a token has {SHORTEST} to {LONGEST} visible ASCII characters (`openssl rand -hex 32` makes one)"
    )]
    Token(usize),
    /// Nobody could sign in.
    #[error("the file has no token")]
    Empty,
}

/// Tokens with their roles. Only their digests are kept.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(Role, [u8; 32])>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

impl Tokens {
    /// Reads `viewer TOKEN` and `operator TOKEN`, one a line; empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// What [`TokensError`] lists.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (role, token) = line.split_once(char::is_whitespace).ok_or(TokensError::Line(number))?;
            let role = match role {
                "viewer" => Role::Viewer,
                "operator" => Role::Operator,
                _ => return Err(TokensError::Line(number)),
            };
            let token = token.trim_start();
            if !(SHORTEST..=LONGEST).contains(&token.len()) || !token.bytes().all(|octet| octet.is_ascii_graphic()) {
                return Err(TokensError::Token(number));
            }
            tokens.push((role, digest(token)));
        }
        if tokens.is_empty() { Err(TokensError::Empty) } else { Ok(Tokens(tokens)) }
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The holder of a token. How long it takes shows nothing of how near a wrong one is: digests are compared, all of them, each
    /// to its end.
    pub(super) fn holder(&self, token: &str) -> Option<Holder> {
        let given = digest(token);
        let mut holder = None;
        for (number, (role, digest)) in self.0.iter().enumerate() {
            let same: Choice = digest.ct_eq(&given);
            if bool::from(same) {
                holder = holder.max(Some(Holder { role: *role, token: number }));
            }
        }
        holder
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_both_roles() {
        let tokens =
            Tokens::parse("# lab\n\nviewer  aaaaaaaaaaaaaaaaaaaa\n operator\tbbbbbbbbbbbbbbbbbbbb \n").unwrap();
        assert_eq!(tokens.holder("aaaaaaaaaaaaaaaaaaaa"), Some(Holder { role: Role::Viewer, token: 0 }));
        assert_eq!(tokens.holder("bbbbbbbbbbbbbbbbbbbb"), Some(Holder { role: Role::Operator, token: 1 }));
        for wrong in ["", "aaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaa", "Aaaaaaaaaaaaaaaaaaaa", "viewer"] {
            assert_eq!(tokens.holder(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{tokens:?}"), "2 tokens");
    }

    #[test]
    fn what_is_no_file_of_tokens() {
        for (text, error) in [
            ("", TokensError::Empty),
            ("# viewer aaaaaaaaaaaaaaaaaaaa", TokensError::Empty),
            ("\nviewer", TokensError::Line(2)),
            ("admin aaaaaaaaaaaaaaaaaaaa", TokensError::Line(1)),
            ("viewer short", TokensError::Token(1)),
            ("viewer aaaaaaaaaaaaaaaaaaaa b", TokensError::Token(1)),
            ("viewer ääääääääääääääääääää", TokensError::Token(1)),
        ] {
            assert_eq!(Tokens::parse(text).unwrap_err(), error, "{text:?}");
        }
    }
}
