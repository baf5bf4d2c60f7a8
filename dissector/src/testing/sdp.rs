//! Synthetic SDP connections for tests. The octets have the layout of the figures in section 6 of
//! the draft. The calls of a test are similar to a sequence diagram of the draft.

use weft_core::wire::sdp::{FieldOrder, Mid};

use super::{Wire, fpdu, hello, hex};

/// The opcode of a Send. The next constant is the opcode of a Send with Solicited Event.
const SEND: u8 = 3;
const SEND_SE: u8 = 5;

/// An SDP connection. The Connecting Peer sends in direction 0. Callers pass messages in figure
/// order, and this type converts them to the field order of the connection.
pub(crate) struct SdpScript {
    pub(crate) wire: Wire,
    /// MSN of the last Send of each peer.
    pub(crate) msn: [u32; 2],
    /// MSeq of the last message of each peer.
    pub(crate) mseq: [u32; 2],
    /// MSeq of the last message that each peer has received. The peer sends this number as MSeqAck.
    pub(crate) ack: [u32; 2],
    /// The value of Bufs in the next message. `flags` is the value of Flags in the next message.
    pub(crate) bufs: u16,
    pub(crate) flags: u8,
    pub(crate) order: FieldOrder,
    /// MSN of the last Read Request of each peer.
    reads: [u32; 2],
}

impl SdpScript {
    /// A connection without start-up frames. The Hello is sent in streaming mode, and the HelloAck
    /// in the first FPDU. Each of the two messages announces 16 buffers.
    pub(crate) fn bare() -> Self {
        Self::open(FieldOrder::Figure)
    }

    /// Like [`SdpScript::bare`], in field order `order`.
    pub(crate) fn open(order: FieldOrder) -> Self {
        Self::acknowledged_in(order, SEND_SE)
    }

    /// Like [`SdpScript::open`], with the HelloAck in a Send with opcode `opcode`.
    pub(crate) fn acknowledged_in(order: FieldOrder, opcode: u8) -> Self {
        let mut script = Self::with_hello(order, |_| {});
        script.send_octets(opcode, 1, &hello_ack());
        script
    }

    /// A connection on which only a Hello in streaming mode was sent. `change` modifies this Hello
    /// in figure order.
    pub(crate) fn with_hello(order: FieldOrder, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut octets = hello();
        change(&mut octets);
        let mut wire = Wire::connected();
        wire.send(0, &ordered(order, octets));
        Self::after_hello(wire, order)
    }

    /// Continues a connection on which the Hello was already sent, and sends the HelloAck.
    pub(crate) fn after(wire: Wire) -> Self {
        let mut script = Self::after_hello(wire, FieldOrder::Figure);
        script.send_octets(SEND_SE, 1, &hello_ack());
        script
    }

    /// Continues a connection on which the Hello was already sent.
    pub(crate) fn after_hello(wire: Wire, order: FieldOrder) -> Self {
        SdpScript { wire, msn: [0; 2], mseq: [0; 2], ack: [0; 2], bufs: 16, flags: 0, order, reads: [0; 2] }
    }

    /// Sends `message` in a Send with opcode `opcode`. The caller passes `message` in figure order.
    pub(crate) fn send_octets(&mut self, opcode: u8, direction: usize, message: &[u8]) {
        self.msn[direction] += 1;
        let octets = self.send_of(opcode, direction, &ordered(self.order, message.to_vec()));
        self.wire.send(direction, &octets);
    }

    /// The FPDU of a Send with the current MSN.
    fn send_of(&self, opcode: u8, direction: usize, message: &[u8]) -> Vec<u8> {
        let stag = if opcode == 4 || opcode == 6 { "11223344" } else { "00000000" };
        let msn = self.msn[direction];
        let mut ulpdu = hex(&format!("41 4{opcode:x} {stag} 00000000 {msn:08x} 00000000"));
        ulpdu.extend_from_slice(message);
        fpdu(&ulpdu)
    }

    /// Sends a message with an extended header and `payload` octets of payload. The Send has the
    /// opcode that section 14.2 requires.
    pub(crate) fn send(&mut self, direction: usize, mid: Mid, extension: &str, payload: usize) {
        self.send_in(solicited(mid, self.flags), direction, mid, extension, payload);
    }

    /// Like [`SdpScript::send`], in a Send with opcode `opcode`.
    pub(crate) fn send_in(&mut self, opcode: u8, direction: usize, mid: Mid, extension: &str, payload: usize) {
        self.mseq[direction] = self.mseq[direction].wrapping_add(1);
        let message = self.message(direction, mid, extension, payload);
        self.send_octets(opcode, direction, &message);
    }

    /// Like [`SdpScript::send`], with a modified message.
    pub(crate) fn send_changed(
        &mut self,
        direction: usize,
        mid: Mid,
        extension: &str,
        change: impl FnOnce(&mut Vec<u8>),
    ) {
        self.mseq[direction] = self.mseq[direction].wrapping_add(1);
        let mut message = self.message(direction, mid, extension, 0);
        change(&mut message);
        self.send_octets(solicited(mid, self.flags), direction, &message);
    }

    /// Sends a Data message with `payload` octets of payload in two segments.
    pub(crate) fn send_in_two(&mut self, direction: usize, payload: usize) {
        self.mseq[direction] = self.mseq[direction].wrapping_add(1);
        self.msn[direction] += 1;
        let message = ordered(self.order, self.message(direction, Mid::DATA, "", payload));
        let (first, second) = message.split_at(20);
        let msn = self.msn[direction];
        for (control, offset, octets) in [("01", 0, first), ("41", first.len(), second)] {
            let mut ulpdu = hex(&format!("{control} 43 00000000 00000000 {msn:08x} {offset:08x}"));
            ulpdu.extend_from_slice(octets);
            self.wire.send(direction, &fpdu(&ulpdu));
        }
    }

