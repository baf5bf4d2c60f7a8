//! Recognises the messenger of Ceph. It sends its byte stream in Sends, and a message can begin at
//! any byte of a Send, so weft reads only the banner.
//!
//! **Proof**: the first Send of each direction starts with the banner of the same version:
//! `ceph v027` (version 1), or `ceph v2`, a line feed, the length 16 (16 bits, little-endian) and
//! two words of 64 bits (version 2).

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use super::protocol::{self, Judgement, Len, Protocol, SendInfo, Verdict, only};

/// The banners. The banner of version 2 has the length of the words after it.
const BANNER_1: &[u8] = b"ceph v027";
const BANNER_2: &[u8] = b"ceph v2\n\x10\x00";
/// Length of the words after the banner of version 2 in bytes.
const WORDS_LEN: usize = 16;

/// A Send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The Send starts with the banner of version 1.
    Banner1,
    /// The Send starts with the banner of version 2.
    Banner2,
    /// The Send has other bytes.
    Data,
}

impl protocol::Message for Message {
    fn name(&self) -> &'static str {
        match self {
            Message::Banner1 | Message::Banner2 => "banner",
            Message::Data => "data",
        }
    }

    fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Banner1 => f.write_str(" version 1"),
            Message::Banner2 => f.write_str(" version 2"),
            Message::Data => Ok(()),
        }
    }
}

/// The recognition state of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    /// The first Send of each direction.
    first: [Option<Message>; 2],
}

impl Protocol for Connection {
    const NAME: &'static str = "ceph";
    const TITLE: &'static str = "Ceph";
    type Message = Message;

    fn read(bytes: &[u8], is_complete: bool) -> Verdict<Message> {
        let (parsed, len) = if bytes.starts_with(BANNER_1) {
            (Message::Banner1, BANNER_1.len())
        } else if bytes.starts_with(BANNER_2) {
            (Message::Banner2, BANNER_2.len() + WORDS_LEN)
        } else if bytes.len() < BANNER_2.len() && !is_complete {
            return Verdict::Open;
        } else {
            (Message::Data, 0)
        };
        Verdict::Is { parsed, len: Len::AtLeast(len as u64), proves: false }
    }

    fn headers(bytes: &[u8], _is_complete: bool) -> Vec<Range<usize>> {
        let banner = [BANNER_1, BANNER_2].into_iter().find(|banner| bytes.starts_with(banner));
        banner.map_or_else(Vec::new, |banner| only(0..banner.len()))
    }

    fn message(&mut self, send: &SendInfo, message: &mut Message) -> Judgement {
        let (own, peer) = (send.direction, send.direction.peer());
        if self.first[own].is_some() {
            return Judgement::Open;
        }
        self.first[own] = Some(*message);
        let is_proved = *message != Message::Data && self.first[peer] == Some(*message);
        if is_proved { Judgement::Proves } else { Judgement::Open }
    }
}
