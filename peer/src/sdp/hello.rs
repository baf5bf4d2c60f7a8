//! Hello and HelloAck: their content, the reasons to reject them, and the values that both sides
//! derive from them (sections 6.2.1, 6.2.2 and 8.1.1 of the SDP draft).

use weft_core::wire::sdp::{Body, FieldOrder, Flags, Hello, HelloAck, Message};
use weft_core::{RequirementId, WireError, requirement};

use super::{Role, Settings};
use crate::reject::reject_if;

/// MajV of this implementation (SDP-6.2.1.1-1).
pub(super) const MAJV: u8 = 1;
/// MinV of this implementation (SDP-6.2.1.2-1).
pub(super) const MINV: u8 = 1;
/// Length of a Hello in bytes.
pub(super) const HELLO_LEN: usize = 32;

/// Why start-up fails. SDP has no message to report the reason, so this side only closes TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The message is malformed, or a field has an invalid value.
    #[error("{0}")]
    Malformed(WireError),
    /// The major version is not supported.
    #[error(
        "MajV {found} in the peer's {} is not supported; this side supports only {MAJV}",
        if *.receiver == Role::Accepting { "Hello" } else { "HelloAck" }
    )]
    Version {
        /// The peer's MajV.
        found: u8,
        /// Role of the side that rejects the message.
        receiver: Role,
    },
    /// The first message of the peer is not a Hello or HelloAck.
    #[error("the peer's first message is not a {}", if *.receiver == Role::Accepting { "Hello" } else { "HelloAck" })]
    Other {
        /// Role of the side that rejects the message.
        receiver: Role,
    },
    /// MPA's start-up failed.
    #[error("MPA start-up failed: {0}")]
    Mpa(crate::mpa::StartupError),
    /// The peers' settings for the enhanced set-up of MPA are incompatible.
    #[error("the enhanced set-up of MPA failed: {0}")]
    Setup(crate::mpa::SetupError),
    /// The peer's MPA Reply rejects the connection, or the peer ended TCP before it sent HelloAck.
    /// SDP has no message for a rejection (section 8.1.2).
    #[error("the peer rejected the connection")]
    Rejected,
    /// Start-up did not finish in time.
    #[error("start-up did not finish in time")]
    TimedOut,
}

impl Refusal {
    /// Returns the requirement that makes this side close the connection. `None` if the
    /// specification leaves the decision to the peer, or if start-up timed out.
    #[must_use]
    pub fn requirement(&self) -> Option<RequirementId> {
        match self {
            Refusal::Malformed(error) => Some(error.requirement.unwrap_or(requirement!("SDP-8.2.2-11"))),
            Refusal::Version { receiver: Role::Accepting, .. } => Some(requirement!("SDP-6.2.1.1-2")),
            Refusal::Version { receiver: Role::Connecting, .. } => Some(requirement!("SDP-6.2.2.1-2")),
            Refusal::Other { .. } => Some(requirement!("SDP-6.2-1")),
            Refusal::Mpa(error) => Some(error.requirement()),
            Refusal::Setup(_) | Refusal::Rejected | Refusal::TimedOut => None,
        }
    }
}

/// Values that result from Hello and HelloAck, from the point of view of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Field order of both directions.
    pub order: FieldOrder,
    /// The lower MinV of the two sides.
    pub minv: u8,
    /// Number of the peer's Private Buffers at the start.
    pub peer_bufs: u16,
    /// Size of the peer's Private Buffers in bytes.
    pub peer_recv_size: u32,
    /// Size in bytes that the peer wants for this side's Private Buffers. 0 in a HelloAck, which
    /// has no such field.
    pub des_rem_rcv_sz: u32,
    /// Number of open advertisements that the peer allows.
    pub peer_max_adverts: u16,
    /// Number of RDMA Reads of the peer that this side serves at the same time.
    pub ird: u16,
    /// Number of RDMA Reads that this side may have outstanding. It is at most LocIRD of the peer.
    pub ord: u16,
}

/// Returns this side's Hello, 32 bytes.
pub(super) fn hello(settings: &Settings) -> Vec<u8> {
    let body = Body::Hello(Hello {
        max_adverts: settings.max_adverts,
        majv: MAJV,
        minv: MINV,
        des_rem_rcv_sz: settings.des_rem_rcv_sz,
        local_rcv_sz: settings.recv_size,
        loc_ird: settings.ird,
        loc_ord: settings.ord,
    });
    first_message(settings.bufs, body, settings.order)
}

/// Returns this side's HelloAck, 28 bytes, as the answer to a valid Hello.
pub(super) fn hello_ack(settings: &Settings, recv_size: u32, agreed: &Agreed) -> Vec<u8> {
    let body = Body::HelloAck(HelloAck {
        max_adverts: settings.max_adverts,
        majv: MAJV,
        minv: MINV,
        act_rcv_sz: recv_size,
        loc_ird: agreed.ird,
        loc_ord: agreed.ord,
    });
    first_message(settings.bufs, body, agreed.order)
}

fn first_message(bufs: u16, body: Body<'_>, order: FieldOrder) -> Vec<u8> {
    let mut out = Vec::new();
    Message { bufs, flags: Flags::default(), mseq: 0, mseq_ack: 0, body }.emit(order, &mut out);
    out
}

/// Checks a Hello (section 8.1.1, step 3) in either field order.
pub(super) fn judge_hello(octets: &[u8], settings: &Settings) -> Result<Agreed, Refusal> {
    let receiver = Role::Accepting;
    let order = FieldOrder::of_hello(octets).ok_or(Refusal::Other { receiver })?;
    let message = Message::parse(octets, order).map_err(Refusal::Malformed)?;
    let Body::Hello(hello) = message.body else { return Err(Refusal::Other { receiver }) };
    reject_if(hello.majv != MAJV, Refusal::Version { found: hello.majv, receiver })?;
    Ok(Agreed {
        order,
        minv: hello.minv.min(MINV),
        peer_bufs: message.bufs,
        peer_recv_size: hello.local_rcv_sz,
        des_rem_rcv_sz: hello.des_rem_rcv_sz,
        peer_max_adverts: hello.max_adverts,
        ird: settings.ird,
        ord: settings.ord.min(hello.loc_ird),
    })
}

/// Checks a HelloAck (section 8.1.1, step 7) in either field order. The order can differ from the
/// order of the Hello.
pub(super) fn judge_hello_ack(octets: &[u8], settings: &Settings) -> Result<Agreed, Refusal> {
    let receiver = Role::Connecting;
    let order = FieldOrder::of_hello_ack(octets).ok_or(Refusal::Other { receiver })?;
    let message = Message::parse(octets, order).map_err(Refusal::Malformed)?;
    let Body::HelloAck(ack) = message.body else { return Err(Refusal::Other { receiver }) };
    reject_if(ack.majv != MAJV, Refusal::Version { found: ack.majv, receiver })?;
    Ok(Agreed {
        order,
        minv: ack.minv.min(MINV),
        peer_bufs: message.bufs,
        peer_recv_size: ack.act_rcv_sz,
        des_rem_rcv_sz: 0,
        peer_max_adverts: ack.max_adverts,
        ird: settings.ird,
        ord: settings.ord.min(ack.loc_ird),
    })
}
