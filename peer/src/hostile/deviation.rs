//! A deviation, the hooks at which it changes the correct endpoint, and sets of deviations.

use core::time::Duration;
use std::fmt;

use weft_core::RequirementId;
use weft_core::error::Layer;
use weft_core::wire::mpa::{Enhanced, Fpdu, Framing, Startup};
use weft_core::wire::portmap::Message as PmMessage;
use weft_core::wire::rdmap::{AtomicOperation, Terminate};

use super::context::completion::Completed;
use super::context::conduct::Conduct;
use super::context::connection_outcome::ConnectionOutcome;
use super::context::fpdu::SentFpdu;
use super::context::port_mapper::{PmConduct, PmSent, PmSide};
use super::context::reassembly::ReassemblyConduct;
use super::context::sdp::{SdpArrived, SdpOut};
use super::context::sdp_conduct::SdpConduct;
use super::context::segment::{DeviationState, SentSegment};
use crate::mpa::{MpaSettings, Negotiated, PeerFrame, Role};
use crate::rdmap::Fault;
use crate::sdp::Violation;
use crate::verbs::EventId;

/// One named violation.
#[derive(Debug)]
pub struct Deviation {
    /// Stable name: the layer, a dot, and what the endpoint does.
    pub name: &'static str,
    /// The layer whose rule the deviation breaks.
    pub layer: Layer,
    /// The requirements that the deviation breaks. The first requirement is the main requirement.
    /// The list is never empty.
    pub breaks: &'static [RequirementId],
    /// The misbehaviour, as a phrase that begins with a verb: `sends ...`, `ignores ...`.
    pub description: &'static str,
    /// The hooks of the deviation, with its effect at each hook.
    pub(crate) hooks: &'static [Hook],
}

impl Deviation {
    /// Returns whether the deviation only changes the Request or the ready-to-receive message of an
    /// MPA Initiator. An endpoint that listens never commits such a deviation.
    #[must_use]
    pub fn is_of_initiator(&self) -> bool {
        self.hooks.iter().all(|hook| matches!(hook, Hook::Request(_) | Hook::Opening(_)))
    }

    /// Returns whether only a client of the port mapper (PM Client) commits the deviation. A PM
    /// Server never commits such a deviation.
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
            "pm.takes-unrequested",
        ];
        self.name.starts_with("pm.request-") || self.name.starts_with("pm.ack-") || CONDUCT.contains(&self.name)
    }
}

/// Returns the layer with which a name begins.
pub(super) const fn layer_of(name: &str) -> Layer {
    match name.as_bytes() {
        [b'd', b'd', b'p', ..] => Layer::Ddp,
        [b'r', b'd', b'm', b'a', b'p', ..] => Layer::Rdmap,
        [b's', b'd', b'p', b'.', ..] => Layer::Sdp,
        [b'p', b'm', b'.', ..] => Layer::SdpPm,
        _ => Layer::Mpa,
    }
}

/// Two deviations are equal if their names are equal.
impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Deviation {}

