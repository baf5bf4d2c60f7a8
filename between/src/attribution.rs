//! Decides which side violated which requirement, and which side was only affected.
//!
//! A side violated a requirement only if the tap of this side finds the violation. Only this tap
//! has the frames that the side really sent and received. If the tap of the opposite side also
//! finds the violation, the violation had an effect on the opposite side. If only the tap of the
//! opposite side finds a violation, the injected faults caused the violation, because the side sent
//! other bytes.
//!
//! If a side receives a corrupted byte that no CRC can detect, it works with wrong data. Its later
//! violations on this connection are then caused by the network, too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde::Serialize;
use weft_core::requirement::Severity;
use weft_dissector::FrameNumber;

use crate::fault::{Fault, FaultKind};
use crate::fault_index::{Endpoints, FaultIndex};
use crate::side::{PerSide, Side};
use crate::tap::{CorruptedUnit, End, Flow, Observed, Violation};

/// A violation and its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attributed {
    /// The side that violated the requirement. If the network is the cause, the side whose traffic
    /// looked wrong to its peer.
    pub side: Side,
    /// The id of the requirement.
    pub requirement: &'static str,
    /// The severity: error, warning or note.
    pub severity: &'static str,
    /// The direction of the connection.
    #[serde(flatten)]
    pub flow: Flow,
    /// The tap whose capture shows the violation.
    pub tap: Side,
    /// The first frame that shows the violation, in the capture of `tap`.
    pub frame: FrameNumber,
    /// Number of findings.
    pub count: u64,
    /// The required behaviour.
    pub expected: String,
    /// The observed behaviour.
    pub found: String,
    /// If the network is the cause: the number of the last fault before the frame in this
    /// direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<u32>,
}

/// The outcome of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The fault changes no byte: a segment was lost, duplicated, reordered, divided or rejected.
    /// TCP repairs such faults, as long as the connection exists.
    LeftToTcp,
    /// The CRC of MPA showed the corrupted byte, and the receiver ended the connection.
    DetectedByCrc,
    /// The CRC of MPA showed the corrupted byte, but the receiver did not end the connection.
    IgnoredByReceiver,
    /// No CRC covers the corrupted byte, because the connection uses no CRC.
    UndetectableWithoutCrc,
    /// No CRC covers the corrupted byte, because it is in a start-up frame.
    UndetectableInStartup,
    /// The corrupted byte hides where its FPDU ends, for example because it is in `ULPDU_Length`.
    /// The receiver waits for more bytes, or finds a wrong CRC.
    FramingLost,
    /// The receiver already had the byte, so its TCP dropped the corrupted byte. The segment was a
    /// superfluous retransmission.
    AlreadyReceived,
    /// The receiver got the corrupted byte neither in an FPDU nor in a start-up frame. For example,
    /// the connection has no FPDUs.
    OutsideIwarp,
    /// The CRC was correct in spite of the corrupted byte.
    UndetectedByCrc,
}

impl Outcome {
    /// A short description.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Outcome::LeftToTcp => "left to TCP, which repairs such faults",
            Outcome::DetectedByCrc => "detected by the CRC, and the receiver ended the connection",
            Outcome::IgnoredByReceiver => "the CRC is wrong, but the receiver did not end the connection",
            Outcome::UndetectableWithoutCrc => "undetectable, because the connection uses no CRC",
            Outcome::UndetectableInStartup => "undetectable by a CRC, because start-up frames have no CRC",
            Outcome::FramingLost => "the change hides where the FPDU ends",
            Outcome::AlreadyReceived => "the receiver already had the changed byte",
            Outcome::OutsideIwarp => "the receiver got the changed byte in no FPDU and no start-up frame",
            Outcome::UndetectedByCrc => "the CRC is correct in spite of the change",
        }
    }
}

/// A fault and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// The outcome of the fault.
    pub outcome: Outcome,
    /// How the receiver of the segment ended the connection after the fault; `None` if the receiver
    /// did not end the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_end: Option<End>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attribution {
    /// Violations of each side itself.
    pub violations: PerSide<Vec<Attributed>>,
    /// Violations that the network made.
    pub network: Vec<Attributed>,
    /// The injected faults.
    pub faults: Vec<Judged>,
    /// Findings of each tap that are not listed, because there are too many different findings.
    pub omitted: PerSide<u64>,
}

