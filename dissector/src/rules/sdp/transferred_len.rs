//! Compares Len of RdmaWrCompl and RdmaRdCompl with the octets that RDMA transferred (sections
//! 6.3.4, 6.3.6 and 6.3.7 of the SDP draft).

use std::ops::Range;

use weft_core::requirement;
use weft_core::wire::sdp::{Mid, RawRdmaRdCompl, RawRdmaWrCompl};

use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

const LEN: Range<usize> = 16..20;

pub(super) static WRITTEN: Rule =
    Check::Sdp(written).covers(requirements!["SDP-6.3.4-1", "SDP-6.3.6-1", "SDP-6.3.6.1-1"]);

pub(super) static READ: Rule = Check::Sdp(read).covers(requirements![
    "SDP-6.3.4-1",
    "SDP-6.3.7-1",
    "SDP-6.3.7.1-1",
    "SDP-6.3.7.1-2",
    "SDP-6.3.7.1-3"
]);

fn written(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = view.extension_of::<RawRdmaWrCompl>(Mid::RDMA_WR_COMPL) else { return };
    let sender = view.sender_state();
    let Some(advert) = sender.usable.oldest.filter(|_| sender.certain) else { return };
    let (len, found) = (raw.len.get(), format!("Len {}", raw.len.get()));
    if len > advert.len {
        let expected = format!("at most the {} bytes that frame {} advertises", advert.len, advert.frame);
        findings.report(requirement!("SDP-6.3.6-1"), unit, LEN, &expected, found.clone());
    }
    let Some(moved) = sender.moved.filter(|moved| moved.written != u64::from(len)) else { return };
    let expected =
        format!("Len {}, the bytes that RDMA Writes put into the buffer of frame {}", moved.written, advert.frame);
    findings.report(requirement!("SDP-6.3.6.1-1"), unit, LEN, &expected, found.clone());
    if moved.written == 0 {
        findings.report(requirement!("SDP-6.3.4-1"), unit, LEN, "RDMA Writes before the RdmaWrCompl", found);
    }
}

