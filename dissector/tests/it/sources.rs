//! These tests read complete, truncated and damaged capture files of every supported format.
//!
//! The tests build the files octet by octet, with the layouts of draft-ietf-opsawg-pcap and
//! draft-ietf-opsawg-pcapng.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::io::{Cursor, Write};

use weft_dissector::source::{Capture, OpenError};

use crate::common::hex;

/// The number, time, link type, octets and wire length of a frame.
type FrameParts = (u64, u64, u16, Vec<u8>, u32);

fn open(octets: &[u8]) -> Result<Capture, OpenError> {
    Capture::from_reader(Box::new(Cursor::new(octets.to_vec())))
}

fn frames(octets: &[u8]) -> (Vec<FrameParts>, Option<String>) {
    let mut capture = open(octets).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = capture.next_frame() {
        all.push((frame.number.into(), frame.time, frame.link_type, frame.octets.to_vec(), frame.wire_len));
    }
    assert_eq!(capture.frames(), all.last().map_or(0, |frame: &FrameParts| frame.0));
    (all, capture.note().map(str::to_owned))
}

/// Writes numbers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.u32(*word)).collect()
    }

    fn pcap(self, magic: u32, records: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend(self.words(&[0, 0, 65_535, 113]));
        for (seconds, fraction, octets, wire_len) in records {
            file.extend(self.words(&[*seconds, *fraction, u32::try_from(octets.len()).unwrap(), *wire_len]));
            file.extend_from_slice(octets);
        }
        file
    }

    /// Returns a pcapng block. The function pads `body` to a multiple of four octets.
    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let total = u32::try_from(padded + 12).unwrap();
        let mut block = self.words(&[kind, total]);
        block.extend_from_slice(body);
        block.resize(8 + padded, 0);
        block.extend(self.u32(total));
        block
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend([self.u16(1), self.u16(0)].concat());
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    /// Returns the description of an interface. It can have the options if_tsresol (9) and
    /// if_tsoffset (14).
    fn interface(self, link_type: u16, snap_len: u32, resolution: Option<u8>, offset: Option<i64>) -> Vec<u8> {
        let mut body = [self.u16(link_type), self.u16(0)].concat();
        body.extend(self.u32(snap_len));
        if let Some(resolution) = resolution {
            body.extend([self.u16(9), self.u16(1)].concat());
            body.extend([resolution, 0, 0, 0]);
        }
        if let Some(offset) = offset {
            body.extend([self.u16(14), self.u16(8)].concat());
            body.extend(if self.big { offset.to_be_bytes() } else { offset.to_le_bytes() });
        }
        body.extend([0; 4]);
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, octets: &[u8], wire_len: u32) -> Vec<u8> {
        let len = u32::try_from(octets.len()).unwrap();
        let mut body = self.words(&[interface, (ticks >> 32) as u32, ticks as u32, len, wire_len]);
        body.extend_from_slice(octets);
        self.block(6, &body)
    }
}

const BOTH: [Order; 2] = [Order { big: false }, Order { big: true }];
const LITTLE: Order = Order { big: false };

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for order in BOTH {
        for (magic, nanoseconds) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let file = order.pcap(magic, &[(1, 2, b"abc", 3), (3, 999_999, b"", 60)]);
            let expected = vec![
                (1, 1_000_000_000 + 2 * nanoseconds, 113, b"abc".to_vec(), 3),
                (2, 3_000_000_000 + 999_999 * nanoseconds, 113, Vec::new(), 60),
            ];
            assert_eq!(frames(&file), (expected, None), "big-endian {} magic {magic:x}", order.big);
        }
    }
}

#[test]
fn a_pcap_that_ends_within_a_record_gives_its_frames() {
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    let (all, note) = frames(&file[..file.len() - 3]);
    assert_eq!(all[1], (2, 2_000_000_000, 113, b"e".to_vec(), 4));
    let note = note.unwrap();
    assert!(note.contains("truncated") && note.contains("byte 44") && note.contains("frame 1"), "{note}");
    for cut in 24..file.len() {
        let (all, note) = frames(&file[..cut]);
        assert_eq!(note.is_none(), cut == 24 || cut == 44, "{cut}");
        assert!(all.len() <= 2);
    }
}

