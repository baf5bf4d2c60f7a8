//! Parses the endpoints of the proxy: `tcp://HOST:PORT` or `sdp://HOST:PORT`.

use std::fmt;
use std::str::FromStr;

/// The protocol of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Sdp,
    Tcp,
}

/// An endpoint of the command line. Its host is not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) protocol: Protocol,
    /// The text HOST:PORT.
    pub(super) at: String,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Sdp => "sdp",
            Protocol::Tcp => "tcp",
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.protocol, self.at)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, at) = match text.split_once("://") {
            Some(("sdp", at)) => (Protocol::Sdp, at),
            Some(("tcp", at)) => (Protocol::Tcp, at),
            _ => return Err("expected tcp://HOST:PORT or sdp://HOST:PORT".to_owned()),
        };
        if at.is_empty() {
            return Err("missing HOST:PORT after ://".to_owned());
        }
        Ok(Endpoint { protocol, at: at.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_endpoints() {
        let read = |text: &str| text.parse::<Endpoint>();
        let sdp = Endpoint { protocol: Protocol::Sdp, at: "[::1]:7".to_owned() };
        assert_eq!(read("sdp://[::1]:7"), Ok(sdp.clone()));
        assert_eq!(sdp.to_string(), "sdp://[::1]:7");
        assert_eq!(read("tcp://localhost:80").unwrap().protocol, Protocol::Tcp);
        for wrong in ["", "localhost:80", "tcp://", "udp://localhost:80"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
