//! Hello and HelloAck: what is sent, what is rejected, and what both sides conclude (sections
//! 6.2.1, 6.2.2 and 8.1.1).

use weft_core::wire::sdp::{Body, FieldOrder, Flags, Hello, HelloAck, Message};
use weft_core::{RequirementId, WireError, requirement};

use super::{Role, Settings};

/// MajV of this implementation (SDP-6.2.1.1-1).
pub(super) const MAJV: u8 = 1;
/// MinV of this implementation (SDP-6.2.1.2-1).
pub(super) const MINV: u8 = 1;
/// Octets of a Hello.
pub(super) const HELLO_LEN: usize = 32;

/// Why the peer's Hello or HelloAck ends the attempt. No message reports it: TCP is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Something else than the message that is due, or a value that it may not have.
    #[error("{0}")]
    Malformed(WireError),
    /// The major version.
    #[error("MajV {found} in the peer's {}: expected {MAJV}", if *.receiver == Role::Accepting { "Hello" } else { "HelloAck" })]
    Version {
        /// The peer's MajV.
        found: u8,
        /// The receiver.
        receiver: Role,
    },
    /// The message that came first is another one.
    #[error("the peer's first message is no {}", if *.receiver == Role::Accepting { "Hello" } else { "HelloAck" })]
    Other {
        /// The receiver.
        receiver: Role,
    },
    /// MPA's start-up failed.
    #[error("MPA start-up failed: {0}")]
    Mpa(crate::mpa::StartupError),
    /// MPA's enhanced set-up found nothing to agree on.
    #[error("MPA set-up failed: {0}")]
    Setup(crate::mpa::SetupError),
    /// The peer's MPA rejected, or the peer ended TCP where its HelloAck was due: SDP has no other
    /// word for it (section 8.1.2).
    #[error("the peer rejected the connection")]
    Rejected,
    /// Nothing came in time.
    #[error("start-up did not finish in time")]
    TimedOut,
}

impl Refusal {
    /// The requirement that makes this side close; `None` where it is the peer's free choice.
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

/// The results of Hello and HelloAck, from this side's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Field order of both directions.
    pub order: FieldOrder,
    /// The lower MinV of both sides.
    pub minv: u8,
    /// Private Buffers of the peer at the start.
    pub peer_bufs: u16,
    /// Their size in octets.
    pub peer_recv_size: u32,
    /// Octets that the peer wishes this side's Private Buffers had; 0 in a HelloAck, which has no
    /// such field.
    pub des_rem_rcv_sz: u32,
    /// Advertisements that the peer keeps.
    pub peer_max_adverts: u16,
    /// RDMA Reads of the peer that this side serves at once.
    pub ird: u16,
    /// RDMA Reads that this side may have outstanding: never more than the peer's LocIRD.
    pub ord: u16,
}

/// The 32 octets of this side's Hello.
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

/// The 28 octets of this side's HelloAck, after a Hello that was good.
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

/// Judges a Hello (section 8.1.1, step 3) in whatever order it is written.
pub(super) fn judge_hello(octets: &[u8], settings: &Settings) -> Result<Agreed, Refusal> {
    let receiver = Role::Accepting;
    let order = FieldOrder::of_hello(octets).ok_or(Refusal::Other { receiver })?;
    let message = Message::parse(octets, order).map_err(Refusal::Malformed)?;
    let Body::Hello(hello) = message.body else { return Err(Refusal::Other { receiver }) };
    if hello.majv != MAJV {
        return Err(Refusal::Version { found: hello.majv, receiver });
    }
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

/// Judges a HelloAck (section 8.1.1, step 7), which comes in the Hello's order or in the other one.
pub(super) fn judge_hello_ack(octets: &[u8], settings: &Settings) -> Result<Agreed, Refusal> {
    let receiver = Role::Connecting;
    let order = FieldOrder::of_hello_ack(octets).ok_or(Refusal::Other { receiver })?;
    let message = Message::parse(octets, order).map_err(Refusal::Malformed)?;
    let Body::HelloAck(ack) = message.body else { return Err(Refusal::Other { receiver }) };
    if ack.majv != MAJV {
        return Err(Refusal::Version { found: ack.majv, receiver });
    }
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
