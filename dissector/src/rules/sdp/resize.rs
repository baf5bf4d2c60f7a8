//! Checks ChRcvBuf and ChRcvBufAck (section 6.4 of the SDP draft).

use weft_core::requirement;
use weft_core::wire::sdp::{MIN_PRIVATE_BUFFER, Mid, RawChRcvBuf, RawChRcvBufAck};

use super::hello::MAX_PRIVATE_BUFFER;
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static SIZES: Rule = Check::Sdp(sizes).covers(requirements!["SDP-6.4.1-2", "SDP-6.4.2-2", "SDP-6.4.2-3"]);

fn sizes(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (id, size) = match view.mid() {
        Mid::CH_RCV_BUF => (requirement!("SDP-6.4.1-2"), view.extension().map(|raw: RawChRcvBuf| raw.des_sz.get())),
        Mid::CH_RCV_BUF_ACK => {
            (requirement!("SDP-6.4.2-2"), view.extension().map(|raw: RawChRcvBufAck| raw.act_sz.get()))
        }
        _ => return,
    };
    if let Some(size) = size.filter(|size| !(MIN_PRIVATE_BUFFER..=MAX_PRIVATE_BUFFER).contains(size)) {
        // The draft does not limit the size in a request, so the finding is a note.
        let mut findings = findings.as_note_if(view.mid() == Mid::CH_RCV_BUF);
        findings.report(id, unit, 16..20, "a Private Buffer size of 37 to 2^31 bytes", size.to_string());
    }
    let (own, peer) = (&view.state.peers[view.direction], &view.state.peers[view.peer()]);
    if view.mid() == Mid::CH_RCV_BUF_ACK && view.sender_state().certain && own.resize_answers > peer.resize_requests {
        let expected = "a ChRcvBuf from the peer for each ChRcvBufAck";
        let found = format!("ChRcvBufs from the peer: {}; ChRcvBufAcks: {}", peer.resize_requests, own.resize_answers);
        findings.report(requirement!("SDP-6.4.2-3"), unit, view.range(3..4), expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{SdpScript, word};

    fn resizes(asks: u32, answers: &'static [u32]) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::CH_RCV_BUF, &word(asks), 0);
            script.receive_all(1);
            for size in answers {
                script.send(1, Mid::CH_RCV_BUF_ACK, &word(*size), 0);
            }
        }
    }

    #[test]
    fn sizes_of_private_buffers() {
        proves(requirement!("SDP-6.4.1-2"), resizes(36, &[]), resizes(37, &[]));
        proves(requirement!("SDP-6.4.2-2"), resizes(8192, &[0x8000_0001]), resizes(8192, &[0x8000_0000]));
    }

    #[test]
    fn each_answer_has_its_request() {
        proves(requirement!("SDP-6.4.2-3"), resizes(8192, &[8192, 8192]), resizes(8192, &[8192]));
        let without_request = |script: &mut SdpScript| script.send(1, Mid::CH_RCV_BUF_ACK, &word(4096), 0);
        proves(requirement!("SDP-6.4.2-3"), without_request, resizes(8192, &[4096]));
    }
}