/// A hook, and the function that performs the deviation's effect at this hook.
#[derive(Debug)]
pub(crate) enum Hook {
    /// Changes the received bytes of the peer's start-up frame before the endpoint checks them. The
    /// role is the role of the receiver.
    Arrived(fn(Role, &mut [u8])),
    /// Changes an Atomic Operation before it is executed.
    Atomic(fn(&mut AtomicOperation)),
    /// Changes a completion before it is reported to the user.
    Completion(fn(&mut Completed<'_>)),
    /// Returns whether to hide this asynchronous event from the user.
    Conceals(fn(EventId) -> bool),
    /// Returns whether to hide this outcome of a connection from the user.
    ConcealsOutcome(fn(ConnectionOutcome) -> bool),
    /// Sets flags for actions of the connection.
    Conduct(fn(&mut Conduct)),
    /// Changes ORD (first argument) and IRD (second argument) of a Queue Pair.
    Depths(fn(&mut u32, &mut u32)),
    /// Changes an FPDU before it is sent.
    Fpdu(fn(&mut SentFpdu<'_>)),
    /// Changes the bytes of this side's start-up frame.
    Frame(fn(&mut Vec<u8>)),
    /// Changes markers and CRC of the FPDUs that are sent (first argument) and received (second
    /// argument).
    Framing(fn(&mut Framing, &mut Framing)),
    /// Changes the MPA settings of the endpoint.
    Mpa(fn(&mut MpaSettings)),
    /// Changes the maximum length of a ULPDU that is sent, in bytes.
    Mulpdu(fn(&mut u16)),
    /// Changes the result of start-up.
    Negotiated(fn(&mut Negotiated)),
    /// Changes the ULPDUs that an Initiator sends first: the ready-to-receive message, or nothing
    /// if no such message was agreed.
    Opening(fn(&mut Vec<Vec<u8>>)),
    /// Returns whether to ignore this fault. The segment then has no effect.
    Overlooks(fn(Fault, &mut DeviationState) -> bool),
    /// Changes a received datagram of a port mapper before it is checked. An empty result drops the
    /// datagram.
    PmArrived(fn(PmSide, &mut Vec<u8>)),
    /// Sets flags for actions of a port mapper.
    PmConduct(fn(&mut PmConduct)),
    /// Changes a PMReq that the client stores and sends.
    PmRequest(fn(&mut PmMessage)),
    /// Changes a datagram of a port mapper before it is sent.
    PmSent(fn(&mut PmSent<'_>)),
    /// Sets flags for the target's TCP on the virtual link.
    Reassembly(fn(&mut ReassemblyConduct)),
    /// Changes IRD, ORD and flags of an accepting Reply before the Initiator uses them.
    ReplyParameters(fn(&mut Enhanced)),
    /// Returns whether to reject this valid FPDU.
    Refuses(fn(&Fpdu<'_>) -> bool),
    /// Returns the fault for which to reject this received DDP segment, or `None`.
    RefusesSegment(fn(&[u8], &mut DeviationState) -> Option<Fault>),
    /// Changes the fields of the Reply to this Request.
    Reply(fn(&PeerFrame, &mut Startup<'_>)),
    /// Changes the fields of the Request.
    Request(fn(&mut Startup<'_>)),
    /// Changes a received SDP message before it is checked.
    SdpArrived(fn(&mut SdpArrived<'_>)),
    /// Sets flags for actions of an SDP state machine.
    SdpConduct(fn(&mut SdpConduct)),
    /// Changes an output of an SDP state machine: a message, an RDMA operation, or the end of the
    /// connection.
    SdpOut(fn(&mut SdpOut<'_>)),
    /// Returns whether to ignore this violation by the peer.
    SdpOverlooks(fn(&Violation) -> bool),
    /// Changes a DDP segment before it is sent.
    Segment(fn(&mut SentSegment<'_>)),
    /// Changes a received DDP segment before it is checked. An empty result drops the segment.
    SegmentArrived(fn(&mut Vec<u8>)),
    /// Does the same as `SegmentArrived`. The change can depend on the earlier segments.
    SegmentArrivedAfter(fn(&mut Vec<u8>, &mut DeviationState)),
    /// Changes two time limits: the wait for the peer's start-up frame (first argument), and the
    /// wait for the peer's first FPDU (second argument).
    Timeouts(fn(&mut Duration, &mut Duration)),
    /// Changes a Terminate before it is sent.
    Terminate(fn(&mut Terminate)),
    /// Changes the peer's start-up frame before it is reported to the user.
    ReportedFrame(fn(&mut PeerFrame)),
}

/// A set of deviations that one endpoint commits. Empty by default.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Deviations(Vec<&'static Deviation>);

impl Deviations {
    /// The empty set, for the correct endpoint.
    pub const NONE: Deviations = Deviations(Vec::new());

    /// Adds a deviation. If the set already contains the deviation, nothing changes.
    pub fn insert(&mut self, deviation: &'static Deviation) {
        if !self.contains(deviation) {
            self.0.push(deviation);
        }
    }

    /// Returns whether the set has this deviation.
    #[must_use]
    pub fn contains(&self, deviation: &Deviation) -> bool {
        self.0.contains(&deviation)
    }

    /// Returns whether the set is empty. The correct endpoint has an empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the deviations in the order in which they were added to the set.
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
