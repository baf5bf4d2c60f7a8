//! Defines the fields of the basic header segment that several iSCSI PDUs have, and the fields of
//! SCSI commands, their responses and their data (RFC 7143 sections 11.3, 11.4, 11.7 and 11.8).

use crate::grammar::field::{Base, Field, fields};
use crate::upper::iser::names;

fields! { 12:
    OPCODE: "iscsi.opcode", "Opcode", Base::Hex(2), "RFC 7143 11.2.1.2", mask 0x3f, names names::opcode;
    I: "iscsi.I", "I (immediate)", Base::Flag, "RFC 7143 11.2.1.1", mask 0x40;
    TOTAL_AHS_LENGTH: "iscsi.totalahslength", "TotalAHSLength in words of 4 bytes", Base::Dec, "RFC 7143 11.2.1.5";
    DATA_SEGMENT_LENGTH: "iscsi.datasegmentlength", "DataSegmentLength", Base::Dec, "RFC 7143 11.2.1.6";
    LUN: "iscsi.lun", "LUN", Base::Octets, "RFC 7143 11.2.1.7";
    INITIATOR_TASK_TAG: "iscsi.initiatortasktag", "Initiator Task Tag", Base::Hex(8), "RFC 7143 11.2.1.8";
    TARGET_TRANSFER_TAG: "iscsi.targettransfertag", "Target Transfer Tag", Base::Hex(8), "RFC 7143 11.7.4";
    CMD_SN: "iscsi.cmdsn", "CmdSN", Base::Hex(8), "RFC 7143 11.3.2";
    EXP_STAT_SN: "iscsi.expstatsn", "ExpStatSN", Base::Hex(8), "RFC 7143 11.3.3";
    STAT_SN: "iscsi.statsn", "StatSN", Base::Hex(8), "RFC 7143 11.4.9";
    EXP_CMD_SN: "iscsi.expcmdsn", "ExpCmdSN", Base::Hex(8), "RFC 7143 11.4.10";
    MAX_CMD_SN: "iscsi.maxcmdsn", "MaxCmdSN", Base::Hex(8), "RFC 7143 11.4.11";
    COMMAND_F: "iscsi.scsicommand.F", "F (final)", Base::Flag, "RFC 7143 11.3.1", mask 0x80;
    COMMAND_R: "iscsi.scsicommand.R", "R (read)", Base::Flag, "RFC 7143 11.3.1", mask 0x40;
    COMMAND_W: "iscsi.scsicommand.W", "W (write)", Base::Flag, "RFC 7143 11.3.1", mask 0x20;
    COMMAND_ATTR: "iscsi.scsicommand.attr", "ATTR", Base::Hex(2), "RFC 7143 11.3.1", mask 0x07, names names::task_attribute;
    EXPECTED_LENGTH: "iscsi.scsicommand.expecteddatatransferlength", "Expected Data Transfer Length", Base::Dec, "RFC 7143 11.3.4";
    BIDIRECTIONAL_LENGTH: "iscsi.ahs.bidir.length", "Bidirectional Read Expected Data Transfer Length", Base::Dec, "RFC 7143 11.2.2.4";
    RESPONSE_READ_OVERFLOW: "iscsi.scsiresponse.o", "o (bidirectional read residual overflow)", Base::Flag, "RFC 7143 11.4.1", mask 0x10;
    RESPONSE_READ_UNDERFLOW: "iscsi.scsiresponse.u", "u (bidirectional read residual underflow)", Base::Flag, "RFC 7143 11.4.1", mask 0x08;
    RESPONSE_OVERFLOW: "iscsi.scsiresponse.O", "O (residual overflow)", Base::Flag, "RFC 7143 11.4.1", mask 0x04;
    RESPONSE_UNDERFLOW: "iscsi.scsiresponse.U", "U (residual underflow)", Base::Flag, "RFC 7143 11.4.1", mask 0x02;
    RESPONSE: "iscsi.scsiresponse.response", "Response", Base::Hex(2), "RFC 7143 11.4.3", names names::service_response;
    STATUS: "iscsi.scsiresponse.status", "Status", Base::Hex(2), "RFC 7143 11.4.2", names names::scsi_status;
    BIDIRECTIONAL_RESIDUAL: "iscsi.scsiresponse.bidireadresidualcount", "Bidirectional Read Residual Count", Base::Dec, "RFC 7143 11.4.6";
    RESIDUAL: "iscsi.scsiresponse.residualcount", "Residual Count", Base::Dec, "RFC 7143 11.4.5";
    SENSE_LENGTH: "iscsi.scsiresponse.senselength", "SenseLength", Base::Dec, "RFC 7143 11.4.7.1";
    EXP_DATA_SN: "iscsi.expdatasn", "ExpDataSN", Base::Hex(8), "RFC 7143 11.4.8";
    DATA_F: "iscsi.scsidata.F", "F (final)", Base::Flag, "RFC 7143 11.7.1", mask 0x80;
    DATA_A: "iscsi.scsidata.A", "A (acknowledge)", Base::Flag, "RFC 7143 11.7.2", mask 0x40;
    DATA_O: "iscsi.scsidata.O", "O (residual overflow)", Base::Flag, "RFC 7143 11.7.3", mask 0x04;
    DATA_U: "iscsi.scsidata.U", "U (residual underflow)", Base::Flag, "RFC 7143 11.7.3", mask 0x02;
    DATA_S: "iscsi.scsidata.S", "S (status)", Base::Flag, "RFC 7143 11.7.3", mask 0x01;
    DATA_RESIDUAL: "iscsi.scsidata.readresidualcount", "Residual Count", Base::Dec, "RFC 7143 11.7";
    DATA_SN: "iscsi.datasn", "DataSN", Base::Hex(8), "RFC 7143 11.7.5";
    BUFFER_OFFSET: "iscsi.bufferOffset", "Buffer Offset", Base::Dec, "RFC 7143 11.7.6";
    R2T_SN: "iscsi.r2tsn", "R2TSN", Base::Hex(8), "RFC 7143 11.8";
    DESIRED_LENGTH: "iscsi.desireddatalength", "Desired Data Transfer Length", Base::Dec, "RFC 7143 11.8";
    REQUEST_FRAME: "iscsi.request_frame", "Frame of the request", Base::Dec, "RFC 7143 11";
}
