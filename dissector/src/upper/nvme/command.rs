//! [`Command`]: a submission queue entry, which is the start of a command capsule. An entry has 64
//! bytes. In-capsule data can follow. All fields are little-endian.

use std::fmt;
use std::ops::Range;

use super::names;
use crate::upper::protocol::only;

/// Length in bytes of a submission queue entry.
pub(crate) const COMMAND_LEN: usize = 64;
/// The opcode of all Fabrics commands.
const FABRICS: u8 = 0x7f;
/// The types of Fabrics commands.
pub(crate) const PROPERTY_SET: u8 = 0x00;
pub(crate) const CONNECT: u8 = 0x01;
pub(crate) const PROPERTY_GET: u8 = 0x04;
pub(crate) const AUTHENTICATION_SEND: u8 = 0x05;
pub(crate) const AUTHENTICATION_RECEIVE: u8 = 0x06;
pub(crate) const DISCONNECT: u8 = 0x08;
/// Some Admin commands.
pub(crate) const GET_LOG_PAGE: u8 = 0x02;
pub(crate) const IDENTIFY: u8 = 0x06;
pub(crate) const SET_FEATURES: u8 = 0x09;
pub(crate) const GET_FEATURES: u8 = 0x0a;
/// Identifier of an SGL descriptor for in-capsule data: type Data Block, subtype offset.
const IN_CAPSULE: u8 = 0x01;
/// Identifiers of keyed SGL descriptors without and with invalidation of the key.
const KEYED: u8 = 0x40;
const KEYED_INVALIDATE: u8 = 0x4f;
/// Smallest logical block in bytes.
const SMALLEST_BLOCK: u32 = 512;
/// The flags of an ordinary command: no fused operation, SGLs, reserved bits zero.
const ORDINARY_FLAGS: u8 = 0x40;
/// The reserved bits of the flags.
const RESERVED_FLAGS: u8 = 0x3c;

/// The kind of a queue. It determines the meaning of an opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// The Admin Queue, which has number 0.
    Admin,
    /// An I/O Queue.
    Io,
}

impl QueueKind {
    /// The kind of the queue with number `queue`.
    #[must_use]
    pub fn of(queue: u16) -> Self {
        if queue == 0 { QueueKind::Admin } else { QueueKind::Io }
    }
}

/// The numbers that identify a kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandCode {
    /// OPC.
    pub opcode: u8,
    /// FCTYPE of a Fabrics command.
    pub fabrics_type: Option<u8>,
    /// The kind of the queue; `None` if it is not known yet.
    pub queue_kind: Option<QueueKind>,
}

impl CommandCode {
    /// The name of the command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.fabrics_type, self.queue_kind) {
            (Some(kind), _) => names::fabrics_type(kind.into()).unwrap_or("Fabrics command"),
            (None, Some(QueueKind::Admin)) => names::admin_command(self.opcode).unwrap_or("Admin command"),
            (None, Some(QueueKind::Io)) => names::io_command(self.opcode).unwrap_or("I/O command"),
            (None, None) => "Command",
        }
    }
}

/// The SGL descriptor of a command (SGL1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SglDescriptor {
    /// The address. For in-capsule data, the offset of the data after the entry, in bytes.
    pub address: u64,
    /// Length of the data in bytes. A keyed descriptor has 24 bits for the length.
    pub len: u32,
    /// The key (STag) of a keyed descriptor.
    pub key: Option<u32>,
    /// Type (high 4 bits) and subtype.
    pub identifier: u8,
}

impl SglDescriptor {
    /// Reads the 16 bytes of a descriptor.
    fn parse(octets: &[u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, l0, l1, l2, l3, k1, k2, k3, identifier] = *octets;
        let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        // The length of a keyed descriptor has three bytes, and the key follows.
        if identifier >> 4 == KEYED >> 4 {
            let (len, key) = (u32::from_le_bytes([l0, l1, l2, 0]), u32::from_le_bytes([l3, k1, k2, k3]));
            return SglDescriptor { address, len, key: Some(key), identifier };
        }
        SglDescriptor { address, len: u32::from_le_bytes([l0, l1, l2, l3]), key: None, identifier }
    }

    /// Returns whether the data is in the capsule.
    #[must_use]
    pub fn is_in_capsule(&self) -> bool {
        self.identifier == IN_CAPSULE
    }

