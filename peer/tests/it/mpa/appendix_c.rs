//! Tests RFC 5044 Appendix C, which combines three kinds of endpoints: RDMA Consortium ("RDMAC"),
//! permissive IETF and non-permissive IETF. Each kind is tested as Initiator and as Responder. The
//! cells of Figures 15 to 17 are in a data file that was copied from the RFC.

use weft_core::coverage::{Coverage, CoverageKind as Proven};
use weft_core::requirement;
use weft_core::wire::mpa::Framing;
use weft_peer::Settings;
use weft_peer::connection::{CloseCause, Closed, ClosedBy, Transmit};
use weft_peer::mpa::{Rnic, Role, StartupError};

use crate::connection::machine::{Machine, mpa};
use crate::mpa::wire::{Wire, established, fpdus, split_frame};

const FIGURES: &str = include_str!("../data/rfc5044-figures-15-17.csv");

fn endpoint(name: &str, m: &str) -> Settings {
    let rnic = match name {
        "rdmac" => Rnic::Rdmac,
        "non-permissive" => Rnic::Ietf,
        "permissive" => Rnic::PermissiveIetf,
        other => panic!("{other}"),
    };
    mpa(|mpa| (mpa.rnic, mpa.markers) = (rnic, m == "1"))
}

/// Connects two endpoints. Returns the observed result in the form of a cell of the figures, and
/// the wire.
fn result(initiator: Settings, responder: Settings) -> (String, Wire) {
    let mut wire = Wire::new(initiator, responder);
    wire.run();
    if !wire.initiator.connection.is_operating() {
        assert!(!wire.responder.connection.is_operating());
        return ("close".to_owned(), wire);
    }
    for machine in [&mut wire.initiator, &mut wire.responder] {
        machine.connection.post_receive(3000).unwrap();
        machine.connection.post_send(vec![7; 3000]).unwrap();
    }
    wire.run();
    assert_eq!((wire.initiator.received().len(), wire.responder.received().len()), (1, 1));
    // These are the versions and markers in the streams, not the values that the endpoints report.
    let (there, back) = (wire.initiator.octets_sent(), wire.responder.octets_sent());
    let crc = established(&wire.initiator).0.crc;
    let [(to_responder, v), (to_initiator, w)] = [&there, &back].map(|octets| {
        let stream = split_frame(octets).1;
        let markers = stream.starts_with(&[0; 4]);
        let seen = fpdus(stream, Framing { markers, crc });
        let version = seen[0].ulpdu[0] & 3;
        assert!(seen.iter().all(|fpdu| (fpdu.ulpdu[0] & 3, fpdu.ulpdu[1] >> 6) == (version, version)));
        (u8::from(markers), version)
    });
    assert_eq!(v, w, "both directions have the same version");
    (format!("V={v} M={to_initiator}/{to_responder}"), wire)
}

/// Checks the figures cell by cell. In the cells with N/A, a permissive Responder sends a Reply
/// with M=0 to an RDMAC Initiator. weft's Responder sends a Reply with M=1 in this case, so the
/// test expects M=1 instead of N/A.
#[test]
fn figures_15_to_17() {
    let cells: Vec<Vec<&str>> = FIGURES.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(cells.len(), 9 + 9 + 16);
    let check = |figure: &str, of: &dyn Fn(&[&str]) -> bool| {
        let mut compared = 0;
        for cell in cells.iter().filter(|cell| cell[0] == figure && of(cell)) {
            let [_, initiator, initiator_m, responder, responder_m, expected] = cell[..] else { panic!("{cell:?}") };
            let (found, wire) = result(endpoint(initiator, initiator_m), endpoint(responder, responder_m));
            if expected == "N/A" {
                assert_eq!((found.as_str(), wire.responder.octets_sent()[16]), ("V=0 M=1/1", 0xc0), "{cell:?}");
            } else {
                assert_eq!(found, expected, "{cell:?}");
            }
            compared += 1;
        }
        compared
    };
    let closes = |cell: &[&str]| cell[5] == "close";
    let rdmac = |cell: &[&str]| cell[1] == "rdmac" || cell[3] == "rdmac";
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-C.2-1"), || assert_eq!(check("15", &closes), 4));
    proof.verify(requirement!("MPA-C.2-2"), || assert_eq!(check("15", &|cell| !rdmac(cell)), 4));
    proof.verify(requirement!("MPA-C.2.3-1"), || assert_eq!(check("16", &rdmac), 5));
    proof.verify(requirement!("MPA-C.2.3-3"), || assert_eq!(check("15", &|cell| rdmac(cell) && !closes(cell)), 1));
    proof.verify(requirement!("MPA-C.3-1"), || assert_eq!(check("17", &|_| true), 16));
    proof.verify(requirement!("MPA-C.1-7"), || assert_eq!(check("16", &|cell| !rdmac(cell)), 4));
}

const RDMAC_REQUEST: &[u8; 20] = b"MPA ID Req Frame\xc0\0\0\0";
const RDMAC_REPLY: &[u8; 20] = b"MPA ID Rep Frame\xc0\0\0\0";

