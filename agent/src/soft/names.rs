//! Names in libibverbs for the terms of the iWARP verbs. The drivers of iWARP NICs use the same
//! names for these terms.

use weft_peer::verbs::{CompletedOperation, CompletionStatus, EventId};

/// `enum ibv_wc_status`.
pub(super) fn status(status: CompletionStatus, operation: CompletedOperation) -> &'static str {
    use CompletionStatus as S;
    match status {
        S::Success => "success",
        S::Flushed => "wr_flush_err",
        _ if operation == CompletedOperation::Bind => "mw_bind_err",
        S::InvalidLength => "loc_len_err",
        S::AccessViolation | S::BaseAndBounds | S::InvalidPdId | S::InvalidStag | S::Wrap => "loc_prot_err",
        S::InvalidateRefused => "rem_inv_req_err",
        S::RemoteTermination => "rem_op_err",
        _ => "loc_qp_op_err",
    }
}

/// `enum ibv_wc_opcode`, with the names of this crate's protocol.
pub(super) fn operation(operation: CompletedOperation) -> &'static str {
    use CompletedOperation as O;
    match operation {
        O::Atomic => "fetch_add",
        O::Bind => "bind",
        O::FastRegister => "register",
        O::InvalidateLocal => "invalidate",
        O::Read | O::ReadInvalidateLocal => "read",
        O::Receive => "receive",
        O::Immediate | O::Send | O::SendInvalidate | O::SendSolicited | O::SendSolicitedInvalidate => "send",
        O::Write => "write",
    }
}

/// `enum ibv_event_type`. Returns `None` if libibverbs does not report the event. librdmacm reports
/// some of these events instead.
pub(super) fn asynchronous(event: EventId) -> Option<&'static str> {
    use EventId as E;
    Some(match event {
        E::LlpCloseComplete | E::LlpConnectionLost | E::LlpConnectionReset | E::QpRqLimitReached => return None,
        E::CqOperationError | E::CqOverflowDetected => "cq_err",
        E::SrqCatastrophic => "srq_err",
        E::SrqLimitReached => "srq_limit_reached",
        E::RnicCatastrophic => "device_fatal",
        E::IrrqAccessRights
        | E::IrrqBaseAndBounds
        | E::IrrqInvalidPd
        | E::IrrqInvalidStag
        | E::IrrqWrap
        | E::ProtectionAccessRights
        | E::ProtectionBaseAndBounds
        | E::ProtectionInvalidPd
        | E::ProtectionInvalidStag
        | E::ProtectionWrap
        | E::ReadNotEnabled
        | E::WriteNotEnabled => "qp_access_err",
        E::BadClose
        | E::BadLlpClose
        | E::CqOperation
        | E::CqOverflow
        | E::LocalQpCatastrophic
        | E::SrqErrorOnQp
        | E::TerminateReceived => "qp_fatal",
        E::InvalidDdpQueue
        | E::InvalidDdpVersion
        | E::InvalidRdmapVersion
        | E::IrrqMsnGap
        | E::IrrqMsnRange
        | E::IrrqTooManyReads
        | E::LlpIntegrityBadFpdu
        | E::LlpIntegrityCrc
        | E::LlpIntegritySegmentSize
        | E::MissingLast
        | E::ReadRequestFormat
        | E::RqMsnGap
        | E::RqMsnRange
        | E::UnexpectedOpcode => "qp_req_err",
    })
}
