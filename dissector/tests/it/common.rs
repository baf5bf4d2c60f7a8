//! Builds streams and frames for the tests, and collects the units of the dissector. A unit is what
//! the dissector finds in a stream, such as a start-up frame or an FPDU.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::path::Path;

use serde_json::Value;
use weft_core::wire::mpa::{Framing, fpdu};
use weft_dissector::output::json::JsonWriter;
use weft_dissector::source::{Capture, Frame};
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Sink};

/// The link type of raw IP packets.
pub(crate) const RAW: u16 = 101;

/// Converts hexadecimal digits to octets. Ignores blanks.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

/// Collects every unit as a JSON object.
#[derive(Default)]
pub(crate) struct Units {
    json: JsonWriter,
    pub(crate) all: Vec<Value>,
}

impl Sink for Units {
    fn unit(&mut self, unit: &Unit<'_>) {
        let mut out = Vec::new();
        self.json.write(unit, &mut out).unwrap();
        self.all.push(serde_json::from_slice(&out).unwrap());
    }
}

/// A start-up frame of RFC 5044: a Reply if `reply` is true, otherwise a Request.
pub(crate) fn startup(reply: bool, flags: u8, revision: u8, private_data: &[u8]) -> Vec<u8> {
    let mut frame = if reply { b"MPA ID Rep Frame".to_vec() } else { b"MPA ID Req Frame".to_vec() };
    frame.extend_from_slice(&[flags, revision]);
    frame.extend_from_slice(&u16::try_from(private_data.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(private_data);
    frame
}

/// The ULPDU of a Send that has one DDP segment.
pub(crate) fn send(msn: u32, payload: &[u8]) -> Vec<u8> {
    let mut ulpdu = hex("41 43 00000000 00000000");
    ulpdu.extend_from_slice(&msn.to_be_bytes());
    ulpdu.extend_from_slice(&[0; 4]);
    ulpdu.extend_from_slice(payload);
    ulpdu
}

/// The octets of consecutive FPDUs, one for each of `ulpdus`.
pub(crate) fn fpdus(ulpdus: &[Vec<u8>], markers: bool, crc: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for ulpdu in ulpdus {
        let position = out.len() as u64;
        fpdu::emit(position, &[ulpdu], Framing { markers, crc }, &mut out).unwrap();
    }
    out
}

/// An IPv4 packet with a TCP segment. `from` is the sender, 0 or 1. The checksums are 0, as with
/// checksum offloading.
pub(crate) fn tcp(from: usize, seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = hex("4500 0000 0000 4000 40 06 0000");
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
    packet.extend_from_slice(&addresses[from]);
    packet.extend_from_slice(&addresses[1 - from]);
    let total = u16::try_from(40 + payload.len()).unwrap();
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&tcp_header(from, seq, flags));
    packet.extend_from_slice(payload);
    packet
}

/// A TCP header without options. It has 20 octets.
pub(crate) fn tcp_header(from: usize, seq: u32, flags: u8) -> Vec<u8> {
    let ports: [u16; 2] = [49152, 4210];
    let mut header = ports[from].to_be_bytes().to_vec();
    header.extend_from_slice(&ports[1 - from].to_be_bytes());
    header.extend_from_slice(&seq.to_be_bytes());
    header.extend_from_slice(&[0, 0, 0, 0, 0x50, flags, 255, 255, 0, 0, 0, 0]);
    header
}

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A dissector that gets one frame at a time, and the units that it has delivered.
#[derive(Default)]
pub(crate) struct TestDissector {
    dissector: Dissector,
    units: Units,
    frames: u64,
}

impl TestDissector {
    /// Opens a connection. The SYN has sequence number 999, and the SYN-ACK has 1999. So the data
    /// of the two directions begins at 1000 and 2000.
    pub(crate) fn opened() -> Self {
        let mut dissector = TestDissector::default();
        dissector.packet(&tcp(0, 999, SYN, &[]));
        dissector.packet(&tcp(1, 1999, SYN | ACK, &[]));
        dissector
    }

    pub(crate) fn packet(&mut self, octets: &[u8]) {
        self.frame(RAW, octets, octets.len());
    }

    pub(crate) fn frame(&mut self, link_type: u16, octets: &[u8], wire_len: usize) {
        self.frame_on(0, link_type, octets, wire_len);
    }

    /// A frame from interface `interface` of the capture.
    pub(crate) fn frame_on(&mut self, interface: u32, link_type: u16, octets: &[u8], wire_len: usize) {
        self.frames += 1;
        let wire_len = u32::try_from(wire_len).unwrap();
        let frame = Frame { number: self.frames.into(), time: self.frames, interface, link_type, octets, wire_len };
        self.dissector.frame(&frame, &mut self.units);
    }

    /// The number of copies of connections that the dissector has joined with the original
    /// connections.
    pub(crate) fn joined(&self) -> u64 {
        self.dissector.joined().count
    }

    /// Sends octets in direction `from`. The first octet is at stream position `offset`.
    pub(crate) fn data(&mut self, from: usize, offset: usize, octets: &[u8]) {
        let seq = [1000, 2000][from] + u32::try_from(offset).unwrap();
        self.packet(&tcp(from, seq, ACK, octets));
    }

    pub(crate) fn finish(mut self) -> Vec<Value> {
        self.dissector.finish(&mut self.units);
        self.units.all
    }
}

/// For each unit of a direction, returns its kind and the value of its JSON key `key`. Port 49152
/// sends in direction 0.
pub(crate) fn unit_fields(units: &[Value], from: usize, key: &str) -> Vec<String> {
    let port = [":49152", ":4210"][from];
    let mine = units.iter().filter(|unit| unit["src"].as_str().is_some_and(|src| src.ends_with(port)));
    mine.map(|unit| format!("{} {}", unit["kind"].as_str().unwrap(), unit[key])).collect()
}

/// The units of a file in `captures/storage`.
pub(crate) fn storage_units(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/storage");
    let mut capture = Capture::open(&folder.join(name)).unwrap();
    let (mut found, mut dissector) = (Units::default(), Dissector::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut found);
    }
    dissector.finish(&mut found);
    found.all
}
