//! Checks the Flags octet (section 6.1.2, Figure 4 of the SDP draft). Position 0 is the least
//! significant bit (an interpretation of the draft).

use weft_core::wire::sdp::{FLAG_OOB_PRES, FLAG_REQ_PIPE, Flags, Mid};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

/// Mask of the reserved bits: positions 3 to 7.
const RESERVED: u8 = 0xf8;

pub(super) static FLAGS: Rule = Check::Sdp(flags).covers(requirements![
    "SDP-6.1.2-1",
    "SDP-6.1.2-2",
    "SDP-6.1.2-3",
    "SDP-6.1.2-4",
    "SDP-6.1.2-5",
    "SDP-6.1.2-8",
    "SDP-6.1.2-16",
    "SDP-6.1.2-17"
]);

fn flags(state: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (mid, flags) = (view.mid(), view.bsdh.flags);
    if flags == 0 {
        return;
    }
    let (range, found) = (view.range(2..3), format!("{flags:#04x} in a {mid}"));
    let mut wrong = |ids: &[weft_core::RequirementId], expected: &str| {
        findings.report_each(ids, unit, range.clone(), expected, &found);
    };
    if flags & RESERVED != 0 {
        wrong(requirements!["SDP-6.1.2-5", "SDP-6.1.2-1"], "zero in positions 3 to 7");
    }
    if flags & FLAG_OOB_PRES != 0 && mid != Mid::DATA {
        wrong(requirements!["SDP-6.1.2-8", "SDP-6.1.2-1"], "OOB_PRES in Data only");
    }
    if flags & FLAG_REQ_PIPE != 0 && !matches!(mid, Mid::RDMA_RD_COMPL | Mid::RDMA_WR_COMPL) {
        let ids = requirements!["SDP-6.1.2-4", "SDP-6.1.2-16", "SDP-6.1.2-17", "SDP-6.1.2-1"];
        wrong(ids, "REQ_PIPE in RdmaRdCompl and RdmaWrCompl only");
    }
    let flags = Flags::from_raw(flags);
    if mid == Mid::DATA && flags.oob_pres {
        if view.payload_len() == 0 {
            let expected = "payload, because OOB_PRES announces an Out-Of-Band byte in this message";
            wrong(requirements!["SDP-6.1.2-2"], expected);
        }
        let sender = view.sender_state();
        // On a resumed connection, it is possible that the Out-Of-Band octet was announced before
        // the suspension (section 13).
        let known = sender.certain && !state.connection.resumes;
        if known && sender.oob_pending == 0 && !flags.oob_pend {
            wrong(requirements!["SDP-6.1.2-3"], "OOB_PEND in this message or in an earlier one");
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{SdpScript, word};

    /// Sends Data messages with these Flags. Each message has `payload` octets of payload.
    fn data(flags: &'static [u8], payload: usize) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            for octet in flags {
                script.flags = *octet;
                script.send(0, Mid::DATA, "", payload);
            }
        }
    }

    fn in_a(mid: Mid, extension: &'static str, flags: u8) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.flags = flags;
            script.send(0, mid, extension, 0);
        }
    }

    #[test]
    fn reserved_positions_are_zero() {
        for bad in [[0x08], [0x80]] {
            let bad: &'static [u8] = if bad == [0x08] { &[0x08] } else { &[0x80] };
            proves(requirement!("SDP-6.1.2-5"), data(bad, 1), data(&[0x02], 1));
        }
        proves(requirement!("SDP-6.1.2-1"), data(&[0x40], 1), data(&[0x03], 1));
    }

    #[test]
    fn each_flag_occurs_only_in_its_messages() {
        proves(requirement!("SDP-6.1.2-8"), in_a(Mid::SEND_SM, "", 1), in_a(Mid::SEND_SM, "", 2));
        let hint = in_a(Mid::RDMA_RD_COMPL, "00000001", 4);
        proves(requirement!("SDP-6.1.2-4"), data(&[4], 1), &hint);
        proves(requirement!("SDP-6.1.2-16"), in_a(Mid::SEND_SM, "", 4), &hint);
        proves(requirement!("SDP-6.1.2-17"), in_a(Mid::DIS_CONN, "", 4), in_a(Mid::RDMA_WR_COMPL, "00000001", 4));
        assert_eq!(word(1), "00000001");
    }

    #[test]
    fn an_out_of_band_octet_is_announced_and_comes() {
        proves(requirement!("SDP-6.1.2-2"), data(&[3], 0), data(&[3], 1));
        proves(requirement!("SDP-6.1.2-3"), data(&[2, 1, 1], 1), data(&[2, 1, 3], 1));
    }
}
