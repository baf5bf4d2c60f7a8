//! Checks which messages use a Send with Solicited Event. Some messages must use it, and some must
//! not (section 14.2 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::Mid;

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static OPCODE: Rule = Check::Sdp(opcode).covers(requirements![
    "SDP-8.1.1-28",
    "SDP-14.2-1",
    "SDP-14.2-2",
    "SDP-14.2-3",
    "SDP-14.2-4",
    "SDP-14.2-5",
    "SDP-14.2-6",
    "SDP-14.2-7",
    "SDP-14.2-8",
    "SDP-14.2-9",
    "SDP-14.2-10",
    "SDP-14.2-11",
    "SDP-14.2-12",
    "SDP-14.2-13",
    "SDP-14.2-14",
    "SDP-14.2-15",
    "SDP-14.2-16",
    "SDP-14.2-17",
    "SDP-14.2-18"
]);

/// Returns whether the message must use a Send with Solicited Event, and the requirement that
/// defines this. `None` if the draft does not define this MID.
fn due(view: &SdpView<'_>) -> Option<(bool, RequirementId)> {
    // These are the flags OOB_PRES and OOB_PEND. Only Data uses them. In other messages, OOB_PEND
    // has no effect (an interpretation of the draft).
    let oob = view.bsdh.flags & 3 != 0;
    Some(match view.mid() {
        Mid::ABORT_CONN => (true, requirement!("SDP-14.2-1")),
        Mid::SUSP_COMM => (true, requirement!("SDP-14.2-2")),
        Mid::SUSP_COMM_ACK => (true, requirement!("SDP-14.2-3")),
        Mid::SEND_SM => (true, requirement!("SDP-14.2-4")),
        Mid::SRC_AVAIL_CANCEL => (true, requirement!("SDP-14.2-5")),
        Mid::SINK_AVAIL_CANCEL => (true, requirement!("SDP-14.2-6")),
        Mid::HELLO_ACK => (true, requirement!("SDP-14.2-7")),
        Mid::RDMA_WR_COMPL => (true, requirement!("SDP-14.2-8")),
        Mid::RDMA_RD_COMPL => (true, requirement!("SDP-14.2-9")),
        Mid::SINK_CANCEL_ACK => (true, requirement!("SDP-14.2-10")),
        Mid::DATA if oob => (true, requirement!("SDP-14.2-11")),
        Mid::DIS_CONN => (false, requirement!("SDP-14.2-12")),
        Mid::SRC_AVAIL => (false, requirement!("SDP-14.2-13")),
        Mid::SINK_AVAIL => (false, requirement!("SDP-14.2-14")),
        Mid::DATA => (false, requirement!("SDP-14.2-15")),
        Mid::MODE_CHANGE => (false, requirement!("SDP-14.2-16")),
        Mid::CH_RCV_BUF => (false, requirement!("SDP-14.2-17")),
        Mid::CH_RCV_BUF_ACK => (false, requirement!("SDP-14.2-18")),
        _ => return None,
    })
}

fn opcode(_: &ConnectionState, _: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(sent) = view.state.latest.send else { return };
    let Some((solicited, id)) = due(view) else { return };
    let found = format!("{} in a {}", view.mid(), sent.opcode);
    let has_event = matches!(sent.opcode, Opcode::SEND_SE | Opcode::SEND_SE_INVALIDATE);
    if has_event != solicited {
        let expected = if solicited { "a Send with Solicited Event" } else { "a Send without Solicited Event" };
        findings.report_in_frame(id, view.direction, sent.control, expected, found.clone());
    }
    if view.mid() == Mid::HELLO_ACK && sent.opcode != Opcode::SEND_SE {
        let (id, expected) = (requirement!("SDP-8.1.1-28"), "a Send with Solicited Event, without Invalidate");
        findings.report_in_frame(id, view.direction, sent.control, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::{proves, proves_of};
    use crate::testing::sdp::{SdpScript, advert, word};

    const SEND: u8 = 3;
    const SEND_SE: u8 = 5;

    /// Checks that a message with `mid` causes a finding with `id` in a Send with opcode `bad`.
    /// In a Send with opcode `good`, the message must not cause this finding.
    fn either(id: weft_core::RequirementId, mid: Mid, extension: &str, [bad, good]: [u8; 2]) {
        let send = |opcode: u8| move |script: &mut SdpScript| script.send_in(opcode, 0, mid, extension, 0);
        proves(id, send(bad), send(good));
    }

    #[test]
    fn solicited_messages() {
        let susp_comm = "00000000 1388 0001";
        for (id, mid, extension) in [
            (requirement!("SDP-14.2-1"), Mid::ABORT_CONN, ""),
            (requirement!("SDP-14.2-2"), Mid::SUSP_COMM, susp_comm),
            (requirement!("SDP-14.2-3"), Mid::SUSP_COMM_ACK, ""),
            (requirement!("SDP-14.2-4"), Mid::SEND_SM, ""),
            (requirement!("SDP-14.2-5"), Mid::SRC_AVAIL_CANCEL, ""),
            (requirement!("SDP-14.2-6"), Mid::SINK_AVAIL_CANCEL, ""),
            (requirement!("SDP-14.2-8"), Mid::RDMA_WR_COMPL, &word(1)),
        ] {
            either(id, mid, extension, [SEND, SEND_SE]);
        }
    }

    #[test]
    fn other_solicited_messages() {
        either(requirement!("SDP-14.2-9"), Mid::RDMA_RD_COMPL, &word(1), [SEND, SEND_SE]);
        either(requirement!("SDP-14.2-10"), Mid::SINK_CANCEL_ACK, "", [SEND, SEND_SE]);
        let with_flags = |opcode: u8| {
            move |script: &mut SdpScript| {
                script.flags = 2;
                script.send_in(opcode, 0, Mid::DATA, "", 0);
            }
        };
        proves(requirement!("SDP-14.2-11"), with_flags(SEND), with_flags(SEND_SE));
        let acknowledged = |opcode: u8| move |order| SdpScript::acknowledged_in(order, opcode);
        proves_of(requirement!("SDP-14.2-7"), acknowledged(SEND), acknowledged(SEND_SE));
        // The HelloAck cannot invalidate an STag, because no STag exists yet.
        proves_of(requirement!("SDP-8.1.1-28"), acknowledged(6), acknowledged(SEND_SE));
    }

    #[test]
    fn unsolicited_messages() {
        for (id, mid, extension) in [
            (requirement!("SDP-14.2-12"), Mid::DIS_CONN, ""),
            (requirement!("SDP-14.2-13"), Mid::SRC_AVAIL, &*advert(9, None)),
            (requirement!("SDP-14.2-14"), Mid::SINK_AVAIL, &advert(9, Some(0))),
            (requirement!("SDP-14.2-15"), Mid::DATA, ""),
            (requirement!("SDP-14.2-16"), Mid::MODE_CHANGE, &word(4)),
            (requirement!("SDP-14.2-17"), Mid::CH_RCV_BUF, &word(100)),
            (requirement!("SDP-14.2-18"), Mid::CH_RCV_BUF_ACK, &word(100)),
        ] {
            either(id, mid, extension, [SEND_SE, SEND]);
        }
    }
}
