//! Checks the payload after an open SrcAvail, and the Data that a SendSm requested (sections 9.2,
//! 11.2 and 11.3 of the SDP draft). Also checks Len of Data messages (section 9.1).

use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static AFTER_SRC_AVAIL: Rule = Check::Sdp(after_src_avail).covers(requirements![
    "SDP-9.2-22",
    "SDP-11-10",
    "SDP-11-15",
    "SDP-11.2-6",
    "SDP-11.2-8",
    "SDP-11.3-8"
]);

pub(super) static OWED: Rule =
    Check::Sdp(owed).covers(requirements!["SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11.3-9"]);

pub(super) static LEN: Rule = Check::Sdp(len).covers(requirements!["SDP-9.1-2"]);

fn after_src_avail(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    let (Some(src_avail), true) = (sender.src_avails.oldest, sender.certain) else { return };
    // The sender is allowed to send the Data that a SendSm requested.
    let requested = if view.mid() == Mid::DATA { sender.owed } else { 0 };
    let payload = if view.mid().may_carry_payload() { view.payload_len() as u64 } else { 0 };
    if payload <= requested {
        return;
    }
    let ids = match sender.source_mode {
        Some(Mode::Combined) if view.mid() == Mid::DATA => requirements!["SDP-11.2-6", "SDP-11-10", "SDP-11.2-8"],
        Some(Mode::Combined) => requirements!["SDP-11.2-6", "SDP-11-10"],
        Some(Mode::Pipelined) => requirements!["SDP-11.3-8", "SDP-11-15"],
        Some(Mode::Buffered) | None => return,
    };
    let expected = format!("no payload while the SrcAvail of frame {} is open", src_avail.frame);
    let found = match requested {
        0 => format!("{payload} bytes of payload"),
        requested => format!("{payload} bytes of payload, of which a SendSm requested {requested}"),
    };
    findings.report_each(ids, unit, view.range(3..4), &expected, &found);
    if src_avail.reported() > 0 {
        findings.report(requirement!("SDP-9.2-22"), unit, view.range(3..4), &expected, found);
    }
}

fn owed(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let sender = view.sender_state();
    if !sender.certain || sender.owed == 0 {
        return;
    }
    let mid = view.mid();
    let instead = match mid {
        Mid::SRC_AVAIL | Mid::SINK_AVAIL => view.payload_len() > 0,
        Mid::RDMA_WR_COMPL | Mid::DIS_CONN => true,
        _ => false,
    };
    if instead {
        let ids = requirements!["SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6"];
        let expected = format!("before this message, Data with the {} bytes that a SendSm requested", sender.owed);
        findings.report_each(ids, unit, view.range(3..4), &expected, &mid.to_string());
        if sender.source_mode == Some(Mode::Pipelined) {
            findings.report(requirement!("SDP-11.3-9"), unit, view.range(3..4), &expected, mid.to_string());
        }
    }
}

