//! Passes the synthetic TCP streams of one connection to the dissector, in various segments.

use etherparse::PacketBuilder;
use weft_core::wire::mpa::{Framing, fpdu};
use weft_dissector::link_type::RAW_IP;
use weft_dissector::output::json::JsonWriter;
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, FrameNumber, Sink, parse};

const PORTS: [u16; 2] = [49152, 4210];
const FIRST: [u32; 2] = [u32::MAX - 700, 5000];

/// The bytes of the fuzzer. All choices depend on these bytes. After the last byte, each further
/// byte is 0.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl<'a> Choices<'a> {
    pub(crate) fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes([self.octet(), self.octet(), self.octet(), self.octet()])
    }

    pub(crate) fn octets(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// The units of each direction as JSON. Number and time of the frame are 0, so that results with
/// different segments can be compared.
#[derive(Default)]
struct Units {
    json: JsonWriter,
    lines: [Vec<String>; 2],
}

impl Sink for Units {
    fn unit(&mut self, unit: &Unit<'_>) {
        let mut out = Vec::new();
        let parsed = parse::Unit { frame: FrameNumber::NONE, time: 0, ..**unit };
        let unit = Unit { parsed: &parsed, context: unit.context };
        self.json.write(&unit, &mut out).expect("writing to a vector cannot fail");
        self.lines[usize::from(unit.direction)].push(String::from_utf8(out).expect("JSON is text"));
    }
}

/// A connection whose segments go to a dissector.
#[derive(Default)]
struct Wire {
    dissector: Dissector,
    units: Units,
    frames: u64,
}

impl Wire {
    fn opened() -> Self {
        let mut wire = Wire::default();
        wire.segment(0, FIRST[0] - 1, 2, &[], 0);
        wire.segment(1, FIRST[1] - 1, 0x12, &[], 0);
        wire
    }

    /// Passes a segment to the dissector. The last `cut` bytes of the frame are not captured.
    fn segment(&mut self, from: usize, seq: u32, flags: u8, octets: &[u8], cut: usize) {
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let mut builder =
            PacketBuilder::ipv4(addresses[from], addresses[1 - from], 64).tcp(PORTS[from], PORTS[1 - from], seq, 1000);
        if flags & 1 != 0 {
            builder = builder.fin();
        }
        if flags & 2 != 0 {
            builder = builder.syn();
        }
        if flags & 4 != 0 {
            builder = builder.rst();
        }
        if flags & 16 != 0 {
            builder = builder.ack(1);
        }
        let mut frame = Vec::new();
        builder.write(&mut frame, octets).expect("writing to a vector cannot fail");
        self.frames += 1;
        let captured = &frame[..frame.len() - cut.min(frame.len())];
        let wire_len = u32::try_from(frame.len()).expect("segments here are short");
        let frame = Frame {
            number: self.frames.into(),
            time: self.frames,
            interface: 0,
            link_type: RAW_IP,
            octets: captured,
            wire_len,
        };
        self.dissector.frame(&frame, &mut self.units);
    }

    fn units(mut self) -> [Vec<String>; 2] {
        self.dissector.finish(&mut self.units);
        self.units.lines
    }
}

/// Makes an MPA Request or Reply that enables CRC. The dissector then recognises FPDUs by their
/// CRCs.
fn startup(reply: bool, markers: bool) -> Vec<u8> {
    let mut frame = if reply { b"MPA ID Rep Frame".to_vec() } else { b"MPA ID Req Frame".to_vec() };
    frame.extend_from_slice(&[if markers { 0xc0 } else { 0x40 }, 1, 0, 2, 7, 7]);
    frame
}

/// Makes the stream of one direction: an MPA Request or Reply, then correct FPDUs, FPDUs with wrong
/// bytes, and random bytes. `wanted` has two flags: whether the MPA frame requests markers, and
/// whether the FPDUs have markers.
fn stream(choices: &mut Choices<'_>, reply: bool, wanted: [bool; 2]) -> Vec<u8> {
    let mut out = startup(reply, wanted[0]);
    let zero = out.len();
    for _ in 0..choices.octet() % 12 {
        let position = (out.len() - zero) as u64;
        let kind = choices.octet();
        let head: &[u8] = if kind & 8 != 0 {
            &[0xc1, 0x40, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        } else {
            &[0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        };
        let length = usize::from(choices.octet()) * usize::from(kind >> 4 & 7);
        let payload = choices.octets(length);
        let framing = Framing { markers: wanted[1], crc: kind & 7 != 6 };
        let from = out.len();
        match kind & 7 {
            0 => out.extend_from_slice(payload),
            _ => drop(fpdu::emit(position, &[head, payload], framing, &mut out)),
        }
        if kind & 7 == 5 && from < out.len() {
            let at = from + usize::from(choices.octet()) % (out.len() - from);
            out[at] ^= choices.octet();
        }
    }
    out
}

/// Passes both streams to a dissector, in segments with lengths from `cuts`. Returns the units.
fn in_segments(streams: &[Vec<u8>; 2], mut cuts: Choices<'_>) -> [Vec<String>; 2] {
    let mut wire = Wire::opened();
    let mut at = [0usize; 2];
    let mut from = 0;
    while (0..2).any(|from| at[from] < streams[from].len()) {
        let cut = cuts.octet();
        let length = if cut == 0 { 1400 } else { usize::from(cut & 0x7f).max(1) };
        let end = (at[from] + length).min(streams[from].len());
        if at[from] < end {
            let seq = FIRST[from].wrapping_add(u32::try_from(at[from]).expect("streams here are short"));
            wire.segment(from, seq, 16, &streams[from][at[from]..end], 0);
            at[from] = end;
        }
        // The first segment is from the initiator. The direction changes after a segment if its
        // `cut` requires this, or if the stream has ended.
        from = if cut & 0x80 != 0 || at[from] == streams[from].len() { 1 - from } else { from };
    }
    wire.units()
}

/// Checks that the units do not depend on how the streams are split into segments.
pub fn any_split(data: &[u8]) {
    let mut choices = Choices(data);
    let cuts = choices.octets(48);
    let flags = choices.octet();
    let (forth, back) = (flags & 1 != 0, flags & 2 != 0);
    let streams = [stream(&mut choices, false, [forth, back]), stream(&mut choices, true, [back, forth])];
    assert_eq!(in_segments(&streams, Choices(cuts)), in_segments(&streams, Choices(&[])));
}

/// Passes segments with arbitrary sequence numbers, flags and truncation to a dissector.
pub fn any_segments(data: &[u8]) {
    let mut choices = Choices(data);
    let mut wire = Wire::default();
    let base = [choices.u32(), choices.u32()];
    let streams = [stream(&mut choices, false, [true, false]), stream(&mut choices, true, [false, true])];
    while !choices.0.is_empty() {
        let (kind, offset, length) = (choices.octet(), choices.octet(), choices.octet());
        let from = usize::from(kind & 1);
        let octets = if kind & 2 != 0 {
            choices.octets(usize::from(length))
        } else {
            let at = (usize::from(offset) * 8).min(streams[from].len());
            &streams[from][at..(at + usize::from(length) * 4).min(streams[from].len())]
        };
        let far = if kind & 0xc0 == 0xc0 { choices.u32() } else { 0 };
        let seq = base[from].wrapping_add(u32::from(offset) * 8).wrapping_add(far);
        let flags = if kind & 0x30 == 0x30 { choices.octet() } else { 16 };
        let cut = if kind & 0x0c == 0x0c { usize::from(choices.octet()) } else { 0 };
        wire.segment(from, seq, flags, octets, cut);
    }
    wire.units();
}