/// A length field is larger than any record. The reader stops at this record, and does not allocate
/// memory for this length.
#[test]
fn a_damaged_length_stops_the_reading_with_a_note() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    file[44 + 8..44 + 12].copy_from_slice(&[0xff; 4]);
    let (all, note) = frames(&file);
    assert_eq!(all[0].3, b"abcd");
    assert!(note.is_some());
}

/// A length field is larger than any record, but the file really has this number of octets. The
/// reader nevertheless treats the record as damaged.
#[test]
fn a_record_that_is_longer_than_any_is_damage_and_no_frame() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    file[44 + 8..44 + 12].copy_from_slice(&LITTLE.u32(200 << 20));
    file.resize(65 << 20, 0);
    let (all, note) = frames(&file);
    assert_eq!(all.len(), 1);
    let note = note.unwrap();
    assert!(note.contains("damaged at byte 44, after frame 1") && note.contains("64 MiB"), "{note}");
}

#[test]
fn interfaces_are_not_remembered_without_end() {
    let one = LITTLE.interface(1, 0, None, None);
    let file = |count: usize| [LITTLE.section(), one.repeat(count), LITTLE.packet(65_535, 1, b"ab", 2)].concat();
    let (all, note) = frames(&file(65_536));
    assert_eq!((all.len(), note), (1, None));
    let (all, note) = frames(&file(65_537));
    let note = note.unwrap();
    assert!(all.is_empty() && note.contains("damaged") && note.contains("65536 interfaces"), "{note}");
}

#[test]
fn pcapng_in_both_byte_orders_with_interfaces_of_their_own_time() {
    for order in BOTH {
        let file = [
            order.section(),
            order.interface(1, 0, None, None),
            order.interface(101, 0, Some(9), None),
            // The times of this interface are in units of 2^-10 s, and the reader must add 100 s to
            // each time.
            order.interface(113, 0, Some(0x8a), Some(100)),
            order.block(5, &[0; 12]),
            order.packet(0, 7, b"us", 2),
            order.packet(1, 7, b"ns", 60),
            order.packet(2, 512, b"binary", 6),
            order.packet(3, 0, b"of no interface", 15),
            order.packet(0, 8, b"last", 4),
        ]
        .concat();
        let expected = vec![
            (1, 7_000, 1, b"us".to_vec(), 2),
            (2, 7, 101, b"ns".to_vec(), 60),
            (3, 100_500_000_000, 113, b"binary".to_vec(), 6),
            (5, 8_000, 1, b"last".to_vec(), 4),
        ];
        let (all, note) = frames(&file);
        assert_eq!(all, expected);
        assert!(note.unwrap().starts_with("weft omits frame 4, because the capture does not describe"));
    }
}

#[test]
fn a_section_may_have_another_byte_order_and_interfaces() {
    let [little, big] = BOTH;
    let file = [
        little.section(),
        little.interface(1, 0, None, None),
        little.packet(0, 1, b"little", 6),
        big.section(),
        big.interface(101, 0, Some(9), None),
        big.packet(0, 1, b"big", 3),
    ]
    .concat();
    let parts: Vec<_> = frames(&file).0.into_iter().map(|frame| (frame.1, frame.2, frame.3)).collect();
    assert_eq!(parts, [(1_000, 1, b"little".to_vec()), (1, 101, b"big".to_vec())]);
}

#[test]
fn simple_and_obsolete_packets_are_read() {
    for order in BOTH {
        // The packet has interface 1, no drops, time 9, and 3 of 5 octets.
        let mut obsolete = [order.u16(1), order.u16(0)].concat();
        obsolete.extend(order.words(&[0, 9, 3, 5]));
        obsolete.extend(b"old");
        let mut simple = order.u32(60).to_vec();
        simple.extend(b"simple, cut at the snap length");
        let file = [
            order.section(),
            order.interface(1, 6, None, None),
            order.interface(101, 0, None, None),
            order.block(2, &obsolete),
            order.block(3, &simple),
        ]
        .concat();
        let expected = vec![(1, 9_000, 101, b"old".to_vec(), 5), (2, 0, 1, b"simple".to_vec(), 60)];
        assert_eq!(frames(&file), (expected, None));
    }
}

#[test]
fn a_pcapng_that_ends_within_a_block_gives_its_frames() {
    let complete = [LITTLE.section(), LITTLE.interface(1, 0, None, None), LITTLE.packet(0, 1, b"there", 5)].concat();
    let mut file = complete.clone();
    file.extend(&LITTLE.packet(0, 2, b"not there", 9)[..28 + 3]);
    let (all, note) = frames(&file);
    assert_eq!((all.len(), &all[1].3[..], all[1].4), (2, &b"not"[..], 9));
    assert!(note.unwrap().contains(&format!("byte {}", complete.len())));
    for cut in 28..file.len() {
        frames(&file[..cut]);
    }
}

