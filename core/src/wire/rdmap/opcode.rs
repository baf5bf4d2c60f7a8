//! RDMAP opcodes (RFC 5040 section 4.3, RFC 7306 section 4).

use std::fmt;

/// An RDMAP opcode of four bits. Unassigned values are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

impl Opcode {
    /// RDMA Write.
    pub const WRITE: Opcode = Opcode(0);
    /// RDMA Read Request.
    pub const READ_REQUEST: Opcode = Opcode(1);
    /// RDMA Read Response.
    pub const READ_RESPONSE: Opcode = Opcode(2);
    /// Send.
    pub const SEND: Opcode = Opcode(3);
    /// Send with Invalidate.
    pub const SEND_INVALIDATE: Opcode = Opcode(4);
    /// Send with Solicited Event.
    pub const SEND_SE: Opcode = Opcode(5);
    /// Send with Solicited Event and Invalidate.
    pub const SEND_SE_INVALIDATE: Opcode = Opcode(6);
    /// Terminate.
    pub const TERMINATE: Opcode = Opcode(7);
    /// Immediate Data.
    pub const IMMEDIATE: Opcode = Opcode(8);
    /// Immediate Data with Solicited Event.
    pub const IMMEDIATE_SE: Opcode = Opcode(9);
    /// Atomic Request.
    pub const ATOMIC_REQUEST: Opcode = Opcode(10);
    /// Atomic Response.
    pub const ATOMIC_RESPONSE: Opcode = Opcode(11);

    /// Returns whether messages with this opcode use tagged segments; `None` for unassigned
    /// opcodes.
    #[must_use]
    pub const fn is_tagged(self) -> Option<bool> {
        match self.0 {
            0 | 2 => Some(true),
            1 | 3..=11 => Some(false),
            _ => None,
        }
    }

    /// Returns whether the opcode is one of the four Sends.
    #[must_use]
    pub const fn is_send(self) -> bool {
        matches!(self.0, 3..=6)
    }

    /// Returns whether the opcode is a Send that invalidates an STag.
    #[must_use]
    pub const fn invalidates(self) -> bool {
        matches!(self.0, 4 | 6)
    }

    /// The name in RFC 5040 or RFC 7306, "experimental" for 15, or "reserved" for other values.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "RDMA Write",
            1 => "RDMA Read Request",
            2 => "RDMA Read Response",
            3 => "Send",
            4 => "Send with Invalidate",
            5 => "Send with SE",
            6 => "Send with SE and Invalidate",
            7 => "Terminate",
            8 => "Immediate Data",
            9 => "Immediate Data with SE",
            10 => "Atomic Request",
            11 => "Atomic Response",
            15 => "experimental",
            _ => "reserved",
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.name())
    }
}
