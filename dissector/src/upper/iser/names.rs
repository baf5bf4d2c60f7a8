//! Names of the values of iSER, iSCSI and SCSI fields.

use super::cdb::opcode_name;
use super::sense::Status;
pub(crate) use super::sense::{additional_name as sense_code, key_name as sense_key};

/// The name of an opcode of the iSER header (RFC 7145 section 9.1).
pub(crate) fn iser_opcode(opcode: u64) -> Option<&'static str> {
    Some(match opcode {
        0b0001 => "iSCSI control-type PDU",
        0b0010 => "iSER Hello Message",
        0b0011 => "iSER HelloReply Message",
        _ => return None,
    })
}

/// The name of an opcode of iSCSI (RFC 7143 section 11.2.1.2).
pub(crate) fn opcode(opcode: u64) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "NOP-Out",
        0x01 => "SCSI Command",
        0x02 => "Task Management Function Request",
        0x03 => "Login Request",
        0x04 => "Text Request",
        0x05 => "SCSI Data-Out",
        0x06 => "Logout Request",
        0x10 => "SNACK Request",
        0x1c..=0x1e => "vendor-specific request",
        0x20 => "NOP-In",
        0x21 => "SCSI Response",
        0x22 => "Task Management Function Response",
        0x23 => "Login Response",
        0x24 => "Text Response",
        0x25 => "SCSI Data-In",
        0x26 => "Logout Response",
        0x31 => "Ready To Transfer",
        0x32 => "Asynchronous Message",
        0x3c..=0x3e => "vendor-specific response",
        0x3f => "Reject",
        _ => return None,
    })
}

/// The name of an operation code of SCSI.
pub(crate) fn scsi_opcode(opcode: u64) -> Option<&'static str> {
    u8::try_from(opcode).ok().and_then(opcode_name)
}

/// The name of a SCSI status.
pub(crate) fn scsi_status(status: u64) -> Option<&'static str> {
    u8::try_from(status).ok().and_then(|status| Status(status).name())
}

/// The format of sense data (SPC-4), by its response code.
pub(crate) fn sense_format(code: u64) -> Option<&'static str> {
    Some(match code {
        0x70 => "current, fixed format",
        0x71 => "deferred, fixed format",
        0x72 => "current, descriptor format",
        0x73 => "deferred, descriptor format",
        _ => return None,
    })
}

/// The name of a task attribute (RFC 7143 section 11.3.1).
pub(crate) fn task_attribute(attribute: u64) -> Option<&'static str> {
    nth(&["Untagged", "Simple", "Ordered", "Head of queue", "ACA"], attribute)
}

/// The name of a service response (RFC 7143 section 11.4.3).
pub(crate) fn service_response(response: u64) -> Option<&'static str> {
    nth(&["Command Completed at Target", "Target Failure"], response)
}

/// The name of a function of task management (RFC 7143 section 11.5.1, RFC 7144).
pub(crate) fn task_function(function: u64) -> Option<&'static str> {
    Some(match function {
        1 => "ABORT TASK",
        2 => "ABORT TASK SET",
        3 => "CLEAR ACA",
        4 => "CLEAR TASK SET",
        5 => "LOGICAL UNIT RESET",
        6 => "TARGET WARM RESET",
        7 => "TARGET COLD RESET",
        8 => "TASK REASSIGN",
        9 => "QUERY TASK",
        10 => "QUERY TASK SET",
        11 => "I_T NEXUS RESET",
        12 => "QUERY ASYNCHRONOUS EVENT",
        _ => return None,
    })
}

/// The name of a response of task management (RFC 7143 section 11.6.1, RFC 7144).
pub(crate) fn task_response(response: u64) -> Option<&'static str> {
    Some(match response {
        0 => "Function complete",
        1 => "Task does not exist",
        2 => "LUN does not exist",
        3 => "Task still allegiant",
        4 => "Task allegiance reassignment not supported",
        5 => "Task management function not supported",
        6 => "Function authorization failed",
        7 => "Function succeeded",
        255 => "Function rejected",
        _ => return None,
    })
}

/// The name of a login stage (RFC 7143 section 11.12.3).
pub(crate) fn login_stage(stage: u64) -> Option<&'static str> {
    Some(match stage {
        0 => "SecurityNegotiation",
        1 => "LoginOperationalNegotiation",
        3 => "FullFeaturePhase",
        _ => return None,
    })
}

/// The name of a login status: Status-Class and Status-Detail (RFC 7143 section 11.13.5).
pub(crate) fn login_status(status: u64) -> Option<&'static str> {
    Some(match status {
        0x0000 => "Success",
        0x0101 => "Target moved temporarily",
        0x0102 => "Target moved permanently",
        0x0200 => "Initiator error",
        0x0201 => "Authentication failure",
        0x0202 => "Authorization failure",
        0x0203 => "Not found",
        0x0204 => "Target removed",
        0x0205 => "Unsupported version",
        0x0206 => "Too many connections",
        0x0207 => "Missing parameter",
        0x0208 => "Can't include in session",
        0x0209 => "Session type not supported",
        0x020a => "Session does not exist",
        0x020b => "Invalid during login",
        0x0300 => "Target error",
        0x0301 => "Service unavailable",
        0x0302 => "Out of resources",
        _ => return None,
    })
}

/// The name of a logout reason (RFC 7143 section 11.14.1).
pub(crate) fn logout_reason(reason: u64) -> Option<&'static str> {
    nth(&["close the session", "close the connection", "remove the connection for recovery"], reason)
}

/// The name of a logout response (RFC 7143 section 11.15.1).
pub(crate) fn logout_response(response: u64) -> Option<&'static str> {
    const NAMES: [&str; 4] = [
        "connection or session closed successfully",
        "CID not found",
        "connection recovery not supported",
        "cleanup failed",
    ];
    nth(&NAMES, response)
}

/// The name of an asynchronous event (RFC 7143 section 11.9.1).
pub(crate) fn async_event(event: u64) -> Option<&'static str> {
    const NAMES: [&str; 6] = [
        "SCSI Async Event",
        "Logout Request",
        "Connection Drop Notification",
        "Session Drop Notification",
        "Negotiation Request",
        "Task Termination",
    ];
    nth(&NAMES, event).or_else(|| (248..=255).contains(&event).then_some("vendor-specific event"))
}

/// The name of a reject reason (RFC 7143 section 11.17.1).
pub(crate) fn reject_reason(reason: u64) -> Option<&'static str> {
    Some(match reason {
        0x02 => "Data digest error",
        0x03 => "SNACK Reject",
        0x04 => "Protocol Error",
        0x05 => "Command not supported",
        0x06 => "Immediate command reject",
        0x07 => "Task in progress",
        0x08 => "Invalid data ack",
        0x09 => "Invalid PDU field",
        0x0a => "Long op reject",
        0x0b => "Negotiation Reset",
        0x0c => "Waiting for Logout",
        _ => return None,
    })
}

/// The name at the position `value` of `names`.
fn nth(names: &[&'static str], value: u64) -> Option<&'static str> {
    names.get(usize::try_from(value).ok()?).copied()
}
