//! [`ChannelInfo`]: how the data of a READ or WRITE moves (MS-SMB2 sections 2.2.19 and 2.2.21). It
//! has the buffers of the client (MS-SMBD section 2.2.3.1).

use std::fmt;

use super::bytes::Bytes;
use super::header::HEADER_LEN;

/// Maximum number of stored descriptors of a request. Further descriptors are only counted.
pub const MAX_DESCRIPTORS: usize = 64;
/// Length in bytes of a descriptor on the wire.
const DESCRIPTOR_LEN: usize = 16;

/// The field Channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel(pub u32);

impl Channel {
    /// The data is in the message.
    pub const NONE: Channel = Channel(0);
    /// The peer transfers the data by RDMA.
    pub const RDMA_V1: Channel = Channel(1);
    /// As [`Channel::RDMA_V1`], and the peer invalidates the first token with its response.
    pub const RDMA_V1_INVALIDATE: Channel = Channel(2);
    /// The peer transfers encrypted or signed data by RDMA.
    pub const RDMA_TRANSFORM: Channel = Channel(3);

    /// The name; `None` if the value has no name.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Channel::NONE => Some("SMB2_CHANNEL_NONE"),
            Channel::RDMA_V1 => Some("SMB2_CHANNEL_RDMA_V1"),
            Channel::RDMA_V1_INVALIDATE => Some("SMB2_CHANNEL_RDMA_V1_INVALIDATE"),
            Channel::RDMA_TRANSFORM => Some("SMB2_CHANNEL_RDMA_TRANSFORM"),
            _ => None,
        }
    }

    /// Returns whether descriptors of version 1 follow.
    #[must_use]
    pub fn has_descriptors(self) -> bool {
        matches!(self, Channel::RDMA_V1 | Channel::RDMA_V1_INVALIDATE)
    }
}

/// A buffer of the client: Buffer Descriptor V1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferDescriptor {
    /// Offset: the Tagged Offset of the first byte.
    pub offset: u64,
    /// Token: the STag.
    pub token: u32,
    /// Length in bytes.
    pub length: u32,
}

/// The channel of a READ or WRITE Request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Channel.
    pub channel: Channel,
    /// The first [`MAX_DESCRIPTORS`] descriptors. Empty if the request has no valid descriptors.
    pub descriptors: Vec<BufferDescriptor>,
    /// Number of descriptors in the request.
    pub count: u32,
    /// Offset of the first descriptor in bytes, counted from the start of the header.
    pub at: u16,
    /// Whether the offset and the length of the descriptors fit the message. Set if the request
    /// needs no descriptors.
    pub is_valid: bool,
}

impl ChannelInfo {
    /// Reads the channel information at offset `at` with `len` bytes. `pdu` starts with the header.
    pub(super) fn parse(pdu: Bytes<'_>, channel: u32, (at, len): (u16, u16)) -> ChannelInfo {
        let channel = Channel(channel);
        let none = ChannelInfo { channel, descriptors: Vec::new(), count: 0, at, is_valid: true };
        if !channel.has_descriptors() {
            return none;
        }
        let (start, len) = (usize::from(at), usize::from(len));
        let is_multiple = len > 0 && len.is_multiple_of(DESCRIPTOR_LEN);
        match pdu.slice(start, len).filter(|_| is_multiple && start >= HEADER_LEN) {
            Some(octets) => {
                let (all, _) = octets.as_chunks::<DESCRIPTOR_LEN>();
                let descriptors = all.iter().take(MAX_DESCRIPTORS).filter_map(|one| descriptor(Bytes(one))).collect();
                ChannelInfo { descriptors, count: u32::try_from(all.len()).unwrap_or(u32::MAX), ..none }
            }
            None => ChannelInfo { is_valid: false, ..none },
        }
    }

    /// The sum of the lengths of the stored descriptors in bytes.
    #[must_use]
    pub fn total_len(&self) -> u64 {
        self.descriptors.iter().map(|descriptor| u64::from(descriptor.length)).sum()
    }

    /// Allocated memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.descriptors.capacity() * size_of::<BufferDescriptor>()
    }
}

/// The descriptors, each after a space; nothing if the data is in the message.
impl fmt::Display for ChannelInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_valid {
            return f.write_str(" with wrong channel information");
        }
        if let Some(first) = self.descriptors.first() {
            write!(f, " STag {:#010x} TO {:#x} length {}", first.token, first.offset, first.length)?;
        }
        match self.count {
            0 | 1 => Ok(()),
            count => write!(f, " and {} more", count - 1),
        }
    }
}

fn descriptor(bytes: Bytes<'_>) -> Option<BufferDescriptor> {
    Some(BufferDescriptor { offset: bytes.u64(0)?, token: bytes.u32(8)?, length: bytes.u32(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message whose header is zero, and whose body has `count` descriptors at offset 64.
    fn message(count: u16) -> Vec<u8> {
        let mut message = vec![0; HEADER_LEN];
        for number in 0..u32::from(count) {
            message.extend_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
            message.extend_from_slice(&(0x200 + number).to_le_bytes());
            message.extend_from_slice(&4096_u32.to_le_bytes());
        }
        message
    }

    fn parse(message: &[u8], channel: Channel, at: u16, len: u16) -> ChannelInfo {
        ChannelInfo::parse(Bytes(message), channel.0, (at, len))
    }

    #[test]
    fn descriptors_are_read() {
        let info = parse(&message(2), Channel::RDMA_V1_INVALIDATE, 64, 32);
        let first = BufferDescriptor { offset: 0x1122_3344_5566_7788, token: 0x200, length: 4096 };
        assert_eq!(info.descriptors, [first, BufferDescriptor { token: 0x201, ..first }]);
        assert_eq!((info.count, info.total_len(), info.is_valid), (2, 8192, true));
        assert_eq!(info.to_string(), " STag 0x00000200 TO 0x1122334455667788 length 4096 and 1 more");
    }

    #[test]
    fn the_number_of_stored_descriptors_has_a_limit() {
        let info = parse(&message(4095), Channel::RDMA_V1, 64, 65_520);
        assert_eq!((info.descriptors.len(), info.count), (MAX_DESCRIPTORS, 4095));
    }

    #[test]
    fn wrong_offsets_and_lengths_are_marked() {
        let message = message(2);
        for (at, len) in [(64, 48), (65, 32), (80, 32), (64, 8), (64, 0), (0, 16), (48, 16), (65_535, 65_535)] {
            let info = parse(&message, Channel::RDMA_V1, at, len);
            assert!(!info.is_valid && info.descriptors.is_empty() && info.count == 0, "{at} {len}");
        }
        // Without RDMA, offset and length have no meaning.
        assert!(parse(&message, Channel::NONE, 65_535, 65_535).is_valid);
        assert!(parse(&message, Channel::RDMA_TRANSFORM, 65_535, 65_535).descriptors.is_empty());
    }
}
