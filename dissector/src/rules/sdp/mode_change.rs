//! Checks the ModeChange message (sections 5 and 6.3.8, Figures 11 and 12 of the SDP draft).

use weft_core::requirement;
use weft_core::wire::sdp::{Mid, Mode, RawModeChange};

use super::figure::name;
use super::view::SdpView;
use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

const WORD: std::ops::Range<usize> = 16..20;

pub(super) static FIELDS: Rule =
    Check::Sdp(fields).covers(requirements!["SDP-6.3.8-1", "SDP-6.3.8.2-1", "SDP-6.3.8.2-5", "SDP-6.3.8.3-1"]);

pub(super) static MASTER: Rule =
    Check::Sdp(master).covers(requirements!["SDP-5-4", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4"]);

/// A ModeChange to one of the three Modes.
pub(super) struct Change {
    /// The Mode that the ModeChange ends, as far as its sender knows; `None` if the Mode is
    /// uncertain.
    pub(super) from: Option<Mode>,
    /// The Mode that the ModeChange starts.
    pub(super) to: Mode,
    /// Whether the Data Sink sends the ModeChange (bit S). Otherwise the Data Source sends it.
    pub(super) by_sink: bool,
}

impl Change {
    /// Reads a ModeChange. `None` for other messages, and for an invalid Mode.
    pub(super) fn of(view: &SdpView<'_>) -> Option<Self> {
        let raw: RawModeChange = view.extension_of(Mid::MODE_CHANGE)?;
        let (sender, by_sink) = (view.sender_state(), raw.s());
        let from = if by_sink { sender.sink_mode } else { sender.source_mode };
        Some(Change { from: from.filter(|_| sender.certain), to: Mode::from_value(raw.mode())?, by_sink })
    }
}

fn fields(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = view.extension_of::<RawModeChange>(Mid::MODE_CHANGE) else { return };
    let mut wrong = 0;
    if Mode::from_value(raw.mode()).is_none() {
        wrong += 1;
        let ids = requirements!["SDP-6.3.8.2-1", "SDP-6.3.8.2-5"];
        findings.report_each(ids, unit, WORD, "Mode 0, 1 or 2", &format!("Mode {}", raw.mode()));
    }
    if raw.rsvd() != 0 {
        wrong += 1;
        let found = format!("Rsvd {:#x}", raw.rsvd());
        findings.report(requirement!("SDP-6.3.8.3-1"), unit, WORD, "Rsvd 0", found);
    }
    if wrong > 0 {
        let expected = "28 zero bits, three bits of Mode, and the bit S";
        findings.report(requirement!("SDP-6.3.8-1"), unit, WORD, expected, format!("{:#010x}", raw.word.get()));
    }
}

fn master(_: &ConnectionState, unit: &Unit<'_>, view: &SdpView<'_>, findings: &mut Findings<'_>) {
    let Some(Change { from, to, by_sink }) = Change::of(view) else { return };
    // While the sender holds MSeqAck back, MSeqAck does not show which messages the sender has
    // received.
    let from = from.filter(|_| !view.sender_state().held_back);
    let (by, in_force) = (if by_sink { "Data Sink" } else { "Data Source" }, from.map_or("an unknown Mode", name));
    let found = || format!("a change to {} by the {by} in {in_force}", name(to));
    let mut breaks = |id, expected: &str| findings.report(id, unit, WORD, expected, found());
    let is_from = |due: Mode| from.is_none_or(|from| from == due);
    match to {
        Mode::Buffered if by_sink || !is_from(Mode::Combined) => {
            breaks(requirement!("SDP-6.3.8.2-2"), "BUFF_MODE from the Data Source in Combined Mode");
        }
        Mode::Combined if !is_from(if by_sink { Mode::Buffered } else { Mode::Pipelined }) => {
            let expected = "COMB_MODE from the Data Sink in Buffered Mode or from the Data Source in Pipelined Mode";
            breaks(requirement!("SDP-6.3.8.2-3"), expected);
        }
        Mode::Pipelined if by_sink || !is_from(Mode::Combined) => {
            breaks(requirement!("SDP-6.3.8.2-4"), "PIPE_MODE from the Data Source in Combined Mode");
        }
        _ => {}
    }
    if let Some(from) = from.filter(|from| (*from == Mode::Buffered) != by_sink) {
        let master = if from == Mode::Buffered { "Data Sink" } else { "Data Source" };
        breaks(requirement!("SDP-5-4"), &format!("a change by the {master}, the Mode Master"));
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;
    use weft_core::wire::sdp::Mid;

    use crate::rules::sdp::testing::proves;
    use crate::testing::sdp::{SdpScript, word};

    const TO_BUFFERED: u32 = 0;
    const TO_COMBINED: u32 = 2;
    const SINK_TO_COMBINED: u32 = 3;
    const TO_PIPELINED: u32 = 4;

    /// Sends ModeChanges. `words` has the sender and the 32-bit extended header of each ModeChange.
    /// Both endpoints receive all messages before the next ModeChange is sent.
    fn changes(words: &'static [(usize, u32)]) -> impl Fn(&mut SdpScript) {
        move |script: &mut SdpScript| {
            for (direction, value) in words {
                script.send(*direction, Mid::MODE_CHANGE, &word(*value), 0);
                script.both_receive_all();
            }
        }
    }

    #[test]
    fn a_word_of_figure_11() {
        proves(requirement!("SDP-6.3.8-1"), changes(&[(0, 0x24)]), changes(&[(0, TO_PIPELINED)]));
        proves(requirement!("SDP-6.3.8.3-1"), changes(&[(0, 0x14)]), changes(&[(0, 0x06)]));
        proves(requirement!("SDP-6.3.8.2-1"), changes(&[(0, 0x06)]), changes(&[(0, TO_PIPELINED)]));
        proves(requirement!("SDP-6.3.8.2-5"), changes(&[(0, 0x0e)]), changes(&[(0, TO_BUFFERED)]));
    }

    #[test]
    fn a_mode_of_the_master() {
        let to_buffered_by_the_sink = changes(&[(1, 1)]);
        proves(requirement!("SDP-6.3.8.2-2"), to_buffered_by_the_sink, changes(&[(1, TO_BUFFERED)]));
        let back = changes(&[(0, TO_BUFFERED), (1, SINK_TO_COMBINED)]);
        proves(requirement!("SDP-6.3.8.2-3"), changes(&[(1, SINK_TO_COMBINED)]), &back);
        let there_and_back = changes(&[(0, TO_PIPELINED), (0, TO_COMBINED)]);
        proves(requirement!("SDP-6.3.8.2-3"), changes(&[(0, TO_COMBINED)]), &there_and_back);
        let from_buffered = changes(&[(0, TO_BUFFERED), (0, TO_PIPELINED)]);
        proves(requirement!("SDP-6.3.8.2-4"), from_buffered, changes(&[(0, TO_PIPELINED), (1, TO_PIPELINED)]));
        let by_the_slave = changes(&[(0, TO_BUFFERED), (0, TO_COMBINED)]);
        proves(requirement!("SDP-5-4"), by_the_slave, &back);
        proves(requirement!("SDP-5-4"), changes(&[(1, SINK_TO_COMBINED)]), there_and_back);
    }
}
