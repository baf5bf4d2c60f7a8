//! Requests and answers between the shim and its agent. Each of them is one line of text, with
//! spaces between the words.
//!
//! Usually the shim sends one request on a connection to the agent. The exception is
//! [`Request::Connect`]. After the agent has answered this request, the shim sends a second
//! request, [`Request::From`]:
//!
//! ```text
//! shim                                    agent
//! connect 192.0.2.17:80 sdp 192.0.2.17:7080
//!                                         at 127.83.68.80:40123  (SDP has connected)
//! from 127.0.0.1:51234                    (the program's descriptor has connected to port 40123)
//!                                         done
//! ```
//!
//! If SDP cannot connect, the first answer is `failed REASON TEXT`, and the exchange ends.
//!
//! For a non-blocking program, the request ends with `no-wait`. The agent answers at once with an
//! address. A TCP connection to this address stays pending until the SDP connection opens or fails.
//! The program waits for its connection as usual:
//!
//! ```text
//! shim                                    agent
//! connect 192.0.2.17:80 sdp 192.0.2.17:7080 no-wait
//!                                         at 127.83.68.80:40123
//! from 127.0.0.1:51234                    (the program's descriptor is connecting)
//! ```
//!
//! If SDP fails, the agent resets the program's connection. The shim then requests the error of SDP
//! ([`Request::Why`]). The program then gets this error instead of the reset.

use core::fmt;
use core::net::SocketAddr;
use core::str::{FromStr, SplitAsciiWhitespace};

use super::Route;
use crate::reject::reject_if;

/// Maximum length of a line in bytes, including its newline.
pub const MAX_LINE_LEN: usize = 512;

/// A request of the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Requests a connection to a service.
    Connect {
        /// The address that the program connects to.
        service: SocketAddr,
        /// How to reach the service.
        by: Route,
        /// The address that the program's descriptor is bound to. `None` if the descriptor is not
        /// bound.
        source: Option<SocketAddr>,
        /// The agent answers before the connection is open.
        no_wait: bool,
    },
    /// The program's descriptor connects from this address to the address in the answer.
    From(SocketAddr),
    /// Requests the reason why the connection of the program's descriptor failed. The address is
    /// the local address of the descriptor.
    Why(SocketAddr),
    /// A program listens on a TCP port. The agent listens for SDP on `sdp`, and passes the SDP
    /// connections to the program.
    Listen {
        /// The address that the program listens on.
        service: SocketAddr,
        /// The address that the agent listens on for SDP.
        sdp: SocketAddr,
        /// The program's socket accepts no IPv4 connections (IPV6_V6ONLY). Therefore another socket
        /// can use the port for IPv4.
        only_v6: bool,
    },
    /// Requests the addresses that the shim reports to the program for a connection between the
    /// program and the agent.
    Names {
        /// The program's address on this connection.
        local: SocketAddr,
        /// The agent's address on this connection.
        peer: SocketAddr,
    },
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The program's descriptor has to connect to this address.
    At(SocketAddr),
    /// The agent has done what was requested.
    Done,
    /// The addresses that the shim reports to the program.
    Names(Names),
    /// The agent does not know the connection.
    Unknown,
    /// The request failed. The text describes the reason.
    Failed(Failure, String),
}

/// The addresses that the shim reports to the program for a connection through the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The program's address.
    pub local: SocketAddr,
    /// The address of the program's peer.
    pub peer: SocketAddr,
}

/// Why a request failed. The socket call that caused the request returns this error to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// ECONNREFUSED.
    Refused,
    /// ETIMEDOUT.
    TimedOut,
    /// EHOSTUNREACH.
    Unreachable,
    /// EADDRINUSE.
    InUse,
    /// EADDRNOTAVAIL.
    NotAvailable,
    /// ECONNABORTED, for all other reasons.
    Other,
}

/// A line that is not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(&'static str);

