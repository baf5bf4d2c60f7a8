//! A deviation, the places where it changes the correct endpoint, and sets of deviations.

use core::time::Duration;
use std::fmt;

use weft_core::RequirementId;
use weft_core::error::Layer;
use weft_core::wire::mpa::{Enhanced, Fpdu, Framing, Startup};
use weft_core::wire::portmap::Message as PmMessage;
use weft_core::wire::rdmap::{AtomicOperation, Terminate};

use super::context::completion::Completed;
use super::context::conduct::Conduct;
use super::context::fate::Fate;
use super::context::fpdu::SentFpdu;
use super::context::port_mapper::{PmConduct, PmSent, PmSide};
use super::context::sdp::{SdpArrived, SdpOut};
use super::context::sdp_conduct::SdpConduct;
use super::context::segment::{Kept, SentSegment};
use crate::mpa::{MpaSettings, Negotiated, PeerFrame, Role};
use crate::rdmap::Fault;
use crate::sdp::Violation;
use crate::verbs::EventId;

/// One named violation.
#[derive(Debug)]
pub struct Deviation {
    /// Stable name: the layer, a dot, what the endpoint then does.
    pub name: &'static str,
    /// The layer whose rule is broken.
    pub layer: Layer,
    /// The requirements that are broken, the main one first; never empty.
    pub breaks: &'static [RequirementId],
    /// The misbehaviour, as a phrase that begins with a verb: `sends ...`, `ignores ...`.
    pub description: &'static str,
    /// Where it does it.
    pub(crate) hooks: &'static [Hook],
}

impl Deviation {
    /// It is in what an MPA Initiator sends at start-up, so an endpoint that listens never commits
    /// it.
    #[must_use]
    pub fn is_of_initiator(&self) -> bool {
        self.hooks.iter().all(|hook| matches!(hook, Hook::Request(_) | Hook::Opening(_)))
    }

    /// It is in what a PM Client sends or does, so a PM Server never commits it.
    #[must_use]
    pub fn is_of_pm_client(&self) -> bool {
        const CONDUCT: [&str; 16] = [
            "pm.acknowledges-again",
            "pm.acknowledges-deny",
            "pm.connects-after-deny",
            "pm.heeds-deny-port",
            "pm.ignores-deny",
            "pm.ignores-reset",
            "pm.keeps-requested-address",
            "pm.keeps-denials",
            "pm.keeps-for-ever",
            "pm.keeps-once",
            "pm.never-falls-back",
            "pm.never-repeats",
            "pm.never-stops",
            "pm.repeats-otherwise",
            "pm.takes-later-reply",
            "pm.takes-unasked",
        ];
        self.name.starts_with("pm.request-") || self.name.starts_with("pm.ack-") || CONDUCT.contains(&self.name)
    }
}

/// The layer that a name begins with.
pub(super) const fn layer_of(name: &str) -> Layer {
    match name.as_bytes() {
        [b'd', b'd', b'p', ..] => Layer::Ddp,
        [b'r', b'd', b'm', b'a', b'p', ..] => Layer::Rdmap,
        [b's', b'd', b'p', b'.', ..] => Layer::Sdp,
        [b'p', b'm', b'.', ..] => Layer::SdpPm,
        _ => Layer::Mpa,
    }
}

/// Names identify deviations.
impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Deviation {}

