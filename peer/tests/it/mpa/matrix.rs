//! These tests combine settings: revision, kind of ready-to-receive message, markers in each
//! direction, CRC, private data, EMSS, and how TCP splits the octets. Dimensions with few values
//! are tested exhaustively. The other dimensions are sampled with a printed seed. Each run checks
//! the negotiated values, every octet of both streams, and that every message arrives.

use weft_core::wire::mpa::{Framing, mulpdu};
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy};
use weft_peer::mpa::{EnhancedSettings, EnhancedUse, Model, MpaSettings, PrivateData, Rnic, Rtr, RtrKinds};

use crate::mpa::wire::{Random, SeenFpdu, Wire, established, fpdus, split_frame};

/// How the Initiator begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Revision0,
    Revision1,
    /// The Initiator sends a ready-to-receive message that was agreed out of band.
    Revision1Rtr(Rtr),
    ClientServer,
    PeerToPeer(Rtr),
}

const MODES: [Mode; 9] = [
    Mode::Revision0,
    Mode::Revision1,
    Mode::Revision1Rtr(Rtr::Read),
    Mode::Revision1Rtr(Rtr::Send),
    Mode::Revision1Rtr(Rtr::Write),
    Mode::ClientServer,
    Mode::PeerToPeer(Rtr::Read),
    Mode::PeerToPeer(Rtr::Send),
    Mode::PeerToPeer(Rtr::Write),
];

#[derive(Debug, Clone, Copy)]
struct Case {
    mode: Mode,
    /// Flag M of the Initiator and of the Responder.
    markers: [bool; 2],
    crc: [bool; 2],
    private_data: [usize; 2],
    emss: [u32; 2],
}

impl Mode {
    fn rtr(self) -> Option<Rtr> {
        match self {
            Mode::Revision1Rtr(rtr) | Mode::PeerToPeer(rtr) => Some(rtr),
            Mode::Revision0 | Mode::Revision1 | Mode::ClientServer => None,
        }
    }

    fn revision(self) -> u8 {
        match self {
            Mode::Revision0 => 0,
            Mode::Revision1 | Mode::Revision1Rtr(_) => 1,
            Mode::ClientServer | Mode::PeerToPeer(_) => 2,
        }
    }

    fn room(self) -> usize {
        if self.revision() == 2 { 508 } else { 512 }
    }
}

impl Case {
    fn settings(&self, side: usize) -> Settings {
        let mut mpa = MpaSettings { markers: self.markers[side], crc: self.crc[side], ..MpaSettings::default() };
        match self.mode {
            Mode::Revision0 => mpa.rnic = if side == 0 { Rnic::Rdmac } else { Rnic::PermissiveIetf },
            Mode::Revision1 => {}
            Mode::Revision1Rtr(rtr) => mpa.agreed_rtr = Some(rtr),
            Mode::ClientServer => mpa.enhanced = EnhancedUse::Request,
            Mode::PeerToPeer(rtr) => {
                mpa.enhanced = EnhancedUse::Request;
                // The kind of ready-to-receive message is selected in two ways. If the Responder
                // uses CRCs, the Responder's flags allow only this kind. Otherwise, the Initiator's
                // preference selects it.
                let rtr_kinds = if side == 1 && self.crc[1] { RtrKinds::only(rtr) } else { RtrKinds::ALL };
                let (model, preferred_rtr) = (Model::PeerToPeer, rtr);
                mpa.enhanced_settings =
                    EnhancedSettings { model, rtr: rtr_kinds, preferred_rtr, ..EnhancedSettings::default() };
            }
        }
        let octet = b'I' + u8::try_from(side).unwrap() * 9;
        let private_data = PrivateData::new(vec![octet; self.private_data[side]]).unwrap();
        Settings { mpa, private_data, emss: self.emss[side], ..Settings::default() }
    }
}

/// The result of one case.
struct Ran {
    /// FPDUs of the Initiator and of the Responder.
    fpdus: [Vec<SeenFpdu>; 2],
    octets: usize,
}

/// Lengths of the messages that both sides send at the same time: no octet, one octet, a complete
/// FPDU, and a message that must be split.
fn lengths(emss: u32) -> [usize; 4] {
    let largest = usize::from(mulpdu(emss, true)) - 18;
    [0, 1, largest, largest.min(3000) + 700]
}

