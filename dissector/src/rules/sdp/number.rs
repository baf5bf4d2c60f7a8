//! Checks Bufs, MSeq and MSeqAck (sections 5, 6.1.3, 6.1.5 and 6.1.6 of the SDP draft).

use weft_core::requirement;

use super::credits::credit_decreases;
use super::view::SdpView;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::sdp::reached;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

const MSEQ: std::ops::Range<usize> = 8..12;
const MSEQ_ACK: std::ops::Range<usize> = 12..16;

pub(super) static NUMBERS: Rule =
    Check::Sdp(numbers).covers(requirements!["SDP-5-2", "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.1.6-2"]);

pub(super) static AT_THE_END: Rule =
    Check::End(at_the_end).covers(requirements!["SDP-6.1.3-1", "SDP-6.1.6-1", "SDP-6.1.6-2"]);

fn numbers(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mseq, mseq_ack, sender) = (view.bsdh.mseq.get(), view.bsdh.mseq_ack.get(), view.sender_state());
    if view.is_setup_message() {
        if mseq != 0 {
            let expected = "MSeq 0 in the first message";
            findings.report(requirement!("SDP-6.1.5-1"), unit, MSEQ, expected, format!("MSeq {mseq}"));
        }
        if mseq_ack != 0 {
            let expected = "MSeqAck 0, because no numbered message precedes this message";
            findings.report(requirement!("SDP-6.1.6-2"), unit, MSEQ_ACK, expected, format!("MSeqAck {mseq_ack}"));
        }
        return;
    }
    if let Some(acknowledged) = sender.mseq_ack.filter(|previous| !reached(mseq_ack, *previous)) {
        let (expected, found) = (format!("MSeqAck {acknowledged} or later"), format!("MSeqAck {mseq_ack}"));
        findings.report(requirement!("SDP-6.1.6-1"), unit, MSEQ_ACK, &expected, found);
    }
    // If a Send is missing in the capture, the due MSeq is not known.
    let Some(sent) = view.state.latest.send.filter(|sent| sent.follows) else { return };
    let expected = sender.mseq.map_or(1, |mseq| mseq.wrapping_add(1));
    if mseq == expected {
        return;
    }
    let (due, found) = (format!("MSeq {expected}"), format!("MSeq {mseq}"));
    if sender.mseq.is_none() && mseq == 0 {
        // By another interpretation of section 6.1.5, Hello and HelloAck have no MSeq, and the
        // first message after the HelloAck has MSeq 0. So the finding is a note.
        return findings.as_note().report(requirement!("SDP-6.1.5-2"), unit, MSEQ, &due, found);
    }
    findings.report(requirement!("SDP-6.1.5-2"), unit, MSEQ, &due, found.clone());
    if sent.rdma > 0 && mseq.wrapping_sub(expected) == sent.rdma {
        let due = format!("MSeq {expected}, because RDMA Writes and Reads have no number");
        findings.report(requirement!("SDP-5-2"), unit, MSEQ, &due, found);
    }
}