fn len(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let (len, size) = (view.bsdh.len.get() as usize, view.size());
    if view.mid() == Mid::DATA && len != size {
        let expected = format!("Len {size}, for the header of 16 bytes and {} bytes of payload", view.payload_len());
        findings.report(requirement!("SDP-9.1-2"), unit, view.range(4..8), &expected, format!("Len {len}"));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::sdp_script::{pipelined, proves_each_way, src_avail};
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    /// Sends a SrcAvail, and then `octets` octets of Data. The Mode is Pipelined if `in_pipelined`
    /// is true, and Combined otherwise.
    fn data_after_src_avail(in_pipelined: bool, octets: usize) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            if in_pipelined {
                pipelined(script, way);
            }
            src_avail(script, way, 50, if in_pipelined { 0 } else { 10 });
            script.send(way, Mid::DATA, "", octets);
        }
    }

    #[test]
    fn no_payload_while_a_src_avail_is_open() {
        for id in [requirement!("SDP-11.2-6"), requirement!("SDP-11.2-8"), requirement!("SDP-11-10")] {
            proves_each_way(id, data_after_src_avail(false, 1), data_after_src_avail(false, 0));
        }
        for id in [requirement!("SDP-11.3-8"), requirement!("SDP-11-15")] {
            proves_each_way(id, data_after_src_avail(true, 1), data_after_src_avail(true, 0));
        }
        let partly = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, way, 50, 10);
                script.reads(1 - way, STAG, VA + 10, len);
                script.send(1 - way, Mid::RDMA_RD_COMPL, &word(len), 0);
                script.both_receive_all();
                script.send(way, Mid::DATA, "", 5);
            }
        };
        proves_each_way(requirement!("SDP-9.2-22"), partly(39), partly(40));
    }

    #[test]
    fn sends_only_the_data_that_a_send_sm_requests() {
        let sends = |octets: usize| {
            move |script: &mut SdpScript, way: usize| {
                pipelined(script, way);
                src_avail(script, way, 50, 0);
                src_avail(script, way, 60, 0);
                script.send(1 - way, Mid::SEND_SM, "", 0);
                script.both_receive_all();
                script.send(way, Mid::DATA, "", octets);
            }
        };
        proves_each_way(requirement!("SDP-11.3-8"), sends(51), sends(50));
    }

    /// A SendSm requests 40 octets. The Data Source sends `octets` of these octets as Data, and
    /// then a message with `mid`. The Mode is Combined.
    fn after_data(octets: usize, mid: Mid) -> impl Fn(&mut SdpScript, usize) {
        move |script, way| {
            src_avail(script, way, 50, 10);
            script.send(1 - way, Mid::SEND_SM, "", 0);
            script.both_receive_all();
            script.send(way, Mid::DATA, "", octets);
            if mid == Mid::SRC_AVAIL {
                script.send(way, mid, &advert(50, None), 10);
            } else {
                script.send(way, mid, "", 0);
            }
        }
    }

    #[test]
    fn requested_data_is_sent_first() {
        for id in [
            requirement!("SDP-9.2-33"),
            requirement!("SDP-9.2-35"),
            requirement!("SDP-9.5.2.1-2"),
            requirement!("SDP-9.5.2.1-6"),
        ] {
            proves_each_way(id, after_data(39, Mid::SRC_AVAIL), after_data(40, Mid::SRC_AVAIL));
        }
        proves_each_way(requirement!("SDP-9.2-33"), after_data(39, Mid::DIS_CONN), after_data(40, Mid::DIS_CONN));
        let in_pipelined = |script: &mut SdpScript, way: usize| {
            pipelined(script, way);
            src_avail(script, way, 50, 0);
            script.send(1 - way, Mid::SEND_SM, "", 0);
            script.both_receive_all();
            script.send(way, Mid::DATA, "", 49);
            script.send(way, Mid::DIS_CONN, "", 0);
        };
        proves_each_way(requirement!("SDP-11.3-9"), in_pipelined, after_data(39, Mid::DIS_CONN));
    }

    /// The draft allows a Len of at most 2^31. It is not known how many octets a SendSm requests if
    /// Len is larger.
    #[test]
    fn a_wrong_len_requests_no_data() {
        let closes = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                src_avail(script, way, len, 10);
                script.send(1 - way, Mid::SEND_SM, "", 0);
                script.both_receive_all();
                script.send(way, Mid::DIS_CONN, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-9.2-33"), closes(1 << 31), closes((1 << 31) + 1));
    }

    #[test]
    fn len_of_data_is_payload_and_16() {
        let with = |len: u32| {
            move |script: &mut SdpScript, way: usize| {
                script.send_changed(way, Mid::DATA, "", |octets| {
                    octets[4..8].copy_from_slice(&len.to_be_bytes());
                    octets.extend([1, 2, 3]);
                });
            }
        };
        proves_each_way(requirement!("SDP-9.1-2"), with(20), with(19));
    }
}
