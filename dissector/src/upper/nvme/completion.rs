//! [`Completion`]: a completion queue entry, which is a response capsule. An entry has 16 bytes.
//! All fields are little-endian.

use std::fmt;

use super::command::CommandCode;
use super::names;
use crate::frame_number::FrameNumber;

/// Length in bytes of a completion queue entry.
pub(crate) const COMPLETION_LEN: usize = 16;

/// The status field of a completion. Bit 0 is the phase tag, which has no meaning in a response
/// capsule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// SC: the status code.
    #[must_use]
    pub fn code(self) -> u8 {
        (self.0 >> 1) as u8
    }

    /// SCT: the status code type, 0 to 7.
    #[must_use]
    pub fn code_type(self) -> u8 {
        (self.0 >> 9 & 0b111) as u8
    }

    /// CRD: which of the controller's retry delays applies, 0 to 3.
    #[must_use]
    pub fn retry_delay(self) -> u8 {
        (self.0 >> 12 & 0b11) as u8
    }

    /// M: the Error Information log page has more information.
    #[must_use]
    pub fn has_more(self) -> bool {
        self.0 & 0x4000 != 0
    }

    /// DNR: a retry of the command will fail, too.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns whether the command succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        (self.code_type(), self.code()) == (0, 0)
    }

    /// The name of the status. `is_fabrics` is set if the status belongs to a Fabrics command.
    /// Returns `None` if the status has no name.
    #[must_use]
    pub fn name(self, is_fabrics: bool) -> Option<&'static str> {
        names::status(self.code_type(), self.code(), is_fabrics)
    }
}

/// The command that a completion answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredCommand {
    /// The kind of command.
    pub code: CommandCode,
    /// Number of the frame that completed the command capsule.
    pub frame: FrameNumber,
}

/// A completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Dwords 0 and 1. Their meaning depends on the command.
    pub result: u64,
    /// SQHD: the current head of the Submission Queue.
    pub sq_head: u16,
    /// SQID. It is reserved in response capsules, but Linux sends the QID.
    pub sq_id: u16,
    /// CID.
    pub command_id: u16,
    /// The status.
    pub status: Status,
    /// QID; `None` if the connection's queue is not known.
    pub queue: Option<u16>,
    /// The command with this CID; `None` if no such command is outstanding. The reason can be that
    /// the capture lacks the command, or that the command was parsed after the completion.
    pub command: Option<AnsweredCommand>,
}

impl Completion {
    /// Reads a response capsule. Returns `None` if `capsule` does not have exactly 16 bytes. The
    /// fields `queue` and `command` are not in the capsule, and are `None`.
    #[must_use]
    pub fn parse(capsule: &[u8]) -> Option<Self> {
        let entry: &[u8; COMPLETION_LEN] = capsule.try_into().ok()?;
        let [r0, r1, r2, r3, r4, r5, r6, r7, h0, h1, q0, q1, c0, c1, s0, s1] = *entry;
        Some(Completion {
            result: u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            sq_head: u16::from_le_bytes([h0, h1]),
            sq_id: u16::from_le_bytes([q0, q1]),
            command_id: u16::from_le_bytes([c0, c1]),
            status: Status(u16::from_le_bytes([s0, s1])),
            queue: None,
            command: None,
        })
    }

    /// Returns whether the command is a Fabrics command, as far as the command is known.
    pub(crate) fn is_fabrics(&self) -> bool {
        self.command.is_some_and(|command| command.code.fabrics_type.is_some())
    }

    /// The name of the status, if it has one.
    #[must_use]
    pub fn status_name(&self) -> Option<&'static str> {
        self.status.name(self.is_fabrics())
    }
}

/// The content of the completion, without its name.
impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CID {:#06x}", self.command_id)?;
        if let Some(queue) = self.queue {
            write!(f, " queue {queue}")?;
        }
        match self.command {
            Some(command) => write!(f, " to {} in frame {}", command.code.name(), command.frame)?,
            None => f.write_str(" to an unknown command")?,
        }
        match self.status_name() {
            Some(name) => write!(f, ": {name}")?,
            None => write!(f, ": status type {} code {:#04x}", self.status.code_type(), self.status.code())?,
        }
        if self.status.is_final() {
            f.write_str(", do not retry")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The last entry is from a capture of Linux. The trace of the kernel shows the status 0x6002
    /// for it.
    #[test]
    fn reads_the_fields_of_an_entry() {
        let found = Completion::parse(&hex("0100000000000000 0500 0100 0900 0000")).unwrap();
        assert_eq!((found.result, found.sq_head, found.sq_id, found.command_id), (1, 5, 1, 9));
        assert!(found.status.is_success() && !found.status.has_more() && !found.status.is_final());
        assert_eq!(found.to_string(), "CID 0x0009 to an unknown command: Successful Completion");
        let failed = Completion::parse(&hex("0000000000000000 0000 0000 1950 04c0")).unwrap().status;
        assert_eq!((failed.code_type(), failed.code(), failed.retry_delay()), (0, 2, 0));
        assert!(failed.has_more() && failed.is_final() && !failed.is_success());
        assert_eq!(failed.name(false), Some("Invalid Field in Command"));
    }

    /// The phase tag is bit 0.
    #[test]
    fn the_phase_tag_changes_nothing() {
        let [one, other] = [Status(0x0001), Status(0x0000)];
        assert!(one.is_success() && other.is_success());
        assert_eq!(one.name(false), other.name(false));
    }

    /// Status 0x182 is Connect Invalid Parameters for a Fabrics command, and Attempted Write to
    /// Read Only Range for an I/O command.
    #[test]
    fn the_command_determines_the_meaning_of_a_status() {
        let status = Status(0x182 << 1);
        assert_eq!((status.code_type(), status.code()), (1, 0x82));
        assert_eq!(status.name(true), Some("Connect Invalid Parameters"));
        assert_eq!(status.name(false), Some("Attempted Write to Read Only Range"));
        assert_eq!(Status(0x7ff << 1).name(false), None);
    }

    #[test]
    fn a_capsule_of_another_length_is_not_read() {
        for len in (0..40).filter(|len| *len != COMPLETION_LEN) {
            assert_eq!(Completion::parse(&vec![0; len]), None, "{len}");
        }
    }
}
