//! Hooks are the points at which a deviation can change the correct endpoint. This module has one
//! function for each hook.
//!
//! At each hook the correct code calls one function of this module. The function runs the effects
//! that the deviations of the endpoint have at this hook. If the endpoint has no deviations, the
//! function does nothing. The effect of a deviation is in its entry of a table, not in the correct
//! code.

use core::net::SocketAddr;
use std::borrow::Cow;

use weft_core::wire::mpa::{Enhanced, Fpdu, Framing, Startup};
use weft_core::wire::portmap::Message as PmMessage;
use weft_core::wire::rdmap::{AtomicOperation, Terminate};
use weft_core::wire::sdp::FieldOrder;

use super::context::completion::Completed;
use super::context::conduct::Conduct;
use super::context::connection_outcome::ConnectionOutcome;
use super::context::fpdu::SentFpdu;
use super::context::port_mapper::{PmConduct, PmSent, PmSide};
use super::context::reassembly::ReassemblyConduct;
use super::context::sdp::{SdpArrived, SdpOut, is_counted};
use super::context::sdp_conduct::SdpConduct;
use super::context::sdp_hostile::SdpHostile;
use super::context::segment::{DeviationState, SentSegment};
use super::deviation::{Deviations, Hook};
use crate::connection::settings::Settings;
use crate::mpa::{Negotiated, PeerFrame, Role};
use crate::portmap::Datagram;
use crate::rdmap::Fault;
use crate::sdp::{Output, Violation};
use crate::verbs::{EventId, WorkCompletion};

fn each(deviations: &Deviations) -> impl Iterator<Item = &'static Hook> + use<'_> {
    deviations.iter().flat_map(|deviation| deviation.hooks)
}

/// Runs the effects of the deviations at one hook.
macro_rules! run {
    ($deviations:expr, $hook:ident($($argument:expr),*)) => {
        for hook in each($deviations) {
            if let Hook::$hook(change) = hook {
                change($($argument),*);
            }
        }
    };
}

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident: $hook:ident($($argument:ident: $kind:ty),*);)+) => {$(
        $(#[$doc])*
        pub(crate) fn $name(deviations: &Deviations, $($argument: $kind),*) {
            run!(deviations, $hook($($argument),*));
        }
    )+};
}

