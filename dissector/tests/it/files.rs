//! These tests write the frames of a real connection in every supported file format. The dissector
//! must find the same units (start-up frames, FPDUs) as in a pcap file.
//!
//! The layouts of the files come from draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng, RFC 1761
//! (snoop), Microsoft's description of Network Monitor files, Endace's description of ERF, and the
//! xz file format 1.2 (with uncompressed chunks). For the other compressions, the tests use
//! libraries.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::io::{Cursor, Write};

use serde_json::Value;
use weft_dissector::Dissector;
use weft_dissector::source::Capture;

use crate::common::Units;
use crate::tunnels::{TUNNELS, connections, ethernet, without_offsets};

/// One Ethernet frame, as a record of a file.
#[derive(Clone)]
struct Record {
    /// Milliseconds after `BEGIN`. Every format can represent milliseconds exactly.
    after: u32,
    octets: Vec<u8>,
    wire_len: u32,
}

/// The time of the first frame: 2020-09-13 12:26:40 UTC, in seconds since 1970. The capture begins
/// 500 milliseconds later, because the start time in a Network Monitor file has milliseconds.
const BEGIN: u32 = 1_600_000_000;
const BEGIN_MILLISECONDS: u32 = 500;

impl Record {
    fn len(&self) -> u32 {
        u32::try_from(self.octets.len()).unwrap()
    }

    fn seconds(&self) -> u32 {
        BEGIN + (BEGIN_MILLISECONDS + self.after) / 1000
    }

    fn milliseconds(&self) -> u32 {
        (BEGIN_MILLISECONDS + self.after) % 1000
    }
}

fn le(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn be(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A pcap file. `per_millisecond` is the number of the file's time units in a millisecond.
fn pcap_with(words: fn(&[u32]) -> Vec<u8>, magic: u32, per_millisecond: u32, records: &[Record]) -> Vec<u8> {
    let version = if words(&[1])[0] == 1 { 0x0004_0002 } else { 0x0002_0004 };
    let mut file = words(&[magic, version, 0, 0, 65_535, 1]);
    for record in records {
        let fraction = record.milliseconds() * per_millisecond;
        file.extend(words(&[record.seconds(), fraction, record.len(), record.wire_len]));
        if magic == 0xa1b2_cd34 {
            // Records of the modified format also have the interface, the protocol and the packet
            // type.
            file.extend(words(&[2, 0]));
        }
        file.extend(&record.octets);
    }
    file
}

fn pcap(records: &[Record]) -> Vec<u8> {
    pcap_with(le, 0xa1b2_c3d4, 1_000, records)
}

fn pcap_of_nanoseconds(records: &[Record]) -> Vec<u8> {
    pcap_with(be, 0xa1b2_3c4d, 1_000_000, records)
}

fn modified_pcap(records: &[Record]) -> Vec<u8> {
    pcap_with(le, 0xa1b2_cd34, 1_000, records)
}

fn pcapng_with(words: fn(&[u32]) -> Vec<u8>, records: &[Record]) -> Vec<u8> {
    let block = |kind: u32, mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(4), 0);
        let total = u32::try_from(body.len() + 12).unwrap();
        [words(&[kind, total]), body, words(&[total])].concat()
    };
    let halves = if words(&[1])[0] == 1 { (1, 1) } else { (1 << 16, 1 << 16) };
    let mut file = block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, halves.0, u32::MAX, u32::MAX]));
    file.extend(block(1, words(&[halves.1, 0])));
    for record in records {
        let microseconds = (u64::from(record.seconds()) * 1000 + u64::from(record.milliseconds())) * 1000;
        let (high, low) = ((microseconds >> 32) as u32, microseconds as u32);
        let head = words(&[0, high, low, record.len(), record.wire_len]);
        file.extend(block(6, [head, record.octets.clone()].concat()));
    }
    file
}

fn pcapng(records: &[Record]) -> Vec<u8> {
    pcapng_with(le, records)
}

fn pcapng_in_big_endian(records: &[Record]) -> Vec<u8> {
    pcapng_with(be, records)
}

fn snoop(records: &[Record]) -> Vec<u8> {
    let mut file = [&b"snoop\0\0\0"[..], &be(&[2, 4])].concat();
    for record in records {
        let padded = record.len().next_multiple_of(4);
        let time = [record.seconds(), record.milliseconds() * 1000];
        file.extend(be(&[record.wire_len, record.len(), 24 + padded, 0, time[0], time[1]]));
        file.extend(&record.octets);
        file.resize(file.len() + (padded - record.len()) as usize, 0);
    }
    file
}