/// A hook, and the deviation's action there.
#[derive(Debug)]
pub(crate) enum Hook {
    /// The octets that have arrived of the peer's start-up frame, before they are judged.
    Arrived(fn(Role, &mut [u8])),
    /// An Atomic Operation, before it is done.
    Atomic(fn(&mut AtomicOperation)),
    /// A completion, before it is reported to the user.
    Completion(fn(&mut Completed<'_>)),
    /// An asynchronous event: hide it from the user?
    Conceals(fn(EventId) -> bool),
    /// The outcome of a connection: hide it from the user?
    ConcealsFate(fn(Fate) -> bool),
    /// What the connection does and leaves out.
    Conduct(fn(&mut Conduct)),
    /// ORD and IRD of a Queue Pair.
    Depths(fn(&mut u32, &mut u32)),
    /// An FPDU in place of the right one.
    Fpdu(fn(&mut SentFpdu<'_>)),
    /// The octets of this side's start-up frame.
    Frame(fn(&mut Vec<u8>)),
    /// What FPDUs sent, and FPDUs received, look like.
    Framing(fn(&mut Framing, &mut Framing)),
    /// What the endpoint wants of MPA.
    Mpa(fn(&mut MpaSettings)),
    /// The longest ULPDU that is sent.
    Mulpdu(fn(&mut u16)),
    /// What start-up settled.
    Negotiated(fn(&mut Negotiated)),
    /// ULPDUs with which an Initiator of the peer-to-peer model begins.
    Opening(fn(&mut Vec<Vec<u8>>)),
    /// A fault that was found: overlook it? The segment is passed by then.
    Overlooks(fn(Fault, &mut Kept) -> bool),
    /// The octets of a port mapper's datagram that arrived, before they are judged; none when it is
    /// to be lost.
    PmArrived(fn(PmSide, &mut Vec<u8>)),
    /// What a port mapper does and leaves out.
    PmConduct(fn(&mut PmConduct)),
    /// A PMReq, as the client holds and sends it.
    PmRequest(fn(&mut PmMessage)),
    /// A port mapper's datagram on its way out.
    PmSent(fn(&mut PmSent<'_>)),
    /// The words of an accepting Reply, with which the Initiator reckons.
    Reckons(fn(&mut Enhanced)),
    /// A good FPDU that arrived: refuse it?
    Refuses(fn(&Fpdu<'_>) -> bool),
    /// A DDP segment that arrived: what to refuse it for.
    RefusesSegment(fn(&[u8], &mut Kept) -> Option<Fault>),
    /// The fields of the Reply to this Request.
    Reply(fn(&PeerFrame, &mut Startup<'_>)),
    /// The fields of the Request.
    Request(fn(&mut Startup<'_>)),
    /// A message of SDP that arrived, before it is judged.
    SdpArrived(fn(&mut SdpArrived<'_>)),
    /// Actions of an SDP machine.
    SdpConduct(fn(&mut SdpConduct)),
    /// Something that a machine of SDP wants done: a message, an RDMA operation, the end of the
    /// connection.
    SdpOut(fn(&mut SdpOut<'_>)),
    /// A violation of the peer that was found: overlook it?
    SdpOverlooks(fn(&Violation) -> bool),
    /// A DDP segment on its way out.
    Segment(fn(&mut SentSegment<'_>)),
    /// The octets of a DDP segment that arrived, before they are judged; none when it is to be
    /// lost.
    SegmentArrived(fn(&mut Vec<u8>)),
    /// How long the endpoint waits for the peer's start-up frame, and for its first FPDU.
    Timeouts(fn(&mut Duration, &mut Duration)),
    /// The Terminate.
    Terminate(fn(&mut Terminate)),
    /// The peer's start-up frame, as it is reported to the user.
    ReportedFrame(fn(&mut PeerFrame)),
}

/// The deviations that one endpoint commits; none by default.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Deviations(Vec<&'static Deviation>);

impl Deviations {
    /// The correct endpoint's set.
    pub const NONE: Deviations = Deviations(Vec::new());

    /// Adds one; adding it twice changes nothing.
    pub fn insert(&mut self, deviation: &'static Deviation) {
        if !self.contains(deviation) {
            self.0.push(deviation);
        }
    }

    /// Is it in the set?
    #[must_use]
    pub fn contains(&self, deviation: &Deviation) -> bool {
        self.0.contains(&deviation)
    }

    /// Is this the correct endpoint's set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The deviations, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &'static Deviation> {
        self.0.iter().copied()
    }
}

impl From<&'static Deviation> for Deviations {
    fn from(deviation: &'static Deviation) -> Self {
        Deviations(vec![deviation])
    }
}

impl fmt::Debug for Deviations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|deviation| deviation.name)).finish()
    }
}
