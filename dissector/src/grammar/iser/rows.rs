//! The positions of the fields of each iSCSI PDU (the figures of RFC 7143 section 11).

use super::{pdu, session};
use crate::grammar::output::Row;
use crate::upper::iser::{HEADER_LEN as BHS, Opcode};

/// The fields that all PDUs have.
pub(super) static COMMON: &[Row] = &[
    (&pdu::OPCODE, BHS, 1),
    (&pdu::I, BHS, 1),
    (&pdu::TOTAL_AHS_LENGTH, BHS + 4, 1),
    (&pdu::DATA_SEGMENT_LENGTH, BHS + 5, 3),
];
static NOP_OUT: &[Row] = &[
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
];
static SCSI_COMMAND: &[Row] = &[
    (&pdu::COMMAND_F, BHS + 1, 1),
    (&pdu::COMMAND_R, BHS + 1, 1),
    (&pdu::COMMAND_W, BHS + 1, 1),
    (&pdu::COMMAND_ATTR, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::EXPECTED_LENGTH, BHS + 20, 4),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
];
static TASK_REQUEST: &[Row] = &[
    (&session::TASK_FUNCTION, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&session::REFERENCED_TASK_TAG, BHS + 20, 4),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
    (&session::REF_CMD_SN, BHS + 32, 4),
    (&pdu::EXP_DATA_SN, BHS + 36, 4),
];
static LOGIN_REQUEST: &[Row] = &[
    (&session::LOGIN_T, BHS + 1, 1),
    (&session::LOGIN_C, BHS + 1, 1),
    (&session::LOGIN_CSG, BHS + 1, 1),
    (&session::LOGIN_NSG, BHS + 1, 1),
    (&session::VERSION_MAX, BHS + 2, 1),
    (&session::VERSION_MIN, BHS + 3, 1),
    (&session::ISID, BHS + 8, 6),
    (&session::TSIH, BHS + 14, 2),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&session::CID, BHS + 20, 2),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
];
static TEXT_REQUEST: &[Row] = &[
    (&session::TEXT_F, BHS + 1, 1),
    (&session::TEXT_C, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
];
static DATA_OUT: &[Row] = &[
    (&pdu::DATA_F, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
    (&pdu::DATA_SN, BHS + 36, 4),
    (&pdu::BUFFER_OFFSET, BHS + 40, 4),
];
static LOGOUT_REQUEST: &[Row] = &[
    (&session::LOGOUT_REASON, BHS + 1, 1),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&session::CID, BHS + 20, 2),
    (&pdu::CMD_SN, BHS + 24, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
];
static SNACK_REQUEST: &[Row] = &[
    (&session::SNACK_TYPE, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::EXP_STAT_SN, BHS + 28, 4),
    (&session::SNACK_BEG_RUN, BHS + 40, 4),
    (&session::SNACK_RUN_LENGTH, BHS + 44, 4),
];
static NOP_IN: &[Row] = &[
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
];
static SCSI_RESPONSE: &[Row] = &[
    (&pdu::RESPONSE_READ_OVERFLOW, BHS + 1, 1),
    (&pdu::RESPONSE_READ_UNDERFLOW, BHS + 1, 1),
    (&pdu::RESPONSE_OVERFLOW, BHS + 1, 1),
    (&pdu::RESPONSE_UNDERFLOW, BHS + 1, 1),
    (&pdu::RESPONSE, BHS + 2, 1),
    (&pdu::STATUS, BHS + 3, 1),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&pdu::EXP_DATA_SN, BHS + 36, 4),
    (&pdu::BIDIRECTIONAL_RESIDUAL, BHS + 40, 4),
    (&pdu::RESIDUAL, BHS + 44, 4),
];
static TASK_RESPONSE: &[Row] = &[
    (&session::TASK_RESPONSE, BHS + 2, 1),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
];
static LOGIN_RESPONSE: &[Row] = &[
    (&session::LOGIN_T, BHS + 1, 1),
    (&session::LOGIN_C, BHS + 1, 1),
    (&session::LOGIN_CSG, BHS + 1, 1),
    (&session::LOGIN_NSG, BHS + 1, 1),
    (&session::VERSION_MAX, BHS + 2, 1),
    (&session::VERSION_ACTIVE, BHS + 3, 1),
    (&session::ISID, BHS + 8, 6),
    (&session::TSIH, BHS + 14, 2),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&session::LOGIN_STATUS, BHS + 36, 2),
];
static TEXT_RESPONSE: &[Row] = &[
    (&session::TEXT_F, BHS + 1, 1),
    (&session::TEXT_C, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
];
static DATA_IN: &[Row] = &[
    (&pdu::DATA_F, BHS + 1, 1),
    (&pdu::DATA_A, BHS + 1, 1),
    (&pdu::DATA_O, BHS + 1, 1),
    (&pdu::DATA_U, BHS + 1, 1),
    (&pdu::DATA_S, BHS + 1, 1),
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&pdu::DATA_SN, BHS + 36, 4),
    (&pdu::BUFFER_OFFSET, BHS + 40, 4),
    (&pdu::DATA_RESIDUAL, BHS + 44, 4),
];
static LOGOUT_RESPONSE: &[Row] = &[
    (&session::LOGOUT_RESPONSE, BHS + 2, 1),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&session::TIME2WAIT, BHS + 40, 2),
    (&session::TIME2RETAIN, BHS + 42, 2),
];
static R2T: &[Row] = &[
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::TARGET_TRANSFER_TAG, BHS + 20, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&pdu::R2T_SN, BHS + 36, 4),
    (&pdu::BUFFER_OFFSET, BHS + 40, 4),
    (&pdu::DESIRED_LENGTH, BHS + 44, 4),
];
static ASYNC: &[Row] = &[
    (&pdu::LUN, BHS + 8, 8),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&session::ASYNC_EVENT, BHS + 36, 1),
    (&session::EVENT_VENDOR_CODE, BHS + 37, 1),
    (&session::PARAMETER1, BHS + 38, 2),
    (&session::PARAMETER2, BHS + 40, 2),
    (&session::PARAMETER3, BHS + 42, 2),
];
static REJECT: &[Row] = &[
    (&session::REJECT_REASON, BHS + 2, 1),
    (&pdu::INITIATOR_TASK_TAG, BHS + 16, 4),
    (&pdu::STAT_SN, BHS + 24, 4),
    (&pdu::EXP_CMD_SN, BHS + 28, 4),
    (&pdu::MAX_CMD_SN, BHS + 32, 4),
    (&pdu::DATA_SN, BHS + 36, 4),
];