#[test]
fn a_pcapng_block_without_sense_stops_the_reading_with_a_note() {
    let good = [LITTLE.section(), LITTLE.interface(1, 0, None, None), LITTLE.packet(0, 1, b"good", 4)].concat();
    let mut short = good.clone();
    short.extend(LITTLE.words(&[6, 8, 8]));
    let mut differing = good.clone();
    let mut block = LITTLE.packet(0, 1, b"good", 4);
    let last = block.len() - 1;
    block[last] = 9;
    differing.extend(block);
    for file in [short, differing] {
        let (all, note) = frames(&file);
        assert_eq!(all.len(), 1);
        assert!(note.unwrap().contains("after frame 1"));
    }
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(octets).unwrap();
    out.finish().unwrap()
}

#[test]
fn compressed_captures_are_read_also_in_several_members() {
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, &[7; 5000], 5000)]);
    let plain = frames(&file);
    assert_eq!(frames(&gzip(&file)), plain);
    assert_eq!(frames(&zstd::encode_all(&file[..], 1).unwrap()), plain);
    let (front, back) = file.split_at(50);
    assert_eq!(frames(&[gzip(front), gzip(back)].concat()), plain);
}

#[test]
fn a_cut_compressed_capture_gives_its_unpacked_frames() {
    // The octets of the last record cannot be compressed, and they fill more than one block of
    // zstd. So the cut is in the last record.
    let noise: Vec<u8> = (0..400_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, &noise, 400_000)]);
    for packed in [gzip(&file), zstd::encode_all(&file[..], 1).unwrap()] {
        let (all, note) = frames(&packed[..packed.len() - 20]);
        assert_eq!((all.len(), &all[0].3[..]), (1, &b"abcd"[..]));
        assert!(note.unwrap().contains("after frame 1"));
    }
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    assert!(matches!(open(b""), Err(OpenError::Empty)));
    assert!(matches!(open(b"\xd4\xc3"), Err(OpenError::UnknownFormat(_))));
    let Err(OpenError::UnknownFormat(first)) = open(b"Frame 1: 60 bytes on wire") else { panic!("read as a capture") };
    assert_eq!(first, "46 72 61 6d 65 20 31 3a");
    assert!(matches!(Capture::open(&std::env::temp_dir()), Err(OpenError::Directory)));
    assert!(matches!(Capture::open("no/such/file".as_ref()), Err(OpenError::Io(_))));
}

proptest::proptest! {
    #[test]
    fn no_octets_panic(mut octets: Vec<u8>, kind in 0usize..4) {
        let head = [&b"\xd4\xc3\xb2\xa1\x02\0\x04\0"[..], b"\x0a\x0d\x0d\x0a", b"\x1f\x8b\x08", b""][kind];
        octets.splice(0..0, head.iter().copied());
        if let Ok(mut capture) = open(&octets) {
            while capture.next_frame().is_some() {}
        }
    }
}

/// A pcap file with the records "abcd" and "efgh", compressed by `xz -9`.
const XZ: &str =
    "fd377a585a000004e6d6b446020021011c00000010cf58cce0003f00245d006a30d1c87d8bf8099bad944b8b19c6f948272cc2afd403
                  863a720c7d864df26109c20b50004cc8b084d08067ac00014040bebb23a61fb6f37d010000000004595a";
/// The same pcap file, compressed by `bzip2`.
const BZIP2: &str =
    "425a6839314159265359a1d6072600001cc11ef6003fc020001000080004000000a000314d3231313104a6a9fa886d4647a3c32c3
                     2c8501481a80946944627c64fb9fbfaad56c5dc914e1424287581c980";

