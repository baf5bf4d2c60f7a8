//! [`FileId`]: the handle of an open file (MS-SMB2 section 2.2.14.1).

use std::fmt;

use super::bytes::Bytes;

/// The handle of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The part that can survive a lost connection.
    pub persistent: u64,
    /// The part that is valid only for one session.
    pub volatile: u64,
}

impl FileId {
    /// In a related request of a compound: the file of the request before it. In an IOCTL: no file.
    pub const PREVIOUS: FileId = FileId { persistent: u64::MAX, volatile: u64::MAX };

    pub(super) fn parse(bytes: Bytes<'_>, at: usize) -> Option<FileId> {
        Some(FileId { persistent: bytes.u64(at)?, volatile: bytes.u64(at.checked_add(8)?)? })
    }

    /// The 16 bytes on the wire.
    #[must_use]
    pub fn octets(self) -> [u8; 16] {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&self.persistent.to_le_bytes());
        octets[8..].copy_from_slice(&self.volatile.to_le_bytes());
        octets
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == FileId::PREVIOUS {
            return f.write_str("previous");
        }
        write!(f, "{:#x}:{:#x}", self.persistent, self.volatile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_those_on_the_wire() {
        let octets: Vec<u8> = (1..=16).collect();
        let id = FileId::parse(Bytes(&octets), 0).unwrap();
        assert_eq!((id.persistent, id.octets().to_vec()), (0x0807_0605_0403_0201, octets.clone()));
        assert_eq!((FileId::parse(Bytes(&octets), 1), FileId::parse(Bytes(&octets), usize::MAX)), (None, None));
        assert_eq!(FileId::PREVIOUS.to_string(), "previous");
    }
}