/// Checks the frames of sections C.2.1 to C.2.5. The expected frames were copied manually from the
/// RFC.
#[test]
fn frames_of_and_to_rdmac() {
    let permissive = |m: &str| endpoint("permissive", m);
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-C.2.4-1"), || {
        assert_eq!(Machine::initiator(endpoint("rdmac", "0")).octets_sent(), RDMAC_REQUEST);
    });
    proof.verify(requirement!("MPA-C.2.4-2"), || {
        let mut responder = Machine::responder(permissive("0"));
        responder.octets(RDMAC_REQUEST);
        assert_eq!(responder.octets_sent(), RDMAC_REPLY);
        assert_eq!(established(&responder).0.version, 0);
    });
    proof.verify(requirement!("MPA-C.2.3-2"), || {
        for flags in [0x40, 0x80, 0xc0, 0] {
            let mut responder = Machine::responder(permissive("0"));
            responder.octets(&[&RDMAC_REQUEST[..16], &[flags, 0, 0, 0]].concat());
            assert_eq!(responder.octets_sent()[16], 0xc0);
        }
    });
    proof.verify(requirement!("MPA-C.2.5-1"), || {
        for m in [0x00, 0x80] {
            let mut responder = Machine::responder(endpoint("rdmac", "1"));
            responder.octets(&[&RDMAC_REQUEST[..16], &[m, 1, 0, 0]].concat());
            assert_eq!(responder.octets_sent(), RDMAC_REPLY);
        }
    });
    proof.verify(requirement!("MPA-C.2.5-2"), || {
        for m in ["0", "1"] {
            let mut initiator = Machine::initiator(permissive(m));
            initiator.octets(RDMAC_REPLY);
            assert_eq!(established(&initiator).0.version, 0);
            initiator.connection.post_send(&b"x"[..]).unwrap();
            initiator.settle();
            let sent = initiator.octets_sent();
            // After the Request, the stream has a marker, and then a Send of version 0.
            assert_eq!(sent[20..28], *b"\0\0\0\0\0\x13\x40\x03");
            fpdus(&sent[20..], Framing { markers: true, crc: true });
        }
    });
    proof.verify(requirement!("MPA-C.1-6"), || {
        let (found, wire) = result(permissive("0"), endpoint("rdmac", "1"));
        assert_eq!(found, "V=0 M=1/1");
        assert_eq!((wire.initiator.octets_sent()[17], wire.responder.octets_sent()[17]), (1, 0));
    });
    proof.verify(requirement!("MPA-C.1-3"), || {
        for (peer, version) in [("rdmac", 0), ("non-permissive", 1)] {
            let (_, wire) = result(endpoint(peer, "1"), permissive("0"));
            assert_eq!(established(&wire.responder).0.version, version);
        }
    });
    proof.verify(requirement!("MPA-C.1-5"), || {
        // After a frame of revision 0, the peer sends a Send with version 1 in DDP or in RDMAP.
        for control in [*b"\x41\x43", *b"\x40\x43", *b"\x41\x03"] {
            let mut responder = Machine::responder(permissive("1"));
            responder.octets(RDMAC_REQUEST);
            responder.connection.post_receive(1).unwrap();
            let mut fpdu = [&[0, 0, 0, 0, 0, 18], &control[..], &[0; 11], &[1], &[0; 4]].concat();
            fpdu.extend(weft_core::crc::to_octets(weft_core::crc::crc32c(&fpdu)));
            responder.octets(&fpdu);
            assert_eq!(responder.received().len(), 0);
            assert!(matches!(responder.sent.last(), Some(Transmit::Fin)), "{:?}", responder.sent);
        }
    });
}

/// Checks Figure 14, and the two cases of C.2.1 and C.2.2 in which an endpoint closes.
#[test]
fn a_non_permissive_endpoint_and_rdmac() {
    let mut proof = Coverage::new(Proven::Test);
    proof.verify(requirement!("MPA-C.2.1-1"), || {
        let mut responder = Machine::responder(mpa(|mpa| mpa.answer_revision_0 = true));
        responder.octets(RDMAC_REQUEST);
        assert_eq!(responder.octets_sent(), b"MPA ID Rep Frame\x40\x01\0\0");
        assert_eq!(responder.sent.last(), Some(&Transmit::Fin));
        // According to RFC 5044 section 7.1.1 alone, the Responder only closes. This is the
        // default.
        let mut default = Machine::responder(Settings::default());
        default.octets(RDMAC_REQUEST);
        assert_eq!(default.sent, [Transmit::Fin]);
    });
    proof.verify(requirement!("MPA-C.2.2-1"), || {
        let mut initiator = Machine::initiator(Settings::default());
        initiator.forget();
        initiator.octets(RDMAC_REPLY);
        assert_eq!(initiator.sent, [Transmit::Fin]);
        initiator.fin();
        let why = CloseCause::Startup(StartupError::UnsupportedRevision { revision: 0, receiver: Role::Initiator });
        assert_eq!(initiator.closed(), Some(Closed { by: ClosedBy::Library, why }));
    });
    proof.verify(requirement!("MPA-C.1-1"), || {
        let (found, wire) = result(endpoint("rdmac", "0"), endpoint("rdmac", "0"));
        assert_eq!(found, "V=0 M=1/1");
        assert!(established(&wire.initiator).0.crc);
    });
    proof.verify(requirement!("MPA-C.1-2"), || {
        for (m, flags) in [("0", 0x40), ("1", 0xc0)] {
            assert_eq!(Machine::initiator(endpoint("non-permissive", m)).octets_sent()[16..18], [flags, 1]);
        }
    });
    proof.verify(requirement!("MPA-C.1-8"), || {
        // The permissive endpoint requests no CRCs. The RDMAC endpoint has C=1.
        let mut settings = endpoint("permissive", "0");
        settings.mpa.crc = false;
        let (_, wire) = result(endpoint("rdmac", "1"), settings);
        let sent = wire.responder.octets_sent();
        fpdus(split_frame(&sent).1, Framing { markers: true, crc: true });
    });
}
