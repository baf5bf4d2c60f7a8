//! [`Access`]: a use of the memory that a command advertised.

use super::event::Buffer;
use crate::direction::Direction;
use crate::exchange::CapturePoint;

/// How the memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    /// Consecutive segments of a Write. `is_last` is set if the Write ends with them.
    Write { is_last: bool },
    /// A Read Request, with its Data Sink.
    ReadRequest { sink_stag: u32, sink_offset: u64 },
    /// Consecutive segments of a Read Response. `is_last` is set if the response ends with them.
    ReadResponse { is_last: bool },
}

/// A use of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    /// The direction in which the access was sent.
    pub(super) direction: Direction,
    /// The used memory. For a Read Response, this is the Data Sink of the Read Request.
    pub(super) stag: u32,
    pub(super) offset: u64,
    /// Number of bytes.
    pub(super) len: u64,
    /// Where the first and the last of these segments were captured.
    pub(super) first: CapturePoint,
    pub(super) latest: CapturePoint,
}

impl Access {
    /// Returns whether all bytes are in `buffer`.
    pub(super) fn is_inside(&self, buffer: &Buffer) -> bool {
        let end = self.offset.checked_sub(buffer.offset).and_then(|start| start.checked_add(self.len));
        self.stag == buffer.stag && end.is_some_and(|end| end <= buffer.len)
    }

    /// Appends `next`, if it is the next segment of the same Write or Read Response. Returns
    /// whether it is.
    pub(super) fn extend(&mut self, next: &Access) -> bool {
        let is_same_kind = matches!(
            (self.kind, next.kind),
            (AccessKind::Write { is_last: false }, AccessKind::Write { .. })
                | (AccessKind::ReadResponse { is_last: false }, AccessKind::ReadResponse { .. })
        );
        let expected = (self.direction, self.stag, self.offset.wrapping_add(self.len));
        if !is_same_kind || (next.direction, next.stag, next.offset) != expected {
            return false;
        }
        self.kind = next.kind;
        self.len += next.len;
        self.latest = next.latest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(kind: AccessKind, offset: u64, len: u64) -> Access {
        let point = CapturePoint { frame: 5.into(), time: 5 };
        Access { kind, direction: Direction::Reverse, stag: 7, offset, len, first: point, latest: point }
    }

    #[test]
    fn an_access_is_inside_only_with_all_its_bytes() {
        let buffer = Buffer { stag: 7, offset: 0x1000, len: 0x100 };
        let write = AccessKind::Write { is_last: true };
        for (offset, len, is_inside) in [
            (0x1000, 0x100, true),
            (0x10ff, 1, true),
            (0x1000, 0x101, false),
            (0x1100, 1, false),
            (0xfff, 1, false),
            (u64::MAX, u64::MAX, false),
        ] {
            assert_eq!(access(write, offset, len).is_inside(&buffer), is_inside, "{offset:#x}");
        }
        let other = Buffer { stag: 8, ..buffer };
        assert!(!access(write, 0x1000, 1).is_inside(&other));
    }

    #[test]
    fn segments_of_a_message_are_one_access() {
        let mut write = access(AccessKind::Write { is_last: false }, 0x1000, 16);
        assert!(!write.extend(&access(AccessKind::Write { is_last: false }, 0x1020, 16)));
        assert!(!write.extend(&access(AccessKind::ReadResponse { is_last: false }, 0x1010, 16)));
        assert!(write.extend(&access(AccessKind::Write { is_last: true }, 0x1010, 16)));
        assert_eq!((write.len, write.kind), (32, AccessKind::Write { is_last: true }));
        assert!(!write.extend(&access(AccessKind::Write { is_last: true }, 0x1020, 16)));
    }
}
