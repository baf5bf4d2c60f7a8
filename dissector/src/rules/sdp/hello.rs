//! Checks the fields of Hello and HelloAck, and that the peer rejects faulty values (sections
//! 6.2.1, 6.2.2 and 8.1.1 of the SDP draft).

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{
    MIN_INITIAL_BUFS, MIN_PRIVATE_BUFFER, Mid, RawAdverts, RawBsdh, RawHeader, RawHello, RawHelloAck,
};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::follow::sdp::Setup;
use crate::parse::{Carrier, Unit};
use crate::rules::rule::{Check, Findings, Rule};

/// The largest size of a Private Buffer, in octets.
pub(super) const MAX_PRIVATE_BUFFER: u32 = 1 << 31;

const BUFS: Range<usize> = 0..2;
/// The value of MaxAdverts if a message with the version 0x11 has MaxAdverts and the version at each
/// other's positions.
const EXCHANGED: u16 = 0x1100;

pub(super) static HELLO: Rule = Check::Sdp(hello).covers(requirements![
    "SDP-6.1.1-2",
    "SDP-6.2.1-2",
    "SDP-6.2.1-3",
    "SDP-6.2.1-5",
    "SDP-6.2.1-6",
    "SDP-6.2.1-7",
    "SDP-6.2.1-9",
    "SDP-6.2.1.1-1",
    "SDP-6.2.1.2-1",
    "SDP-6.2.1.3-1",
    "SDP-6.2.1.4-3",
    "SDP-6.2.1.5-1",
    "SDP-6.2.1.6-2",
    "SDP-6.2.1.7-2",
    "SDP-6.2.1.8-1",
    "SDP-8.1.1-5",
    "SDP-8.1.1-8",
    "SDP-8.1.1-9",
    "SDP-13.1.1-19"
]);

pub(super) static HELLO_ACK: Rule = Check::Sdp(hello_ack).covers(requirements![
    "SDP-6.2.2-2",
    "SDP-6.2.2-3",
    "SDP-6.2.2-5",
    "SDP-6.2.2-6",
    "SDP-6.2.2-7",
    "SDP-6.2.2-9",
    "SDP-6.2.2.1-1",
    "SDP-6.2.2.2-1",
    "SDP-6.2.2.3-1",
    "SDP-6.2.2.4-1",
    "SDP-6.2.2.5-2",
    "SDP-6.2.2.6-2",
    "SDP-6.2.2.7-1",
    "SDP-8.1.1-24",
    "SDP-8.1.1-25"
]);

pub(super) static REFUSED: Rule = Check::Sdp(refused).covers(requirements![
    "SDP-6.2.1.1-2",
    "SDP-6.2.1.3-2",
    "SDP-8.1.1-14",
    "SDP-8.1.1-15",
    "SDP-8.1.1-16",
    "SDP-8.1.1-17",
    "SDP-6.2.2.1-2",
    "SDP-6.2.2.3-2",
    "SDP-8.1.1-31",
    "SDP-8.1.1-32",
    "SDP-8.1.1-33",
    "SDP-8.1.1-34"
]);

/// Adds a finding for each check that fails.
struct FieldCheck<'a, 'f, 'u> {
    unit: &'a Unit<'u>,
    view: &'a SdpView<'u>,
    findings: &'a mut Findings<'f>,
    /// Additional requirements: each failed check of Bufs, or of a field after the BSDH, violates
    /// them as well.
    also: &'static [RequirementId],
}

