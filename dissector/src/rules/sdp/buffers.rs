//! Checks the initial number and the size of the receive Private Buffers that an endpoint announces
//! in Hello or HelloAck (sections 10 and 10.3 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::sdp::{MIN_INITIAL_BUFS, MIN_PRIVATE_BUFFER, Mid, RawChRcvBufAck, RawHello, RawHelloAck};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static NUMBER: Rule =
    Check::Sdp(number).covers(requirements!["SDP-10-2", "SDP-10-4", "SDP-10-5", "SDP-10.3-1", "SDP-10.3-2"]);

pub(super) static SIZE: Rule = Check::Sdp(size).covers(requirements!["SDP-10-2", "SDP-10-7"]);

fn number(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let own: RequirementId = match view.mid() {
        Mid::HELLO => requirement!("SDP-10.3-1"),
        Mid::HELLO_ACK => requirement!("SDP-10.3-2"),
        _ => return,
    };
    let (bufs, range) = (view.bsdh.bufs.get(), view.range(0..2));
    if bufs < MIN_INITIAL_BUFS {
        let ids = [own, requirement!("SDP-10-4"), requirement!("SDP-10-2")];
        findings.report_each(&ids, unit, range, "at least 3 receive Private Buffers", &bufs.to_string());
    } else if bufs == MIN_INITIAL_BUFS {
        // The draft does not define "considerably more", so the finding is a note.
        let expected = "considerably more than 3 receive Private Buffers";
        findings.as_note().report(requirement!("SDP-10-5"), unit, range, expected, bufs.to_string());
    }
}

fn size(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let announced = match view.mid() {
        Mid::HELLO => view.extension::<RawHello>().map(|raw| (raw.local_rcv_sz.get(), 24..28)),
        Mid::HELLO_ACK => view.extension::<RawHelloAck>().map(|raw| (raw.act_rcv_sz.get(), 20..24)),
        Mid::CH_RCV_BUF_ACK => view.extension::<RawChRcvBufAck>().map(|raw| (raw.act_sz.get(), 16..20)),
        _ => return,
    };
    let Some((size, figure)) = announced.filter(|(size, _)| *size < MIN_PRIVATE_BUFFER) else { return };
    let (range, found) = (view.range(figure), size.to_string());
    let ids = requirements!["SDP-10-7", "SDP-10-2"];
    findings.report_each(ids, unit, range, "at least 37 bytes, for BSDH, SinkAH and one byte of payload", &found);
}

#[cfg(test)]
mod tests {
    use weft_core::RequirementId;
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::proves_each_way;
    use crate::rules::sdp::testing::proves_of;
    use crate::testing::sdp::{SdpScript, hello_ack, word};

    /// Plays a connection whose Hello or HelloAck has `octets` at offset `at`. If `hello` is true,
    /// it is the Hello.
    fn begins(hello: bool, at: usize, octets: &'static [u8]) -> impl Fn(weft_core::wire::sdp::FieldOrder) -> SdpScript {
        move |order| {
            let put = |message: &mut Vec<u8>| message[at..at + octets.len()].copy_from_slice(octets);
            let mut script = SdpScript::with_hello(order, |message| {
                if hello {
                    put(message);
                }
            });
            let mut answer = hello_ack();
            if !hello {
                put(&mut answer);
            }
            script.send_octets(5, 1, &answer);
            script
        }
    }

    fn either(id: RequirementId, hello: bool, at: usize, bad: &'static [u8], good: &'static [u8]) {
        proves_of(id, begins(hello, at, bad), begins(hello, at, good));
    }

    #[test]
    fn at_least_three_buffers_and_better_more() {
        either(requirement!("SDP-10.3-1"), true, 0, &[0, 2], &[0, 3]);
        either(requirement!("SDP-10.3-2"), false, 0, &[0, 2], &[0, 3]);
        for hello in [true, false] {
            either(requirement!("SDP-10-4"), hello, 0, &[0, 2], &[0, 3]);
            either(requirement!("SDP-10-2"), hello, 0, &[0, 2], &[0, 3]);
            either(requirement!("SDP-10-5"), hello, 0, &[0, 3], &[0, 4]);
        }
        // The draft does not define how many buffers are enough.
        assert_eq!(begins(true, 0, &[0, 3])(Default::default()).wire.errors(), []);
    }

    #[test]
    fn buffers_hold_a_header_and_an_octet() {
        for (hello, at) in [(true, 24), (false, 20)] {
            either(requirement!("SDP-10-7"), hello, at, &[0, 0, 0, 36], &[0, 0, 0, 37]);
        }
        let answers = |size: u32| {
            move |script: &mut SdpScript, way: usize| {
                script.send(1 - way, Mid::CH_RCV_BUF, &word(30), 0);
                script.both_receive_all();
                script.send(way, Mid::CH_RCV_BUF_ACK, &word(size), 0);
            }
        };
        proves_each_way(requirement!("SDP-10-7"), answers(36), answers(37));
    }
}
