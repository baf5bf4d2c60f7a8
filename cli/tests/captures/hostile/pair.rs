//! Tests MPA. A [`Pair`] has two endpoints without RNICs, and a capture of their traffic. A
//! [`Scene`] has the settings of both endpoints, and the actions of their users.

use std::time::Duration;

use weft_core::{RequirementId, crc};
use weft_peer::connection::{Closed, ClosedBy, Event, Transmit};
use weft_peer::mpa::{Depth, EnhancedUse, Model, PrivateData, Rnic, Rtr, RtrKinds};
use weft_peer::{Connection, Deviations, Instant, Settings};

use crate::hostile::capture::Capture;

/// The settings of both ends, and the actions of their users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scene {
    Plain,
    Markers,
    NoCrc,
    Enhanced,
    /// The peer-to-peer model of RFC 6581, with a ready-to-receive message of this kind.
    PeerToPeer(Rtr),
    /// The peer-to-peer model, with private data in both start-up frames.
    PeerToPeerData,
    /// The Responder offers a kind of ready-to-receive message that the Initiator does not support.
    NoMatchingRtr,
    /// The ORD in the Reply exceeds the IRD that the Initiator can provide.
    TooDeep,
    /// The Initiator does not negotiate IRD and ORD, but leaves them to the ULPs.
    OpenDepths,
    /// The Initiator requests an ORD that exceeds the IRD of the Responder.
    WantsMore,
    PrivateData,
    Rejects,
    RejectsEnhanced,
    /// The Responder's user rejects, and closes.
    RejectsAndCloses,
    /// The Initiator requests no enhanced set-up, and its depths are fixed.
    NothingWanted,
    /// The Initiator follows the RDMA Consortium's specification, and the Responder is permissive
    /// (RFC 5044 Appendix C).
    FromRdmac,
    /// The Initiator is permissive, and the Responder follows the RDMA Consortium's specification.
    ToRdmac,
    /// The Initiator's user sends nothing.
    Silent,
    /// The Initiator posts a Send and closes at once.
    ClosesAtOnce,
    /// Each end sends one long message, with one FPDU in each turn. The Initiator closes after its
    /// first FPDU.
    ClosesInMessage,
    /// The test replaces the Initiator, and sends a Request that is never complete.
    HalfARequest,
    /// The test replaces the Initiator, and sends an enhanced Request. The ready-to-receive message
    /// is an RDMA Write of 0 bytes with an STag.
    WriteToStag,
}

impl Scene {
    pub(crate) const ALL: &'static [Scene] = &[
        Scene::Plain,
        Scene::Markers,
        Scene::NoCrc,
        Scene::Enhanced,
        Scene::PeerToPeer(Rtr::Write),
        Scene::PeerToPeer(Rtr::Read),
        Scene::PeerToPeer(Rtr::Send),
        Scene::PeerToPeerData,
        Scene::NoMatchingRtr,
        Scene::TooDeep,
        Scene::OpenDepths,
        Scene::WantsMore,
        Scene::PrivateData,
        Scene::Rejects,
        Scene::RejectsEnhanced,
        Scene::RejectsAndCloses,
        Scene::NothingWanted,
        Scene::FromRdmac,
        Scene::ToRdmac,
        Scene::Silent,
        Scene::ClosesAtOnce,
        Scene::ClosesInMessage,
        Scene::HalfARequest,
        Scene::WriteToStag,
    ];

    fn settings(self, deviations: [&Deviations; 2]) -> [Settings; 2] {
        let mut both = deviations.map(|deviations| Settings { deviations: deviations.clone(), ..Settings::default() });
        let [initiator, responder] = &mut both;
        let (ask, answer) = (&mut initiator.mpa, &mut responder.mpa);
        let enhanced = !matches!(
            self,
            Scene::Plain
                | Scene::Markers
                | Scene::NoCrc
                | Scene::PrivateData
                | Scene::Rejects
                | Scene::RejectsAndCloses
                | Scene::NothingWanted
                | Scene::FromRdmac
                | Scene::ToRdmac
                | Scene::Silent
                | Scene::ClosesAtOnce
                | Scene::ClosesInMessage
                | Scene::HalfARequest
                | Scene::WriteToStag
        );
        if enhanced {
            ask.enhanced = EnhancedUse::Request;
        }
        match self {
            Scene::Plain | Scene::Enhanced | Scene::Silent | Scene::ClosesAtOnce | Scene::ClosesInMessage => {}
            Scene::HalfARequest | Scene::WriteToStag => {}
            Scene::Markers => (ask.markers, answer.markers) = (true, true),
            Scene::NoCrc => (ask.crc, answer.crc) = (false, false),
            Scene::PeerToPeer(kind) => {
                ask.enhanced_settings.model = Model::PeerToPeer;
                ask.enhanced_settings.rtr = only(kind);
                ask.enhanced_settings.preferred_rtr = kind;
            }
            Scene::PeerToPeerData => {
                ask.enhanced_settings.model = Model::PeerToPeer;
                initiator.private_data = PrivateData::new(&b"here"[..]).unwrap();
                responder.private_data = PrivateData::new(&b"there"[..]).unwrap();
            }
            Scene::NoMatchingRtr => {
                ask.enhanced_settings.model = Model::PeerToPeer;
                ask.enhanced_settings.rtr = only(Rtr::Write);
                answer.enhanced_settings.rtr = only(Rtr::Send);
            }
            Scene::TooDeep => {
                (ask.enhanced_settings.ird, ask.enhanced_settings.max_ird) = (Depth::negotiated(2), 2);
                answer.enhanced_settings.ord = Depth::negotiated(40);
            }
            Scene::OpenDepths => {
                ask.enhanced_settings.model = Model::PeerToPeer;
                ask.enhanced_settings.ird = Depth::fixed(8);
                ask.enhanced_settings.ord = Depth::fixed(8);
            }
            Scene::WantsMore => {
                ask.enhanced_settings.ord = Depth::negotiated(60);
                ask.enhanced_settings.ird = Depth::negotiated(3);
            }
            Scene::PrivateData => {
                initiator.private_data = PrivateData::new(vec![0x55; 300]).unwrap();
                responder.private_data = PrivateData::new(vec![0x66; 300]).unwrap();
            }
            Scene::Rejects | Scene::RejectsEnhanced | Scene::RejectsAndCloses => responder.accept = false,
            Scene::NothingWanted => {
                (ask.enhanced_settings.ird, ask.enhanced_settings.ord) = (Depth::fixed(8), Depth::fixed(8));
            }
            Scene::FromRdmac => (ask.rnic, answer.rnic) = (Rnic::Rdmac, Rnic::PermissiveIetf),
            Scene::ToRdmac => (ask.rnic, answer.rnic) = (Rnic::PermissiveIetf, Rnic::Rdmac),
        }
        both
    }
}

