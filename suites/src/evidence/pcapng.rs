//! The capture of a case: its frames on one Ethernet interface, with the comments of the section
//! and of each event.

use std::io;

use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng::{Interface, PacketBlock, PacketDirection, Writer};

use super::{Frames, Source};

const MADE: &str = "Made from the bytes that the tester sent and received. Headers, segment boundaries and acknowledgements are \
                    synthetic.";
const CAPTURED: &str = "Frames that were captured on an interface.";

/// Writes a capture. `comments` has the comments of each frame.
pub(super) fn write(
    out: impl io::Write,
    section: &str,
    frames: &Frames,
    comments: &[Vec<String>],
    began_unix_ns: u64,
) -> io::Result<()> {
    let mut capture = Writer::new(out, Some(section))?;
    let description = match frames.source {
        Source::Endpoint => MADE,
        Source::Wire => CAPTURED,
    };
    let tester = Interface { link_type: ETHERNET, snap_len: 0, name: Some("tester"), description: Some(description) };
    let interface = capture.interface(&tester)?;
    for (index, frame) in frames.list.iter().enumerate() {
        capture.packet(&PacketBlock {
            interface,
            time: began_unix_ns.saturating_add(frame.at_ns),
            octets: &frame.octets,
            wire_len: u32::try_from(frame.octets.len()).unwrap_or(u32::MAX),
            direction: Some(if frame.from_tester { PacketDirection::Outbound } else { PacketDirection::Inbound }),
            comments: comments.get(index).map_or(&[], Vec::as_slice),
        })?;
    }
    capture.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;
    use weft_dissector::source::Capture;

    #[test]
    fn comments_are_at_their_frame() {
        let frame = |event| Frame { at_ns: 1, from_tester: true, octets: vec![1, 2, 3], event };
        let list = vec![frame(0), frame(0), frame(1)];
        let frames = Frames { list, anchors: Vec::new(), ends: Vec::new(), source: Source::Endpoint };
        let mut octets = Vec::new();
        let comments = [vec!["hello".to_owned(), "again".to_owned()], Vec::new()];
        write(&mut octets, "section", &frames, &comments, 1 << 40).unwrap();
        let count = |text: &[u8]| octets.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"hello"), count(b"again"), count(b"section"), count(b"synthetic")), (1, 1, 1, 1));
        let mut capture = Capture::from_reader(Box::new(io::Cursor::new(octets))).unwrap();
        let mut read = 0;
        while let Some(frame) = capture.next_frame() {
            assert_eq!((frame.time, frame.link_type, frame.octets), ((1 << 40) + 1, 1, &[1, 2, 3][..]));
            read += 1;
        }
        assert_eq!((read, capture.note()), (3, None));
    }
}
