//! A client without SDP, on a TCP connection in streaming mode. It sends one text, and closes when
//! its peer closes.

use std::collections::VecDeque;

use bytes::Bytes;

use super::DrivenConnection;
use crate::connection::Transmit;
use crate::time::Instant;

/// A client without SDP. See the [module](self).
#[derive(Debug)]
pub(crate) struct PlainClient {
    out: VecDeque<Transmit>,
    over: bool,
}

impl PlainClient {
    /// The text that the client sends.
    pub(crate) const TEXT: &'static [u8] = b"plain words\n";

    pub(crate) fn new() -> Self {
        PlainClient { out: VecDeque::from([Transmit::Octets(Bytes::from_static(Self::TEXT))]), over: false }
    }
}

impl DrivenConnection for PlainClient {
    fn handle_octets(&mut self, _: Instant, _: &[u8]) {}

    fn handle_fin(&mut self, _: Instant) {
        self.out.push_back(Transmit::Fin);
        self.over = true;
    }

    fn handle_reset(&mut self, _: Instant) {
        self.out.clear();
        self.over = true;
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Transmit> {
        self.out.pop_front()
    }

    fn is_over(&self) -> bool {
        self.over && self.out.is_empty()
    }
}