/// Version 1 counts time in milliseconds, and version 2 in microseconds.
fn network_monitor(magic: &[u8; 4], version: [u8; 2], records: &[Record]) -> Vec<u8> {
    let one = version[1] == 1;
    let mut file = [&magic[..], &version, &[1, 0]].concat();
    // The start time is 2020-09-13 12:26:40.500, a Sunday.
    let begin = [2020, 9, 0, 13, 12, 26, 40, u16::try_from(BEGIN_MILLISECONDS).unwrap()];
    file.extend(begin.iter().flat_map(|half| half.to_le_bytes()));
    let mut places = Vec::new();
    let mut frames = Vec::new();
    for record in records {
        places.push(u32::try_from(128 + frames.len()).unwrap());
        if one {
            let lens = record.wire_len | record.len() << 16;
            frames.extend(le(&[record.after, lens]));
        } else {
            frames.extend(le(&[record.after * 1000, 0, record.wire_len, record.len()]));
        }
        frames.extend(&record.octets);
        // The trailer has the media type. From version 2.2 on, it also has the process. From
        // version 2.3 on, it also has the time and the time zone.
        let trailer = if one { 0 } else { [0, 2, 6, 15][usize::from(version[0])] };
        let mut rest = vec![1, 0];
        rest.resize(15, 0);
        frames.extend(&rest[..trailer]);
    }
    let table = u32::try_from(128 + frames.len()).unwrap();
    file.extend(le(&[table, u32::try_from(places.len() * 4).unwrap()]));
    file.resize(128, 0);
    [file, frames, le(&places)].concat()
}

fn network_monitor_1(records: &[Record]) -> Vec<u8> {
    network_monitor(b"RTSS", [1, 1], records)
}

fn network_monitor_2(records: &[Record]) -> Vec<u8> {
    network_monitor(b"GMBU", [0, 2], records)
}

fn network_monitor_2_3(records: &[Record]) -> Vec<u8> {
    network_monitor(b"GMBU", [3, 2], records)
}

/// The records have type 2 (Ethernet). In this type, a byte of offset and a byte of padding precede
/// the frame.
fn erf(records: &[Record]) -> Vec<u8> {
    let mut file = Vec::new();
    for record in records {
        let fraction = (u64::from(record.milliseconds()) << 32).div_ceil(1000);
        file.extend(le(&[u32::try_from(fraction).unwrap(), record.seconds()]));
        file.extend([2, 4]);
        let (total, wire_len) = (u16::try_from(18 + record.len()).unwrap(), u16::try_from(record.wire_len).unwrap());
        file.extend([total.to_be_bytes(), [0, 0], wire_len.to_be_bytes(), [0, 0]].concat());
        file.extend(&record.octets);
    }
    file
}

fn gzip(records: &[Record]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(&pcapng(records)).unwrap();
    out.finish().unwrap()
}

fn zstd(records: &[Record]) -> Vec<u8> {
    zstd::encode_all(&pcap(records)[..], 1).unwrap()
}

fn bzip2(records: &[Record]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(&snoop(records)).unwrap();
    out.finish().unwrap()
}

fn lz4(records: &[Record]) -> Vec<u8> {
    let blocks = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut out = lz4_flex::frame::FrameEncoder::with_frame_info(blocks, Vec::new());
    out.write_all(&pcap_of_nanoseconds(records)).unwrap();
    out.finish().unwrap()
}

fn xz(records: &[Record]) -> Vec<u8> {
    let plain = pcapng_in_big_endian(records);
    let checked = |octets: &[u8]| [octets, &crc32fast::hash(octets).to_le_bytes()].concat();
    let aligned = |mut octets: Vec<u8>| {
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    };
    // The check is a CRC-32. The only filter is LZMA2, with a dictionary of 1 MiB.
    let flags = [0, 1];
    let header = checked(&[2, 0, 0x21, 1, 16, 0, 0, 0]);
    let mut chunks = Vec::new();
    for (number, chunk) in plain.chunks(1 << 16).enumerate() {
        chunks.push(if number == 0 { 1 } else { 2 });
        chunks.extend(u16::try_from(chunk.len() - 1).unwrap().to_be_bytes());
        chunks.extend(chunk);
    }
    chunks.push(0);
    let unpadded = header.len() + chunks.len() + 4;
    let mut index = vec![0, 1];
    for mut number in [unpadded, plain.len()] {
        while number > 0x7f {
            index.push(0x80 | (number & 0x7f) as u8);
            number >>= 7;
        }
        index.push(number as u8);
    }
    let index = checked(&aligned(index));
    let backward = le(&[u32::try_from(index.len() / 4 - 1).unwrap()]);
    let footer = [&backward[..], &flags].concat();
    [
        b"\xfd7zXZ\0".to_vec(),
        checked(&flags),
        header,
        aligned(chunks),
        crc32fast::hash(&plain).to_le_bytes().to_vec(),
        index,
        crc32fast::hash(&footer).to_le_bytes().to_vec(),
        footer,
        b"YZ".to_vec(),
    ]
    .concat()
}

