//! Names the protocol in the Sends of a connection if it is certain: rping, RPC-over-RDMA version 1
//! (RFC 8166), SMB Direct (MS-SMBD).
//!
//! Each protocol has a test that a complete message passes or fails, in the file of the protocol.
//! The first message that proves a protocol names the connection. The name is removed for good when
//! a later message fails the test of that protocol: one of the two was a coincidence. A message
//! whose beginning was not captured neither proves nor disproves a protocol. If the first
//! `MOST_TRIES` messages prove nothing, later ones are not checked.
//!
//! Sends of several segments are checked by the beginning in their first segment and by the length
//! from their last one. Only the parsed beginning of a message is kept; nothing is allocated.

mod rpcrdma;
mod rping;
mod smb_direct;
#[cfg(test)]
mod tests;
mod verdict;

use std::fmt;

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use crate::direction::Direction;
use crate::parse::SegmentView;

pub use rpcrdma::RpcRdma;
pub use rping::Rping;
pub use smb_direct::SmbDirect;
use verdict::{Verdict, beginning};

/// Sends that are checked on a connection without a name.
const MOST_TRIES: u8 = 32;

/// A protocol above RDMAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ulp {
    /// The ping of librdmacm.
    Rping,
    /// RFC 8166.
    RpcRdma,
    /// MS-SMBD.
    SmbDirect,
}

impl Ulp {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ulp::Rping => "rping",
            Ulp::RpcRdma => "rpcrdma",
            Ulp::SmbDirect => "smb_direct",
        }
    }
}

impl fmt::Display for Ulp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Ulp::Rping => "rping",
            Ulp::RpcRdma => "RPC-over-RDMA",
            Ulp::SmbDirect => "SMB Direct",
        })
    }
}

/// A parsed message of such a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UlpMessage {
    /// rping.
    Rping(Rping),
    /// RPC-over-RDMA.
    RpcRdma(RpcRdma),
    /// SMB Direct.
    SmbDirect(SmbDirect),
}

impl UlpMessage {
    /// The protocol.
    #[must_use]
    pub fn ulp(&self) -> Ulp {
        match self {
            UlpMessage::Rping(_) => Ulp::Rping,
            UlpMessage::RpcRdma(_) => Ulp::RpcRdma,
            UlpMessage::SmbDirect(_) => Ulp::SmbDirect,
        }
    }

    /// The protocol's name for such a message.
    #[must_use]
    pub fn message(&self) -> &'static str {
        match self {
            UlpMessage::Rping(parsed) => parsed.message(),
            UlpMessage::RpcRdma(parsed) => parsed.message(),
            UlpMessage::SmbDirect(parsed) => parsed.message(),
        }
    }
}

impl fmt::Display for UlpMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ulp(), self.message())?;
        match self {
            UlpMessage::Rping(parsed) => parsed.details(f),
            UlpMessage::RpcRdma(parsed) => parsed.details(f),
            UlpMessage::SmbDirect(parsed) => parsed.details(f),
        }
    }
}

/// An unfinished Send: its MSN, and the test results for its beginning.
#[derive(Debug, Clone, Copy)]
struct Begun {
    msn: u32,
    verdicts: [Verdict<UlpMessage>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Number of messages that may still prove a protocol.
    Looking(u8),
    Named(Ulp),
    /// No protocol was proved in time, or the proved one was contradicted.
    GivenUp,
}

/// The ULP state of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Ulps {
    state: State,
    begun: [Option<Begun>; 2],
    rping: rping::Search,
}

impl Default for Ulps {
    fn default() -> Self {
        Ulps { state: State::Looking(MOST_TRIES), begun: [None; 2], rping: rping::Search::default() }
    }
}

impl Ulps {
    /// The name of the connection's protocol.
    pub(crate) fn name(&self) -> Option<Ulp> {
        match self.state {
            State::Named(ulp) => Some(ulp),
            State::Looking(_) | State::GivenUp => None,
        }
    }

    /// Processes a segment. Returns the parsed message that it ends.
    pub(crate) fn segment(&mut self, direction: Direction, view: &SegmentView<'_>) -> Option<UlpMessage> {
        if self.state == State::GivenUp {
            return None;
        }
        let Segment::Untagged(header, _) = view.segment else {
            self.tagged(direction, view);
            return None;
        };
        if !view.opcode().is_send() {
            if view.opcode() == Opcode::READ_REQUEST && self.name().is_none() {
                self.rping.read_request(direction, view);
            }
            return None;
        }
        let (msn, mo) = (header.msn.get(), header.mo.get());
        if mo == 0 {
            let verdicts = self.verdicts(beginning(view), view.last());
            self.begun[direction] = Some(Begun { msn, verdicts });
        }
        if !view.last() {
            return None;
        }
        let begun = self.begun[direction].take().filter(|begun| begun.msn == msn)?;
        self.ended(direction, begun, u64::from(mo) + u64::from(view.payload_len))
    }

    /// A Read Response may prove rping.
    fn tagged(&mut self, direction: Direction, view: &SegmentView<'_>) {
        if matches!(self.state, State::Looking(_))
            && view.opcode() == Opcode::READ_RESPONSE
            && self.rping.is_proved_by(direction, view)
        {
            self.state = State::Named(Ulp::Rping);
        }
    }

    /// `is_complete`: nothing follows `octets`.
    fn verdicts(&self, octets: &[u8], is_complete: bool) -> [Verdict<UlpMessage>; 3] {
        let of = |ulp, verdict: fn(&[u8], bool) -> Verdict<UlpMessage>| match self.name() {
            Some(name) if name != ulp => Verdict::Open,
            _ => verdict(octets, is_complete),
        };
        [
            of(Ulp::Rping, |octets, is_complete| rping::Search::send(octets, is_complete).map(UlpMessage::Rping)),
            of(Ulp::RpcRdma, |octets, is_complete| rpcrdma::read(octets, is_complete).map(UlpMessage::RpcRdma)),
            of(Ulp::SmbDirect, |octets, is_complete| smb_direct::read(octets, is_complete).map(UlpMessage::SmbDirect)),
        ]
    }

    fn ended(&mut self, direction: Direction, begun: Begun, len: u64) -> Option<UlpMessage> {
        let fits = |verdict: Verdict<UlpMessage>| match verdict {
            Verdict::Is { len: due, .. } if !due.fits(len) => Verdict::Not,
            other => other,
        };
        let verdicts = begun.verdicts.map(fits);
        if let State::Named(ulp) = self.state {
            return match verdicts[ulp as usize] {
                Verdict::Is { parsed, .. } => Some(parsed),
                Verdict::Open => None,
                Verdict::Not => {
                    self.state = State::GivenUp;
                    None
                }
            };
        }
        if let Verdict::Is { parsed: UlpMessage::Rping(info), .. } = verdicts[Ulp::Rping as usize] {
            self.rping.announced(direction, info);
        }
        for verdict in verdicts {
            if let Verdict::Is { parsed, proves: true, .. } = verdict {
                self.state = State::Named(parsed.ulp());
                return Some(parsed);
            }
        }
        if let State::Looking(left) = self.state {
            self.state = left.checked_sub(1).map_or(State::GivenUp, State::Looking);
        }
        None
    }
}