hooks! {
    /// Called before the bytes of a received start-up frame are checked.
    arrived: Arrived(receiver: Role, octets: &mut [u8]);
    /// Called after a start-up frame is composed.
    frame: Frame(octets: &mut Vec<u8>);
    /// Called before an Atomic Operation is executed.
    atomic: Atomic(operation: &mut AtomicOperation);
    /// Called when a Queue Pair is connected to its stream.
    depths: Depths(ord: &mut u32, ird: &mut u32);
    /// Called before the first FPDU is sent or received.
    framing: Framing(sent: &mut Framing, received: &mut Framing);
    /// Called before the first FPDU is sent.
    mulpdu: Mulpdu(octets: &mut u16);
    /// Called after start-up has succeeded.
    negotiated: Negotiated(settled: &mut Negotiated);
    /// Called before an Initiator sends its first FPDU.
    opening: Opening(ulpdus: &mut Vec<Vec<u8>>);
    /// Called before a client sends a new PMReq.
    pm_request: PmRequest(message: &mut PmMessage);
    /// Called before the Initiator uses IRD, ORD and flags of an accepting Reply.
    reply_parameters: ReplyParameters(enhanced: &mut Enhanced);
    /// Called before the Reply is composed.
    reply: Reply(request: &PeerFrame, frame: &mut Startup<'_>);
    /// Called before the Request is composed.
    request: Request(frame: &mut Startup<'_>);
    /// Called before a Terminate is sent.
    terminate: Terminate(message: &mut Terminate);
    /// Called before a start-up frame of the peer is reported to the user. Only this report uses
    /// the changed frame.
    reported_frame: ReportedFrame(frame: &mut PeerFrame);
}

/// Called for each completion. Returns the completions to report instead. `held` contains the
/// completions to report later.
pub(crate) fn completed(
    deviations: &Deviations,
    held: &mut Vec<WorkCompletion>,
    completion: WorkCompletion,
) -> Vec<WorkCompletion> {
    let mut completed = Completed::right(completion, held);
    run!(deviations, Completion(&mut completed));
    completed.out
}

/// Called for each asynchronous event. Returns whether to hide the event from the user.
pub(crate) fn conceals(deviations: &Deviations, event: EventId) -> bool {
    each(deviations).any(|hook| matches!(hook, Hook::Conceals(conceals) if conceals(event)))
}

/// Called for each connection that has ended or failed. Returns whether to hide the outcome from
/// the user. The function is public, because other crates also report connections to users.
#[must_use]
pub fn conceals_outcome(deviations: &Deviations, outcome: ConnectionOutcome) -> bool {
    each(deviations).any(|hook| matches!(hook, Hook::ConcealsOutcome(conceals) if conceals(outcome)))
}

/// Called when a connection is created. Changes the settings of the connection.
pub(crate) fn settings(settings: &mut Settings) {
    let deviations = settings.deviations.clone();
    run!(&deviations, Mpa(&mut settings.mpa));
    run!(&deviations, Timeouts(&mut settings.startup_timeout, &mut settings.first_fpdu_timeout));
}

/// Called when a connection is created. Returns the flags of the connection.
pub(crate) fn conduct(deviations: &Deviations) -> Conduct {
    let mut conduct = Conduct::default();
    run!(deviations, Conduct(&mut conduct));
    conduct
}

/// Called when a target on the virtual link is created. Returns the flags of the target's TCP.
pub(crate) fn reassembly(deviations: &Deviations) -> ReassemblyConduct {
    let mut conduct = ReassemblyConduct::default();
    run!(deviations, Reassembly(&mut conduct));
    conduct
}

/// Called when a port mapper is created. Returns the flags of the port mapper.
pub(crate) fn pm_conduct(deviations: &Deviations) -> PmConduct {
    let mut conduct = PmConduct::default();
    run!(deviations, PmConduct(&mut conduct));
    conduct
}

/// Called when an SDP connection is created. Returns the flags of the connection.
pub(crate) fn sdp_conduct(deviations: &Deviations) -> SdpConduct {
    let mut conduct = SdpConduct::default();
    run!(deviations, SdpConduct(&mut conduct));
    conduct
}

/// Called for each received SDP message. Returns the message to process instead, and the STag that
/// this replacement invalidates.
pub(crate) fn sdp_arrived(
    hostile: &mut SdpHostile,
    order: FieldOrder,
    octets: &[u8],
    invalidated: Option<u32>,
) -> (Vec<u8>, Option<u32>) {
    let mut arrived = SdpArrived { order, octets: octets.to_vec(), invalidated, state: &mut hostile.state };
    arrived.state.mseq_ack = arrived.word(8);
    run!(&hostile.deviations, SdpArrived(&mut arrived));
    (arrived.octets, arrived.invalidated)
}

/// Called for each output of an SDP state machine. Queues the outputs that replace this output.
/// `sent` is the newest MSeq, including the MSeq of this output if this output has an MSeq.
pub(crate) fn sdp_out(hostile: &mut SdpHostile, order: FieldOrder, output: Output, sent: &mut u32) {
    let right = is_counted(&output, order);
    let mut out = SdpOut::right(order, output, &mut hostile.state);
    run!(&hostile.deviations, SdpOut(&mut out));
    *sent = sent.wrapping_sub(u32::from(right));
    hostile.out.extend(out.numbered(right, sent));
}

/// Called for each violation by the peer. Returns whether to ignore the violation.
pub(crate) fn sdp_overlooks(deviations: &Deviations, violation: &Violation) -> bool {
    each(deviations).any(|hook| matches!(hook, Hook::SdpOverlooks(overlooks) if overlooks(violation)))
}

/// Called for each received datagram of a port mapper. Returns the datagram to process instead, or
/// `None` to drop the datagram.
pub(crate) fn pm_arrived<'o>(deviations: &Deviations, receiver: PmSide, octets: &'o [u8]) -> Option<Cow<'o, [u8]>> {
    let mut arrived = Cow::Borrowed(octets);
    for hook in each(deviations) {
        if let Hook::PmArrived(change) = hook {
            change(receiver, arrived.to_mut());
            if arrived.is_empty() {
                return None;
            }
        }
    }
    Some(arrived)
}

