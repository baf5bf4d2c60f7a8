//! Lists the scenes of SDP. A scene has the settings and the actions of two users. For each
//! requirement that an end can violate, there is a scene that shows the violation.

use std::fmt::Write as _;

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_core::wire::sdp::FieldOrder;
use weft_dissector::Finding;
use weft_peer::Deviations;
use weft_peer::sdp::{Event, Policy, Profile, Settings, SrcAvailAnswer};

use super::net::Net;

/// Length of a Private Buffer in bytes.
const SIZE: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scene {
    /// Small sends.
    Bcopy,
    /// In Combined Mode, a send is advertised with a SrcAvail. The peer reads the advertised data
    /// (`Combined`), or answers with a SendSm (`CombinedBySendSm`).
    Combined,
    CombinedBySendSm,
    /// In Combined Mode, the peer reads only a part of the advertised data (`CombinedInParts`), or
    /// reads one part for each receive of its user (`CombinedByReads`).
    CombinedInParts,
    CombinedByReads,
    /// Several SrcAvails in Pipelined Mode. In `PipelinedBySendSm`, the peer answers with SendSm
    /// messages.
    Pipelined,
    PipelinedBySendSm,
    /// The receives are posted first, so the receiver sends SinkAvails.
    Written,
    /// The receives are posted first, in both directions. So SinkAvails carry payload.
    Transactions,
    /// The connection passes through all Modes, and transfers data in each Mode.
    Modes,
    /// A small send crosses a SinkAvail, which becomes stale.
    Stale,
    /// A SrcAvail and a SinkAvail cross.
    Crossing,
    /// A SrcAvail is revoked (`RevokedSend`), or several are (`RevokedSends`).
    RevokedSend,
    RevokedSends,
    /// A SrcAvail is revoked while the peer reads its data. In `RevokedReceive`, a SinkAvail is
    /// revoked.
    RevokedInProcess,
    RevokedReceive,
    /// More SrcAvails are outstanding than the peer stores.
    MaxAdverts,
    /// Many small sends, and few Private Buffers.
    Credit,
    Urgent,
    UrgentFar,
    Larger,
    Smaller,
    ResizesCrossing,
    /// One side closes, and the other side still sends.
    HalfClosed,
    /// A DisConn is followed by an abort.
    Aborted,
    /// Hello and the MPA Request arrive together.
    Natural,
    /// The socket is duplicated. This happens without other traffic (`Suspended`), while the
    /// requesting side reads (`SuspendedReading`), or while the other side reads
    /// (`SuspendedRead`). In `SuspendsCrossing`, both sides request this at the same time.
    Suspended,
    SuspendedReading,
    SuspendedRead,
    SuspendsCrossing,
    /// Half-connections enter Pipelined Mode because the other side requests it.
    Hints,
    /// One side requests Pipelined Mode while the other side enters Buffered Mode.
    HintsCrossing,
    /// A SinkAvail crosses a SrcAvail and the ModeChange that follows the SrcAvail.
    Leaving,
    /// A SrcAvail is revoked after its data was read (`RevokedLate`). A SinkAvail is revoked while
    /// its buffer is written (`RevokedWrite`).
    RevokedLate,
    RevokedWrite,
    /// A request for larger Private Buffers is refused (`LargerRefused`), or accepted in Pipelined
    /// Mode. In `SmallerPipelined`, the buffers become smaller again, and the lengths of the
    /// receives are between the two sizes.
    LargerRefused,
    LargerPipelined,
    SmallerPipelined,
    /// Each end accepts only one RDMA Read at a time.
    OneRead,
    /// Data crosses a SinkAvail that is being revoked.
    RevokedStale,
    /// Private Buffers grow twice.
    LargerTwice,
}

/// The observable results of a scene.
pub(crate) struct Run {
    pub(crate) findings: Vec<Finding>,
    /// The results that both users get, and the messages of each end.
    pub(crate) outcome: String,
    /// For each end that closed the connection by itself, the requirement that was the reason.
    pub(crate) refuses: [Option<RequirementId>; 2],
}

impl Run {
    /// Returns the requirements of the monitor's findings about an end, with at least the severity
    /// `least`.
    pub(crate) fn found(&self, end: usize, least: Severity) -> std::collections::BTreeSet<RequirementId> {
        let of_end = self.findings.iter().filter(|finding| usize::from(finding.direction) == end);
        of_end.filter(|finding| finding.severity >= least).map(|finding| finding.requirement).collect()
    }
}