/// The fields of the PDU with this opcode, without the fields that all PDUs have.
pub(super) fn of(opcode: Opcode) -> &'static [Row] {
    match opcode {
        Opcode::NOP_OUT => NOP_OUT,
        Opcode::SCSI_COMMAND => SCSI_COMMAND,
        Opcode::TASK_REQUEST => TASK_REQUEST,
        Opcode::LOGIN_REQUEST => LOGIN_REQUEST,
        Opcode::TEXT_REQUEST => TEXT_REQUEST,
        Opcode::DATA_OUT => DATA_OUT,
        Opcode::LOGOUT_REQUEST => LOGOUT_REQUEST,
        Opcode::SNACK_REQUEST => SNACK_REQUEST,
        Opcode::NOP_IN => NOP_IN,
        Opcode::SCSI_RESPONSE => SCSI_RESPONSE,
        Opcode::TASK_RESPONSE => TASK_RESPONSE,
        Opcode::LOGIN_RESPONSE => LOGIN_RESPONSE,
        Opcode::TEXT_RESPONSE => TEXT_RESPONSE,
        Opcode::DATA_IN => DATA_IN,
        Opcode::LOGOUT_RESPONSE => LOGOUT_RESPONSE,
        Opcode::R2T => R2T,
        Opcode::ASYNC => ASYNC,
        Opcode::REJECT => REJECT,
        _ => &[],
    }
}

/// Returns whether the data segment of this PDU consists of text keys.
pub(super) fn has_text(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::LOGIN_REQUEST | Opcode::LOGIN_RESPONSE | Opcode::TEXT_REQUEST | Opcode::TEXT_RESPONSE)
}
