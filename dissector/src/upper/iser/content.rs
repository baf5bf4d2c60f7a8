//! [`Content`]: the fields of an iSCSI PDU that depend on its opcode (RFC 7143 section 11).

use std::fmt;

use super::cdb::{Cdb, Lun};
use super::names;
use super::opcode::Opcode;
use super::pdu::Pdu;
use super::sense::Status;

/// CmdSN and ExpStatSN of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestNumbers {
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
}

/// StatSN, ExpCmdSN and MaxCmdSN of a PDU that a target sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseNumbers {
    /// StatSN.
    pub stat_sn: u32,
    /// ExpCmdSN.
    pub exp_cmd_sn: u32,
    /// MaxCmdSN.
    pub max_cmd_sn: u32,
}

/// SCSI Command (RFC 7143 section 11.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiCommand {
    /// F: no unsolicited Data-Out follows.
    pub is_final: bool,
    /// R: the initiator expects data.
    pub reads: bool,
    /// W: the initiator has data.
    pub writes: bool,
    /// Task attribute, 0 to 7.
    pub attribute: u8,
    /// LUN.
    pub lun: Lun,
    /// Expected Data Transfer Length in bytes.
    pub expected_len: u32,
    /// CmdSN and ExpStatSN.
    pub numbers: RequestNumbers,
    /// The CDB.
    pub cdb: Cdb,
}

/// The data that a command did not transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residual {
    /// The data was as long as expected, or the flags of the response contradict each other.
    None,
    /// The target had this number of bytes more than the initiator expected.
    Overflow(u32),
    /// The target had this number of bytes less than the initiator expected.
    Underflow(u32),
}

impl Residual {
    fn new(overflow: bool, underflow: bool, count: u32) -> Self {
        match (overflow, underflow) {
            (true, false) => Residual::Overflow(count),
            (false, true) => Residual::Underflow(count),
            _ => Residual::None,
        }
    }
}

/// SCSI Response (RFC 7143 section 11.4). [`Pdu::sense`] has the sense data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiResponse {
    /// The iSCSI service response. 0 means that the command completed at the target.
    pub response: u8,
    /// The SCSI status. It has a meaning only if `response` is 0.
    pub status: Status,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: ResponseNumbers,
    /// ExpDataSN.
    pub exp_data_sn: u32,
    /// The residual of the transfer. For a command in both directions, this is the residual of the
    /// data that the initiator sent.
    pub residual: Residual,
    /// For a command in both directions, the residual of the data that the initiator received.
    pub bidirectional_read_residual: Residual,
}

/// The stages of a Login Request or Response (RFC 7143 sections 11.12 and 11.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginStages {
    /// CSG: the current stage, 0 to 3.
    pub current: u8,
    /// NSG: the next stage, 0 to 3; `None` if T is 0.
    pub next: Option<u8>,
    /// C: the text continues in the next PDU.
    pub continues: bool,
}

