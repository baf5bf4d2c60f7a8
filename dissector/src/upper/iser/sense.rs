//! [`Status`] and [`Sense`]: the result of a SCSI command.

use std::fmt;

/// A status code of SCSI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u8);

impl Status {
    /// CHECK CONDITION: the response has sense data.
    pub const CHECK_CONDITION: Status = Status(0x02);

    /// The name in SAM-5 section 5.3, if the status has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x00 => "GOOD",
            0x02 => "CHECK CONDITION",
            0x04 => "CONDITION MET",
            0x08 => "BUSY",
            0x18 => "RESERVATION CONFLICT",
            0x28 => "TASK SET FULL",
            0x30 => "ACA ACTIVE",
            0x40 => "TASK ABORTED",
            _ => return None,
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "status {:#04x}", self.0),
        }
    }
}

/// The sense data of a response, in fixed or in descriptor format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// Response code: 0x70 (current) or 0x71 (deferred) in fixed format, 0x72 or 0x73 in descriptor
    /// format.
    pub response_code: u8,
    /// Sense key, 0 to 15.
    pub key: u8,
    /// Additional sense code.
    pub asc: u8,
    /// Additional sense code qualifier.
    pub ascq: u8,
}

impl Sense {
    /// Reads the start of sense data. Returns `None` if the format is not known, or if `bytes` are
    /// too short.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let response_code = bytes.first()? & 0x7f;
        let (key, asc, ascq) = match response_code {
            0x70 | 0x71 => {
                // Byte 7 has the number of bytes that follow.
                let end = 8 + usize::from(*bytes.get(7)?);
                let additional = |at: usize| if at < end { bytes.get(at).copied() } else { Some(0) };
                (*bytes.get(2)?, additional(12)?, additional(13)?)
            }
            0x72 | 0x73 => (*bytes.get(1)?, *bytes.get(2)?, *bytes.get(3)?),
            _ => return None,
        };
        Some(Sense { response_code, key: key & 0xf, asc, ascq })
    }

    /// Returns whether the sense data has fixed format.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self.response_code, 0x70 | 0x71)
    }

    /// The name of the sense key.
    #[must_use]
    pub fn key_name(&self) -> &'static str {
        key_name(self.key.into()).unwrap_or("reserved")
    }

    /// The name of the additional sense code and qualifier, if weft knows one.
    #[must_use]
    pub fn additional_name(&self) -> Option<&'static str> {
        additional_name(u16::from_be_bytes([self.asc, self.ascq]).into())
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.key_name())?;
        match self.additional_name() {
            Some(name) => f.write_str(name),
            None => write!(f, "ASC {:#04x} ASCQ {:#04x}", self.asc, self.ascq),
        }
    }
}

/// The name of a sense key (SPC-4).
pub(crate) fn key_name(key: u64) -> Option<&'static str> {
    const NAMES: [&str; 16] = [
        "No Sense",
        "Recovered Error",
        "Not Ready",
        "Medium Error",
        "Hardware Error",
        "Illegal Request",
        "Unit Attention",
        "Data Protect",
        "Blank Check",
        "Vendor Specific",
        "Copy Aborted",
        "Aborted Command",
        "reserved",
        "Volume Overflow",
        "Miscompare",
        "Completed",
    ];
    NAMES.get(usize::try_from(key).ok()?).copied()
}