impl Scene {
    pub(crate) const ALL: &[Scene] = &[
        Scene::Bcopy,
        Scene::Combined,
        Scene::CombinedBySendSm,
        Scene::CombinedInParts,
        Scene::CombinedByReads,
        Scene::Pipelined,
        Scene::PipelinedBySendSm,
        Scene::Written,
        Scene::Transactions,
        Scene::Modes,
        Scene::Stale,
        Scene::Crossing,
        Scene::RevokedSend,
        Scene::RevokedSends,
        Scene::RevokedInProcess,
        Scene::RevokedReceive,
        Scene::MaxAdverts,
        Scene::Credit,
        Scene::Urgent,
        Scene::UrgentFar,
        Scene::Larger,
        Scene::Smaller,
        Scene::ResizesCrossing,
        Scene::HalfClosed,
        Scene::Aborted,
        Scene::Natural,
        Scene::Suspended,
        Scene::SuspendedReading,
        Scene::SuspendedRead,
        Scene::SuspendsCrossing,
        Scene::Hints,
        Scene::Leaving,
        Scene::RevokedLate,
        Scene::LargerRefused,
        Scene::LargerPipelined,
        Scene::OneRead,
        Scene::HintsCrossing,
        Scene::SmallerPipelined,
        Scene::RevokedWrite,
        Scene::RevokedStale,
        Scene::LargerTwice,
    ];

    fn settings(self, order: FieldOrder) -> Settings {
        let answer = match self {
            Scene::CombinedBySendSm | Scene::PipelinedBySendSm => SrcAvailAnswer::SendSm,
            Scene::CombinedInParts => SrcAvailAnswer::ReadThenSendSm,
            _ => SrcAvailAnswer::Read,
        };
        let max_read = if self == Scene::CombinedInParts { 700 } else { 1 << 30 };
        let bcopy =
            [Scene::Credit, Scene::Larger, Scene::LargerTwice, Scene::Smaller, Scene::UrgentFar].contains(&self);
        let source_threshold = if bcopy { u64::MAX } else { 500 };
        let hints = [Scene::Hints, Scene::HintsCrossing].contains(&self);
        let policy = Policy {
            source_threshold,
            sink_threshold: 0,
            src_avail_payload: 40,
            answer,
            max_read,
            wants_pipelined: hints,
            follows_hints: hints,
            ..Policy::default()
        };
        Settings {
            profile: if self == Scene::Natural { Profile::Natural } else { Profile::Swapped },
            bufs: if self == Scene::Credit { 5 } else { 16 },
            recv_size: SIZE,
            max_recv_size: if self == Scene::LargerRefused { SIZE } else { 3000 },
            ird: if self == Scene::OneRead { 1 } else { 16 },
            des_rem_rcv_sz: SIZE,
            max_adverts: if self == Scene::MaxAdverts { 2 } else { 16 },
            order,
            policy,
            ..Settings::default()
        }
    }

    /// Runs the scene with these deviations of the Connecting and the Accepting Peer.
    pub(crate) fn play(self, order: FieldOrder, deviations: [&Deviations; 2]) -> Net {
        let mut net = Net::new([self.settings(order); 2], deviations);
        net.settle();
        // The peer returns the credit that HelloAck used.
        net.wait(40);
        for from in 0..2 {
            self.act(&mut net, from, 1 - from);
            net.wait(200);
        }
        if self == Scene::ResizesCrossing {
            net.ends.iter_mut().for_each(|end| end.machine.resize(2000));
            net.load();
            net.settle();
            net.send(0, 300);
            net.send(1, 300);
            net.read(0);
            net.read(1);
        }
        if self == Scene::SuspendsCrossing {
            for end in 0..2 {
                let _ = net.ends[end].machine.suspend(Net::port(end));
            }
            net.load();
            net.settle();
            net.wait(200);
            net.send(0, 300);
            net.send(1, 300);
            net.read(0);
            net.read(1);
        }
        for end in 0..2 {
            net.ends[end].machine.shut_down();
            net.settle();
            if self == Scene::Aborted {
                net.ends[end].machine.abort(net.now);
            }
            if self == Scene::HalfClosed {
                for _ in 0..3 {
                    net.send(1 - end, 300);
                    net.read(end);
                }
            }
            net.settle();
        }
        net.wait(100_000);
        net
    }

    /// Runs the scene, and collects its results.
    pub(crate) fn run(self, order: FieldOrder, deviations: [&Deviations; 2]) -> Run {
        Run::of(&self.play(order, deviations))
    }
}

impl Run {
    fn of(net: &Net) -> Self {
        let refuses = [0, 1].map(|end| {
            net.ends[end].events.iter().find_map(|event| match event {
                Event::Closed { violation, .. } => violation.map(|violation| violation.requirement()),
                Event::Refused(refusal) => refusal.requirement(),
                _ => None,
            })
        });
        let mut outcome = String::new();
        for (end, side) in net.ends.iter().enumerate() {
            let got = weft_core::crc::crc32c(&side.got);
            let _ = writeln!(outcome, "{end}: {:02x?} {got:08x} {:?}", side.messages, side.events);
        }
        let _ = write!(outcome, "{:?}", net.capture.ends);
        Run { findings: net.capture.findings(), outcome, refuses }
    }
}