#[test]
fn reads_all_frames_before_the_damage_of_an_xz_or_bzip2_file() {
    // The last octets of an xz file are the check of the block, the index and the footer. The last
    // octets of a bzip2 file are the checksum of all blocks and some bits of padding.
    for (name, file, octets) in [("xz", hex(XZ), 1..=28), ("bzip2", hex(BZIP2), 2..=4)] {
        for from_end in octets {
            let mut damaged = file.clone();
            let at = damaged.len() - from_end;
            damaged[at] ^= 0x10;
            let (all, note) = frames(&damaged);
            let data: Vec<_> = all.iter().map(|frame| frame.3.clone()).collect();
            assert_eq!(data, [b"abcd", b"efgh"], "{name}, {from_end} octets before the end");
            let note = note.unwrap_or_else(|| panic!("{name}, {from_end} octets before the end: no note"));
            assert!(note.contains("after frame 2"), "{note}");
        }
    }
}

#[test]
fn reads_all_frames_before_the_cut_of_an_xz_file() {
    let file = hex(XZ);
    let count = |len: usize| open(&file[..len]).map_or(0, |_| frames(&file[..len]).0.len());
    let counts: Vec<_> = (0..file.len()).map(count).collect();
    assert!(counts.is_sorted());
    // The data ends before the check of the block, the index and the footer.
    assert_eq!(counts[file.len() - 28], 2);
}

#[test]
fn several_xz_or_bzip2_members_are_one_capture() {
    let [xz, bzip2] = [XZ, BZIP2].map(|file| frames(&hex(file).repeat(2)));
    // The second member also begins with a pcap file header, which the reader reads as a record.
    assert!(xz.0.len() > 2);
    assert_eq!(xz, bzip2);
}

#[test]
fn refuses_another_version_of_pcapng() {
    for order in BOTH {
        let mut file = order.words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d]);
        file.extend([order.u16(96), order.u16(2)].concat());
        file.extend(order.words(&[u32::MAX, u32::MAX, 28]));
        assert!(matches!(open(&file), Err(OpenError::PcapngVersion(96, 2))));
    }
}

#[test]
fn xz_bzip2_and_lz4_are_recognised() {
    for (name, file) in [
        ("xz", XZ),
        ("bzip2", BZIP2),
        (
            "lz4",
            "04224d186440a72e00000084d4c3b2a1020004000100f100ffff000065000000010000000200001a00001e004b616263641400500065
             66676800000000fceef062",
        ),
    ] {
        let file = hex(file);
        let expected = vec![
            (1, 1_000_002_000, 101, b"abcd".to_vec(), 4),
            (2, 1_000_002_000, 101, b"efgh".to_vec(), 4),
        ];
        assert_eq!(frames(&file), (expected, None), "{name}");
        // If the file is truncated, the reader returns the readable frames, and a note about the
        // truncation.
        let mut capture = open(&file[..file.len() - 30]);
        let note = match &mut capture {
            Ok(capture) => {
                while capture.next_frame().is_some() {}
                capture.note().map(str::to_owned)
            }
            Err(error) => Some(error.to_string()),
        };
        assert!(note.is_some(), "{name}");
    }
}

#[test]
fn the_modified_pcap_has_longer_records() {
    for order in BOTH {
        let mut file = order.words(&[0xa1b2_cd34]);
        file.extend([order.u16(2), order.u16(4)].concat());
        file.extend(order.words(&[0, 0, 65_535, 1]));
        for octets in [b"abcd", b"efgh"] {
            file.extend(order.words(&[7, 8, 4, 60, 2]));
            file.extend([&order.u16(0x0800)[..], &[0, 0], octets].concat());
        }
        let expected =
            [(1, b"abcd"), (2, b"efgh")].map(|(number, octets)| (number, 7_000_008_000, 1, octets.to_vec(), 60));
        assert_eq!(frames(&file), (expected.to_vec(), None), "big-endian {}", order.big);
        let (all, note) = frames(&file[..file.len() - 1]);
        assert_eq!(all[1].3, b"efg");
        assert!(note.unwrap().contains("truncated"));
    }
}

/// The file has two records as in RFC 1761. The first record is padded.
#[test]
fn snoop_is_read() {
    let big = Order { big: true };
    let mut file = b"snoop\0\0\0".to_vec();
    file.extend(big.words(&[2, 4]));
    file.extend(big.words(&[60, 3, 28, 0, 7, 8]));
    file.extend(b"abc\0");
    file.extend(big.words(&[4, 4, 28, 0, 9, 10]));
    file.extend(b"efgh");
    let expected = vec![(1, 7_000_008_000, 1, b"abc".to_vec(), 60), (2, 9_000_010_000, 1, b"efgh".to_vec(), 4)];
    assert_eq!(frames(&file), (expected, None));
    let (all, note) = frames(&file[..file.len() - 2]);
    assert_eq!(all[1].3, b"ef");
    assert!(note.unwrap().contains("truncated"));
}