const FAILURES: [(Failure, &str); 6] = [
    (Failure::Refused, "refused"),
    (Failure::TimedOut, "timed-out"),
    (Failure::Unreachable, "unreachable"),
    (Failure::InUse, "in-use"),
    (Failure::NotAvailable, "not-available"),
    (Failure::Other, "other"),
];

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = FAILURES.iter().find(|(failure, _)| failure == self).map_or("other", |(_, word)| word);
        f.write_str(word)
    }
}

/// Writes the line without its newline.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Connect { service, by, source, no_wait } => {
                write!(f, "connect {service} ")?;
                match by {
                    Route::Sdp(address) => write!(f, "sdp {address}")?,
                    Route::Both(address) => write!(f, "both {address}")?,
                    Route::Mapper { mapper, sdp_only } => {
                        write!(f, "pm {mapper}{}", if *sdp_only { " sdp-only" } else { "" })?;
                    }
                }
                if let Some(source) = source {
                    write!(f, " source {source}")?;
                }
                f.write_str(if *no_wait { " no-wait" } else { "" })
            }
            Request::From(address) => write!(f, "from {address}"),
            Request::Why(address) => write!(f, "why {address}"),
            Request::Listen { service, sdp, only_v6 } => {
                write!(f, "listen {service} sdp {sdp}{}", if *only_v6 { " only-v6" } else { "" })
            }
            Request::Names { local, peer } => write!(f, "names {local} {peer}"),
        }
    }
}

/// Writes the line without its newline. In a failure's text, newlines become spaces. A text that is
/// too long is truncated.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::At(address) => write!(f, "at {address}"),
            Answer::Done => f.write_str("done"),
            Answer::Names(Names { local, peer }) => write!(f, "names {local} {peer}"),
            Answer::Unknown => f.write_str("unknown"),
            Answer::Failed(failure, words) => {
                let end = words.floor_char_boundary(MAX_LINE_LEN / 2);
                write!(f, "failed {failure} {}", words[..end].replace(['\n', '\r'], " "))
            }
        }
    }
}

impl FromStr for Request {
    type Err = MessageError;

    fn from_str(line: &str) -> Result<Self, MessageError> {
        let mut words = line.split_ascii_whitespace();
        let request = match words.next() {
            Some("connect") => {
                let service = address(&mut words)?;
                let by = match words.next() {
                    Some("sdp") => Route::Sdp(address(&mut words)?),
                    Some("both") => Route::Both(address(&mut words)?),
                    Some("pm") => {
                        let mapper = address(&mut words)?;
                        Route::Mapper { mapper, sdp_only: next_is(&mut words, "sdp-only") }
                    }
                    _ => return Err(MessageError("the route must be `sdp`, `both` or `pm`")),
                };
                let source = if next_is(&mut words, "source") { Some(address(&mut words)?) } else { None };
                Request::Connect { service, by, source, no_wait: next_is(&mut words, "no-wait") }
            }
            Some("from") => Request::From(address(&mut words)?),
            Some("why") => Request::Why(address(&mut words)?),
            Some("listen") => {
                let service = address(&mut words)?;
                reject_if(words.next() != Some("sdp"), MessageError("the word `sdp` is missing"))?;
                Request::Listen { service, sdp: address(&mut words)?, only_v6: next_is(&mut words, "only-v6") }
            }
            Some("names") => Request::Names { local: address(&mut words)?, peer: address(&mut words)? },
            _ => return Err(MessageError("the line is not a request")),
        };
        end(words)?;
        Ok(request)
    }
}

impl FromStr for Answer {
    type Err = MessageError;

    fn from_str(line: &str) -> Result<Self, MessageError> {
        let mut words = line.split_ascii_whitespace();
        let answer = match words.next() {
            Some("at") => Answer::At(address(&mut words)?),
            Some("done") => Answer::Done,
            Some("names") => Answer::Names(Names { local: address(&mut words)?, peer: address(&mut words)? }),
            Some("unknown") => Answer::Unknown,
            Some("failed") => {
                let word = words.next();
                let failure = FAILURES.iter().find(|(_, known)| Some(*known) == word);
                let failure = failure.ok_or(MessageError("the name of the failure is unknown"))?.0;
                return Ok(Answer::Failed(failure, words.collect::<Vec<_>>().join(" ")));
            }
            _ => return Err(MessageError("the line is not an answer")),
        };
        end(words)?;
        Ok(answer)
    }
}

