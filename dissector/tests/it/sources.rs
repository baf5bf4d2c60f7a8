//! Capture files of every kind that is read, whole, truncated and damaged.
//!
//! File layouts are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng, written out here octet by octet.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint's own exception covers test functions only")]

use std::io::{Cursor, Write};

use weft_dissector::source::{Capture, OpenError};

/// Number, time, link type, octets, length on the wire.
type Told = (u64, u64, u16, Vec<u8>, u32);

fn open(octets: &[u8]) -> Result<Capture, OpenError> {
    Capture::from_reader(Box::new(Cursor::new(octets.to_vec())))
}

fn frames(octets: &[u8]) -> (Vec<Told>, Option<String>) {
    let mut capture = open(octets).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = capture.next_frame() {
        all.push((frame.number, frame.time, frame.link_type, frame.octets.to_vec(), frame.wire_len));
    }
    assert_eq!(capture.frames(), all.last().map_or(0, |frame: &Told| frame.0));
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

    /// A pcapng block; `body` is padded.
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

    /// An interface with if_tsresol (option 9) and if_tsoffset (14).
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
fn a_pcap_that_ends_within_a_record_gives_what_is_there() {
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    let (all, note) = frames(&file[..file.len() - 3]);
    assert_eq!(all[1], (2, 2_000_000_000, 113, b"e".to_vec(), 4));
    let note = note.unwrap();
    assert!(note.contains("truncated") && note.contains("octet 44") && note.contains("frame 1"), "{note}");
    for cut in 24..file.len() {
        let (all, note) = frames(&file[..cut]);
        assert_eq!(note.is_none(), cut == 24 || cut == 44, "{cut}");
        assert!(all.len() <= 2);
    }
}

/// A length field that no record has ends the reading; nothing of that size is allocated.
#[test]
fn a_damaged_length_stops_the_reading_with_a_note() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    file[44 + 8..44 + 12].copy_from_slice(&[0xff; 4]);
    let (all, note) = frames(&file);
    assert_eq!(all[0].3, b"abcd");
    assert!(note.is_some());
}

/// The rest of such a file is no record of it, however long the file is.
#[test]
fn a_record_that_is_longer_than_any_is_damage_and_no_frame() {
    let mut file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, b"efgh", 4)]);
    file[44 + 8..44 + 12].copy_from_slice(&LITTLE.u32(200 << 20));
    file.resize(65 << 20, 0);
    let (all, note) = frames(&file);
    assert_eq!(all.len(), 1);
    let note = note.unwrap();
    assert!(note.contains("damaged at octet 44, after frame 1") && note.contains("64 MiB"), "{note}");
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
            // 2^-10 s, and 100 s to add.
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
        assert!(note.unwrap().starts_with("frame 4 names an interface"));
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
    let told: Vec<_> = frames(&file).0.into_iter().map(|frame| (frame.1, frame.2, frame.3)).collect();
    assert_eq!(told, [(1_000, 1, b"little".to_vec()), (1, 101, b"big".to_vec())]);
}

#[test]
fn simple_and_obsolete_packets_are_read() {
    for order in BOTH {
        // Interface 1, no drops, time 9, 3 octets of 5.
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
fn a_pcapng_that_ends_within_a_block_gives_what_is_there() {
    let whole = [LITTLE.section(), LITTLE.interface(1, 0, None, None), LITTLE.packet(0, 1, b"whole", 5)].concat();
    let mut file = whole.clone();
    file.extend(&LITTLE.packet(0, 2, b"not whole", 9)[..28 + 3]);
    let (all, note) = frames(&file);
    assert_eq!((all.len(), &all[1].3[..], all[1].4), (2, &b"not"[..], 9));
    assert!(note.unwrap().contains(&format!("octet {}", whole.len())));
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
fn a_compressed_capture_that_is_cut_gives_what_could_be_unpacked() {
    // Octets that do not compress, in more than one block of zstd, so that the cut falls into the last record.
    let noise: Vec<u8> = (0..400_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = LITTLE.pcap(0xa1b2_c3d4, &[(1, 0, b"abcd", 4), (2, 0, &noise, 400_000)]);
    for packed in [gzip(&file), zstd::encode_all(&file[..], 1).unwrap()] {
        let (all, note) = frames(&packed[..packed.len() - 20]);
        assert_eq!((all.len(), &all[0].3[..]), (1, &b"abcd"[..]));
        assert!(note.unwrap().contains("after frame 1"));
    }
}

#[test]
fn what_is_no_capture_is_refused() {
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