/// The fields of a PDU, without the fields that all PDUs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// NOP-Out (section 11.18).
    NopOut {
        /// Target Transfer Tag.
        transfer_tag: u32,
        /// CmdSN and ExpStatSN.
        numbers: RequestNumbers,
    },
    /// SCSI Command.
    ScsiCommand(ScsiCommand),
    /// Task Management Function Request (section 11.5).
    TaskRequest {
        /// Function.
        function: u8,
        /// LUN.
        lun: Lun,
        /// Referenced Task Tag.
        referenced_tag: u32,
        /// CmdSN and ExpStatSN.
        numbers: RequestNumbers,
    },
    /// Login Request (section 11.12).
    LoginRequest {
        /// The stages.
        stages: LoginStages,
        /// ISID.
        isid: [u8; 6],
        /// TSIH: 0 for a new session.
        tsih: u16,
        /// CID.
        cid: u16,
        /// CmdSN and ExpStatSN.
        numbers: RequestNumbers,
    },
    /// Text Request (section 11.10).
    TextRequest {
        /// F: the text is complete.
        is_final: bool,
        /// CmdSN and ExpStatSN.
        numbers: RequestNumbers,
    },
    /// SCSI Data-Out (section 11.7).
    DataOut {
        /// F: the sequence of Data-Out PDUs is complete.
        is_final: bool,
        /// Target Transfer Tag.
        transfer_tag: u32,
        /// DataSN.
        data_sn: u32,
        /// Offset of the data in the buffer of the command, in bytes.
        buffer_offset: u32,
    },
    /// Logout Request (section 11.14).
    LogoutRequest {
        /// Reason Code.
        reason: u8,
        /// CID.
        cid: u16,
        /// CmdSN and ExpStatSN.
        numbers: RequestNumbers,
    },
    /// NOP-In (section 11.19).
    NopIn {
        /// Target Transfer Tag.
        transfer_tag: u32,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// SCSI Response.
    ScsiResponse(ScsiResponse),
    /// Task Management Function Response (section 11.6).
    TaskResponse {
        /// Response.
        response: u8,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// Login Response (section 11.13).
    LoginResponse {
        /// The stages.
        stages: LoginStages,
        /// TSIH.
        tsih: u16,
        /// Status-Class in the high byte, and Status-Detail in the low byte.
        status: u16,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// Text Response (section 11.11).
    TextResponse {
        /// F: the text is complete.
        is_final: bool,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// Logout Response (section 11.15).
    LogoutResponse {
        /// Response.
        response: u8,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// Asynchronous Message (section 11.9).
    Async {
        /// LUN.
        lun: Lun,
        /// AsyncEvent.
        event: u8,
        /// Parameter1 to Parameter3.
        parameters: [u16; 3],
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// Reject (section 11.17).
    Reject {
        /// Reason.
        reason: u8,
        /// StatSN, ExpCmdSN and MaxCmdSN.
        numbers: ResponseNumbers,
    },
    /// A vendor-specific PDU, or a PDU that no Send must carry (see [`Opcode::is_forbidden`]).
    Other,
}

impl Pdu {
    /// The fields that depend on the opcode.
    #[must_use]
    pub fn content(&self) -> Content {
        Content::of(self)
    }
}

impl Content {
    fn of(pdu: &Pdu) -> Self {
        let flags = pdu.byte(1);
        let is_final = flags & 0x80 != 0;
        let numbers = RequestNumbers { cmd_sn: pdu.word(24), exp_stat_sn: pdu.word(28) };
        let transfer_tag = pdu.word(20);
        match pdu.opcode() {
            Opcode::NOP_OUT => Content::NopOut { transfer_tag, numbers },
            Opcode::SCSI_COMMAND => Content::ScsiCommand(ScsiCommand {
                is_final,
                reads: flags & 0x40 != 0,
                writes: flags & 0x20 != 0,
                attribute: flags & 0x07,
                lun: pdu.lun(),
                expected_len: pdu.word(20),
                numbers,
                cdb: Cdb(pdu.bytes(32)),
            }),
            Opcode::TASK_REQUEST => {
                Content::TaskRequest { function: flags & 0x7f, lun: pdu.lun(), referenced_tag: pdu.word(20), numbers }
            }
            Opcode::LOGIN_REQUEST => Content::LoginRequest {
                stages: stages(flags),
                isid: pdu.bytes(8),
                tsih: pdu.short(14),
                cid: pdu.short(20),
                numbers,
            },
            Opcode::TEXT_REQUEST => Content::TextRequest { is_final, numbers },
            Opcode::DATA_OUT => {
                Content::DataOut { is_final, transfer_tag, data_sn: pdu.word(36), buffer_offset: pdu.word(40) }
            }
            Opcode::LOGOUT_REQUEST => Content::LogoutRequest { reason: flags & 0x7f, cid: pdu.short(20), numbers },
            _ => Content::of_target(pdu),
        }
    }

    /// The content of a PDU that a target sends.
    fn of_target(pdu: &Pdu) -> Self {
        let flags = pdu.byte(1);
        let numbers = ResponseNumbers { stat_sn: pdu.word(24), exp_cmd_sn: pdu.word(28), max_cmd_sn: pdu.word(32) };
        match pdu.opcode() {
            Opcode::NOP_IN => Content::NopIn { transfer_tag: pdu.word(20), numbers },
            Opcode::SCSI_RESPONSE => Content::ScsiResponse(ScsiResponse {
                response: pdu.byte(2),
                status: Status(pdu.byte(3)),
                numbers,
                exp_data_sn: pdu.word(36),
                residual: Residual::new(flags & 0x04 != 0, flags & 0x02 != 0, pdu.word(44)),
                bidirectional_read_residual: Residual::new(flags & 0x10 != 0, flags & 0x08 != 0, pdu.word(40)),
            }),
            Opcode::TASK_RESPONSE => Content::TaskResponse { response: pdu.byte(2), numbers },
            Opcode::LOGIN_RESPONSE => {
                Content::LoginResponse { stages: stages(flags), tsih: pdu.short(14), status: pdu.short(36), numbers }
            }
            Opcode::TEXT_RESPONSE => Content::TextResponse { is_final: flags & 0x80 != 0, numbers },
            Opcode::LOGOUT_RESPONSE => Content::LogoutResponse { response: pdu.byte(2), numbers },
            Opcode::ASYNC => Content::Async {
                lun: pdu.lun(),
                event: pdu.byte(36),
                parameters: [pdu.short(38), pdu.short(40), pdu.short(42)],
                numbers,
            },
            Opcode::REJECT => Content::Reject { reason: pdu.byte(2), numbers },
            _ => Content::Other,
        }
    }
}

fn stages(flags: u8) -> LoginStages {
    LoginStages {
        current: flags >> 2 & 0b11,
        next: (flags & 0x80 != 0).then_some(flags & 0b11),
        continues: flags & 0x40 != 0,
    }
}

/// Writes the name of `value`, or its number in hexadecimal if it has no name.
fn named(f: &mut fmt::Formatter<'_>, name: Option<&'static str>, value: u8) -> fmt::Result {
    match name {
        Some(name) => f.write_str(name),
        None => write!(f, "{value:#04x}"),
    }
}

/// The stages, for example `SecurityNegotiation to FullFeaturePhase`.
impl fmt::Display for LoginStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(f, names::login_stage(self.current.into()), self.current)?;
        if let Some(next) = self.next {
            f.write_str(" to ")?;
            named(f, names::login_stage(next.into()), next)?;
        }
        if self.continues { f.write_str(" continues") } else { Ok(()) }
    }
}

/// The residual, after a space.
impl fmt::Display for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Residual::None => Ok(()),
            Residual::Overflow(count) => write!(f, " overflow {count}"),
            Residual::Underflow(count) => write!(f, " underflow {count}"),
        }
    }
}

