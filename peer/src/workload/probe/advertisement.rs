//! The advertisement of a side's region at the start of its private data.

use crate::memory::Access;
use crate::verbs::RemoteAddress;

/// A region that one side registers for its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertisement {
    /// Address of the first byte.
    pub address: RemoteAddress,
    /// Size of the region in bytes.
    pub length: u32,
    /// The peer may read the region.
    pub readable: bool,
    /// The peer may write to the region.
    pub writable: bool,
}

const MAGIC: &[u8; 4] = b"SIWP";
/// The values of `IBV_ACCESS_LOCAL_WRITE`, `IBV_ACCESS_REMOTE_WRITE` and `IBV_ACCESS_REMOTE_READ`
/// in libibverbs.
const LOCAL_WRITE: u32 = 1;
const REMOTE_WRITE: u32 = 2;
const REMOTE_READ: u32 = 4;

impl Advertisement {
    /// Size of an advertisement in bytes.
    pub const LEN: usize = 24;

    /// Creates an advertisement of a region with these rights.
    #[must_use]
    pub const fn new(address: RemoteAddress, length: u32, access: Access) -> Self {
        Advertisement { address, length, readable: access.remote_read, writable: access.remote_write }
    }

    /// Returns the bytes `SIWP` and four fields in network byte order: STag (4 bytes), TO (8),
    /// length (4), rights (4).
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let rights = [(self.readable, REMOTE_READ), (self.writable, REMOTE_WRITE)];
        let rights = rights.into_iter().filter(|(given, _)| *given).fold(LOCAL_WRITE, |all, (_, right)| all | right);
        let RemoteAddress { stag, tagged_offset } = self.address;
        [
            &MAGIC[..],
            &stag.to_be_bytes(),
            &tagged_offset.to_be_bytes(),
            &self.length.to_be_bytes(),
            &rights.to_be_bytes(),
        ]
        .concat()
    }

    /// Parses the advertisement at the start of private data, if there is one. Also returns the
    /// text after the advertisement.
    #[must_use]
    pub fn parse(private_data: &[u8]) -> (Option<Self>, &[u8]) {
        Self::fields(private_data).map_or((None, private_data), |(found, text)| (Some(found), text))
    }

    fn fields(private_data: &[u8]) -> Option<(Self, &[u8])> {
        let (stag, rest) = private_data.strip_prefix(MAGIC)?.split_first_chunk()?;
        let (tagged_offset, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (rights, text) = rest.split_first_chunk()?;
        let address =
            RemoteAddress { stag: u32::from_be_bytes(*stag), tagged_offset: u64::from_be_bytes(*tagged_offset) };
        let rights = u32::from_be_bytes(*rights);
        let (readable, writable) = (rights & REMOTE_READ != 0, rights & REMOTE_WRITE != 0);
        Some((Advertisement { address, length: u32::from_be_bytes(*length), readable, writable }, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are the private data of a Reply from the capture `probe-ops-mpa1-crc`. This
    /// capture shows siwprobe on siw. The test also parses this private data with a text after it.
    #[test]
    fn as_siwprobe_has_it() {
        let octets = [
            0x53, 0x49, 0x57, 0x50, 0x29, 0x0a, 0xde, 0x00, 0x00, 0x00, 0x7f, 0xcd, 0x02, 0x99, 0x80, 0x00, 0x00, 0x10,
            0x00, 0x00, 0x00, 0x00, 0x00, 0x07,
        ];
        let address = RemoteAddress { stag: 0x290a_de00, tagged_offset: 0x7fcd_0299_8000 };
        let advertisement = Advertisement { address, length: 1 << 20, readable: true, writable: true };
        assert_eq!(
            (Advertisement::parse(&octets), advertisement.emit()),
            ((Some(advertisement), &[][..]), octets.into())
        );
        let private_data = [&octets[..], b"hello"].concat();
        assert_eq!(Advertisement::parse(&private_data), (Some(advertisement), &b"hello"[..]));
        assert_eq!(Advertisement::parse(&octets[..23]), (None, &octets[..23]));
        assert_eq!(Advertisement::parse(b"hello"), (None, &b"hello"[..]));
    }
}
