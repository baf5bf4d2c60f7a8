//! The requirements that the monitor judges in the messages of a target, and the messages that can
//! meet each requirement.
//!
//! A case lists requirements by their subjects (`sdp.shown { "hello_ack", "data" }`). The case
//! passes for a requirement only if the target sent a message of the subject. Requirements that
//! depend on other messages, for example on credit or on crossing messages, are not in this file.
//! The cases that cause such situations list these requirements by their ids.

use weft_core::RequirementId;
use weft_core::wire::sdp::{FLAG_OOB_PEND, FLAG_OOB_PRES, FLAG_REQ_PIPE, Mid, Mode};

use super::{NAMES, ReceivedMessage};

/// A subject of requirements: a message of the target, or a property of a message.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Name of the subject in scripts.
    pub(crate) name: &'static str,
    /// Description of the subject.
    pub(crate) about: &'static str,
    /// Requirement ids without "SDP-". The monitor has a rule for each.
    rows: &'static str,
}

impl Subject {
    pub(crate) fn rows(&self) -> impl Iterator<Item = RequirementId> {
        self.rows.split_whitespace().filter_map(|row| format!("SDP-{row}").parse().ok())
    }
}

/// The subject of each message after start-up. Each list from `sdp.shown` includes the requirements
/// of this subject.
pub(crate) const EVERY: &str = "every";

/// Returns the subjects of a requirement. If there are several, a message of any of them can meet
/// the requirement.
pub(crate) fn of_row(row: RequirementId) -> impl Iterator<Item = &'static Subject> {
    SUBJECTS.iter().filter(move |subject| subject.rows().any(|other| other == row))
}

/// Returns the subjects of a message from the target. `mode` is the Mode of the half-connection to
/// the tester. The target is the Data Source of this half-connection, and `mode` is the Mode that
/// the target knows.
pub(crate) fn of_message(message: &ReceivedMessage, mode: Mode) -> Vec<&'static str> {
    let mut about: Vec<&'static str> =
        NAMES.iter().filter(|(mid, _)| *mid == message.mid).map(|(_, name)| *name).collect();
    let by_sink = message.field("s") == Some(1);
    let flag = |flags: u8| message.flags & flags != 0;
    let more = match (message.mid, message.field("mode")) {
        (Mid::DATA, _) if flag(FLAG_OOB_PEND | FLAG_OOB_PRES) => Some("urgent"),
        (Mid::DATA, _) if mode == Mode::Buffered && !message.payload.is_empty() => Some("buffered"),
        (Mid::SRC_AVAIL, _) => match mode {
            Mode::Combined => Some("combined"),
            Mode::Pipelined => Some("pipelined"),
            Mode::Buffered => None,
        },
        (Mid::SINK_AVAIL, _) if !message.payload.is_empty() => Some("transaction"),
        (Mid::RDMA_RD_COMPL | Mid::RDMA_WR_COMPL, _) if flag(FLAG_REQ_PIPE) => Some("hint"),
        (Mid::MODE_CHANGE, Some(0)) => Some("to_buffered"),
        (Mid::MODE_CHANGE, Some(1)) => Some(if by_sink { "out_of_buffered" } else { "to_combined" }),
        (Mid::MODE_CHANGE, Some(2)) => Some("to_pipelined"),
        _ => None,
    };
    about.extend(more);
    if !matches!(message.mid, Mid::HELLO | Mid::HELLO_ACK) {
        about.push(EVERY);
    }
    about
}

const fn subject(name: &'static str, about: &'static str, rows: &'static str) -> Subject {
    Subject { name, about, rows }
}

