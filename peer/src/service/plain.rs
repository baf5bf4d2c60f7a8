//! A client without SDP, on a TCP connection in streaming mode. It sends one text, and closes when
//! its peer does.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Served;
use crate::connection::Transmit;
use crate::time::Instant;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct PlainEnd {
    out: VecDeque<Transmit>,
    over: bool,
}

impl PlainEnd {
    /// The text that the client sends.
    pub(crate) const WORDS: &'static [u8] = b"plain words\n";

    pub(crate) fn new() -> Self {
        PlainEnd { out: VecDeque::from([Transmit::Octets(Bytes::from_static(Self::WORDS))]), over: false }
    }
}

impl Served for PlainEnd {
    fn handle_octets(&mut self, _: Instant, _: &[u8]) {}

    fn handle_fin(&mut self, _: Instant) {
        self.out.push_back(Transmit::Fin);
        self.over = true;
    }

    fn handle_reset(&mut self, _: Instant) {
        self.out.clear();
        self.over = true;
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn serve(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Transmit> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_over(&self) -> bool {
        self.over && self.out.is_empty()
    }
}
