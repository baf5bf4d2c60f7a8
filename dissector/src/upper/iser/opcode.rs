//! [`Opcode`]: the opcode of an iSCSI PDU.

use super::names;

/// The opcode of an iSCSI PDU, 0 to 0x3f (RFC 7143 section 11.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opcode(pub u8);

impl Opcode {
    /// NOP-Out.
    pub const NOP_OUT: Opcode = Opcode(0x00);
    /// SCSI Command.
    pub const SCSI_COMMAND: Opcode = Opcode(0x01);
    /// Task Management Function Request.
    pub const TASK_REQUEST: Opcode = Opcode(0x02);
    /// Login Request.
    pub const LOGIN_REQUEST: Opcode = Opcode(0x03);
    /// Text Request.
    pub const TEXT_REQUEST: Opcode = Opcode(0x04);
    /// SCSI Data-Out. iSER sends it only for unsolicited data.
    pub const DATA_OUT: Opcode = Opcode(0x05);
    /// Logout Request.
    pub const LOGOUT_REQUEST: Opcode = Opcode(0x06);
    /// SNACK Request. RFC 7145 section 7.3.11 forbids it.
    pub const SNACK_REQUEST: Opcode = Opcode(0x10);
    /// NOP-In.
    pub const NOP_IN: Opcode = Opcode(0x20);
    /// SCSI Response.
    pub const SCSI_RESPONSE: Opcode = Opcode(0x21);
    /// Task Management Function Response.
    pub const TASK_RESPONSE: Opcode = Opcode(0x22);
    /// Login Response.
    pub const LOGIN_RESPONSE: Opcode = Opcode(0x23);
    /// Text Response.
    pub const TEXT_RESPONSE: Opcode = Opcode(0x24);
    /// SCSI Data-In. iSER sends RDMA Writes instead (RFC 7145 section 7.3.5).
    pub const DATA_IN: Opcode = Opcode(0x25);
    /// Logout Response.
    pub const LOGOUT_RESPONSE: Opcode = Opcode(0x26);
    /// Ready To Transfer. iSER sends RDMA Read Requests instead (RFC 7145 section 7.3.6).
    pub const R2T: Opcode = Opcode(0x31);
    /// Asynchronous Message.
    pub const ASYNC: Opcode = Opcode(0x32);
    /// Reject.
    pub const REJECT: Opcode = Opcode(0x3f);

    /// The name of the PDU, or a description if the opcode has no name.
    #[must_use]
    pub fn name(self) -> &'static str {
        names::opcode(self.0.into()).unwrap_or("unassigned opcode")
    }

    /// Returns whether the opcode is assigned.
    pub(super) fn is_assigned(self) -> bool {
        names::opcode(self.0.into()).is_some()
    }

    /// Returns whether a Send must not carry this PDU: iSER transfers its data by RDMA operations,
    /// or forbids it (RFC 7145 sections 7.1 and 7.3.11).
    #[must_use]
    pub fn is_forbidden(self) -> bool {
        matches!(self, Opcode::DATA_IN | Opcode::R2T | Opcode::SNACK_REQUEST)
    }

    /// Returns whether a response with the same Initiator Task Tag follows this PDU.
    pub(super) fn has_response(self) -> bool {
        matches!(
            self,
            Opcode::NOP_OUT
                | Opcode::SCSI_COMMAND
                | Opcode::TASK_REQUEST
                | Opcode::LOGIN_REQUEST
                | Opcode::TEXT_REQUEST
                | Opcode::LOGOUT_REQUEST
        )
    }

    /// The opcode of the request that a PDU with this opcode answers.
    pub(super) fn request(self) -> Option<Opcode> {
        let request = Opcode(self.0.checked_sub(0x20)?);
        request.has_response().then_some(request)
    }
}
