//! Writes a pcapng capture with comments (draft-ietf-opsawg-pcapng): one section, one Ethernet interface, nanoseconds.

use super::Frame;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;

const OPT_COMMENT: u16 = 1;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Longest option value that is written, in octets; the format could hold 65,535.
const MAX_OPTION: usize = 32 * 1024;

/// Appends a whole capture. `comments` holds those of each tape event; the first frame of an event carries them.
pub(super) fn write(out: &mut Vec<u8>, section: &str, frames: &[Frame], comments: &[Vec<String>], began_unix_ns: u64) {
    block(out, SECTION_HEADER, |body| {
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend(1u16.to_le_bytes());
        body.extend(0u16.to_le_bytes());
        // The length of the section is not told; readers go on to the next section header or the end.
        body.extend(u64::MAX.to_le_bytes());
        option(body, OPT_COMMENT, section.as_bytes());
        option(body, SHB_OS, std::env::consts::OS.as_bytes());
        option(body, SHB_USERAPPL, concat!("weft ", env!("CARGO_PKG_VERSION")).as_bytes());
        end_of_options(body);
    });
    block(out, INTERFACE, |body| {
        body.extend(LINKTYPE_ETHERNET.to_le_bytes());
        body.extend(0u16.to_le_bytes());
        body.extend(0u32.to_le_bytes());
        option(body, IF_NAME, b"tester");
        let made = "Made from the octets that the tester sent and received. Headers, segment boundaries and acknowledgements \
                    are made up.";
        option(body, IF_DESCRIPTION, made.as_bytes());
        option(body, IF_TSRESOL, &[9]);
        end_of_options(body);
    });
    let mut last_event = None;
    for frame in frames {
        let time = began_unix_ns.saturating_add(frame.at_ns);
        let first = last_event != Some(frame.event);
        last_event = Some(frame.event);
        block(out, ENHANCED_PACKET, |body| {
            body.extend(0u32.to_le_bytes());
            body.extend(((time >> 32) as u32).to_le_bytes());
            body.extend((time as u32).to_le_bytes());
            let len = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
            body.extend(len.to_le_bytes());
            body.extend(len.to_le_bytes());
            body.extend(&frame.octets);
            pad(body);
            // Direction: 1 inbound, 2 outbound.
            option(body, EPB_FLAGS, &u32::from(1 + u8::from(frame.from_tester)).to_le_bytes());
            for comment in comments.get(frame.event).into_iter().flatten().filter(|_| first) {
                option(body, OPT_COMMENT, comment.as_bytes());
            }
            end_of_options(body);
        });
    }
}

/// A block: type, total length, body, total length.
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    // Blocks have lengths that are multiples of four, so padding by position pads the body.
    fill(out);
    let total = u32::try_from(out.len() - start + 4).unwrap_or(u32::MAX).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&total);
    out.extend(total);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let mut end = value.len().min(MAX_OPTION);
    // Do not cut a character.
    while end < value.len() && value[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    body.extend(code.to_le_bytes());
    body.extend(u16::try_from(end).unwrap_or(u16::MAX).to_le_bytes());
    body.extend(&value[..end]);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn pad(body: &mut Vec<u8>) {
    while !body.len().is_multiple_of(4) {
        body.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks the blocks by their lengths, from both ends.
    fn kinds(capture: &[u8]) -> Vec<u32> {
        let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < capture.len() {
            let total = word(at + 4) as usize;
            assert_eq!((total % 4, word(at + total - 4) as usize), (0, total));
            kinds.push(word(at));
            at += total;
        }
        kinds
    }

    #[test]
    fn blocks_are_whole_and_only_the_first_frame_of_an_event_is_commented() {
        let frame = |event| Frame { at_ns: 1, from_tester: true, octets: vec![1, 2, 3], event };
        let mut capture = Vec::new();
        let comments = [vec!["hello".to_owned(), "again".to_owned()], Vec::new()];
        write(&mut capture, "section", &[frame(0), frame(0), frame(1)], &comments, 1 << 40);
        assert_eq!(kinds(&capture), [SECTION_HEADER, INTERFACE, ENHANCED_PACKET, ENHANCED_PACKET, ENHANCED_PACKET]);
        let count = |text: &[u8]| capture.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!((count(b"hello"), count(b"again"), count(b"section")), (1, 1, 1));
    }

    #[test]
    fn long_comments_are_cut_between_characters() {
        let mut body = Vec::new();
        option(&mut body, OPT_COMMENT, "ü".repeat(MAX_OPTION).as_bytes());
        assert_eq!(body.len(), 4 + MAX_OPTION);
        body.clear();
        option(&mut body, OPT_COMMENT, format!("x{}", "ü".repeat(MAX_OPTION)).as_bytes());
        assert_eq!(u16::from_le_bytes([body[2], body[3]]), 32 * 1024 - 1);
    }
}