impl FieldCheck<'_, '_, '_> {
    /// Adds findings for `ids` if `right` is false. `figure` is the octet range of the field in
    /// figure order, the field order of the SDP draft's figures.
    fn require(&mut self, right: bool, ids: &[RequirementId], figure: Range<usize>, expected: &str, found: u32) {
        if !right {
            let also = if figure == BUFS || figure.start >= RawBsdh::LEN { self.also } else { &[] };
            let range = self.view.range(figure);
            for ids in [ids, also] {
                self.findings.report_each(ids, self.unit, range.clone(), expected, &found.to_string());
            }
        }
    }

    /// Checks the BSDH. `ids` are the requirements for Flags, Bufs, MSeq and MSeqAck.
    fn bsdh(&mut self, [flags, bufs, mseq, mseq_ack]: [&[RequirementId]; 4]) {
        let bsdh = self.view.bsdh;
        self.require(bsdh.flags == 0, flags, 2..3, "Flags 0", bsdh.flags.into());
        let count = bsdh.bufs.get();
        self.require(count >= MIN_INITIAL_BUFS, bufs, BUFS, "Bufs of 3 or more", count.into());
        self.require(bsdh.mseq.get() == 0, mseq, 8..12, "MSeq 0", bsdh.mseq.get());
        self.require(bsdh.mseq_ack.get() == 0, mseq_ack, 12..16, "MSeqAck 0", bsdh.mseq_ack.get());
    }

    /// Checks the 32-bit word with MaxAdverts and the version. The first of `ids` is about the
    /// layout of the word. The others are about MaxAdverts, Rsvd, MajV and MinV.
    fn adverts(&mut self, adverts: &RawAdverts, ids: [RequirementId; 5]) {
        let [layout, max, rsvd, majv, minv] = ids;
        let version = adverts.version;
        // Messages have one of two field orders: figure or mirrored. Check whether the version is
        // at its position in the wrong one of these orders.
        let turned = version.0 != 0x11 && adverts.max_adverts.get() == EXCHANGED;
        self.require(!turned, &[layout], 16..20, "MaxAdverts, Rsvd, MinV and MajV in this order", version.0.into());
        self.require(adverts.max_adverts.get() > 0, &[max], 16..18, "MaxAdverts of 1 or more", 0);
        self.require(adverts.rsvd == 0, &[rsvd], 18..19, "Rsvd 0", adverts.rsvd.into());
        self.require(version.majv() == 1, &[majv], 19..20, "MajV 1", version.majv().into());
        self.require(version.minv() == 1, &[minv], 19..20, "MinV 1", version.minv().into());
    }
}

fn hello(state: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    if view.carrier == Carrier::Send || view.direction != view.state.connecting {
        return;
    }
    // The same rules apply to the Hello of a connection that resumes a suspended connection.
    let also = if state.connection.resumes { requirements!["SDP-13.1.1-19"] } else { &[] };
    let mut check = FieldCheck { unit, view, findings, also };
    let mid = view.mid();
    let ids = requirements!["SDP-6.2.1-3", "SDP-6.1.1-2"];
    check.require(mid == Mid::HELLO, ids, 3..4, "MID 0, because a Hello is the first message", mid.0.into());
    check.bsdh([
        requirements!["SDP-6.2.1-5"],
        requirements!["SDP-6.2.1-6", "SDP-8.1.1-5"],
        requirements!["SDP-6.2.1-7"],
        requirements!["SDP-6.2.1-9"],
    ]);
    let Some(raw) = view.extension::<RawHello>() else { return };
    let ids = [
        requirement!("SDP-6.2.1-2"),
        requirement!("SDP-6.2.1.3-1"),
        requirement!("SDP-6.2.1.8-1"),
        requirement!("SDP-6.2.1.1-1"),
        requirement!("SDP-6.2.1.2-1"),
    ];
    check.adverts(&raw.adverts, ids);
    let (desired, size) = (raw.des_rem_rcv_sz.get(), raw.local_rcv_sz.get());
    let (right, expected) = (desired <= MAX_PRIVATE_BUFFER, "DesRemRcvSz of at most 2^31 bytes");
    check.require(right, requirements!["SDP-6.2.1.4-3"], 20..24, expected, desired);
    let expected = "LocalRcvSz of 37 to 2^31 bytes";
    let right = (MIN_PRIVATE_BUFFER..=MAX_PRIVATE_BUFFER).contains(&size);
    check.require(right, requirements!["SDP-6.2.1.5-1"], 24..28, expected, size);
    check.require(size >= MIN_PRIVATE_BUFFER, requirements!["SDP-8.1.1-5"], 24..28, expected, size);
    let ids = requirements!["SDP-6.2.1.6-2", "SDP-8.1.1-8"];
    check.require(raw.loc_ird.get() > 0, ids, 28..30, "LocIRD of 1 or more", 0);
    let ids = requirements!["SDP-6.2.1.7-2", "SDP-8.1.1-9"];
    check.require(raw.loc_ord.get() > 0, ids, 30..32, "LocORD of 1 or more", 0);
}