impl Scene {
    /// Returns whether the test replaces the Initiator and sends its bytes.
    pub(crate) fn is_scripted(self) -> bool {
        !self.scripted().is_empty()
    }

    /// Returns the bytes that the test sends in place of the Initiator. It sends one piece after
    /// each turn of the other end.
    fn scripted(self) -> Vec<Vec<u8>> {
        let request = b"MPA ID Req Frame\x50\x02\0\x04\xc0\x08\xc0\x08";
        match self {
            Scene::HalfARequest => vec![request[..11].to_vec()],
            Scene::WriteToStag => {
                let mut fpdu = b"\0\x0e\xc1\x40\0\0\0\x01\0\0\0\0\0\0\0\0".to_vec();
                fpdu.extend(crc::to_octets(crc::crc32c(&fpdu)));
                vec![request.to_vec(), fpdu]
            }
            _ => Vec::new(),
        }
    }
}

fn only(kind: Rtr) -> RtrKinds {
    let mut kinds = RtrKinds::NONE;
    match kind {
        Rtr::Send => kinds.send = true,
        Rtr::Write => kinds.write = true,
        Rtr::Read => kinds.read = true,
    }
    kinds
}

/// Lengths of the Sends of each end. With markers, the PAD of the second Send ends at a marker.
const SENDS: [usize; 12] = [458, 4, 5, 700, 0, 3000, 30, 40, 50, 60, 70, 80];
/// Lengths of the long message of each end. The message needs several FPDUs.
const LONG_SENDS: [usize; 2] = [6000, 16_000];
/// Maximum payload of a TCP segment in bytes.
const MSS: u16 = 1460;

struct End {
    /// The endpoint, or `None` if the test sends the bytes of this end.
    machine: Option<Connection>,
    scripted: std::vec::IntoIter<Vec<u8>>,
    user_events: Vec<String>,
    closed: Option<Closed>,
}

/// Two endpoints, and the wire between them.
pub(crate) struct Pair {
    now: Instant,
    scene: Scene,
    ends: [End; 2],
    pub(crate) capture: Capture,
}

impl Pair {
    /// Runs a scene to its end.
    pub(crate) fn play(scene: Scene, deviations: [&Deviations; 2]) -> Self {
        let [initiator, responder] = scene.settings(deviations);
        let scripted = scene.scripted();
        let now = Instant::ORIGIN;
        let first = scripted.is_empty().then(|| Connection::initiate(now, initiator).unwrap());
        let machines = [first, Some(Connection::respond(now, responder))];
        let ends = machines.map(|machine| End {
            machine,
            scripted: scripted.clone().into_iter(),
            user_events: Vec::new(),
            closed: None,
        });
        let mut pair = Pair { now, scene, ends, capture: Capture::connected(MSS) };
        pair.run();
        pair.pass(Duration::from_secs(200));
        for end in 0..2 {
            if let Some(machine) = &mut pair.ends[end].machine {
                machine.close(pair.now);
            }
            pair.run();
        }
        pair.pass(Duration::from_secs(200));
        pair
    }

