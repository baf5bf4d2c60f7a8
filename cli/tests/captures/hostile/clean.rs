//! These tests run correct endpoints with many combinations of settings. The monitor must report no
//! warnings and no errors about them.

use weft_core::requirement::Severity;
use weft_peer::Deviations;
use weft_peer::mpa::{EnhancedUse, Model, PrivateData, Rnic, Rtr};

use crate::hostile::capture::Capture;
use crate::hostile::pair::{Pair, Scene};
use crate::hostile::world::{World, wants};

/// The kind of start-up that the Initiator uses.
#[derive(Debug, Clone, Copy)]
enum SetUp {
    /// The start-up of the RDMA Consortium, with a permissive Responder.
    Revision0,
    Revision1,
    /// Revision 1 with a ready-to-receive message that was agreed out of band.
    Revision1Rtr(Rtr),
    ClientServer,
    PeerToPeer(Rtr),
}

use SetUp::{ClientServer, PeerToPeer, Revision0, Revision1, Revision1Rtr};

const SET_UPS: [SetUp; 9] = [
    Revision0,
    Revision1,
    Revision1Rtr(Rtr::Send),
    Revision1Rtr(Rtr::Write),
    Revision1Rtr(Rtr::Read),
    ClientServer,
    PeerToPeer(Rtr::Send),
    PeerToPeer(Rtr::Write),
    PeerToPeer(Rtr::Read),
];
/// The C bits of the Request and of the Reply.
const CRCS: [[bool; 2]; 3] = [[true, true], [true, false], [false, false]];
/// The M bits of the Request and of the Reply.
const MARKERS: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];
/// Effective maximum segment sizes (EMSS): the minimum, the default of IPv4, and the values for
/// Ethernet, for jumbo frames and for the largest segment.
const EMSSES: [u16; 5] = [128, 536, 1460, 8960, 65_495];
/// Lengths of private data in bytes. An enhanced frame has room for 508 bytes.
const PRIVATE_DATA: [usize; 3] = [0, 13, 508];

/// Returns the findings that are warnings or errors.
fn blamed(capture: &Capture) -> Vec<String> {
    let findings = capture.findings();
    let bad = findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    bad.map(|f| format!("{} of end {}: expected {}, found {}", f.requirement, f.direction, f.expected, f.found))
        .collect()
}

#[test]
fn nothing_is_found_in_correct_traffic() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for set_up in SET_UPS {
        for (crc, markers) in CRCS.iter().flat_map(|crc| MARKERS.map(|markers| (*crc, markers))) {
            for (emss, private_data) in EMSSES.iter().flat_map(|emss| PRIVATE_DATA.map(|octets| (*emss, octets))) {
                let mut ends = [wants(&Deviations::NONE), wants(&Deviations::NONE)];
                for (end, wants) in ends.iter_mut().enumerate() {
                    (wants.mpa.crc, wants.mpa.markers, wants.emss) = (crc[end], markers[end], emss);
                    wants.private_data = PrivateData::new(vec![0x5a; private_data]).unwrap();
                }
                match set_up {
                    Revision0 => (ends[0].mpa.rnic, ends[1].mpa.rnic) = (Rnic::Rdmac, Rnic::PermissiveIetf),
                    Revision1 => ends[0].mpa.enhanced = EnhancedUse::Answer,
                    Revision1Rtr(kind) => {
                        ends[0].mpa.enhanced = EnhancedUse::Answer;
                        ends.iter_mut().for_each(|wants| wants.mpa.agreed_rtr = Some(kind));
                    }
                    ClientServer => {}
                    PeerToPeer(kind) => {
                        ends[0].mpa.enhanced_settings.model = Model::PeerToPeer;
                        ends[0].mpa.enhanced_settings.preferred_rtr = kind;
                    }
                }
                let [initiator, responder] = ends;
                let mut world = World::with(initiator, responder);
                world.begin();
                world.traffic();
                world.end();
                runs += 1;
                let setting = format!("{set_up:?} C {crc:?} M {markers:?} EMSS {emss} private data {private_data}");
                assert_eq!(world.terminates(), [None, None], "{setting}");
                wrong.extend(blamed(&world.capture).into_iter().map(|line| format!("{setting}: {line}")));
            }
        }
    }
    println!("{runs} settings, every operation each way: {} findings", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_is_found_in_correct_start_ups() {
    let none = Deviations::NONE;
    let scripted = [Scene::HalfARequest, Scene::WriteToStag];
    for scene in Scene::ALL.iter().filter(|scene| !scripted.contains(scene)) {
        let wrong = blamed(&Pair::play(*scene, [&none, &none]).capture);
        assert!(wrong.is_empty(), "{scene:?}: {wrong:#?}");
    }
}
