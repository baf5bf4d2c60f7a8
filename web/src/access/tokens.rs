//! The tokens in the server's token file.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The shortest token in characters: 20 characters of base64 are 120 bits.
const SHORTEST: usize = 20;
/// The longest token in characters.
const LONGEST: usize = 512;

/// The rights of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Can read everything.
    Viewer,
    /// Can also start and stop runs, and upload and delete captures.
    Operator,
}

impl Role {
    /// The name of the role in the token file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
        }
    }
}

/// The holder of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) role: Role,
    /// The number of the token in the file, from 0.
    pub(crate) token: usize,
}

/// Why a token file cannot be used. The messages contain no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A line cannot be parsed. The field is the number of the line, from 1.
    #[error("line {0}: expected `viewer TOKEN` or `operator TOKEN`")]
    Line(usize),
    /// A token is too short or too long, or has characters that cannot be sent in a header. The
    /// field is the number of the line, from 1.
    #[error(
        "line {0}: a token has {SHORTEST} to {LONGEST} visible ASCII characters (`openssl rand -hex 32` prints a random token)"
    )]
    Token(usize),
    /// The file has no token.
    #[error("the file has no token")]
    Empty,
}

/// Tokens with their roles. Only the digests of tokens are stored.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(Role, [u8; 32])>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

impl Tokens {
    /// Parses lines of the form `viewer TOKEN` or `operator TOKEN`. Ignores empty lines, and lines
    /// that begin with `#`.
    ///
    /// # Errors
    /// Returns an error if a line cannot be parsed, if a token is not valid, or if there is no
    /// token.
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

    /// Returns whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the holder of a token, or `None` if the token is wrong. Always compares the complete
    /// digests of all tokens. The duration therefore does not show how similar a wrong token is to
    /// a correct token.
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
    fn parses_a_file_with_both_roles() {
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
    fn rejects_other_files() {
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