/// Version 1 counts time in milliseconds, and version 2 in microseconds. From version 2.1 on, each
/// frame has its own media type.
#[test]
fn network_monitor_is_read() {
    let header = |magic: &[u8], version: [u8; 2], frames: u32| {
        let mut file = [magic, &version, &LITTLE.u16(1)].concat();
        // The start time is 2020-09-13 12:26:40.500, a Sunday.
        file.extend([2020u16, 9, 0, 13, 12, 26, 40, 500].iter().flat_map(|half| LITTLE.u16(*half)));
        file.extend(LITTLE.words(&[0, frames * 4]));
        file.resize(128, 0);
        file
    };
    let begin = 1_600_000_000_500_000_000;
    let table = [0xff; 8];

    let mut one = header(b"RTSS", [1, 1], 2);
    one.extend([&LITTLE.u32(3)[..], &LITTLE.u16(60), &LITTLE.u16(4), b"abcd"].concat());
    one.extend([&LITTLE.u32(5)[..], &LITTLE.u16(4), &LITTLE.u16(4), b"efgh", &table].concat());
    let expected =
        vec![(1, begin + 3_000_000, 1, b"abcd".to_vec(), 60), (2, begin + 5_000_000, 1, b"efgh".to_vec(), 4)];
    assert_eq!(frames(&one), (expected, None));

    for (minor, trailer) in [(0, 0), (1, 2), (2, 6), (3, 15)] {
        let mut two = header(b"GMBU", [minor, 2], 2);
        for (microseconds, octets) in [(3, b"abcd"), (5, b"efgh")] {
            two.extend(LITTLE.words(&[microseconds, 0, 60, 4]));
            two.extend(octets);
            // This media type contains the link type for raw IP packets.
            let mut rest = LITTLE.u16(0xe065).to_vec();
            rest.resize(15, 0);
            two.extend(&rest[..trailer]);
        }
        two.extend(table);
        let link_type = if minor == 0 { 1 } else { 101 };
        let expected = [(1, 3_000, b"abcd"), (2, 5_000, b"efgh")]
            .map(|(number, time, octets)| (number, begin + time, link_type, octets.to_vec(), 60));
        assert_eq!(frames(&two), (expected.to_vec(), None), "version 2.{minor}");
    }
}

/// The file has three records: an Ethernet record with an extension header and padding, a raw IP
/// record, and a record that describes the capture. The last record is not a frame.
#[test]
fn erf_is_read() {
    let record = |kind: u8, wire_len: u16, body: &[u8]| {
        let total = u16::try_from(16 + body.len()).unwrap();
        let mut out = LITTLE.words(&[0x8000_0000, 1_600_000_000]);
        out.extend([kind, 4]);
        out.extend([total.to_be_bytes(), [0, 0], wire_len.to_be_bytes()].concat());
        out.extend_from_slice(body);
        out
    };
    let time = 1_600_000_000_500_000_000;
    let extension = [1u8, 0, 0, 0, 0, 0, 0, 0];
    let file = [
        record(0x82, 4, &[&extension[..], &[0, 0], b"abcd", &[0; 2]].concat()),
        record(27, 0, &[0; 16]),
        record(22, 60, b"efgh"),
    ]
    .concat();
    let expected = vec![(1, time, 1, b"abcd".to_vec(), 4), (2, time, 101, b"efgh".to_vec(), 60)];
    assert_eq!(frames(&file), (expected, None));
    assert!(open(&file[..40]).is_err(), "one record is no proof of a format");
}

/// The files of a ring buffer were joined in the order of their names after the ring had wrapped.
#[test]
fn time_that_runs_backwards_is_reported_once() {
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(9, 0, b"c", 1), (9, 500_000, b"d", 1), (1, 0, b"a", 1), (2, 0, b"b", 1)]);
    let (all, note) = frames(&file);
    assert_eq!(all.len(), 4);
    let note = note.unwrap();
    assert!(note.starts_with("time runs backwards by 8.500 s at frame 3"), "{note}");
    assert!(note.contains("reordercap"), "{note}");
    // Frames from several queues of a NIC can also be out of order, but only by a shorter time.
    // There is no note about this.
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 900, b"a", 1), (1, 0, b"b", 1)]);
    assert_eq!(frames(&file).1, None);
}