/// The fields that are important for people, each after a space.
impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::ScsiCommand(command) => {
                write!(f, " {} LUN {} length {}", command.cdb, command.lun, command.expected_len)
            }
            Content::ScsiResponse(response) => {
                f.write_str(" ")?;
                match response.response {
                    0 => write!(f, "{}", response.status)?,
                    other => named(f, names::service_response(other.into()), other)?,
                }
                write!(f, "{}", response.residual)?;
                match response.bidirectional_read_residual {
                    Residual::None => Ok(()),
                    read => write!(f, " read{read}"),
                }
            }
            Content::TaskRequest { function, lun, referenced_tag, .. } => {
                f.write_str(" ")?;
                named(f, names::task_function(u64::from(*function)), *function)?;
                write!(f, " LUN {lun} referenced tag {referenced_tag:#010x}")
            }
            Content::TaskResponse { response, .. } => {
                f.write_str(" ")?;
                named(f, names::task_response(u64::from(*response)), *response)
            }
            Content::LoginRequest { stages, tsih, .. } => write!(f, " {stages} TSIH {tsih:#06x}"),
            Content::LoginResponse { stages, tsih, status, .. } => {
                write!(f, " {stages} TSIH {tsih:#06x} ")?;
                match names::login_status(u64::from(*status)) {
                    Some(name) => f.write_str(name),
                    None => write!(f, "status {status:#06x}"),
                }
            }
            Content::DataOut { buffer_offset, .. } => write!(f, " offset {buffer_offset}"),
            Content::LogoutRequest { reason, .. } => {
                f.write_str(" ")?;
                named(f, names::logout_reason(u64::from(*reason)), *reason)
            }
            Content::LogoutResponse { response, .. } => {
                f.write_str(" ")?;
                named(f, names::logout_response(u64::from(*response)), *response)
            }
            Content::Async { event, lun, .. } => {
                f.write_str(" ")?;
                named(f, names::async_event(u64::from(*event)), *event)?;
                write!(f, " LUN {lun}")
            }
            Content::Reject { reason, .. } => {
                f.write_str(" ")?;
                named(f, names::reject_reason(u64::from(*reason)), *reason)
            }
            Content::NopOut { .. }
            | Content::NopIn { .. }
            | Content::TextRequest { .. }
            | Content::TextResponse { .. }
            | Content::Other => Ok(()),
        }
    }
}