    /// Lets this time pass, and handles each deadline until then.
    fn pass(&mut self, duration: Duration) {
        let until = self.now + duration;
        for _ in 0..100 {
            let machines = || self.ends.iter().filter_map(|end| end.machine.as_ref());
            let Some(next) = machines().filter_map(Connection::poll_timeout).filter(|at| *at <= until).min() else {
                break;
            };
            self.now = self.now.max(next);
            for end in &mut self.ends {
                if let Some(machine) = &mut end.machine {
                    machine.handle_timeout(self.now);
                }
            }
            self.run();
        }
        self.now = until;
    }

    /// Delivers all output until both ends send nothing more. The output of one turn is joined into
    /// one piece.
    fn run(&mut self) {
        for _ in 0..1000 {
            let mut moved = false;
            for from in 0..2 {
                let (writes, last) = self.sent(from);
                moved |= !writes.is_empty() || last.is_some();
                writes.iter().for_each(|octets| self.capture.octets(from, octets));
                let octets = writes.concat();
                let to = &mut self.ends[1 - from];
                for segment in octets.chunks(usize::from(MSS)) {
                    if let Some(machine) = &mut to.machine {
                        machine.handle_octets(self.now, segment);
                    }
                }
                match last {
                    Some(Transmit::Fin) => {
                        self.capture.fin(from);
                        if let Some(machine) = &mut to.machine {
                            machine.handle_fin(self.now);
                        }
                    }
                    Some(_) => {
                        self.capture.reset(from);
                        if let Some(machine) = &mut to.machine {
                            machine.handle_reset(self.now);
                        }
                    }
                    None => {}
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Returns the current output of an end, and its FIN or RST if there is one.
    fn sent(&mut self, from: usize) -> (Vec<Vec<u8>>, Option<Transmit>) {
        self.users(from);
        let Some(machine) = &mut self.ends[from].machine else {
            return (self.ends[from].scripted.next().into_iter().collect(), None);
        };
        let mut writes = Vec::new();
        let mut last = None;
        while let Some(transmit) = machine.poll_transmit(self.now) {
            match transmit {
                Transmit::Octets(octets) => {
                    writes.push(octets.to_vec());
                    if self.scene == Scene::ClosesInMessage {
                        break;
                    }
                }
                end => {
                    last = Some(end);
                    break;
                }
            }
        }
        if self.scene == Scene::ClosesInMessage && from == 0 && writes.iter().any(|octets| !octets.starts_with(b"MPA "))
        {
            machine.close(self.now);
        }
        self.users(from);
        (writes, last)
    }

    /// Lets the user of an end react to the events.
    fn users(&mut self, end: usize) {
        let (now, scene) = (self.now, self.scene);
        let End { machine: Some(machine), user_events, closed, .. } = &mut self.ends[end] else { return };
        while let Some(event) = machine.poll_event() {
            // The results of commands are ignored, because an endpoint rejects a command only while
            // its connection ends.
            match &event {
                Event::Established { .. } => {
                    let _ = (0..16).try_for_each(|_| machine.post_receive(16_000));
                    let sends: &[usize] = match scene {
                        Scene::Silent if end == 0 => &[],
                        Scene::ClosesAtOnce if end == 0 => &[5],
                        Scene::ClosesInMessage => &LONG_SENDS[end..=end],
                        _ => &SENDS,
                    };
                    for length in sends {
                        let _ = machine.post_send(vec![0x11; *length]);
                    }
                    if scene == Scene::ClosesAtOnce && end == 0 {
                        machine.close(now);
                    }
                }
                Event::Request(_) => {
                    let _ = machine.reject(&PrivateData::default());
                    if scene == Scene::RejectsAndCloses {
                        machine.close(now);
                    }
                }
                Event::HalfClosed | Event::Rejected(_) => machine.close(now),
                Event::Closed(how) => *closed = Some(*how),
                _ => {}
            }
            user_events.push(format!("{event:?}"));
        }
    }

    /// Returns the events of both users, and how TCP ended.
    pub(crate) fn outcome(&self) -> String {
        format!("{:?}\n{:?}\n{:?}", self.ends[0].user_events, self.ends[1].user_events, self.capture.ends)
    }

    /// Returns the requirement that made an end close the connection by itself.
    pub(crate) fn refuses(&self, end: usize) -> Option<RequirementId> {
        let closed = self.ends[end].closed.filter(|closed| closed.by == ClosedBy::Library)?;
        closed.why.requirement()
    }
}
