//! Data of the hooks of SDP. A hook for outputs is called before the driver executes an output of
//! the state machine. A hook for received messages is called before the state machine processes a
//! message.
//!
//! A hook for outputs receives one correct output. The hook replaces this output by a changed
//! output, by several outputs, or by no output. If a hook adds or omits messages, the following
//! messages get a new MSeq. An MSeq that a deviation makes wrong on purpose stays wrong.

use weft_core::wire::sdp::{FieldOrder, Mid, Mode, RawBsdh, RawHeader, RawModeChange};

use crate::hostile::context::segment::{change_word, octet, set_word, word};
use crate::sdp::{OpId, Output, Piece};
use crate::verbs::RemoteAddress;

/// Offset of the byte with MinV and MajV in a Hello and a HelloAck.
pub(in crate::hostile) const VERSION: usize = 19;
/// An id that belongs to no Work Request of the state machine.
pub(in crate::hostile) const UNKNOWN_OP: OpId = OpId(u64::MAX >> 2);
/// Four bytes of payload that do not come from a send of the user.
pub(in crate::hostile) const PAYLOAD: [u8; 4] = [0x5a; 4];

/// The data that the deviations of one connection keep between calls of hooks.
#[derive(Debug, Default)]
pub(crate) struct SdpDeviationState {
    /// A counter for any purpose, initially 0.
    pub(in crate::hostile) count: u32,
    /// STags of advertisements.
    pub(in crate::hostile) stags: Vec<u32>,
    /// Buffer that the last received SinkAvail advertises.
    pub(in crate::hostile) sink: Option<RemoteAddress>,
    /// User bytes that the last message with payload carried.
    pub(in crate::hostile) piece: Option<Piece>,
    /// Output to carry out later.
    pub(in crate::hostile) held: Option<Output>,
    /// MSeq of the last received message.
    pub(in crate::hostile) mseq_ack: u32,
    /// Headers of the last message that was sent.
    head: Vec<u8>,
}

/// One correct output, and the outputs that replace it.
#[derive(Debug)]
pub(crate) struct SdpOut<'a> {
    pub(in crate::hostile) order: FieldOrder,
    pub(in crate::hostile) out: Vec<Output>,
    pub(in crate::hostile) state: &'a mut SdpDeviationState,
    /// Whether the correct output is a HelloAck.
    is_hello_ack: bool,
}

/// A message that is about to be sent. All offsets are offsets in figure order
/// ([`FieldOrder::Figure`]), in bytes from the start of the message.
pub(in crate::hostile) struct OutMessage<'a> {
    order: FieldOrder,
    /// All headers. A deviation can append payload.
    pub(in crate::hostile) head: &'a mut Vec<u8>,
    pub(in crate::hostile) payload: &'a mut Option<Piece>,
    pub(in crate::hostile) solicited: &'a mut bool,
    pub(in crate::hostile) invalidate: &'a mut Option<u32>,
}

impl<'a> SdpOut<'a> {
    pub(crate) fn right(order: FieldOrder, output: Output, state: &'a mut SdpDeviationState) -> Self {
        let is_hello_ack = mid_of(&output, order) == Some(Mid::HELLO_ACK);
        SdpOut { order, out: vec![output], state, is_hello_ack }
    }

    /// Returns the outputs. `right` is true if the correct output is a message with MSeq. If
    /// `right` is true and exactly one of the outputs has MSeq, this output keeps its MSeq.
    /// Otherwise all outputs with MSeq get new values. A HelloAck has no MSeq of its own, even if a
    /// deviation changes its MID. `sent` is MSeq of the last message before these outputs. The
    /// function updates `sent`.
    pub(crate) fn numbered(mut self, right: bool, sent: &mut u32) -> Vec<Output> {
        let order = self.order;
        if self.is_hello_ack
            && let [Output::Send { head, .. }] = &self.out[..]
        {
            self.state.head.clone_from(head);
            return self.out;
        }
        let counted: Vec<&mut Output> = self.out.iter_mut().filter(|output| is_counted(output, order)).collect();
        let keeps = right && counted.len() == 1;
        for output in counted {
            *sent = sent.wrapping_add(1);
            let Output::Send { head, .. } = output else { continue };
            if !keeps {
                set_word(head, 8, *sent);
            }
            self.state.head.clone_from(head);
        }
        self.out
    }