/// Writes a file of one format.
type Writer = fn(&[Record]) -> Vec<u8>;

/// Every format, with the number of bytes after the last frame, or `None` for a compressed file.
const FORMATS: &[(&str, Writer, Option<usize>)] = &[
    ("pcap of nanoseconds, big-endian", pcap_of_nanoseconds, Some(0)),
    ("modified pcap", modified_pcap, Some(0)),
    ("pcapng", pcapng, Some(4)),
    ("pcapng, big-endian", pcapng_in_big_endian, Some(4)),
    ("snoop", snoop, Some(0)),
    ("Network Monitor 1", network_monitor_1, None),
    ("Network Monitor 2.0", network_monitor_2, None),
    ("Network Monitor 2.3", network_monitor_2_3, None),
    ("ERF", erf, Some(0)),
    ("gzip", gzip, None),
    ("zstd", zstd, None),
    ("xz", xz, None),
    ("bzip2", bzip2, None),
    ("lz4", lz4, None),
];

/// Reads a file. Returns its units, and the note of the reader if the file ends early.
fn read(file: Vec<u8>) -> (Vec<Value>, Option<String>) {
    let mut capture = Capture::from_reader(Box::new(Cursor::new(file))).unwrap();
    let mut dissector = Dissector::default();
    let mut units = Units::default();
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut units);
    }
    dissector.finish(&mut units);
    units.all.iter_mut().for_each(without_offsets);
    (units.all, capture.note().map(str::to_owned))
}

/// Returns three captures of one connection: over IPv4, over IPv6, and in two nested tunnels. Each
/// frame has at most `snap_len` bytes.
fn captures(snap_len: usize) -> [Vec<Record>; 3] {
    let [(v4, _), (v6, _)] = connections("probe-ops-mpa1-crc.pcap", 20);
    let (_, tunnel) = TUNNELS[0];
    let nested = v4.iter().map(|packet| tunnel(&tunnel(packet))).collect();
    [v4, v6, nested].map(|packets: Vec<Vec<u8>>| {
        let record = |(after, packet): (u32, &Vec<u8>)| {
            let octets = ethernet(packet);
            let wire_len = u32::try_from(octets.len()).unwrap();
            Record { after, octets: octets[..octets.len().min(snap_len)].to_vec(), wire_len }
        };
        (0..).zip(&packets).map(record).collect()
    })
}

#[test]
fn every_file_format_leads_to_the_same_units() {
    for snap_len in [usize::MAX, 200] {
        for records in captures(snap_len) {
            let (expected, note) = read(pcap(&records));
            assert_eq!(note, None);
            let fpdus = expected.iter().filter(|unit| unit["kind"] == "fpdu").count();
            assert!(fpdus >= 20, "{fpdus} FPDUs, with a snap length of {snap_len}");
            for (name, write, _) in FORMATS {
                assert!(read(write(&records)) == (expected.clone(), None), "{name}, snap length {snap_len}");
            }
        }
    }
}

#[test]
fn every_cut_file_format_gives_its_readable_frames() {
    let [mut records, ..] = captures(usize::MAX);
    let packets = records.len();
    // Repeat all packets, as in a network with a loop. The file must be long enough, so that each
    // compressor makes several blocks.
    while records.iter().map(|record| record.octets.len()).sum::<usize>() < 1 << 20 {
        records.extend_from_within(..packets);
    }
    for (number, record) in (0..).zip(&mut records) {
        record.after = number;
    }
    let last = records.last().unwrap().octets.len();
    let (expected, _) = read(pcap(&records[..records.len() - 1]));
    for (name, write, after) in FORMATS {
        let mut file = write(&records);
        // A plain file loses half of its last frame. A compressed file loses a third of its bytes.
        let missing = after.map_or(file.len() / 3, |after| after + last / 2);
        file.truncate(file.len() - missing);
        let (found, note) = read(file);
        assert!(note.is_some(), "{name}: not reported");
        assert!(found.len() > 20, "{name}: {} units", found.len());
        let frames = |units: &[Value]| units.last().map_or(0, |unit| unit["frame"].as_u64().unwrap());
        if after.is_some() {
            assert!(frames(&found) >= frames(&expected), "{name}: {} of {} frames", frames(&found), frames(&expected));
        }
        let same = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
        assert!(same + 1 >= found.len().min(expected.len()), "{name}: {same} of {} units are right", found.len());
    }
}
