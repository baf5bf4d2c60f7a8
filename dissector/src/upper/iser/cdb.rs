//! [`Cdb`]: a command descriptor block of SCSI, and [`Lun`]: a logical unit number. All fields are
//! big-endian.

use std::fmt;

/// READ(6) and WRITE(6).
const BLOCKS_6: [u8; 2] = [0x08, 0x0a];
/// Commands of 10 bytes with an LBA in bytes 2 to 5, and a number of blocks in bytes 7 and 8.
const BLOCKS_10: [u8; 8] = [0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x35, 0x41, 0x53];
/// Commands of 12 bytes with an LBA in bytes 2 to 5, and a number of blocks in bytes 6 to 9.
const BLOCKS_12: [u8; 4] = [0xa8, 0xaa, 0xae, 0xaf];
/// Commands of 16 bytes with an LBA in bytes 2 to 9, and a number of blocks in bytes 10 to 13.
const BLOCKS_16: [u8; 7] = [0x88, 0x8a, 0x8e, 0x8f, 0x90, 0x91, 0x93];
const COMPARE_AND_WRITE: u8 = 0x89;
const WRITE_ATOMIC_16: u8 = 0x9c;
const VARIABLE_LENGTH: u8 = 0x7f;
const SERVICE_ACTION_IN_16: u8 = 0x9e;
const MAINTENANCE_IN: u8 = 0xa3;
const MAINTENANCE_OUT: u8 = 0xa4;

/// The blocks to which a command refers, if the logical unit is a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Address of the first logical block.
    pub lba: u64,
    /// Number of logical blocks.
    pub count: u32,
}

/// The first 16 bytes of a command descriptor block. A shorter block has padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cdb(pub [u8; 16]);

impl Cdb {
    /// The operation code.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// The service action; `None` if weft knows no service actions for this operation code.
    #[must_use]
    pub fn service_action(&self) -> Option<u16> {
        match self.opcode() {
            VARIABLE_LENGTH => Some(u16::from_be_bytes([self.0[8], self.0[9]])),
            SERVICE_ACTION_IN_16 | MAINTENANCE_IN | MAINTENANCE_OUT => Some(u16::from(self.0[1] & 0x1f)),
            _ => None,
        }
    }

    /// The name of the command, or a description if the operation code has no name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let action = self.service_action().and_then(|action| service_action_name(self.opcode(), action));
        action.or_else(|| opcode_name(self.opcode())).unwrap_or(match self.opcode() {
            0xc0.. => "vendor-specific command",
            _ => "unknown command",
        })
    }

    /// The big-endian number in the bytes from `at` to `end`.
    fn number(&self, at: usize, end: usize) -> u64 {
        self.0[at..end].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The blocks to which the command refers; `None` if the command does not refer to a range of
    /// blocks.
    #[must_use]
    pub fn blocks(&self) -> Option<Blocks> {
        let opcode = self.opcode();
        let (lba, count) = if BLOCKS_6.contains(&opcode) {
            let count = self.number(4, 5);
            // In these commands only, 0 means 256 blocks.
            (self.number(1, 4) & 0x1f_ffff, if count == 0 { 256 } else { count })
        } else if BLOCKS_10.contains(&opcode) {
            (self.number(2, 6), self.number(7, 9))
        } else if BLOCKS_12.contains(&opcode) {
            (self.number(2, 6), self.number(6, 10))
        } else if BLOCKS_16.contains(&opcode) {
            (self.number(2, 10), self.number(10, 14))
        } else if opcode == COMPARE_AND_WRITE {
            (self.number(2, 10), self.number(13, 14))
        } else if opcode == WRITE_ATOMIC_16 {
            (self.number(2, 10), self.number(12, 14))
        } else {
            return None;
        };
        Some(Blocks { lba, count: u32::try_from(count).unwrap_or(u32::MAX) })
    }
}

/// The name of the command, and its blocks.
impl fmt::Display for Cdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.blocks() {
            Some(Blocks { lba, count }) => write!(f, " LBA {lba} blocks {count}"),
            None => Ok(()),
        }
    }
}