/// All subjects.
pub(crate) const SUBJECTS: [Subject; 29] = [
    subject(
        "every",
        "an SDP message after start-up",
        "6-1 6-4 6.1-1 6.1.1-1 6.1.1-17 6.1.1-18 6.1.1-20 6.1.2-1 6.1.2-5 6.1.2-8 6.1.2-16 6.1.2-17 6.1.3-1 \
            6.1.4-1 6.1.5-2 6.1.6-1 10-1 10-2 10-4 10.1-1",
    ),
    subject(
        "hello",
        "a Hello",
        "6.1.1-2 6.1.5-1 6.1.6-2 6.2.1-1 6.2.1-2 6.2.1-3 6.2.1-4 6.2.1-5 6.2.1-6 6.2.1-7 6.2.1-9 6.2.1.1-1 \
            6.2.1.2-1 6.2.1.3-1 6.2.1.4-3 6.2.1.5-1 6.2.1.6-2 6.2.1.7-2 6.2.1.8-1 8.1.1-5 8.1.1-8 8.1.1-9 10.3-1 \
            10-7",
    ),
    subject(
        "hello_ack",
        "a HelloAck",
        "6.1.1-3 6.1.5-1 6.1.6-2 6.2.2-1 6.2.2-2 6.2.2-4 6.2.2-5 6.2.2-6 6.2.2-7 6.2.2-9 6.2.2.1-1 6.2.2.2-1 \
            6.2.2.3-1 6.2.2.4-1 6.2.2.5-2 6.2.2.6-2 6.2.2.7-1 8.1.1-24 8.1.1-25 8.1.1-28 10-7 10.3-2 14.2-7",
    ),
    subject("dis_conn", "a DisConn", "6.1.1-4 6.2.3-1 6.2.3-2 8.2.1-4 8.2.1-9 14.2-12"),
    subject("abort_conn", "an AbortConn", "6.1.1-5 6.2.4-1 14.2-1"),
    subject("data", "a Data", "6.1.1-23 6.3.1-1 9.1-2 14.2-15"),
    subject("urgent", "a Data message with an Out-Of-Band flag", "6.1.2-3 9.5.3-5 14.2-11"),
    subject("src_avail", "a SrcAvail", "6.1.1-22 6.3.2-1 6.3.2-3 6.3.2.1-1 6.3.2.1-2 6.3.2.3-1 12-17 14.2-13"),
    subject(
        "combined",
        "a SrcAvail in Combined Mode",
        "8.1.1-29 9.2-2 11-2 11-7 11-8 11-9 11-10 11-20 11.2-6 11.2-7 11.2-8 11.2-9 12-2 12-23",
    ),
    subject("pipelined", "a SrcAvail in Pipelined Mode", "9.2-3 11-13 11-15 11.3-7 11.3-8 12-15"),
    subject("buffered", "Data in Buffered Mode", "11-6 11.1-2 12-18"),
    subject("src_avail_cancel", "a SrcAvailCancel", "6.1.1-10 6.3.9-1 9.5.4-10 14.2-5"),
    subject("send_sm", "a SendSm", "6.1.1-6 6.3.5-2 9.2-18 14.2-4"),
    subject(
        "rdma_rd_compl",
        "a RdmaRdCompl",
        "6.1.1-8 6.3.2.3-2 6.3.7-2 6.3.7.1-1 6.3.7.1-2 9.2-1 9.2-13 9.2-26 9.2-27 14.2-9",
    ),
    subject(
        "sink_avail",
        "a SinkAvail",
        "6.1.1-21 6.3.3-1 6.3.3-2 6.3.3.1-2 6.3.3.1-3 6.3.3.3-1 9-1 9.3-2 9.3-5 9.5.1-1 9.5.1-2 10-9 14.2-14",
    ),
    subject("transaction", "a SinkAvail with payload", "9.4-3"),
    subject("sink_avail_cancel", "a SinkAvailCancel", "6.1.1-11 6.3.10-1 14.2-6"),
    subject(
        "rdma_wr_compl",
        "a RdmaWrCompl",
        "6.1.1-7 6.3.3.3-2 6.3.6-1 6.3.6-2 6.3.6.1-1 9.3-1 9.3-9 9.3-10 9.3-14 14.2-8",
    ),
    subject("sink_cancel_ack", "a SinkCancelAck", "6.1.1-12 6.3.11-2 9.5.5-10 14.2-10"),
    subject(
        "mode_change",
        "a ModeChange",
        "5-4 6-2 6.1.1-9 6.3.8-1 6.3.8-2 6.3.8.2-1 6.3.8.2-5 6.3.8.3-1 12-1 12-8 12-12 14.2-16",
    ),
    subject("to_pipelined", "a ModeChange from Combined to Pipelined Mode", "6.3.8.2-4 12-5 12-10 12.3-1"),
    subject("to_buffered", "a ModeChange from Combined to Buffered Mode", "6.3.8.2-2 12-3 12.1-1"),
    subject("to_combined", "a ModeChange from Pipelined to Combined Mode", "6.3.8.2-3 12-6 12-11 12.4-1"),
    subject("out_of_buffered", "a ModeChange from Buffered to Combined Mode", "12-4 12-9"),
    subject("hint", "a completion with REQ_PIPE", "6.1.2-4"),
    subject("ch_rcv_buf", "a ChRcvBuf", "6.1.1-13 6.4.1-1 6.4.1-2 14.2-17"),
    subject("ch_rcv_buf_ack", "a ChRcvBufAck", "6.1.1-14 6.4.2-3 14.2-18"),
    subject("susp_comm", "a SuspComm", "6.1.1-15 6.5.1-1 6.5.1-2 6.5.1.2-1 6.5.1.3-1 13.1.1-6 14.2-2"),
    subject("susp_comm_ack", "a SuspCommAck", "6.1.1-16 6.5.2-1 6.5.2-2 14.2-3"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// No subject may list a requirement that no rule checks.
    #[test]
    fn each_row_has_a_rule_of_the_monitor() {
        let judged: BTreeSet<RequirementId> =
            weft_dissector::rules::rules().flat_map(|rule| rule.requirements).copied().collect();
        for subject in &SUBJECTS {
            assert_eq!(subject.rows().count(), subject.rows.split_whitespace().count(), "{}", subject.name);
            for row in subject.rows() {
                assert!(judged.contains(&row), "{} ({})", row.as_str(), subject.name);
            }
        }
    }

    #[test]
    fn subjects_of_a_message_are_its_name_and_its_mode() {
        let message = |mid, payload: &[u8]| {
            let mut draft = crate::sdp::Draft::new(mid);
            draft.payload = payload.to_vec();
            let order = weft_core::wire::sdp::FieldOrder::Figure;
            let octets = draft.octets(crate::sdp::Counters { bufs: 3, mseq: 1, mseq_ack: 0, order });
            ReceivedMessage::read(&octets, order).unwrap()
        };
        let about = |mid, mode, payload: &[u8]| of_message(&message(mid, payload), mode);
        assert_eq!(about(Mid::SRC_AVAIL, Mode::Combined, b"x"), ["src_avail", "combined", EVERY]);
        assert_eq!(about(Mid::SRC_AVAIL, Mode::Pipelined, b""), ["src_avail", "pipelined", EVERY]);
        assert_eq!(about(Mid::DATA, Mode::Combined, b"x"), ["data", EVERY]);
        assert_eq!(about(Mid::DATA, Mode::Buffered, b"x"), ["data", "buffered", EVERY]);
        assert_eq!(about(Mid::SINK_AVAIL, Mode::Combined, b""), ["sink_avail", EVERY]);
        assert_eq!(about(Mid::SINK_AVAIL, Mode::Combined, b"x"), ["sink_avail", "transaction", EVERY]);
        assert_eq!(about(Mid::MODE_CHANGE, Mode::Combined, b""), ["mode_change", "to_pipelined", EVERY]);
        assert_eq!(about(Mid::HELLO_ACK, Mode::Combined, b""), ["hello_ack"]);
    }
}
