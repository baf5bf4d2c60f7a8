//! The capture of a case: its frames on one Ethernet interface, with the comments of the section and of each event.

use std::io;

use weft_dissector::output::pcapng::{Interface, PacketBlock, Way, Writer};

use super::{Frame, LINKTYPE_ETHERNET};

const MADE: &str = "Made from the octets that the tester sent and received. Headers, segment boundaries and acknowledgements are made \
                    up.";

/// Writes a whole capture. `comments` holds those of each tape event; the first frame of an event carries them.
pub(super) fn write(
    out: impl io::Write,
    section: &str,
    frames: &[Frame],
    comments: &[Vec<String>],
    began_unix_ns: u64,
) -> io::Result<()> {
    let mut capture = Writer::new(out, Some(section))?;
    let tester = Interface { link_type: LINKTYPE_ETHERNET, snap_len: 0, name: Some("tester"), description: Some(MADE) };
    let interface = capture.interface(&tester)?;
    let mut last_event = None;
    for frame in frames {
        let is_first = last_event.replace(frame.event) != Some(frame.event);
        capture.packet(&PacketBlock {
            interface,
            time: began_unix_ns.saturating_add(frame.at_ns),
            octets: &frame.octets,
            wire_len: u32::try_from(frame.octets.len()).unwrap_or(u32::MAX),
            way: Some(if frame.from_tester { Way::Outbound } else { Way::Inbound }),
            comments: comments.get(frame.event).filter(|_| is_first).map_or(&[], Vec::as_slice),
        })?;
    }
    capture.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_dissector::source::Capture;

    #[test]
    fn only_the_first_frame_of_an_event_is_commented() {
        let frame = |event| Frame { at_ns: 1, from_tester: true, octets: vec![1, 2, 3], event };
        let mut octets = Vec::new();
        let comments = [vec!["hello".to_owned(), "again".to_owned()], Vec::new()];
        write(&mut octets, "section", &[frame(0), frame(0), frame(1)], &comments, 1 << 40).unwrap();
        let count = |text: &[u8]| octets.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"hello"), count(b"again"), count(b"section"), count(b"made up")), (1, 1, 1, 1));
        let mut capture = Capture::from_reader(Box::new(io::Cursor::new(octets))).unwrap();
        let mut read = 0;
        while let Some(frame) = capture.next_frame() {
            assert_eq!((frame.time, frame.link_type, frame.octets), ((1 << 40) + 1, 1, &[1, 2, 3][..]));
            read += 1;
        }
        assert_eq!((read, capture.note()), (3, None));
    }
}
