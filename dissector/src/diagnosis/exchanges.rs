//! Explains exchanges with a port mapper that lead to no connection.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use crate::exchange::{Exchange, State};
use crate::frame_number::FrameNumber;

/// An exchange with a port mapper that led to no connection in this capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExchangeReport {
    /// Number of the exchange.
    pub exchange: u64,
    /// The address of the client.
    pub connecting: SocketAddr,
    /// The requested address, if the Request was captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<SocketAddr>,
    /// `requested`, `accepted`, `acknowledged` or `denied`.
    pub state: &'static str,
    /// The last known message of the exchange.
    pub frame: FrameNumber,
    /// The result in one clause, without a period.
    pub headline: String,
}

impl ExchangeReport {
    /// Explains an exchange; `None` if it led to a connection.
    pub(super) fn of(exchange: &Exchange) -> Option<Self> {
        if exchange.followers > 0 {
            return None;
        }
        let client = exchange.connecting;
        let address = exchange.requested.map_or_else(|| "an unknown address".to_owned(), |it| it.to_string());
        let mapped = exchange.mapped.map_or_else(|| "an unknown address".to_owned(), |it| it.to_string());
        let (point, headline) = match exchange.state() {
            State::Denied => (exchange.deny, format!("the port mapper denies {client} a connection to {address}")),
            State::Requested => {
                (exchange.request, format!("the Request of {client} for {address} has no answer in this capture"))
            }
            State::Accepted | State::Acknowledged => {
                let point = exchange.ack.or(exchange.accept);
                (point, format!("{client} does not connect to {mapped}, the mapped address, in this capture"))
            }
        };
        let (exchange, requested, state) = (exchange.exchange, exchange.requested, exchange.state().name());
        let frame = point.map_or(FrameNumber::NONE, |point| point.frame);
        Some(ExchangeReport { exchange, connecting: client, requested, state, frame, headline })
    }
}

impl fmt::Display for ExchangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port mapper exchange {}: {} (frame {}).", self.exchange, self.headline, self.frame)
    }
}