fn hello_ack(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let is_first = view.carrier != Carrier::Send && view.direction != view.state.connecting;
    if !is_first && view.mid() != Mid::HELLO_ACK {
        return;
    }
    let mut check = FieldCheck { unit, view, findings, also: &[] };
    let mid = view.mid();
    check.require(mid == Mid::HELLO_ACK, requirements!["SDP-6.2.2-3"], 3..4, "MID 1", mid.0.into());
    check.bsdh([
        requirements!["SDP-6.2.2-5"],
        requirements!["SDP-6.2.2-6"],
        requirements!["SDP-6.2.2-7"],
        requirements!["SDP-6.2.2-9"],
    ]);
    let Some(raw) = view.extension::<RawHelloAck>() else { return };
    let ids = [
        requirement!("SDP-6.2.2-2"),
        requirement!("SDP-6.2.2.3-1"),
        requirement!("SDP-6.2.2.7-1"),
        requirement!("SDP-6.2.2.1-1"),
        requirement!("SDP-6.2.2.2-1"),
    ];
    check.adverts(&raw.adverts, ids);
    let size = raw.act_rcv_sz.get();
    let right = (MIN_PRIVATE_BUFFER..=MAX_PRIVATE_BUFFER).contains(&size);
    check.require(right, requirements!["SDP-6.2.2.4-1"], 20..24, "ActRcvSz of 37 to 2^31 bytes", size);
    let ids = requirements!["SDP-6.2.2.5-2", "SDP-8.1.1-24"];
    check.require(raw.loc_ird.get() > 0, ids, 24..26, "LocIRD of 1 or more", 0);
    let ids = requirements!["SDP-6.2.2.6-2", "SDP-8.1.1-25"];
    check.require(raw.loc_ord.get() > 0, ids, 26..28, "LocORD of 1 or more", 0);
}

/// Reports a peer that continues although the received Hello or HelloAck has a faulty version,
/// MaxAdverts, LocIRD or LocORD.
fn refused(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let accepts = view.mid() == Mid::HELLO_ACK && view.direction != view.state.connecting;
    let is_first = !view.is_setup_message() && view.sender_state().mseq.is_none();
    let goes_on = is_first && view.direction == view.state.connecting;
    let Some(Setup { majv, max_adverts, loc_ird, loc_ord, .. }) = view.state.peers[view.peer()].setup else { return };
    let due = match (accepts, goes_on, view.state.peers[view.direction].setup) {
        (true, ..) => 1,
        // The Hello of the sender has another layout. Its MajV is in another octet.
        (_, true, Some(own)) if own.max_adverts == EXCHANGED => 1,
        (_, true, Some(own)) => own.majv,
        _ => return,
    };
    let mut found = |faulty: bool, ids: &[RequirementId], what: String| {
        if faulty {
            let expected = "the end of the connection";
            let found = format!("{} after the peer sent {what}", view.mid());
            findings.report_each(ids, unit, view.range(3..4), expected, &found);
        }
    };
    let ids: [&[RequirementId]; 4] = if accepts {
        [
            requirements!["SDP-6.2.1.1-2", "SDP-8.1.1-14"],
            requirements!["SDP-6.2.1.3-2", "SDP-8.1.1-15"],
            requirements!["SDP-8.1.1-16"],
            requirements!["SDP-8.1.1-17"],
        ]
    } else {
        [
            requirements!["SDP-6.2.2.1-2", "SDP-8.1.1-31"],
            requirements!["SDP-6.2.2.3-2", "SDP-8.1.1-32"],
            requirements!["SDP-8.1.1-34"],
            requirements!["SDP-8.1.1-33"],
        ]
    };
    found(majv != due, ids[0], format!("MajV {majv}"));
    found(max_adverts == 0, ids[1], "MaxAdverts 0".to_owned());
    found(loc_ird == 0, ids[2], "LocIRD 0".to_owned());
    found(loc_ord == 0, ids[3], "LocORD 0".to_owned());
}

#[cfg(test)]
mod tests {
    use weft_core::wire::sdp::{FieldOrder, Mid};
    use weft_core::{RequirementId, requirement};

    use crate::rules::sdp::testing::proves_of;
    use crate::testing::proves;
    use crate::testing::sdp::{SdpScript, hello_ack};