fn at_the_end(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(sdp) = state.context().sdp.as_deref().filter(|sdp| sdp.complete) else { return };
    for (direction, unexplained) in Direction::BOTH.into_iter().zip(&sdp.unexplained) {
        credit_decreases(requirement!("SDP-6.1.3-1"), sdp, direction, findings);
        let Some(unsent_ack) = unexplained.unsent_ack else { continue };
        let (id, expected) = match unsent_ack.sent {
            Some(sent) => (requirement!("SDP-6.1.6-1"), format!("at most MSeqAck {sent}, the last MSeq of the peer")),
            None => (requirement!("SDP-6.1.6-2"), "MSeqAck 0, because the peer has sent no message".to_owned()),
        };
        let found = format!("MSeqAck {}", unsent_ack.mseq_ack);
        findings.report_in_frame(id, direction, unsent_ack.octets, &expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::rules::sdp::testing::{proves, proves_of};
    use crate::testing::Wire;
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, hello_ack};

    fn data(script: &mut SdpScript, direction: usize) {
        script.send(direction, Mid::DATA, "", 4);
    }

    #[test]
    fn hello_and_hello_ack_have_number_0() {
        let hello = |at: usize| move |order| SdpScript::with_hello(order, |octets| octets[at] ^= 1);
        let answer = |at: usize| {
            move |order| {
                let mut script = SdpScript::with_hello(order, |_| {});
                let mut octets = hello_ack();
                octets[at] ^= 1;
                script.send_octets(5, 1, &octets);
                script
            }
        };
        // Octet 21 belongs to DesRemRcvSz of a Hello, and to ActRcvSz of a HelloAck.
        proves_of(requirement!("SDP-6.1.5-1"), hello(11), hello(21));
        proves_of(requirement!("SDP-6.1.5-1"), answer(11), answer(21));
        proves_of(requirement!("SDP-6.1.6-2"), hello(15), hello(21));
        proves_of(requirement!("SDP-6.1.6-2"), answer(12), answer(21));
    }

    #[test]
    fn each_message_has_the_next_number() {
        let skip = |script: &mut SdpScript| {
            data(script, 0);
            script.mseq[0] += 1;
            data(script, 0);
        };
        let lost = |script: &mut SdpScript| {
            data(script, 0);
            script.lose(0, Mid::DATA, "", 4);
            data(script, 0);
        };
        proves(requirement!("SDP-6.1.5-2"), skip, lost);
        let first = |mseq: u32| {
            move |script: &mut SdpScript| {
                script.mseq[1] = mseq;
                data(script, 1);
            }
        };
        proves(requirement!("SDP-6.1.5-2"), first(1), first(0));
    }

    /// A message without its extended header is too short, but its MSeq is readable.
    #[test]
    fn a_short_message_has_the_next_number() {
        let short = |skip: u32| {
            move |script: &mut SdpScript| {
                data(script, 0);
                script.mseq[0] += skip;
                script.send(0, Mid::CH_RCV_BUF, "", 0);
                data(script, 0);
            }
        };
        proves(requirement!("SDP-6.1.5-2"), short(1), short(0));
    }

    /// After MSeqAck has decreased, it is not known whether the sender has received the SrcAvail.
    #[test]
    fn only_the_decrease_of_mseq_ack_is_found() {
        let answers = |ack: u32| {
            move |script: &mut SdpScript| {
                data(script, 1);
                script.receive_all(0);
                data(script, 0);
                script.send(1, Mid::SRC_AVAIL, &advert(100, None), 1);
                script.ack[0] = ack;
                script.send(0, Mid::SEND_SM, "", 0);
            }
        };
        proves(requirement!("SDP-6.1.6-1"), answers(0), answers(1));
        proves(requirement!("SDP-9.2-18"), answers(1), answers(0));
    }

    #[test]
    fn rdma_has_no_number() {
        let writes = |skip: u32| {
            move |script: &mut SdpScript| {
                data(script, 0);
                script.write(0, STAG, VA, 8);
                script.request_read(0, STAG, VA, 8);
                script.mseq[0] += skip;
                data(script, 0);
            }
        };
        proves(requirement!("SDP-5-2"), writes(2), writes(0));
    }

    #[test]
    fn acknowledges_only_sent_messages() {
        let acknowledges = |acks: &'static [u32]| {
            move |script: &mut SdpScript| {
                data(script, 1);
                for ack in acks {
                    script.ack[0] = *ack;
                    data(script, 0);
                }
            }
        };
        proves(requirement!("SDP-6.1.6-1"), acknowledges(&[2]), acknowledges(&[1]));
        proves(requirement!("SDP-6.1.6-1"), acknowledges(&[1, 0]), acknowledges(&[0, 1]));
        let without_message = |ack: u32| {
            move |script: &mut SdpScript| {
                script.ack[0] = ack;
                data(script, 0);
            }
        };
        proves(requirement!("SDP-6.1.6-2"), without_message(1), without_message(0));
    }

    /// The capture of a message and its acknowledgement. `change` modifies the frames.
    fn acknowledged(change: impl FnOnce(&mut Vec<(u64, Vec<u8>)>)) -> Wire {
        let mut script = SdpScript::open(FieldOrder::Figure);
        data(&mut script, 1);
        script.receive_all(0);
        data(&mut script, 0);
        script.wire.changed(|mut frames| {
            change(&mut frames);
            frames
        })
    }

    #[test]
    fn an_acknowledgement_may_be_captured_before_what_it_acknowledges() {
        let swapped = acknowledged(|frames| {
            let last = frames.len() - 1;
            frames.swap(last - 1, last);
        });
        assert_eq!(swapped.errors(), []);
    }

    /// The capture consists of two files, one after the other. Each file has one direction, and the
    /// second file ends early.
    #[test]
    fn an_acknowledged_message_may_be_missing_at_the_end() {
        let appended = acknowledged(|frames| {
            let opener = frames[0].1[34..36].to_vec();
            frames.sort_by_key(|(_, octets)| octets[34..36] != opener);
            frames.pop();
        });
        assert_eq!(appended.errors(), []);
    }

    #[test]
    fn credit_is_not_taken_back() {
        let bufs = |bufs: [u16; 2]| {
            move |script: &mut SdpScript| {
                for (mseq, bufs) in (0..).zip(bufs) {
                    script.ack[0] = mseq;
                    script.bufs = bufs;
                    data(script, 0);
                    script.bufs = 16;
                    data(script, 1);
                }
            }
        };
        proves(requirement!("SDP-6.1.3-1"), bufs([16, 14]), bufs([16, 15]));
        // Until the SrcAvailCancel is answered, MSeqAck does not advance.
        let held = |cancel: bool| {
            move |script: &mut SdpScript| {
                data(script, 0);
                if cancel {
                    script.send(1, Mid::SRC_AVAIL_CANCEL, "", 0);
                } else {
                    script.send(1, Mid::DATA, "", 0);
                }
                script.bufs = 15;
                data(script, 0);
            }
        };
        proves(requirement!("SDP-6.1.3-1"), held(false), held(true));
    }

    /// By one interpretation of the SDP draft, the first message has MSeq 0. MSeqAck then stays 0
    /// when this message arrives.
    #[test]
    fn a_message_with_number_0_takes_a_buffer() {
        let errors = |bufs: [u16; 3]| {
            let mut script = SdpScript::bare();
            script.mseq = [u32::MAX; 2];
            script.bufs = bufs[0];
            data(&mut script, 0);
            script.bufs = 16;
            data(&mut script, 1);
            script.bufs = bufs[1];
            data(&mut script, 0);
            script.bufs = bufs[2];
            data(&mut script, 0);
            script.wire.errors()
        };
        assert_eq!(errors([16, 15, 15]), []);
        let ids: Vec<_> = errors([16, 15, 14]).iter().map(|finding| finding.requirement).collect();
        assert!(ids.contains(&requirement!("SDP-6.1.3-1")), "{ids:?}");
    }
}