impl Attribution {
    /// Compares the results of both taps.
    #[must_use]
    pub fn new(observed: &PerSide<Observed>, faults: &[Fault]) -> Self {
        let corruptions: BTreeMap<u32, _> = Side::BOTH
            .into_iter()
            .flat_map(|side| observed[side].corruptions.iter())
            .map(|corruption| (corruption.fault, corruption))
            .collect();
        let judge = |fault: &Fault| {
            let corruption = corruptions.get(&fault.number);
            let tap = &observed[fault.from.peer()];
            let reverse = |flow: Flow| Flow { sender: flow.receiver, receiver: flow.sender, earlier: flow.earlier };
            let end = corruption.and_then(|corruption| tap.ends.get(&reverse(corruption.flow?)));
            let sender_end = corruption.and_then(|corruption| tap.ends.get(&corruption.flow?));
            // If the sender of the segment has already ended its direction, a FIN of the receiver
            // is the normal end of the connection.
            let is_reaction = |frame: FrameNumber, end: End| {
                fault.received.is_some_and(|received| frame > received)
                    && (end != End::Fin || sender_end.is_none_or(|(sender, _)| frame < *sender))
            };
            let receiver_end = end.filter(|(frame, end)| is_reaction(*frame, *end)).map(|(_, end)| *end);
            let outcome = match (fault.kind, corruption.map(|corruption| corruption.unit)) {
                (FaultKind::Corrupt { .. }, None | Some(CorruptedUnit::Other)) => Outcome::OutsideIwarp,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::Repeated)) => Outcome::AlreadyReceived,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::BrokenFraming)) => Outcome::FramingLost,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::DetectableFpdu)) if receiver_end.is_some() => {
                    Outcome::DetectedByCrc
                }
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::DetectableFpdu)) => Outcome::IgnoredByReceiver,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::UndetectableFpdu)) => Outcome::UndetectableWithoutCrc,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::Startup)) => Outcome::UndetectableInStartup,
                (FaultKind::Corrupt { .. }, Some(CorruptedUnit::CorrectFpdu)) => Outcome::UndetectedByCrc,
                _ => Outcome::LeftToTcp,
            };
            Judged { fault: fault.clone(), outcome, receiver_end }
        };
        let judged: Vec<Judged> = faults.iter().map(judge).collect();
        let mut network: Vec<Attributed> =
            Side::BOTH.into_iter().flat_map(|tap| network_violations(tap, observed, faults)).collect();
        let misleading = misleading(&judged);
        let violations = PerSide::new(|side| {
            let mut own = own_violations(side, &observed[side]);
            let is_misled = |violation: &mut Attributed| {
                violation.fault = misled_by(violation, &misleading);
                violation.fault.is_some()
            };
            network.extend(own.extract_if(.., is_misled));
            own
        });
        Attribution { violations, network, faults: judged, omitted: PerSide::new(|side| observed[side].omitted) }
    }

    /// Whether a side violated a requirement of severity error or warning.
    #[must_use]
    pub fn has_violations(&self) -> bool {
        Side::BOTH.iter().any(|side| self.violations[*side].iter().any(|violation| violation.severity != "note"))
    }

    /// The fault with this number.
    #[must_use]
    pub fn fault(&self, number: u32) -> Option<&Judged> {
        // The faults are in the order of their numbers.
        let index = self.faults.binary_search_by_key(&number, |judged| judged.fault.number).ok()?;
        self.faults.get(index)
    }

    /// Number of faults with each outcome.
    #[must_use]
    pub fn outcomes(&self) -> BTreeMap<Outcome, u64> {
        let mut counts = BTreeMap::new();
        self.faults.iter().for_each(|judged| *counts.entry(judged.outcome).or_default() += 1);
        counts
    }
}

fn own_violations(side: Side, observed: &Observed) -> Vec<Attributed> {
    let own = observed.violations.iter().filter(|violation| violation.subject == side);
    own.map(|violation| attributed(violation, side, None)).collect()
}

/// The violations that only the tap of the receiver finds.
fn network_violations(tap: Side, observed: &PerSide<Observed>, faults: &[Fault]) -> Vec<Attributed> {
    let sender = tap.peer();
    let own: BTreeSet<_> = observed[sender]
        .violations
        .iter()
        .filter(|violation| violation.subject == sender)
        .map(|violation| (violation.flow, violation.requirement))
        .collect();
    let others = observed[tap].violations.iter().filter(|violation| violation.subject == sender);
    let made = others.filter(|violation| !own.contains(&(violation.flow, violation.requirement)));
    let causes = causes(tap, faults);
    made.map(|violation| attributed(violation, tap, cause(violation, &causes))).collect()
}

/// The corrupted bytes that no CRC could detect, by sender, receiver, and the frame that the
/// receiver got. The index chooses the first of these faults.
fn misleading(faults: &[Judged]) -> FaultIndex {
    use Outcome::{UndetectableInStartup, UndetectableWithoutCrc, UndetectedByCrc};
    let misleads =
        |judged: &&Judged| matches!(judged.outcome, UndetectableInStartup | UndetectableWithoutCrc | UndetectedByCrc);
    let place = |Judged { fault, .. }: &Judged| Some(((fault.src, fault.dst), fault.received?, fault.number));
    FaultIndex::new(faults.iter().filter(misleads).filter_map(place), u32::min)
}

/// The number of the first fault that may have misled the side: the side received a corrupted byte
/// before its violation, and no CRC could detect it.
fn misled_by(violation: &Attributed, misleading: &FaultIndex) -> Option<u32> {
    let Flow { sender, receiver, .. } = violation.flow;
    misleading.before((receiver, sender), violation.frame)
}