fn run(case: &Case, cut: impl FnMut(usize) -> usize + 'static) -> Ran {
    let mut wire = Wire::cut(case.settings(0), case.settings(1), cut);
    wire.run();

    let rdmac = case.mode == Mode::Revision0;
    let crc = rdmac || case.crc[0] || case.crc[1];
    // A side receives markers if its own frame has M=1.
    let markers = case.markers.map(|markers| markers || rdmac);
    for (side, machine) in [&wire.initiator, &wire.responder].into_iter().enumerate() {
        let (negotiated, peer) = established(machine);
        assert_eq!(negotiated.crc, crc, "{case:?}");
        assert_eq!((negotiated.markers_received, negotiated.markers_sent), (markers[side], markers[1 - side]));
        assert_eq!(negotiated.version, u8::from(!rdmac));
        assert_eq!(peer.private_data.as_octets().len(), case.private_data[1 - side], "{case:?}");
        assert_eq!(peer.revision, case.mode.revision());
        assert_eq!(negotiated.enhanced.is_some(), case.mode.revision() == 2);
    }

    for machine in [&mut wire.initiator, &mut wire.responder] {
        (0..8).for_each(|_| machine.connection.post_receive(70_000).unwrap());
    }
    for length in lengths(case.emss[1]) {
        wire.responder.connection.post_send(vec![0xb0; length]).unwrap();
    }
    wire.run();
    // Without a ready-to-receive message, the Responder is silent until its peer's ULP has sent.
    let early = wire.initiator.received().len();
    assert_eq!(early, if case.mode.rtr().is_some() { 4 } else { 0 }, "{case:?}");
    for length in lengths(case.emss[0]) {
        wire.initiator.connection.post_send(vec![0xa0; length]).unwrap();
    }
    wire.run();
    wire.initiator.close();
    wire.run();
    wire.responder.close();
    wire.run();
    assert_eq!(wire.initiator.closed(), Some(Closed { by: ClosedBy::User, why: CloseCause::Requested }), "{case:?}");
    assert_eq!(wire.responder.closed(), Some(Closed { by: ClosedBy::Peer, why: CloseCause::Fin }), "{case:?}");

    let mut octets = 0;
    let sides = [(&wire.initiator, &wire.responder, 0xa0), (&wire.responder, &wire.initiator, 0xb0)];
    let seen = [0, 1].map(|side: usize| {
        let (sender, receiver, octet) = sides[side];
        let expected: Vec<Vec<u8>> = lengths(case.emss[side]).iter().map(|length| vec![octet; *length]).collect();
        assert!(receiver.received() == expected, "messages of side {side} in {case:?}");
        let sent = sender.octets_sent();
        octets += sent.len();
        let (frame, stream) = split_frame(&sent);
        assert_eq!(frame[17], case.mode.revision());
        let framing = Framing { markers: markers[1 - side], crc };
        let seen = fpdus(stream, framing);
        let emss = usize::try_from(case.emss[side]).unwrap();
        for fpdu in &seen {
            assert!(fpdu.ulpdu.len() <= usize::from(mulpdu(case.emss[side], framing.markers)));
            assert!(fpdu.length <= emss || emss < 140, "an FPDU of {} bytes in {case:?}", fpdu.length);
            let version = u8::from(!rdmac);
            assert_eq!((fpdu.ulpdu[0] & 3, fpdu.ulpdu[1] >> 6), (version, version), "{case:?}");
        }
        seen
    });
    Ran { fpdus: seen, octets }
}

fn flags() -> impl Iterator<Item = [bool; 4]> {
    (0u8..16).map(|bits| [1, 2, 4, 8].map(|bit| bits & bit != 0))
}

/// Tests each of 9 modes with each of 16 combinations of flags. Each of these 144 pairs has 26
/// connections: 5 sizes of private data with 5 values of EMSS, and one connection with the longest
/// EMSS. In total, these are 3,744 connections. The split changes from connection to connection.
#[test]
fn every_setting() {
    let cuts = [1, 3, 7, 64, 509, 512, 1460, usize::MAX];
    let (mut runs, mut octets) = (0, 0);
    for mode in MODES {
        for [a, b, c, d] in flags() {
            for private_data in [[0, 0], [1, 0], [0, 255], [256, 1], [mode.room(), mode.room()]] {
                let longest = (private_data == [0, 0]).then_some(65_495);
                for emss in [128, 140, 536, 1460, 8960].into_iter().chain(longest) {
                    let emss = [emss, emss];
                    let case = Case { mode, markers: [a, b], crc: [c, d], private_data, emss };
                    let cut = cuts[(runs * 7 + runs / 8) % cuts.len()];
                    octets += run(&case, move |_| cut).octets;
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} connections, {octets} bytes");
    assert_eq!(runs, 3744);
}

/// Tests random settings. Each side has its own EMSS, and each segment is split differently.
#[test]
fn drawn_settings() {
    let mut random = Random::seeded("drawn_settings");
    let mut octets = 0;
    for _ in 0..1500 {
        let mode = random.pick(&MODES);
        let case = Case {
            mode,
            markers: [random.bool(), random.bool()],
            crc: [random.bool(), random.bool()],
            private_data: [random.below(mode.room() + 1), random.below(mode.room() + 1)],
            emss: [0, 1].map(|_| match random.below(3) {
                0 => 128 + u32::try_from(random.below(400)).unwrap(),
                1 => 128 + u32::try_from(random.below(9000)).unwrap(),
                _ => 128 + u32::try_from(random.below(65_368)).unwrap(),
            }),
        };
        let longest = random.pick(&[2, 20, 600, 2000, 70_000]);
        let mut cuts = Random::from(random.next());
        octets += run(&case, move |_| 1 + cuts.below(longest)).octets;
    }
    println!("1500 connections, {octets} bytes");
}

/// Tests every mode with every combination of flags. In each connection, each output of both sides
/// is split once, at the same offset. The offsets are 1 to 90.
#[test]
fn every_offset() {
    let mut runs = 0;
    for mode in MODES {
        for [a, b, c, d] in flags() {
            let case = Case { mode, markers: [a, b], crc: [c, d], private_data: [3, 5], emss: [128, 128] };
            let uncut = run(&case, |_| usize::MAX);
            for side in [0, 1] {
                assert!(!uncut.fpdus[side].is_empty());
            }
            // Each piece of output that a side sends at one time is split: its frame, its first
            // FPDU, and the messages after it.
            for cut in 1..=90 {
                run(&case, move |before| if before == 0 { cut } else { usize::MAX });
                runs += 1;
            }
        }
    }
    println!("{runs} connections");
}