/// The name of an additional sense code (high byte) with its qualifier (low byte), for common
/// values (SPC-4).
pub(crate) fn additional_name(code: u64) -> Option<&'static str> {
    Some(match code {
        0x0000 => "No additional sense information",
        0x0400 => "Logical unit not ready, cause not reportable",
        0x0401 => "Logical unit is in process of becoming ready",
        0x0402 => "Logical unit not ready, initializing command required",
        0x0403 => "Logical unit not ready, manual intervention required",
        0x0404 => "Logical unit not ready, format in progress",
        0x0407 => "Logical unit not ready, operation in progress",
        0x040a => "Logical unit not accessible, asymmetric access state transition",
        0x040b => "Logical unit not accessible, target port in standby state",
        0x040c => "Logical unit not accessible, target port in unavailable state",
        0x0800 => "Logical unit communication failure",
        0x0801 => "Logical unit communication time-out",
        0x0c00 => "Write error",
        0x0c02 => "Write error, auto reallocation failed",
        0x0c0c => "Write error, unexpected unsolicited data",
        0x0c0d => "Write error, not enough unsolicited data",
        0x1001 => "Logical block guard check failed",
        0x1002 => "Logical block application tag check failed",
        0x1003 => "Logical block reference tag check failed",
        0x1100 => "Unrecovered read error",
        0x1113 => "Read error, failed retransmission request",
        0x1a00 => "Parameter list length error",
        0x1d00 => "Miscompare during verify operation",
        0x2000 => "Invalid command operation code",
        0x2100 => "Logical block address out of range",
        0x2400 => "Invalid field in CDB",
        0x2500 => "Logical unit not supported",
        0x2600 => "Invalid field in parameter list",
        0x2604 => "Invalid release of persistent reservation",
        0x2700 => "Write protected",
        0x2707 => "Space allocation failed, write protect",
        0x2800 => "Not ready to ready change, medium may have changed",
        0x2900 => "Power on, reset, or bus device reset occurred",
        0x2901 => "Power on occurred",
        0x2903 => "Bus device reset function occurred",
        0x2907 => "I_T nexus loss occurred",
        0x2a00 => "Parameters changed",
        0x2a01 => "Mode parameters changed",
        0x2a03 => "Reservations preempted",
        0x2a04 => "Reservations released",
        0x2a05 => "Registrations preempted",
        0x2a06 => "Asymmetric access state changed",
        0x2a09 => "Capacity data has changed",
        0x2c00 => "Command sequence error",
        0x2f00 => "Commands cleared by another initiator",
        0x3100 => "Medium format corrupted",
        0x3a00 => "Medium not present",
        0x3f01 => "Microcode has been changed",
        0x3f03 => "Inquiry data has changed",
        0x3f0e => "Reported LUNs data has changed",
        0x4400 => "Internal target failure",
        0x4705 => "Protocol service CRC error",
        0x4b00 => "Data phase error",
        0x4e00 => "Overlapped commands attempted",
        0x5500 => "System resource failure",
        0x5503 => "Insufficient resources",
        0x5d00 => "Failure prediction threshold exceeded",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn text(bytes: &str) -> Option<String> {
        Sense::parse(&hex(bytes)).map(|sense| sense.to_string())
    }

    /// The first sense data are from a capture of Linux. The others follow the tables of SPC-4.
    #[test]
    fn reads_both_formats() {
        let fixed = "70 00 05 00000000 0a 00000000 20 00 00 000000";
        assert_eq!(text(fixed).as_deref(), Some("Illegal Request: Invalid command operation code"));
        assert_eq!(text("72 06 3f 0e 00000000").as_deref(), Some("Unit Attention: Reported LUNs data has changed"));
        // The additional sense length excludes ASC and ASCQ.
        let short = "f1 00 03 00000000 04 00000000 20 00";
        assert_eq!(text(short).as_deref(), Some("Medium Error: No additional sense information"));
        assert_eq!(text("70 00 0b 00000000 0a 00000000 fe 01").as_deref(), Some("Aborted Command: ASC 0xfe ASCQ 0x01"));
    }

    #[test]
    fn short_or_unknown_sense_data_are_not_read() {
        let fixed = "70 00 05 00000000 0a 00000000 20 00";
        for len in 0..14 {
            assert_eq!(Sense::parse(&hex(fixed)[..len]), None, "{len}");
        }
        for len in 0..4 {
            assert_eq!(Sense::parse(&hex("72 06 29 00")[..len]), None, "{len}");
        }
        assert_eq!(text("7f 00 05 00000000 0a 00000000 20 00"), None);
    }
}