fn address(words: &mut SplitAsciiWhitespace<'_>) -> Result<SocketAddr, MessageError> {
    words.next().and_then(|word| word.parse().ok()).ok_or(MessageError("ADDRESS:PORT is missing or invalid"))
}

/// Takes the next word if it equals `word`. Returns whether the word was taken.
fn next_is(words: &mut SplitAsciiWhitespace<'_>, word: &str) -> bool {
    let mut ahead = words.clone();
    let is = ahead.next() == Some(word);
    if is {
        *words = ahead;
    }
    is
}

fn end(mut words: SplitAsciiWhitespace<'_>) -> Result<(), MessageError> {
    if words.next().is_some() { Err(MessageError("the line has too many words")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_written() {
        for line in [
            "connect 192.0.2.17:80 sdp [fd00::1]:7080",
            "connect 192.0.2.17:80 pm 192.0.2.1:3935",
            "connect 192.0.2.17:80 pm 192.0.2.1:3935 sdp-only",
            "connect 192.0.2.17:80 sdp 192.0.2.17:7080 no-wait",
            "connect 192.0.2.17:80 pm 192.0.2.1:3935 sdp-only no-wait",
            "connect 192.0.2.17:80 both 192.0.2.17:7080 source 192.0.2.5:0",
            "connect 192.0.2.17:80 pm 192.0.2.1:3935 source [::]:700 no-wait",
            "why 127.0.0.1:51234",
            "from 127.0.0.1:51234",
            "listen 0.0.0.0:80 sdp 0.0.0.0:7080",
            "listen [::]:80 sdp [::]:7080 only-v6",
            "names 127.0.0.1:80 127.83.68.80:5000",
        ] {
            assert_eq!(line.parse::<Request>().unwrap().to_string(), line);
        }
        for line in
            ["at 127.83.68.80:5", "done", "names 1.2.3.4:5 6.7.8.9:10", "unknown", "failed refused no such port"]
        {
            assert_eq!(line.parse::<Answer>().unwrap().to_string(), line);
        }
        let two_lines = Answer::Failed(Failure::Other, "one\ntwo".to_owned());
        assert_eq!(two_lines.to_string(), "failed other one two");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for line in [
            "",
            "connect",
            "connect 1.2.3.4:5",
            "connect 1.2.3.4:5 tcp",
            "connect 1.2.3.4:5 sdp 1.2.3.4",
            "from",
            "why",
            "connect 1.2.3.4:5 sdp 1.2.3.4:5 no-wait no-wait",
            "connect 1.2.3.4:5 pm 1.2.3.4:5 no-wait sdp-only",
            "connect 1.2.3.4:5 sdp 1.2.3.4:5 source",
            "connect 1.2.3.4:5 pm 1.2.3.4:5 only",
            "listen 1.2.3.4:5 1.2.3.4:5",
            "listen 1.2.3.4:5 sdp 1.2.3.4:5 sdp-only",
            "listen 1.2.3.4:5 sdp 1.2.3.4:5 only-v6 6",
            "names 1.2.3.4:5",
            "from 1.2.3.4:5 6",
        ] {
            assert!(line.parse::<Request>().is_err(), "{line}");
        }
        for line in ["", "at", "at here", "done 1", "failed", "failed badly", "names 1.2.3.4:5"] {
            assert!(line.parse::<Answer>().is_err(), "{line}");
        }
        // These characters take three and four bytes in UTF-8.
        for character in ["\u{20ac}", "\u{1f980}"] {
            let longest = Answer::Failed(Failure::NotAvailable, character.repeat(1000)).to_string();
            assert!(longest.len() < MAX_LINE_LEN, "{}", longest.len());
        }
    }
}
