//! Defines the fields of the iSCSI PDUs that control a session (RFC 7143 sections 11.5, 11.6 and
//! 11.9 to 11.17).

use crate::grammar::field::{Base, Field, fields};
use crate::upper::iser::names;

fields! { 13:
    LOGIN_T: "iscsi.login.T", "T (transit)", Base::Flag, "RFC 7143 11.12.1", mask 0x80;
    LOGIN_C: "iscsi.login.C", "C (continue)", Base::Flag, "RFC 7143 11.12.2", mask 0x40;
    LOGIN_CSG: "iscsi.login.csg", "CSG (current stage)", Base::Hex(2), "RFC 7143 11.12.3", mask 0x0c, names names::login_stage;
    LOGIN_NSG: "iscsi.login.nsg", "NSG (next stage)", Base::Hex(2), "RFC 7143 11.12.3", mask 0x03, names names::login_stage;
    VERSION_MAX: "iscsi.versionmax", "Version-max", Base::Hex(2), "RFC 7143 11.12.4";
    VERSION_MIN: "iscsi.versionmin", "Version-min", Base::Hex(2), "RFC 7143 11.12.4";
    VERSION_ACTIVE: "iscsi.versionactive", "Version-active", Base::Hex(2), "RFC 7143 11.13.2";
    ISID: "iscsi.isid", "ISID", Base::Octets, "RFC 7143 11.12.5";
    TSIH: "iscsi.tsih", "TSIH", Base::Hex(4), "RFC 7143 11.12.6";
    CID: "iscsi.cid", "CID", Base::Hex(4), "RFC 7143 11.12.7";
    LOGIN_STATUS: "iscsi.login.status", "Status-Class and Status-Detail", Base::Hex(4), "RFC 7143 11.13.5", names names::login_status;
    KEY_VALUE: "iscsi.keyvalue", "Text keys", Base::Text, "RFC 7143 6.1";
    TEXT_F: "iscsi.text.F", "F (final)", Base::Flag, "RFC 7143 11.10.1", mask 0x80;
    TEXT_C: "iscsi.text.C", "C (continue)", Base::Flag, "RFC 7143 11.10.2", mask 0x40;
    TASK_FUNCTION: "iscsi.taskmanfun.function", "Function", Base::Hex(2), "RFC 7143 11.5.1", mask 0x7f, names names::task_function;
    TASK_RESPONSE: "iscsi.taskmanfun.response", "Response", Base::Hex(2), "RFC 7143 11.6.1", names names::task_response;
    REFERENCED_TASK_TAG: "iscsi.taskmanfun.referencedtasktag", "Referenced Task Tag", Base::Hex(8), "RFC 7143 11.5.4";
    REF_CMD_SN: "iscsi.refcmdsn", "RefCmdSN", Base::Hex(8), "RFC 7143 11.5.5";
    LOGOUT_REASON: "iscsi.logout.reason", "Reason Code", Base::Hex(2), "RFC 7143 11.14.1", mask 0x7f, names names::logout_reason;
    LOGOUT_RESPONSE: "iscsi.logout.response", "Response", Base::Hex(2), "RFC 7143 11.15.1", names names::logout_response;
    TIME2WAIT: "iscsi.time2wait", "Time2Wait", Base::Dec, "RFC 7143 11.15.3";
    TIME2RETAIN: "iscsi.time2retain", "Time2Retain", Base::Dec, "RFC 7143 11.15.4";
    ASYNC_EVENT: "iscsi.asyncevent", "AsyncEvent", Base::Hex(2), "RFC 7143 11.9.1", names names::async_event;
    EVENT_VENDOR_CODE: "iscsi.eventvendorcode", "AsyncVCode", Base::Hex(2), "RFC 7143 11.9.2";
    PARAMETER1: "iscsi.parameter1", "Parameter1", Base::Hex(4), "RFC 7143 11.9";
    PARAMETER2: "iscsi.parameter2", "Parameter2", Base::Hex(4), "RFC 7143 11.9";
    PARAMETER3: "iscsi.parameter3", "Parameter3", Base::Hex(4), "RFC 7143 11.9";
    REJECT_REASON: "iscsi.reject.reason", "Reason", Base::Hex(2), "RFC 7143 11.17.1", names names::reject_reason;
    SNACK_TYPE: "iscsi.snack.type", "Type", Base::Dec, "RFC 7143 11.16.1", mask 0x0f;
    SNACK_BEG_RUN: "iscsi.snack.begrun", "BegRun", Base::Hex(8), "RFC 7143 11.16";
    SNACK_RUN_LENGTH: "iscsi.snack.runlength", "RunLength", Base::Hex(8), "RFC 7143 11.16";
}