/// Called for each message that a port mapper sends. Passes the datagrams for this message to
/// `put`.
pub(crate) fn pm_sent(
    deviations: &Deviations,
    message: &PmMessage,
    to: SocketAddr,
    repeat: u32,
    answers: Option<&PmMessage>,
    mut put: impl FnMut(Datagram),
) {
    let mut octets = Vec::new();
    message.emit(&mut octets);
    let mut sent = PmSent { message, answers, repeat, octets, to, from_other_port: false, copies: 1 };
    run!(deviations, PmSent(&mut sent));
    for _ in 0..sent.copies {
        put(Datagram { to: sent.to, octets: sent.octets.clone(), from_other_port: sent.from_other_port });
    }
}

/// Called for each FPDU that is sent. Returns the FPDU to send instead, or `None` if no deviation
/// changes FPDUs.
pub(crate) fn fpdu(deviations: &Deviations, position: u64, ulpdu: &[&[u8]], framing: Framing) -> Option<Vec<u8>> {
    each(deviations).find(|hook| matches!(hook, Hook::Fpdu(_)))?;
    let ulpdu = ulpdu.concat();
    let mut sent = SentFpdu::right(position, &ulpdu, framing);
    run!(deviations, Fpdu(&mut sent));
    Some(sent.octets)
}

/// Called for each valid FPDU that arrives. Returns whether to reject the FPDU.
pub(crate) fn refuses(deviations: &Deviations, fpdu: &Fpdu<'_>) -> bool {
    each(deviations).any(|hook| matches!(hook, Hook::Refuses(refuses) if refuses(fpdu)))
}

/// Called for each DDP segment that is sent. Returns the segments to send instead, or `None` if no
/// deviation changes segments.
pub(crate) fn segments(deviations: &Deviations, state: &mut DeviationState, octets: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    each(deviations).find(|hook| matches!(hook, Hook::Segment(_)))?;
    let mut sent = SentSegment::right(octets.concat(), state);
    run!(deviations, Segment(&mut sent));
    Some(sent.out)
}

/// Called for each received DDP segment. Returns the segment to process instead. `None` means no
/// change. An empty result drops the received segment.
///
/// # Errors
/// A deviation rejects the segment. The error is the fault to report.
pub(crate) fn segment_arrived(
    deviations: &Deviations,
    state: &mut DeviationState,
    octets: &[u8],
) -> Result<Option<Vec<u8>>, Fault> {
    let mut arrived = None;
    for hook in each(deviations) {
        match hook {
            Hook::RefusesSegment(fault) => fault(octets, state).map_or(Ok(()), Err)?,
            Hook::SegmentArrived(change) => change(arrived.get_or_insert_with(|| octets.to_vec())),
            Hook::SegmentArrivedAfter(change) => change(arrived.get_or_insert_with(|| octets.to_vec()), state),
            _ => {}
        }
    }
    Ok(arrived)
}

/// Called for each DDP segment with a fault. Returns whether to ignore the fault.
pub(crate) fn overlooks(deviations: &Deviations, state: &mut DeviationState, fault: Fault) -> bool {
    each(deviations).any(|hook| matches!(hook, Hook::Overlooks(overlooks) if overlooks(fault, state)))
}