/// The name of an operation code, if it has one.
pub(crate) fn opcode_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "TEST UNIT READY",
        0x03 => "REQUEST SENSE",
        0x04 => "FORMAT UNIT",
        0x05 => "READ BLOCK LIMITS",
        0x07 => "REASSIGN BLOCKS",
        0x08 => "READ(6)",
        0x0a => "WRITE(6)",
        0x12 => "INQUIRY",
        0x15 => "MODE SELECT(6)",
        0x16 => "RESERVE(6)",
        0x17 => "RELEASE(6)",
        0x1a => "MODE SENSE(6)",
        0x1b => "START STOP UNIT",
        0x1c => "RECEIVE DIAGNOSTIC RESULTS",
        0x1d => "SEND DIAGNOSTIC",
        0x1e => "PREVENT ALLOW MEDIUM REMOVAL",
        0x25 => "READ CAPACITY(10)",
        0x28 => "READ(10)",
        0x2a => "WRITE(10)",
        0x2e => "WRITE AND VERIFY(10)",
        0x2f => "VERIFY(10)",
        0x34 => "PRE-FETCH(10)",
        0x35 => "SYNCHRONIZE CACHE(10)",
        0x37 => "READ DEFECT DATA(10)",
        0x3b => "WRITE BUFFER",
        0x3c => "READ BUFFER",
        0x41 => "WRITE SAME(10)",
        0x42 => "UNMAP",
        0x43 => "READ TOC/PMA/ATIP",
        0x46 => "GET CONFIGURATION",
        0x48 => "SANITIZE",
        0x4a => "GET EVENT STATUS NOTIFICATION",
        0x4c => "LOG SELECT",
        0x4d => "LOG SENSE",
        0x53 => "XDWRITEREAD(10)",
        0x55 => "MODE SELECT(10)",
        0x56 => "RESERVE(10)",
        0x57 => "RELEASE(10)",
        0x5a => "MODE SENSE(10)",
        0x5e => "PERSISTENT RESERVE IN",
        0x5f => "PERSISTENT RESERVE OUT",
        VARIABLE_LENGTH => "variable-length command",
        0x83 => "EXTENDED COPY",
        0x84 => "RECEIVE COPY RESULTS",
        0x85 => "ATA PASS-THROUGH(16)",
        0x86 => "ACCESS CONTROL IN",
        0x87 => "ACCESS CONTROL OUT",
        0x88 => "READ(16)",
        COMPARE_AND_WRITE => "COMPARE AND WRITE",
        0x8a => "WRITE(16)",
        0x8c => "READ ATTRIBUTE",
        0x8d => "WRITE ATTRIBUTE",
        0x8e => "WRITE AND VERIFY(16)",
        0x8f => "VERIFY(16)",
        0x90 => "PRE-FETCH(16)",
        0x91 => "SYNCHRONIZE CACHE(16)",
        0x93 => "WRITE SAME(16)",
        0x94 => "ZBC OUT",
        0x95 => "ZBC IN",
        WRITE_ATOMIC_16 => "WRITE ATOMIC(16)",
        SERVICE_ACTION_IN_16 => "SERVICE ACTION IN(16)",
        0x9f => "SERVICE ACTION OUT(16)",
        0xa0 => "REPORT LUNS",
        0xa1 => "ATA PASS-THROUGH(12)",
        0xa2 => "SECURITY PROTOCOL IN",
        MAINTENANCE_IN => "MAINTENANCE IN",
        MAINTENANCE_OUT => "MAINTENANCE OUT",
        0xa8 => "READ(12)",
        0xaa => "WRITE(12)",
        0xae => "WRITE AND VERIFY(12)",
        0xaf => "VERIFY(12)",
        0xb5 => "SECURITY PROTOCOL OUT",
        0xb7 => "READ DEFECT DATA(12)",
        _ => return None,
    })
}

