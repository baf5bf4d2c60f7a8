//! The address of a webhook.

use std::str::FromStr;

/// The port of `http` addresses without a port.
const HTTP: u16 = 80;
/// The beginning of addresses that need TLS.
const HTTPS: &str = "https://";
const NO_TLS: &str = "https is not supported, because weft does not use TLS; run a relay on this machine that accepts \
                      http on loopback and forwards it to this address, and name the address of the relay, such as \
                      http://127.0.0.1:8080/PATH";

/// The address that gets a message when the verdict of a target changes. Its form is
/// `http://HOST[:PORT][/PATH]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The host, without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port, as in the address.
    pub(super) authority: String,
    /// The path with the query. Begins with `/`.
    pub(super) path: String,
}

impl FromStr for Webhook {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.get(..HTTPS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(HTTPS)) {
            return Err(NO_TLS.to_owned());
        }
        let wrong = || format!("{text:?}: expected http://HOST:PORT/PATH, without user, password and fragment");
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        // The text becomes a part of the head of the request.
        if !rest.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '#' | '@' | '\\' | '"' | '<' | '>')) {
            return Err(wrong());
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority).ok_or_else(wrong)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Webhook { host: host.to_owned(), port, authority: authority.to_owned(), path })
    }
}

/// Splits `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
fn host_and_port(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port {
        "" => HTTP,
        port => port.strip_prefix(':')?.parse::<u16>().ok().filter(|port| *port != 0)?,
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_http_addresses() {
        for (text, host, port, authority, path) in [
            ("http://lab.example", "lab.example", 80, "lab.example", "/"),
            ("http://127.0.0.1:8080/hook?a=b", "127.0.0.1", 8080, "127.0.0.1:8080", "/hook?a=b"),
            ("http://[::1]:81?x", "::1", 81, "[::1]:81", "/?x"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
        ] {
            let (host, authority, path) = (host.to_owned(), authority.to_owned(), path.to_owned());
            assert_eq!(text.parse::<Webhook>(), Ok(Webhook { host, port, authority, path }), "{text}");
        }
    }

    #[test]
    fn rejects_other_addresses() {
        for text in ["https://lab.example/x", "HTTPS://lab.example/x"] {
            let error = text.parse::<Webhook>().unwrap_err();
            assert!(error.starts_with("https is not supported") && error.contains("run a relay"), "{error}");
        }
        for wrong in [
            "",
            "lab.example",
            "ftp://lab.example",
            "http://",
            "http:///path",
            "http://:80",
            "http://lab:0",
            "http://lab:x",
            "http://lab:65536",
            "http://[::1",
            "http://[::1]x",
            "http://user:password@lab/",
            "http://lab/a b",
            "http://lab/a\r\nX: y",
            "http://lab/#part",
        ] {
            assert!(wrong.parse::<Webhook>().is_err(), "{wrong}");
        }
    }
}