    /// Returns whether the controller must invalidate the key.
    #[must_use]
    pub fn invalidates_key(&self) -> bool {
        self.identifier == KEYED_INVALIDATE
    }

    /// Returns whether the descriptor describes no data.
    fn is_empty(&self) -> bool {
        (self.address, self.len, self.key, self.identifier) == (0, 0, Some(0), KEYED)
    }
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// OPC.
    pub opcode: u8,
    /// FUSE (bits 0 and 1) and PSDT (bits 6 and 7).
    pub flags: u8,
    /// CID.
    pub command_id: u16,
    /// NSID. A Fabrics command has FCTYPE in the low byte.
    pub namespace: u32,
    /// Command Dwords 2 and 3. They are reserved in most commands.
    pub dwords_2_3: u64,
    /// MPTR.
    pub metadata: u64,
    /// SGL1.
    pub sgl: SglDescriptor,
    /// Command Dwords 10 to 15.
    pub dwords: [u32; 6],
    /// QID; `None` if the connection's queue is not known.
    pub queue: Option<u16>,
    /// The kind of the queue; `None` if it is not known.
    pub queue_kind: Option<QueueKind>,
    /// Length of the capsule in bytes.
    pub len: u32,
}

impl Command {
    /// Reads the entry at the start of a capsule. Returns `None` if `capsule` is shorter than an
    /// entry. The fields `queue` and `queue_kind` are not in the capsule, and are `None`. `len` is
    /// the length of `capsule`.
    #[must_use]
    pub fn parse(capsule: &[u8]) -> Option<Self> {
        let entry: &[u8; COMMAND_LEN] = capsule.first_chunk()?;
        let word = |at: usize| Some(u32::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
        Some(Command {
            opcode: entry[0],
            flags: entry[1],
            command_id: u16::from_le_bytes([entry[2], entry[3]]),
            namespace: word(4)?,
            dwords_2_3: long(8)?,
            metadata: long(16)?,
            sgl: SglDescriptor::parse(entry.get(24..)?.first_chunk()?),
            dwords: [word(40)?, word(44)?, word(48)?, word(52)?, word(56)?, word(60)?],
            queue: None,
            queue_kind: None,
            len: u32::try_from(capsule.len()).unwrap_or(u32::MAX),
        })
    }

    /// The kind of command.
    #[must_use]
    pub fn code(&self) -> CommandCode {
        CommandCode { opcode: self.opcode, fabrics_type: self.fabrics_type(), queue_kind: self.queue_kind }
    }

    /// FCTYPE; `None` if the command is not a Fabrics command.
    #[must_use]
    pub fn fabrics_type(&self) -> Option<u8> {
        (self.opcode == FABRICS).then_some(self.namespace.to_le_bytes()[0])
    }

    /// FUSE: 0 is a normal command, 1 and 2 are the first and the second fused command.
    #[must_use]
    pub fn fuse(&self) -> u8 {
        self.flags & 0b11
    }

    /// PSDT: 0 is a PRP, 1 and 2 are SGLs.
    #[must_use]
    pub fn psdt(&self) -> u8 {
        self.flags >> 6
    }

    /// The ranges of the entry with fields that the specification defines: for a known command all
    /// bytes, and otherwise only the fields that all commands have. These are OPC, the flags, CID,
    /// NSID and SGL1.
    pub(super) fn headers(&self) -> Vec<Range<usize>> {
        let is_known = match self.fabrics_type() {
            Some(kind) => names::fabrics_type(kind.into()).is_some(),
            None => names::admin_command(self.opcode).or_else(|| names::io_command(self.opcode)).is_some(),
        };
        if is_known && self.flags & RESERVED_FLAGS == 0 { only(0..COMMAND_LEN) } else { vec![0..8, 24..40] }
    }

    /// Number of bytes in the capsule after the entry.
    #[must_use]
    pub fn data_len(&self) -> u32 {
        self.len.saturating_sub(COMMAND_LEN as u32)
    }

    /// Returns whether the command is this Admin command.
    pub(crate) fn is_admin(&self, opcode: u8) -> bool {
        self.queue_kind == Some(QueueKind::Admin) && self.opcode == opcode
    }

    /// The first logical block and the number of logical blocks, if the command is an I/O command
    /// for such a range. The number is 1 to 65536.
    #[must_use]
    pub fn blocks(&self) -> Option<(u64, u32)> {
        let has_range = matches!(self.opcode, 0x01 | 0x02 | 0x04 | 0x05 | 0x08 | 0x0c);
        (has_range && self.queue_kind == Some(QueueKind::Io)).then(|| self.block_range())
    }

    fn block_range(&self) -> (u64, u32) {
        let [low, high, count, ..] = self.dwords;
        (u64::from(high) << 32 | u64::from(low), (count & 0xffff) + 1)
    }

    /// The number of dwords that a Get Log Page requests: 1 to 2^32.
    #[must_use]
    pub fn log_page_dwords(&self) -> u64 {
        let [low, high, ..] = self.dwords;
        (u64::from(high & 0xffff) << 16 | u64::from(low >> 16)) + 1
    }

    /// The QID in a Connect command.
    pub(super) fn connected_queue(&self) -> Option<u16> {
        (self.fabrics_type() == Some(CONNECT)).then_some((self.dwords[0] >> 16) as u16)
    }

    /// The kind of queue that carries such a command. NVMe over Fabrics has no commands that create
    /// or delete queues. Returns `None` if both kinds of queue can carry the command.
    pub(super) fn inferred_kind(&self) -> Option<QueueKind> {
        if let Some(kind) = self.fabrics_type() {
            return matches!(kind, PROPERTY_SET | PROPERTY_GET).then_some(QueueKind::Admin);
        }
        let has_one_namespace = !matches!(self.namespace, 0 | u32::MAX);
        match self.opcode {
            0x00 | 0x01 | 0x04 | 0x05 => Some(QueueKind::Io),
            IDENTIFY | GET_FEATURES => Some(QueueKind::Admin),
            0x02 | 0x08 | 0x09 | 0x0c | 0x18 if !has_one_namespace => Some(QueueKind::Admin),
            GET_LOG_PAGE => {
                let (_, blocks) = self.block_range();
                let block = self.sgl.len / blocks;
                let is_block = block >= SMALLEST_BLOCK && block.is_power_of_two();
                let is_read = is_block && self.sgl.len.is_multiple_of(blocks);
                let is_log_page = 4 * self.log_page_dwords() == u64::from(self.sgl.len);
                match (is_read, is_log_page) {
                    (true, false) => Some(QueueKind::Io),
                    (false, true) => Some(QueueKind::Admin),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns whether the bytes are probably a command, if nothing else is known about their
    /// connection. Only ordinary commands pass: a known opcode, no fused operation, no metadata,
    /// zero in reserved fields, and an SGL descriptor that agrees with the length of the capsule.
    pub(super) fn is_plausible(&self) -> bool {
        let fits = match (self.sgl.identifier, self.sgl.key) {
            (KEYED | KEYED_INVALIDATE, Some(key)) => {
                self.data_len() == 0 && (self.sgl.is_empty() || key != 0 && self.sgl.len > 0)
            }
            (IN_CAPSULE, _) => self.sgl.address == 0 && self.sgl.len > 0 && self.data_len() == self.sgl.len,
            _ => false,
        };
        let is_known = match self.fabrics_type() {
            Some(kind) => self.namespace == u32::from(kind) && self.is_plausible_fabrics(kind),
            None => names::admin_command(self.opcode).or_else(|| names::io_command(self.opcode)).is_some(),
        };
        fits && is_known && self.flags == ORDINARY_FLAGS && (self.dwords_2_3, self.metadata) == (0, 0)
    }

    fn is_plausible_fabrics(&self, kind: u8) -> bool {
        let [first, second, third, rest @ ..] = self.dwords;
        match kind {
            PROPERTY_SET | PROPERTY_GET => {
                let is_property = first <= 1 && names::property(second.into()).is_some();
                let is_get_empty = kind == PROPERTY_SET || (third, rest) == (0, [0; 3]);
                is_property && is_get_empty && self.sgl.is_empty() && rest[1..] == [0; 2]
            }
            // Record format 0, at least two entries, and 1024 bytes of data.
            CONNECT => first & 0xffff == 0 && second & 0xffff != 0 && self.sgl.len == 1024,
            AUTHENTICATION_SEND | AUTHENTICATION_RECEIVE => self.sgl.len > 0,
            DISCONNECT => self.sgl.is_empty() && self.dwords == [0; 6],
            _ => false,
        }
    }

    /// Writes the parameters of an Admin or I/O command, each after a space.
    fn parameters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |f: &mut fmt::Formatter<'_>, what: &str, value: u32, name: Option<&str>| match name {
            Some(name) => write!(f, " {what} {name}"),
            None => write!(f, " {what} {value:#04x}"),
        };
        let low = self.dwords[0] & 0xff;
        if self.namespace != 0 {
            write!(f, " NSID {:#x}", self.namespace)?;
        }
        if let Some((first, count)) = self.blocks() {
            return write!(f, " LBA {first} blocks {count}");
        }
        if self.is_admin(IDENTIFY) {
            named(f, "CNS", low, names::cns(low.into()))
        } else if self.is_admin(GET_LOG_PAGE) {
            named(f, "page", low, names::log_page(low.into()))
        } else if self.is_admin(SET_FEATURES) || self.is_admin(GET_FEATURES) {
            named(f, "feature", low, names::feature(low.into()))
        } else if self.queue_kind.is_none() {
            write!(f, " opcode {:#04x}", self.opcode)
        } else {
            Ok(())
        }
    }

    /// Writes the parameters of a Fabrics command, each after a space.
    fn fabrics_parameters(&self, kind: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, low, high, ..] = self.dwords;
        match kind {
            CONNECT => write!(f, " QID {} SQSIZE {}", first >> 16, second & 0xffff),
            PROPERTY_SET | PROPERTY_GET => {
                match names::property(second.into()) {
                    Some(name) => write!(f, " {name}")?,
                    None => write!(f, " offset {second:#x}")?,
                }
                if kind == PROPERTY_SET {
                    write!(f, " {:#x}", u64::from(high) << 32 | u64::from(low))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The parameters of the command, without its name.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CID {:#06x}", self.command_id)?;
        if let Some(queue) = self.queue {
            write!(f, " queue {queue}")?;
        }
        match self.fabrics_type() {
            Some(kind) => self.fabrics_parameters(kind, f)?,
            None => self.parameters(f)?,
        }
        let SglDescriptor { address, len, key, .. } = self.sgl;
        match key {
            _ if self.sgl.is_in_capsule() => write!(f, " {len} bytes in the capsule"),
            Some(key) if len > 0 => write!(f, " {len} bytes at {address:#x} key {key:#010x}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::hex;

    /// Reads an entry. `sgl` and `dwords` are the bytes 24 to 39 and 40 to 63.
    fn command(head: &str, sgl: &str, dwords: &str) -> Command {
        let mut entry = hex(head);
        entry.resize(24, 0);
        entry.extend(hex(sgl));
        entry.resize(40, 0);
        entry.extend(hex(dwords));
        entry.resize(64, 0);
        Command::parse(&entry).unwrap()
    }

    const NO_DATA: &str = "0000000000000000 000000 00000000 40";

    /// The entries are from frames 51 and 469 of captures of Linux (nvme-rdma, kernel 6.1).
    #[test]
    fn reads_the_fields_of_an_entry() {
        let mut page = command("0240 0500", "f081900280 88ffff 000400 0420ad18 4f", "7080ff00");
        page.queue_kind = Some(QueueKind::Admin);
        assert_eq!((page.opcode, page.command_id, page.psdt(), page.fuse()), (2, 5, 1, 0));
        let sgl = page.sgl;
        assert_eq!((sgl.address, sgl.len, sgl.key), (0xffff_8880_0290_81f0, 0x400, Some(0x18ad_2004)));
        assert!(sgl.invalidates_key() && !sgl.is_in_capsule());
        assert_eq!((page.log_page_dwords(), page.code().name(), page.data_len()), (256, "Get Log Page", 0));
        assert_eq!(page.to_string(), "CID 0x0005 page Discovery 1024 bytes at 0xffff8880029081f0 key 0x18ad2004");
        let sgl = "0060160980 88ffff 000001 0966a36b 4f";
        let mut read = command("0240 0900 01000000", sgl, "80000000 00000000 7f000000");
        (read.queue, read.queue_kind) = (Some(1), Some(QueueKind::Io));
        assert_eq!((read.blocks(), read.code().name()), (Some((0x80, 128)), "Read"));
        assert_eq!(read.inferred_kind(), Some(QueueKind::Io));
        assert_eq!(
            read.to_string(),
            "CID 0x0009 queue 1 NSID 0x1 LBA 128 blocks 128 65536 bytes at 0xffff888009166000 key 0x6ba36609"
        );
    }

    #[test]
    fn an_unknown_command_has_fewer_headers() {
        let headers = |head: &str| format!("{:?}", command(head, NO_DATA, "").headers());
        for known in ["7f40 0100 04", "0240 0500", "0142 0500", "7d00 0500"] {
            assert_eq!(headers(known), "[0..64]", "{known}");
        }
        for unknown in ["7f40 0100 03", "c140 0500", "0244 0500"] {
            assert_eq!(headers(unknown), "[0..8, 24..40]", "{unknown}");
        }
    }

    #[test]
    fn a_capsule_shorter_than_an_entry_is_not_read() {
        for len in 0..COMMAND_LEN {
            assert_eq!(Command::parse(&vec![0; len]), None, "{len}");
        }
    }

    #[test]
    fn opcodes_of_one_kind_of_queue_show_the_kind() {
        let kind = |head: &str, sgl: &str, dwords: &str| command(head, sgl, dwords).inferred_kind();
        assert_eq!(kind("0640 0000", NO_DATA, ""), Some(QueueKind::Admin));
        assert_eq!(kind("0040 0000 01000000", NO_DATA, ""), Some(QueueKind::Io));
        assert_eq!(kind("0c40 0000", NO_DATA, ""), Some(QueueKind::Admin));
        assert_eq!(kind("7f40 0000 04", NO_DATA, "00000000 1c000000"), Some(QueueKind::Admin));
        // Get Log Page of a namespace: 127 + 1 dwords. A Read of this length would have 512 bytes
        // in one block, so the kind stays open.
        let page = "0000000000100000 000200 01000000 40";
        assert_eq!(kind("0240 0000 01000000", page, "02007f00"), None);
        // 16 dwords are less than a logical block.
        let page = "0000000000100000 400000 01000000 40";
        assert_eq!(kind("0240 0000 01000000", page, "02000f00"), Some(QueueKind::Admin));
        assert_eq!(kind("1940 0000 01000000", NO_DATA, ""), None);
    }

    /// A Property Get from frame 12 of `captures/storage/nvme-discover.pcap`. Each variant has one
    /// wrong field.
    #[test]
    fn only_ordinary_commands_are_plausible() {
        let get = |head: &str, sgl: &str, dwords: &str| command(head, sgl, dwords).is_plausible();
        assert!(get("7f40 0100 04", NO_DATA, "01"));
        for (head, sgl, dwords) in [
            ("7f00 0100 04", NO_DATA, "01"),
            ("7f41 0100 04", NO_DATA, "01"),
            ("7f40 0100 02", NO_DATA, "01"),
            ("7f40 0100 0401", NO_DATA, "01"),
            ("7f40 0100 04000000 01", NO_DATA, "01"),
            ("7f40 0100 04000000 0000000000000000 01", NO_DATA, "01"),
            ("7f40 0100 04", "", "01"),
            ("7f40 0100 04", "01", "01"),
            ("7f40 0100 04", NO_DATA, "02"),
            ("7f40 0100 04", NO_DATA, "01000000 04000000"),
            ("7f40 0100 04", NO_DATA, "01000000 00000000 01"),
        ] {
            assert!(!get(head, sgl, dwords), "{head} {sgl} {dwords}");
        }
        let mut longer = command("7f40 0100 04", NO_DATA, "01");
        longer.len = 65;
        assert!(!longer.is_plausible());
    }

    #[test]
    fn in_capsule_data_has_the_length_of_the_descriptor() {
        let sgl = "0000000000000000 00020000 000000 01";
        let mut write = command("0140 0b00 01000000", sgl, "08010000");
        for (len, is_plausible) in [(64, false), (575, false), (576, true), (577, false), (u32::MAX, false)] {
            write.len = len;
            assert_eq!(write.is_plausible(), is_plausible, "{len}");
        }
    }

    proptest! {
        #[test]
        fn all_entries_are_read(octets in proptest::collection::vec(any::<u8>(), 0..99), queue: Option<u16>, len: u32) {
            if let Some(mut command) = Command::parse(&octets) {
                (command.queue, command.queue_kind, command.len) = (queue, queue.map(QueueKind::of), len);
                prop_assert!(!command.to_string().is_empty() && !command.code().name().is_empty());
                let (is_plausible, kind) = (command.is_plausible(), command.inferred_kind());
                prop_assert!(!is_plausible || command.flags == ORDINARY_FLAGS, "{kind:?}");
            }
        }
    }
}