    /// Like [`SdpScript::send`], but the message is not captured.
    pub(crate) fn lose(&mut self, direction: usize, mid: Mid, extension: &str, payload: usize) {
        self.mseq[direction] = self.mseq[direction].wrapping_add(1);
        self.msn[direction] += 1;
        let message = ordered(self.order, self.message(direction, mid, extension, payload));
        let octets = self.send_of(solicited(mid, self.flags), direction, &message);
        self.wire.lose(direction, &octets);
    }

    fn message(&self, direction: usize, mid: Mid, extension: &str, payload: usize) -> Vec<u8> {
        let (SdpScript { bufs, flags, .. }, mseq, ack) = (self, self.mseq[direction], self.ack[direction]);
        let len = 16 + hex(extension).len() + payload;
        let mid = mid.0;
        hex(&format!(
            "{bufs:04x} {flags:02x} {mid:02x} {len:08x} {mseq:08x} {ack:08x} {extension} {}",
            "5a".repeat(payload)
        ))
    }

    /// Sends an RDMA Write of `len` octets.
    pub(crate) fn write(&mut self, direction: usize, stag: u32, to: u64, len: usize) {
        let mut ulpdu = hex(&format!("c140 {stag:08x} {to:016x}"));
        ulpdu.resize(ulpdu.len() + len, 0x5a);
        self.wire.send(direction, &fpdu(&ulpdu));
    }

    /// Sends an RDMA Read Request for `len` octets.
    pub(crate) fn request_read(&mut self, direction: usize, stag: u32, to: u64, len: u32) {
        self.reads[direction] += 1;
        let msn = self.reads[direction];
        let sink = format!("{:08x} 0000000000000000", 0x5100 + msn);
        self.wire.send_ulpdu(
            direction,
            &format!("4141 00000000 00000001 {msn:08x} 00000000 {sink} {len:08x} {stag:08x} {to:016x}"),
        );
    }

    /// Sends an RDMA Read Request for `len` octets, and then the Read Response of the peer.
    pub(crate) fn reads(&mut self, direction: usize, stag: u32, to: u64, len: u32) {
        self.request_read(direction, stag, to, len);
        let sink = 0x5100 + self.reads[direction];
        let mut ulpdu = hex(&format!("c142 {sink:08x} 0000000000000000"));
        ulpdu.resize(ulpdu.len() + len as usize, 0x5a);
        self.wire.send(1 - direction, &fpdu(&ulpdu));
    }

    /// The endpoint that sends in `direction` receives all messages of its peer.
    pub(crate) fn receive_all(&mut self, direction: usize) {
        self.ack[direction] = self.mseq[1 - direction];
    }

    /// Both peers receive all messages.
    pub(crate) fn both_receive_all(&mut self) {
        (0..2).for_each(|direction| self.receive_all(direction));
    }
}

/// A HelloAck in figure order.
pub(crate) fn hello_ack() -> Vec<u8> {
    hex("0010 00 01 0000001c 00000000 00000000 0004 00 11 00001000 0004 0004")
}

/// The STag in the result of [`advert`]. `VA` is the tagged offset in the result.
pub(crate) const STAG: u32 = 0x1122_3344;
pub(crate) const VA: u64 = 0x1000;

/// The extended header of a SrcAvail (Len, STag, VA), or of a SinkAvail if `non_discards` is set.
pub(crate) fn advert(len: u32, non_discards: Option<u32>) -> String {
    let non_discards = non_discards.map_or(String::new(), |count| format!("{count:08x}"));
    format!("{len:08x} {STAG:08x} {VA:016x} {non_discards}")
}

/// A 32-bit word in hexadecimal.
pub(crate) fn word(value: u32) -> String {
    format!("{value:08x}")
}

/// The opcode of the Send that section 14.2 requires for a message.
fn solicited(mid: Mid, flags: u8) -> u8 {
    match mid {
        Mid::DIS_CONN | Mid::SRC_AVAIL | Mid::SINK_AVAIL | Mid::MODE_CHANGE => SEND,
        Mid::CH_RCV_BUF | Mid::CH_RCV_BUF_ACK => SEND,
        Mid::DATA if flags & 3 == 0 => SEND,
        _ => SEND_SE,
    }
}

/// Converts a message from figure order to `order`. In mirrored order, the fields of each 32-bit
/// word are reversed.
pub(crate) fn ordered(order: FieldOrder, mut octets: Vec<u8>) -> Vec<u8> {
    if order == FieldOrder::Figure || octets.len() < 16 {
        return octets;
    }
    let mid = octets[3];
    // The order of the fields changes from Bufs, Flags, MID to MID, Flags, Bufs.
    octets[..4].rotate_left(2);
    octets[..2].reverse();
    let halves = |octets: &mut [u8], at: usize| {
        if let Some(word) = octets.get_mut(at..at + 4) {
            word.rotate_left(2);
        }
    };
    match mid {
        0x00 | 0x01 => {
            if let Some(word) = octets.get_mut(16..20) {
                let [high, low, rsvd, version] = [word[0], word[1], word[2], word[3]];
                word.copy_from_slice(&[version.rotate_left(4), rsvd, high, low]);
            }
            halves(&mut octets, if mid == 0 { 28 } else { 24 });
        }
        0x07 => {
            if let Some(word) = octets.get_mut(16..20) {
                let figure = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
                let mirrored = (figure & 1) << 31 | (figure >> 1 & 7) << 28 | figure >> 4;
                word.copy_from_slice(&mirrored.to_be_bytes());
            }
        }
        0x0d => halves(&mut octets, 20),
        _ => {}
    }
    octets
}