    /// Returns the MID of the correct message. Returns `None` if the correct output is not a
    /// message.
    pub(in crate::hostile) fn mid(&self) -> Option<Mid> {
        mid_of(self.out.first()?, self.order)
    }

    /// Applies a change to each message.
    pub(in crate::hostile) fn each(&mut self, mut change: impl FnMut(&mut OutMessage<'_>)) {
        let order = self.order;
        for output in &mut self.out {
            match output {
                Output::Send { head, payload, solicited, invalidate, .. } => {
                    change(&mut OutMessage { order, head, payload, solicited, invalidate });
                }
                Output::Streaming(head) if mid(head, order) == Some(Mid::HELLO) => {
                    let (payload, solicited, invalidate) = (&mut None, &mut false, &mut None);
                    change(&mut OutMessage { order, head, payload, solicited, invalidate });
                }
                _ => {}
            }
        }
    }

    /// Applies a change to each message with one of these MIDs.
    pub(in crate::hostile) fn of(&mut self, mids: &[Mid], mut change: impl FnMut(&mut OutMessage<'_>)) {
        self.each(|message| {
            if message.mid().is_some_and(|mid| mids.contains(&mid)) {
                change(message);
            }
        });
    }

    /// Drops messages with this MID.
    pub(in crate::hostile) fn suppress(&mut self, lost: Mid) {
        let order = self.order;
        self.out.retain(|output| mid_of(output, order) != Some(lost));
    }

    /// Returns whether the correct output is a message with payload.
    pub(in crate::hostile) fn has_payload(&self) -> bool {
        matches!(self.out.first(), Some(Output::Send { payload: Some(_), .. }))
    }

    /// If the correct output is a message with this MID, sends the messages `more` after it. Each
    /// message in `more` has a MID and the bytes after the base header (BSDH).
    pub(in crate::hostile) fn follow(&mut self, mid: Mid, more: &[(Mid, &[u8])]) {
        let Some(Output::Send { head, .. }) = self.out.first().filter(|_| self.mid() == Some(mid)) else { return };
        let like = head.clone();
        let more = more.iter().map(|(mid, rest)| message(&like, self.order, *mid, rest));
        self.out.extend(more);
    }

    /// Composes a message with this MID that follows the last sent message. `rest` is the bytes
    /// after the BSDH.
    pub(in crate::hostile) fn compose(&self, mid: Mid, rest: &[u8]) -> Output {
        let like = if self.state.head.is_empty() { &[0; 16] } else { &self.state.head[..] };
        message(like, self.order, mid, rest)
    }

    /// Returns true only on the first call. Uses `count`.
    pub(in crate::hostile) fn once(&mut self) -> bool {
        std::mem::replace(&mut self.state.count, 1) == 0
    }

    /// Encodes the extended header of a ModeChange.
    pub(in crate::hostile) fn mch(&self, mode: Mode, s: bool) -> Vec<u8> {
        let mut octets = Vec::new();
        weft_core::wire::sdp::ModeChange { mode, s }.to_raw().append(self.order, &mut octets);
        octets
    }

    /// Returns whether the correct message is a ModeChange to this Mode for the sender's
    /// half-connection.
    pub(in crate::hostile) fn is_change_to(&self, mode: Mode) -> bool {
        let Some(Output::Send { head, .. }) = self.out.first() else { return false };
        self.mid() == Some(Mid::MODE_CHANGE) && head.get(16..) == Some(&self.mch(mode, false)[..])
    }
}

impl OutMessage<'_> {
    pub(in crate::hostile) fn mid(&self) -> Option<Mid> {
        mid(self.head, self.order)
    }

    /// Changes the byte at this offset.
    pub(in crate::hostile) fn octet(&mut self, figure: usize, change: impl FnOnce(&mut u8)) {
        octet(self.head, self.order.wire_range(figure..figure + 1).start, change);
    }

    /// Sets MinV and MajV in a Hello or HelloAck. The mirrored field order swaps the two halves of
    /// this byte.
    pub(in crate::hostile) fn version(&mut self, minv: u8, majv: u8) {
        let version = match self.order {
            FieldOrder::Figure => minv << 4 | majv,
            FieldOrder::Mirrored => majv << 4 | minv,
        };
        self.octet(VERSION, |octet| *octet = version);
    }

    /// Sets the 16 bits at this offset.
    pub(in crate::hostile) fn half(&mut self, figure: usize, value: u16) {
        let place = self.order.wire_range(figure..figure + 2);
        if let Some(field) = self.head.get_mut(place) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Returns the 16 bits at this offset.
    pub(in crate::hostile) fn half_at(&self, figure: usize) -> u16 {
        let field = self.head.get(self.order.wire_range(figure..figure + 2)).and_then(|field| field.first_chunk());
        field.map_or(0, |field| u16::from_be_bytes(*field))
    }

    /// Changes the 32 bits at this offset.
    pub(in crate::hostile) fn word(&mut self, at: usize, change: impl FnOnce(u32) -> u32) {
        change_word(self.head, at, change);
    }

    /// Changes Rsvd, Mode and S of a ModeChange.
    pub(in crate::hostile) fn mode_change(&mut self, change: impl FnOnce(u32, u8, bool) -> (u32, u8, bool)) {
        let Some((raw, _)) = self.head.get(16..).and_then(|rest| RawModeChange::read(rest, self.order)) else { return };
        let (rsvd, mode, s) = change(raw.rsvd(), raw.mode(), raw.s());
        self.head.truncate(16);
        RawModeChange::new(rsvd, mode, s).append(self.order, self.head);
    }

    /// Sets the length of the headers in bytes, and adjusts Len.
    pub(in crate::hostile) fn resize(&mut self, len: usize) {
        self.head.resize(len, 0);
        let payload = self.payload.map_or(0, |piece| piece.len);
        self.word(4, |_| u32::try_from(len).unwrap_or(u32::MAX).saturating_add(payload));
    }
}

/// Composes a message with the BSDH of another message, but with this MID and these bytes after the
/// BSDH.
fn message(like: &[u8], order: FieldOrder, mid: Mid, rest: &[u8]) -> Output {
    let mut head = like.get(..16).unwrap_or(like).to_vec();
    head.extend_from_slice(rest);
    let (payload, invalidate) = (&mut None, &mut None);
    let mut solicited = crate::sdp::is_solicited(mid);
    let mut message = OutMessage { order, head: &mut head, payload, solicited: &mut solicited, invalidate };
    message.octet(2, |flags| *flags = 0);
    message.octet(3, |octet| *octet = mid.0);
    message.resize(16 + rest.len());
    Output::Send { op: None, head, payload: None, solicited, invalidate: None }
}

/// Returns whether the output is a message that has its own MSeq. A HelloAck has no MSeq of its
/// own.
pub(crate) fn is_counted(output: &Output, order: FieldOrder) -> bool {
    matches!(output, Output::Send { .. }) && mid_of(output, order) != Some(Mid::HELLO_ACK)
}

fn mid_of(output: &Output, order: FieldOrder) -> Option<Mid> {
    match output {
        Output::Send { head, .. } | Output::Streaming(head) => mid(head, order),
        _ => None,
    }
}

fn mid(head: &[u8], order: FieldOrder) -> Option<Mid> {
    let is_mpa = head.starts_with(b"MPA ");
    head.get(order.wire_range(3..4).start).filter(|_| head.len() >= 16 && !is_mpa).map(|mid| Mid(*mid))
}

/// A received message, before it is checked.
#[derive(Debug)]
pub(crate) struct SdpArrived<'a> {
    pub(crate) order: FieldOrder,
    pub(crate) octets: Vec<u8>,
    /// STag that the message invalidated.
    pub(crate) invalidated: Option<u32>,
    pub(crate) state: &'a mut SdpDeviationState,
}

impl SdpArrived<'_> {
    pub(in crate::hostile) fn is(&self, wanted: Mid) -> bool {
        mid(&self.octets, self.order) == Some(wanted)
    }