    type Octets = (usize, &'static [u8]);

    /// Checks that a Hello with the octets of `bad` causes findings with `ids`. A Hello with the
    /// octets of `good` must not cause them.
    fn hello(ids: &[RequirementId], bad: Octets, good: Octets) {
        let greeted = |(at, octets): Octets| {
            move |order: FieldOrder| {
                SdpScript::with_hello(order, |message| message[at..at + octets.len()].copy_from_slice(octets))
            }
        };
        ids.iter().for_each(|id| proves_of(*id, greeted(bad), greeted(good)));
    }

    fn answered(order: FieldOrder, (at, octets): Octets) -> SdpScript {
        let mut script = SdpScript::with_hello(order, |_| {});
        let mut message = hello_ack();
        message[at..at + octets.len()].copy_from_slice(octets);
        script.send_octets(5, 1, &message);
        script
    }

    /// Checks that a HelloAck with the octets of `bad` causes findings with `ids`. A HelloAck with
    /// the octets of `good` must not cause them.
    fn answer(ids: &[RequirementId], bad: Octets, good: Octets) {
        ids.iter().for_each(|id| proves_of(*id, |order| answered(order, bad), |order| answered(order, good)));
    }

    /// Plays a connection whose suspension announces port 5000, and then a new connection to
    /// `port`. The new connection begins with a Hello that has the value `octet` at offset `at`.
    fn resumed(port: u16, (at, octet): (usize, u8)) -> SdpScript {
        let mut script = SdpScript::bare();
        script.send(1, Mid::SUSP_COMM, "00000000 1388 0001", 0);
        script.receive_all(0);
        script.send(0, Mid::SUSP_COMM_ACK, "", 0);
        script.wire.fin(0);
        script.wire.fin(1);
        script.wire.connect_to(port);
        let mut message = crate::testing::hello();
        message[at] = octet;
        script.wire.send(0, &message);
        script
    }

    #[test]
    fn hello_of_a_resumed_connection() {
        let has = |script: &SdpScript, id: RequirementId| {
            script.wire.findings().iter().any(|finding| finding.requirement == id)
        };
        let id = requirement!("SDP-13.1.1-19");
        // Octets 18 and 11 belong to Rsvd and to MSeq. MSeq is not a field of the HH.
        proves(id, &resumed(5000, (18, 1)).wire, &resumed(5000, (11, 7)).wire);
        proves(id, &resumed(5000, (1, 2)).wire, &resumed(5000, (1, 3)).wire);
        assert!(has(&resumed(5000, (11, 7)), requirement!("SDP-6.2.1-7")));
        let elsewhere = resumed(5001, (18, 1));
        assert!(has(&elsewhere, requirement!("SDP-6.2.1.8-1")) && !has(&elsewhere, id));
    }

    #[test]
    fn bsdh_of_a_hello() {
        hello(&[requirement!("SDP-6.2.1-3"), requirement!("SDP-6.1.1-2")], (3, &[2]), (3, &[0]));
        hello(&[requirement!("SDP-6.2.1-5")], (2, &[2]), (2, &[0]));
        hello(&[requirement!("SDP-6.2.1-6"), requirement!("SDP-8.1.1-5")], (0, &[0, 2]), (0, &[0, 3]));
        hello(&[requirement!("SDP-6.2.1-7")], (8, &[0, 0, 0, 1]), (8, &[0, 0, 0, 0]));
        hello(&[requirement!("SDP-6.2.1-9")], (12, &[0, 0, 0, 1]), (12, &[0, 0, 0, 0]));
    }

    #[test]
    fn header_of_a_hello() {
        hello(&[requirement!("SDP-6.2.1-2")], (16, &[0x11, 0, 0, 4]), (16, &[0x11, 0, 0, 0x11]));
        hello(&[requirement!("SDP-6.2.1.1-1")], (19, &[0x12]), (19, &[0x21]));
        hello(&[requirement!("SDP-6.2.1.2-1")], (19, &[0x21]), (19, &[0x12]));
        hello(&[requirement!("SDP-6.2.1.3-1")], (16, &[0, 0]), (16, &[0xff, 0xff]));
        hello(&[requirement!("SDP-6.2.1.4-3")], (20, &[0x80, 0, 0, 1]), (20, &[0x80, 0, 0, 0]));
        hello(&[requirement!("SDP-6.2.1.5-1")], (24, &[0x80, 0, 0, 1]), (24, &[0x80, 0, 0, 0]));
        hello(&[requirement!("SDP-6.2.1.8-1")], (18, &[1]), (18, &[0]));
    }

    #[test]
    fn depths_and_sizes_of_a_hello() {
        hello(
            &[requirement!("SDP-6.2.1.5-1"), requirement!("SDP-8.1.1-5")],
            (24, &[0, 0, 0, 36]),
            (24, &[0, 0, 0, 37]),
        );
        hello(&[requirement!("SDP-6.2.1.6-2"), requirement!("SDP-8.1.1-8")], (28, &[0, 0]), (28, &[0, 1]));
        hello(&[requirement!("SDP-6.2.1.7-2"), requirement!("SDP-8.1.1-9")], (30, &[0, 0]), (30, &[0, 1]));
    }

    #[test]
    fn bsdh_of_a_hello_ack() {
        answer(&[requirement!("SDP-6.2.2-5")], (2, &[2]), (2, &[0]));
        answer(&[requirement!("SDP-6.2.2-6")], (0, &[0, 2]), (0, &[0, 3]));
        answer(&[requirement!("SDP-6.2.2-7")], (8, &[0, 0, 0, 1]), (8, &[0, 0, 0, 0]));
        answer(&[requirement!("SDP-6.2.2-9")], (12, &[0, 0, 0, 1]), (12, &[0, 0, 0, 0]));
    }

    #[test]
    fn header_of_a_hello_ack() {
        answer(&[requirement!("SDP-6.2.2-2")], (16, &[0x11, 0, 0, 4]), (16, &[0x11, 0, 0, 0x11]));
        answer(&[requirement!("SDP-6.2.2.1-1")], (19, &[0x12]), (19, &[0x21]));
        answer(&[requirement!("SDP-6.2.2.2-1")], (19, &[0x21]), (19, &[0x12]));
        answer(&[requirement!("SDP-6.2.2.3-1")], (16, &[0, 0]), (16, &[0xff, 0xff]));
        answer(&[requirement!("SDP-6.2.2.4-1")], (20, &[0, 0, 0, 36]), (20, &[0x80, 0, 0, 0]));
        answer(&[requirement!("SDP-6.2.2.7-1")], (18, &[1]), (18, &[0]));
    }

    #[test]
    fn depths_of_a_hello_ack() {
        answer(&[requirement!("SDP-6.2.2.5-2"), requirement!("SDP-8.1.1-24")], (24, &[0, 0]), (24, &[0, 1]));
        answer(&[requirement!("SDP-6.2.2.6-2"), requirement!("SDP-8.1.1-25")], (26, &[0, 0]), (26, &[0, 1]));
    }

    /// Checks that a faulty Hello causes findings with `ids` if the peer answers with a HelloAck.
    /// If the peer does not answer, the Hello must not cause them.
    fn accepted(ids: &[RequirementId], at: usize, octets: &'static [u8]) {
        let greeted = |answers: bool| {
            move |order: FieldOrder| {
                let mut script =
                    SdpScript::with_hello(order, |message| message[at..at + octets.len()].copy_from_slice(octets));
                if answers {
                    script.send_octets(5, 1, &hello_ack());
                } else {
                    script.wire.fin(1);
                }
                script
            }
        };
        ids.iter().for_each(|id| proves_of(*id, greeted(true), greeted(false)));
    }

    #[test]
    fn a_faulty_hello_is_refused() {
        accepted(&[requirement!("SDP-6.2.1.1-2"), requirement!("SDP-8.1.1-14")], 19, &[0x22]);
        accepted(&[requirement!("SDP-6.2.1.3-2"), requirement!("SDP-8.1.1-15")], 16, &[0, 0]);
        accepted(&[requirement!("SDP-8.1.1-16")], 28, &[0, 0]);
        accepted(&[requirement!("SDP-8.1.1-17")], 30, &[0, 0]);
    }

    #[test]
    fn a_faulty_hello_ack_ends_the_attempt() {
        let upon = |octets: Octets, goes_on: bool| {
            move |order: FieldOrder| {
                let mut script = answered(order, octets);
                if goes_on {
                    script.send(0, Mid::DATA, "", 0);
                } else {
                    script.wire.fin(0);
                }
                script
            }
        };
        let ids: [(&[RequirementId], Octets); 4] = [
            (&[requirement!("SDP-6.2.2.1-2"), requirement!("SDP-8.1.1-31")], (19, &[0x22])),
            (&[requirement!("SDP-6.2.2.3-2"), requirement!("SDP-8.1.1-32")], (16, &[0, 0])),
            (&[requirement!("SDP-8.1.1-33")], (26, &[0, 0])),
            (&[requirement!("SDP-8.1.1-34")], (24, &[0, 0])),
        ];
        for (ids, octets) in ids {
            ids.iter().for_each(|id| proves_of(*id, upon(octets, true), upon(octets, false)));
        }
        // In the Hello, MaxAdverts and the version are at each other's positions.
        let exchanged = |order: FieldOrder| {
            let mut script = SdpScript::with_hello(order, |octets| octets[16..20].copy_from_slice(&[0x11, 0, 0, 4]));
            script.send_octets(5, 1, &hello_ack());
            script.send(0, Mid::DATA, "", 0);
            script
        };
        proves_of(requirement!("SDP-6.2.2.1-2"), upon((19, &[0x22]), true), exchanged);
    }
}
