//! [`Startup`]: the private data in a start-up frame of MPA.

use weft_core::wire::mpa::startup::{ENHANCED_LEN, FLAG_R, FLAG_S, HEADER_LEN};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use zerocopy::FromBytes;

use crate::direction::Direction;
use crate::part::Part;

/// The private data of the protocol above RDMAP in a start-up frame, without the words of RFC 6581,
/// and its offset in the frame in bytes. `None` if bytes of the frame were not captured, or if the
/// direction ends inside the frame.
pub(crate) fn private_data(frame: Part<'_>) -> Option<(&[u8], usize)> {
    let (raw, _) = RawStartup::read_from_prefix(frame.get(0..HEADER_LEN)?).ok()?;
    let has_words = raw.revision >= 2 && raw.flags & FLAG_S != 0;
    let at = if has_words { HEADER_LEN + ENHANCED_LEN } else { HEADER_LEN };
    frame.get(at..HEADER_LEN + usize::from(raw.pd_length.get())).map(|private| (private, at))
}

/// A start-up frame with its private data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Startup<'a> {
    /// Request or Reply.
    pub(crate) kind: StartupKind,
    /// The direction of the frame.
    pub(crate) direction: Direction,
    /// Whether the frame rejects the connection.
    pub(crate) rejects: bool,
    /// The private data of the protocol above RDMAP, without the words of RFC 6581.
    pub(crate) private: &'a [u8],
    /// Offset of the private data in the frame, in bytes.
    pub(crate) private_at: usize,
}

impl<'a> Startup<'a> {
    /// Reads the frame in `part`. Returns `None` if bytes of the frame were not captured, or if the
    /// direction ends inside the frame.
    pub(crate) fn read(kind: StartupKind, direction: Direction, part: Part<'a>) -> Option<Self> {
        let (raw, _) = RawStartup::read_from_prefix(part.get(0..HEADER_LEN)?).ok()?;
        let (private, private_at) = private_data(part)?;
        Some(Startup { kind, direction, rejects: raw.flags & FLAG_R != 0, private, private_at })
    }
}

/// What a start-up frame shows about a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartupJudgement {
    /// The private data does not belong to the protocol.
    Other,
    /// The private data belongs to the protocol.
    Belongs,
    /// The private data belongs to the protocol. Together with the private data of the peer, it
    /// proves that the connection carries the protocol.
    Proves,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{reply_frame, startup_frame};

    #[test]
    fn private_data_follows_the_words_of_rfc_6581() {
        let read = |frame: &[u8], kind| {
            let startup = Startup::read(kind, Direction::Forward, Part::complete(frame))?;
            Some((startup.private.to_vec(), startup.private_at, startup.rejects))
        };
        let private = [1, 2, 3, 4, 5, 6];
        let request = startup_frame(0x40, 1, &private);
        assert_eq!(read(&request, StartupKind::Request), Some((private.to_vec(), 20, false)));
        let reply = reply_frame(0x30, 2, &private);
        assert_eq!(read(&reply, StartupKind::Reply), Some((vec![5, 6], 24, true)));
        // The frame ends inside the words, or inside the private data.
        assert_eq!(read(&reply_frame(0x10, 2, &private[..3]), StartupKind::Reply), None);
        assert_eq!(read(&request[..request.len() - 1], StartupKind::Request), None);
    }
}