    /// Returns the byte at this offset in figure order ([`FieldOrder::Figure`]).
    pub(in crate::hostile) fn octet(&self, figure: usize) -> u8 {
        self.octets.get(self.order.wire_range(figure..figure + 1).start).copied().unwrap_or(0)
    }

    pub(in crate::hostile) fn set_octet(&mut self, figure: usize, value: u8) {
        octet(&mut self.octets, self.order.wire_range(figure..figure + 1).start, |octet| *octet = value);
    }

    /// Returns the 16 bits at this offset.
    pub(in crate::hostile) fn half(&self, figure: usize) -> u16 {
        let field = self.octets.get(self.order.wire_range(figure..figure + 2)).and_then(|field| field.first_chunk());
        field.map_or(0, |field| u16::from_be_bytes(*field))
    }

    pub(in crate::hostile) fn set_half(&mut self, figure: usize, value: u16) {
        let place = self.order.wire_range(figure..figure + 2);
        if let Some(field) = self.octets.get_mut(place) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Returns whether this is a ModeChange to this Mode for the sender's half-connection.
    pub(in crate::hostile) fn is_change_to(&self, mode: Mode) -> bool {
        let rest = self.octets.get(RawBsdh::LEN..).unwrap_or_default();
        let change = RawModeChange::read(rest, self.order).filter(|_| self.is(Mid::MODE_CHANGE));
        change.is_some_and(|(raw, _)| !raw.s() && Mode::from_value(raw.mode()) == Some(mode))
    }

    pub(in crate::hostile) fn word(&self, at: usize) -> u32 {
        word(&self.octets, at)
    }

    pub(in crate::hostile) fn set_word(&mut self, at: usize, value: u32) {
        set_word(&mut self.octets, at, value);
    }

    /// If the message is an advertisement with this MID, stores its STag.
    pub(in crate::hostile) fn note(&mut self, mid: Mid) {
        if self.is(mid) {
            let stag = self.word(20);
            self.state.stags.push(stag);
        }
    }

    /// Turns the message into an empty Data message. Then only Bufs, MSeq and MSeqAck have an
    /// effect.
    pub(in crate::hostile) fn ignore(&mut self) {
        self.octets.truncate(16);
        self.set_octet(2, 0);
        self.set_octet(3, Mid::DATA.0);
        self.set_word(4, 16);
        self.invalidated = None;
    }

    /// Makes the message invalid. The state machine then ends the connection.
    pub(in crate::hostile) fn refuse(&mut self) {
        match mid(&self.octets, self.order) {
            // Make MajV invalid.
            Some(Mid::HELLO | Mid::HELLO_ACK) => self.set_octet(19, 0x12),
            _ => self.set_octet(3, 0x0f),
        }
    }
}

/// Makes a message with this MID invalid if `bad` returns true for this message.
pub(in crate::hostile) fn refuse(arrived: &mut SdpArrived<'_>, mid: Mid, bad: impl Fn(&SdpArrived<'_>) -> bool) {
    if arrived.is(mid) && bad(arrived) {
        arrived.refuse();
    }
}

/// Ignores a message with this MID, except for Bufs, MSeq and MSeqAck.
pub(in crate::hostile) fn ignore(arrived: &mut SdpArrived<'_>, mid: Mid) {
    if arrived.is(mid) {
        arrived.ignore();
    }
}