fn read(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = view.extension_of::<RawRdmaRdCompl>(Mid::RDMA_RD_COMPL) else { return };
    let sender = view.sender_state();
    // While the sender holds MSeqAck back, the state is not certain, because it is possible that
    // the sender has received a later advertisement.
    let Some(advert) = sender.sources.oldest.filter(|_| sender.certain) else { return };
    let (len, found) = (u64::from(raw.len.get()), format!("Len {}", raw.len.get()));
    if len > u64::from(advert.len) {
        let expected = format!("at most the {} bytes that frame {} advertises", advert.len, advert.frame);
        findings.report(requirement!("SDP-6.3.7-1"), unit, LEN, &expected, found.clone());
    }
    let moved = sender.moved;
    // A message that invalidates the buffer is the last message about this buffer.
    let is_last = view.state.latest.send.is_some_and(|sent| sent.invalidates == Some(advert.stag));
    let falls_short = is_last && len < advert.left && moved.is_some_and(|moved| moved.read >= advert.left);
    if advert.payload > 0 && (len > advert.left || falls_short) {
        let expected = format!(
            "Len {}: the {} bytes that frame {} advertises, minus {} bytes of payload, minus the reported bytes",
            advert.left, advert.len, advert.frame, advert.payload
        );
        if len > advert.left {
            findings.report(requirement!("SDP-6.3.7.1-2"), unit, LEN, &expected, found.clone());
        }
        findings.report(requirement!("SDP-6.3.7.1-3"), unit, LEN, &expected, found.clone());
    }
    let Some(moved) = moved.filter(|moved| moved.read < len) else { return };
    let expected =
        format!("at most the {} bytes that RDMA Reads requested from the buffer of frame {}", moved.read, advert.frame);
    findings.report(requirement!("SDP-6.3.7.1-1"), unit, LEN, &expected, found.clone());
    if moved.read == 0 && sender.rdma_use.read.is_none() {
        findings.report(requirement!("SDP-6.3.4-1"), unit, LEN, "RDMA Reads before the RdmaRdCompl", found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{STAG, SdpScript, VA, advert, word};

    /// Sends RDMA Writes of these lengths, one after the other, into a buffer of 9000 octets. Then
    /// sends an RdmaWrCompl with `len`.
    fn written(writes: &'static [usize], len: u32) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::MODE_CHANGE, &word(4), 0);
            script.receive_all(1);
            script.send(1, Mid::SINK_AVAIL, &advert(9000, Some(0)), 0);
            script.receive_all(0);
            let mut to = VA;
            for len in writes {
                script.write(0, STAG, to, *len);
                to += *len as u64;
            }
            script.send(0, Mid::RDMA_WR_COMPL, &word(len), 0);
        }
    }

    #[test]
    fn rdma_wr_compl_reports_what_was_written() {
        proves(requirement!("SDP-6.3.6-1"), written(&[8000, 1001], 9001), written(&[8000, 1000], 9000));
        proves(requirement!("SDP-6.3.6.1-1"), written(&[100, 200], 299), written(&[100, 200], 300));
        proves(requirement!("SDP-6.3.4-1"), written(&[], 300), written(&[300], 300));
    }

    /// One endpoint sends a SrcAvail of 100 octets. The SrcAvail carries the first `payload` octets
    /// as payload. The other endpoint sends RDMA Reads of these lengths. The first RDMA Read starts
    /// at the first octet. RdmaRdCompls with the lengths `reported` follow.
    fn read(payload: usize, reads: &'static [u32], reported: &'static [u32]) -> impl Fn(&mut SdpScript) {
        read_in(5, payload, reads, reported)
    }

    fn read_in(opcode: u8, payload: usize, reads: &'static [u32], reported: &'static [u32]) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            script.send(0, Mid::SRC_AVAIL, &advert(100, None), payload);
            script.receive_all(1);
            let mut from = VA;
            for len in reads {
                script.reads(1, STAG, from, *len);
                from += u64::from(*len);
            }
            for len in reported {
                script.send_in(opcode, 1, Mid::RDMA_RD_COMPL, &word(*len), 0);
            }
        }
    }

    #[test]
    fn rdma_rd_compl_reports_what_was_read() {
        proves(requirement!("SDP-6.3.7-1"), read(1, &[100], &[101]), read(1, &[100], &[100]));
        proves(requirement!("SDP-6.3.7.1-1"), read(1, &[60], &[60]), read(1, &[60], &[59]));
        proves(requirement!("SDP-6.3.7.1-1"), read(1, &[60], &[30, 30]), read(1, &[60, 40], &[30, 30]));
        proves(requirement!("SDP-6.3.4-1"), read(1, &[], &[60]), read(1, &[70], &[60]));
        let other_buffer = |script: &mut SdpScript| {
            script.send(0, Mid::SRC_AVAIL, &advert(100, None), 1);
            script.receive_all(1);
            script.reads(1, STAG + 1, VA, 60);
            script.send(1, Mid::RDMA_RD_COMPL, &word(60), 0);
        };
        proves(requirement!("SDP-6.3.4-1"), read(1, &[], &[60]), other_buffer);
    }

    #[test]
    fn payload_is_not_reported() {
        proves(requirement!("SDP-6.3.7.1-2"), read(10, &[100], &[100]), read(10, &[100], &[90]));
        proves(requirement!("SDP-6.3.7.1-2"), read(10, &[100], &[50, 50]), read(10, &[100], &[50, 40]));
        proves(requirement!("SDP-6.3.7.1-2"), read(10, &[100], &[100]), read(0, &[100], &[101]));
        proves(requirement!("SDP-6.3.7.1-3"), read(10, &[100], &[91]), read(10, &[100], &[90]));
        // The last RdmaRdCompl invalidates the completely read buffer, so no later message can
        // report the remaining octets.
        let last = |len: &'static [u32]| read_in(6, 10, &[100], len);
        proves(requirement!("SDP-6.3.7.1-3"), last(&[80]), read(10, &[100], &[80]));
    }
}