/// All faults, by connection, and by the frame in the capture of `tap`. The index chooses the last
/// fault.
fn causes(tap: Side, faults: &[Fault]) -> FaultIndex {
    let place = |fault: &Fault| {
        // Each tap numbers its own frames. If the side of `tap` sent the segment, the number is
        // `sent`, otherwise `received`.
        let frame = if fault.from == tap { Some(fault.sent) } else { fault.received };
        Some((connection(fault.src, fault.dst), frame?, fault.number))
    };
    FaultIndex::new(faults.iter().filter_map(place), u32::max)
}

/// The number of the last fault in a segment of the connection, before the violation.
fn cause(violation: &Violation, causes: &FaultIndex) -> Option<u32> {
    let Flow { sender, receiver, .. } = violation.flow;
    causes.before(connection(sender, receiver), violation.frame.later(1))
}

/// The endpoints of a connection, in an order that does not depend on the direction.
fn connection(one: SocketAddr, other: SocketAddr) -> Endpoints {
    (one.min(other), one.max(other))
}

fn attributed(violation: &Violation, tap: Side, fault: Option<u32>) -> Attributed {
    let Violation { subject, flow, requirement, severity, frame, count, expected, found } = violation;
    Attributed {
        side: *subject,
        requirement: requirement.as_str(),
        severity: match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        flow: *flow,
        tap,
        frame: *frame,
        count: *count,
        expected: expected.clone(),
        found: found.clone(),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::Corruption;

    /// A byte of the segment from A to B is corrupted. B receives it in frame 5.
    fn judged(outcome: Outcome) -> Judged {
        let fault = Fault {
            number: 1,
            time: 0,
            kind: FaultKind::Corrupt { at: 0, bits: 1 },
            from: Side::A,
            src: "127.0.0.1:1".parse().unwrap(),
            dst: "127.0.0.1:2".parse().unwrap(),
            seq: 0,
            len: 40,
            sent: FrameNumber::NONE.later(4),
            received: Some(FrameNumber::NONE.later(5)),
        };
        Judged { fault, outcome, receiver_end: None }
    }

    /// B violates a requirement in this frame, in a message to A.
    fn of_b(frame: u64) -> Attributed {
        Attributed {
            side: Side::B,
            requirement: "DDP-4.2-5",
            severity: "error",
            flow: Flow { sender: "127.0.0.1:2".parse().unwrap(), receiver: "127.0.0.1:1".parse().unwrap(), earlier: 0 },
            tap: Side::B,
            frame: FrameNumber::NONE.later(frame),
            count: 1,
            expected: String::new(),
            found: String::new(),
            fault: None,
        }
    }

    #[test]
    fn only_an_undetectable_byte_misleads_and_only_later_violations() {
        let undetectable = misleading(&[judged(Outcome::UndetectableWithoutCrc)]);
        assert_eq!(misled_by(&of_b(6), &undetectable), Some(1));
        assert_eq!(misled_by(&of_b(5), &undetectable), None);
        for harmless in [Outcome::DetectedByCrc, Outcome::AlreadyReceived] {
            assert_eq!(misled_by(&of_b(6), &misleading(&[judged(harmless)])), None);
        }
    }

    /// Tap B has the fault in frame 5, and tap A has the segment in frame 4.
    #[test]
    fn the_cause_is_the_last_fault_before_the_violation() {
        let of_frame = |frame: u64| Violation {
            subject: Side::A,
            flow: Flow { sender: "127.0.0.1:1".parse().unwrap(), receiver: "127.0.0.1:2".parse().unwrap(), earlier: 0 },
            requirement: weft_core::requirement!("DDP-4.2-5"),
            severity: Severity::Error,
            frame: FrameNumber::NONE.later(frame),
            count: 1,
            expected: String::new(),
            found: String::new(),
        };
        let faults = [judged(Outcome::LeftToTcp).fault, Fault { number: 2, ..judged(Outcome::LeftToTcp).fault }];
        let [at_a, at_b] = [Side::A, Side::B].map(|tap| causes(tap, &faults));
        assert_eq!([3, 4].map(|frame| cause(&of_frame(frame), &at_a)), [None, Some(2)]);
        assert_eq!([4, 5].map(|frame| cause(&of_frame(frame), &at_b)), [None, Some(2)]);
        let lost = [Fault { received: None, ..judged(Outcome::LeftToTcp).fault }];
        assert_eq!(cause(&of_frame(9), &causes(Side::B, &lost)), None);
    }

    #[test]
    fn a_corrupted_byte_that_the_receiver_already_had_has_its_own_outcome() {
        let fault = judged(Outcome::LeftToTcp).fault;
        let of_unit = |unit| {
            let corruption = Corruption { fault: 1, frame: FrameNumber::NONE.later(5), flow: None, unit };
            let at_b = Observed { corruptions: vec![corruption], ..Observed::default() };
            let observed = PerSide { a: Observed::default(), b: at_b };
            let attribution = Attribution::new(&observed, std::slice::from_ref(&fault));
            attribution.fault(1).map(|judged| judged.outcome)
        };
        assert_eq!(of_unit(CorruptedUnit::Repeated), Some(Outcome::AlreadyReceived));
        assert_eq!(of_unit(CorruptedUnit::Other), Some(Outcome::OutsideIwarp));
    }
}
