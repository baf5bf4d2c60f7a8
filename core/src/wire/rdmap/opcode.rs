//! RDMAP opcodes (RFC 5040 section 4.3, RFC 7306 section 4).

use crate::wire::open_enum::open_enum;

open_enum! {
    /// An RDMAP opcode of four bits. Unassigned values are kept as they are.
    Opcode(u8), debug "{} ({})", otherwise "reserved", 15 => "experimental" {
        /// RDMA Write.
        WRITE = 0 => "RDMA Write",
        /// RDMA Read Request.
        READ_REQUEST = 1 => "RDMA Read Request",
        /// RDMA Read Response.
        READ_RESPONSE = 2 => "RDMA Read Response",
        /// Send.
        SEND = 3 => "Send",
        /// Send with Invalidate.
        SEND_INVALIDATE = 4 => "Send with Invalidate",
        /// Send with Solicited Event.
        SEND_SE = 5 => "Send with SE",
        /// Send with Solicited Event and Invalidate.
        SEND_SE_INVALIDATE = 6 => "Send with SE and Invalidate",
        /// Terminate.
        TERMINATE = 7 => "Terminate",
        /// Immediate Data.
        IMMEDIATE = 8 => "Immediate Data",
        /// Immediate Data with Solicited Event.
        IMMEDIATE_SE = 9 => "Immediate Data with SE",
        /// Atomic Request.
        ATOMIC_REQUEST = 10 => "Atomic Request",
        /// Atomic Response.
        ATOMIC_RESPONSE = 11 => "Atomic Response",
    }
}

impl Opcode {
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
}
