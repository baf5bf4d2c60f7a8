//! Out-Of-Band octets: each octet is announced in time, and arrives in a Data message (section
//! 9.5.3).

use weft_core::requirement;
use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, Mid};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::findings::Findings;
use crate::rules::rule::{Judge, Rule};

/// Maximum number of octets between the announcement and the Out-Of-Band octet, without that octet
/// (C24, an interpretation of the draft).
const MOST: i64 = 65535;

pub(super) static ANNOUNCED: Rule = Rule {
    requirements: &[requirement!("SDP-9.5.3-4"), requirement!("SDP-9.5.3-5"), requirement!("SDP-9.5.3-6")],
    judge: Judge::Sdp(announced),
};

pub(super) static PLACE: Rule = Rule { requirements: &[requirement!("SDP-9.5.3-8")], judge: Judge::Sdp(place) };

fn announced(state: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let before = view.before();
    let (flags, urgent) = (view.bsdh.flags, before.urgent);
    if !before.certain || urgent.lost {
        return;
    }
    let range = view.place(2..3);
    if view.mid() == Mid::DIS_CONN && urgent.count > 0 {
        // A user may withdraw announced octets before they are sent, and the capture does not show
        // that. So the finding is a note.
        let expected = "one OOB_PEND for each Out-Of-Band byte, unless its user withdrew the byte";
        let found = format!("at the end of the stream, announcements without their byte: {}", urgent.count);
        findings.note().at(requirement!("SDP-9.5.3-4"), unit, range.clone(), expected, found);
    }
    let comes = view.mid() == Mid::DATA && flags & FLAG_OOB_PRES != 0;
    // The octet of the oldest announcement is too late once a message passes the last allowed
    // position. Only that message has the finding.
    let is_late = |position: i64| urgent.oldest.is_some_and(|at| position.saturating_sub(at) > MOST);
    let passed = urgent.position.saturating_add(i64::try_from(view.payload_len()).unwrap_or(i64::MAX));
    if !comes && view.mid() == Mid::DATA && is_late(passed) && !is_late(urgent.position) {
        let expected = format!("the Out-Of-Band byte within {MOST} bytes after OOB_PEND, unless its user withdrew it");
        let found = format!("{MOST} bytes without it");
        findings.note().at(requirement!("SDP-9.5.3-6"), unit, range.clone(), &expected, found);
    }
    if !comes {
        return;
    }
    let at = if flags & FLAG_OOB_PEND != 0 { urgent.oldest.or(Some(urgent.position)) } else { urgent.oldest };
    let Some(at) = at else {
        // On a resumed connection, the octet may have been announced before the suspension (section
        // 13).
        if state.connection.resumes {
            return;
        }
        let expected = "OOB_PEND in this message or an earlier one";
        findings.at(requirement!("SDP-9.5.3-5"), unit, range, expected, "OOB_PRES without it".to_owned());
        return;
    };
    let octets = i64::try_from(view.payload_len()).unwrap_or(i64::MAX);
    let between = urgent.position.saturating_add(octets).saturating_sub(at).saturating_sub(1);
    if between > MOST {
        let expected = format!("at most {MOST} bytes between OOB_PEND and the Out-Of-Band byte");
        findings.at(requirement!("SDP-9.5.3-6"), unit, range, &expected, between.to_string());
    }
}

fn place(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let present = view.bsdh.flags & FLAG_OOB_PRES != 0;
    if present && (view.mid() != Mid::DATA || view.payload_len() == 0) {
        let found = format!("{} with {} bytes after its header", view.mid(), view.payload_len());
        let expected = "the Out-Of-Band byte as the last byte of a Data message";
        findings.at(requirement!("SDP-9.5.3-8"), unit, view.place(2..3), expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::talk::{completes, proves_each_way, src_avail};
    use crate::testing::sdp::{STAG, Talk, VA};

    const PRES: u8 = 1;
    const PEND: u8 = 2;

    fn send(talk: &mut Talk, way: usize, flags: u8, payload: usize) {
        talk.flags = flags;
        talk.send(way, Mid::DATA, "", payload);
        talk.flags = 0;
        talk.both_receive_all();
    }

    #[test]
    fn it_is_announced_once() {
        let with = |before: &'static [u8], flags: u8| {
            move |talk: &mut Talk, way: usize| {
                before.iter().for_each(|flags| send(talk, way, *flags, 0));
                send(talk, way, flags, 5);
                talk.send(way, Mid::DIS_CONN, "", 0);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-5"), with(&[0], PRES), with(&[PEND], PRES));
        proves_each_way(requirement!("SDP-9.5.3-5"), with(&[0], PRES), with(&[0], PRES | PEND));
        proves_each_way(requirement!("SDP-9.5.3-4"), with(&[PEND, PEND], PRES), with(&[PEND], PRES));
    }

    /// Advertised octets count as well. Between announcement and Out-Of-Band octet are the octets
    /// of the SrcAvail, and four more.
    #[test]
    fn it_is_not_announced_too_early() {
        let given_back = |talk: &mut Talk, way: usize| {
            send(talk, way, PEND, 0);
            src_avail(talk, way, 65_532, 1);
            talk.send(way, Mid::SRC_AVAIL_CANCEL, "", 0);
            talk.both_receive_all();
            talk.send(1 - way, Mid::SEND_SM, "", 0);
            talk.both_receive_all();
            send(talk, way, PRES, 5);
        };
        // 65,532 octets do not fit into one FPDU.
        let in_parts = |len: u32| {
            move |talk: &mut Talk, way: usize| {
                send(talk, way, PEND, 0);
                for part in [30_000, 30_000, len - 60_000] {
                    src_avail(talk, way, part, 1);
                    talk.reads(1 - way, STAG, VA + 1, part - 1);
                    completes(talk, 1 - way, Mid::RDMA_RD_COMPL, part - 1);
                }
                send(talk, way, PRES, 5);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-6"), in_parts(65_532), in_parts(65_531));
        proves_each_way(requirement!("SDP-9.5.3-6"), in_parts(65_532), given_back);
    }

    /// The capture does not show whether a user withdrew an announced octet, so the finding is a
    /// note.
    #[test]
    fn announced_octet_arrives_in_time() {
        let data = |octets: u32, last: usize| {
            move |talk: &mut Talk, way: usize| {
                send(talk, way, PEND, 0);
                for part in [30_000, 30_000, octets - 60_000] {
                    src_avail(talk, way, part, 1);
                    talk.reads(1 - way, STAG, VA + 1, part - 1);
                    completes(talk, 1 - way, Mid::RDMA_RD_COMPL, part - 1);
                }
                send(talk, way, 0, last);
                send(talk, way, 0, last);
            }
        };
        proves_each_way(requirement!("SDP-9.5.3-6"), data(65_530, 5), data(65_530, 2));
    }

    #[test]
    fn it_is_the_last_octet_of_data() {
        let in_data = |payload: usize| move |talk: &mut Talk, way: usize| send(talk, way, PRES | PEND, payload);
        proves_each_way(requirement!("SDP-9.5.3-8"), in_data(0), in_data(1));
    }
}