/// The name of a service action, if it has one.
fn service_action_name(opcode: u8, action: u16) -> Option<&'static str> {
    Some(match (opcode, action) {
        (VARIABLE_LENGTH, 0x0009) => "READ(32)",
        (VARIABLE_LENGTH, 0x000a) => "VERIFY(32)",
        (VARIABLE_LENGTH, 0x000b) => "WRITE(32)",
        (VARIABLE_LENGTH, 0x000c) => "WRITE AND VERIFY(32)",
        (VARIABLE_LENGTH, 0x000d) => "WRITE SAME(32)",
        (SERVICE_ACTION_IN_16, 0x10) => "READ CAPACITY(16)",
        (SERVICE_ACTION_IN_16, 0x12) => "GET LBA STATUS",
        (MAINTENANCE_IN, 0x05) => "REPORT IDENTIFYING INFORMATION",
        (MAINTENANCE_IN, 0x0a) => "REPORT TARGET PORT GROUPS",
        (MAINTENANCE_IN, 0x0b) => "REPORT ALIASES",
        (MAINTENANCE_IN, 0x0c) => "REPORT SUPPORTED OPERATION CODES",
        (MAINTENANCE_IN, 0x0d) => "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
        (MAINTENANCE_IN, 0x0e) => "REPORT PRIORITY",
        (MAINTENANCE_IN, 0x0f) => "REPORT TIMESTAMP",
        (MAINTENANCE_OUT, 0x06) => "SET IDENTIFYING INFORMATION",
        (MAINTENANCE_OUT, 0x0a) => "SET TARGET PORT GROUPS",
        (MAINTENANCE_OUT, 0x0b) => "CHANGE ALIASES",
        (MAINTENANCE_OUT, 0x0e) => "SET PRIORITY",
        (MAINTENANCE_OUT, 0x0f) => "SET TIMESTAMP",
        _ => return None,
    })
}

/// A logical unit number in the format of SCSI (SAM): four levels of 2 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lun(pub [u8; 8]);

impl Lun {
    /// The number, if the LUN has one level and the addressing method "peripheral device" with bus
    /// 0 (0 to 255) or "flat space" (0 to 16383).
    #[must_use]
    pub fn number(&self) -> Option<u16> {
        let [high, low, rest @ ..] = self.0;
        match (high >> 6, high & 0x3f) {
            _ if rest != [0; 6] => None,
            (0b00, 0) => Some(u16::from(low)),
            (0b01, _) => Some(u16::from_be_bytes([high & 0x3f, low])),
            _ => None,
        }
    }
}

/// The number, or all bytes in hexadecimal if the LUN is not a single number.
impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "{number}"),
            None => write!(f, "{:#018x}", u64::from_be_bytes(self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn cdb(text: &str) -> Cdb {
        let mut bytes = hex(text);
        bytes.resize(16, 0);
        Cdb(bytes.try_into().unwrap())
    }

    /// The CDBs with 10 and 16 bytes are from a capture of Linux, except COMPARE AND WRITE. The
    /// others follow the tables of SBC-3 and SPC-4.
    #[test]
    fn reads_the_blocks_of_each_length() {
        for (bytes, text) in [
            ("08 1f ff fe 00 00", "READ(6) LBA 2097150 blocks 256"),
            ("0a 00 00 10 08 00", "WRITE(6) LBA 16 blocks 8"),
            ("28 00 00 00 08 00 00 00 01 00", "READ(10) LBA 2048 blocks 1"),
            ("2a 00 00 00 80 00 00 00 80 00", "WRITE(10) LBA 32768 blocks 128"),
            ("a8 00 00 00 00 10 00 01 00 00 00 00", "READ(12) LBA 16 blocks 65536"),
            ("88 00 00 00 00 00 00 00 80 00 00 00 00 80 00 00", "READ(16) LBA 32768 blocks 128"),
            ("8a 00 00 00 00 00 00 02 00 00 00 00 01 00 00 00", "WRITE(16) LBA 131072 blocks 256"),
            ("89 00 00 00 00 00 00 00 00 07 00 00 00 02 00 00", "COMPARE AND WRITE LBA 7 blocks 2"),
            ("12 01 80 00 24 00", "INQUIRY"),
            ("9e 10", "READ CAPACITY(16)"),
            ("9e 1f", "SERVICE ACTION IN(16)"),
            ("a3 0c", "REPORT SUPPORTED OPERATION CODES"),
            ("7f 00 00 00 00 00 00 18 00 0b", "WRITE(32)"),
            ("e0", "vendor-specific command"),
            ("bf", "unknown command"),
        ] {
            assert_eq!(cdb(bytes).to_string(), text);
        }
    }

    /// SAM-5 section 4.7: peripheral device addressing, and flat space addressing.
    #[test]
    fn a_lun_of_one_level_is_a_number() {
        let lun = |text: &str| Lun(hex(text).try_into().unwrap()).to_string();
        assert_eq!(lun("0000000000000000"), "0");
        assert_eq!(lun("00ff000000000000"), "255");
        assert_eq!(lun("4100000000000000"), "256");
        assert_eq!(lun("0105000000000000"), "0x0105000000000000");
        assert_eq!(lun("0001000200000000"), "0x0001000200000000");
        assert_eq!(lun("c101000000000000"), "0xc101000000000000");
    }
}
