//! The faults of sessions: illegal messages, and legal messages that a target may handle wrongly.

/// A fault, by its name in the Lua module. With RDMA: an illegal FPDU, after which the target has
/// to end the connection. After a `gap`, it may also wait for the missing bytes. After a wrong Read
/// Response, it may also complete its Read. With an SDP socket: illegal messages, unusual messages
/// that a receiver must accept, or an unusual end of the connection. With a port mapper: an illegal
/// datagram.
pub(crate) type Fault = &'static str;

/// Faults of an FPDU with a wrong CRC, for connections with CRCs.
pub(crate) const CRC_FAULTS: [Fault; 2] = ["wrong-crc", "wrong-crc-empty"];
/// Faults with a wrong CRC that need the service echo.
pub(crate) const ECHO_CRC_FAULTS: [Fault; 7] = [
    "wrong-crc-long",
    "wrong-crc-header",
    "wrong-crc-pad",
    "wrong-crc-second",
    "wrong-crc-middle",
    "wrong-crc-late",
    "wrong-crc-pieces",
];
/// A fault with a wrong CRC in a Send of [`LARGE`] bytes in one segment, which needs the service
/// echo.
pub(crate) const LARGE_CRC_FAULT: Fault = "wrong-crc-large";
/// Payload in bytes of [`LARGE_CRC_FAULT`].
pub(crate) const LARGE: u32 = 20_000;
/// Faults with a wrong CRC that need the service rping.
pub(crate) const RPING_CRC_FAULTS: [Fault; 3] = ["wrong-crc-write", "wrong-crc-read", "wrong-crc-response"];
/// Other faults.
pub(crate) const FAULTS: [Fault; 4] = ["wrong-queue", "used-msn", UNKNOWN_STAG, "reserved-opcode"];
/// Other faults that need the service echo.
pub(crate) const ECHO_FAULTS: [Fault; 2] = ["gap", "used-msn-pieces"];
/// Other faults that need the service rping.
pub(crate) const RPING_FAULTS: [Fault; 12] = [
    "write-beyond",
    "write-far",
    "read-beyond",
    CLOSED_STAG,
    "invalidated",
    "invalidated-read",
    "other-key",
    "response-again",
    "response-short",
    "response-misplaced",
    "response-overlong",
    "response-reversed",
];
/// Faults in the Response to a Read of rping's server. The client of rping never reads.
pub(crate) const RESPONSE_FAULTS: [Fault; 5] =
    ["wrong-crc-response", "response-short", "response-misplaced", "response-overlong", "response-reversed"];
/// Faults with the STag of another open connection. They need the service rping, and connections
/// with different Protection Domains.
pub(crate) const NEIGHBOUR_FAULTS: [Fault; 3] = ["neighbour-read", NEIGHBOUR_WRITE, "neighbour-invalidate"];
/// A Write to the buffer of another open connection.
pub(crate) const NEIGHBOUR_WRITE: Fault = "neighbour-write";
/// A Write to the STag of a connection that has ended.
pub(crate) const CLOSED_STAG: Fault = "closed-stag";
/// A Write to an STag that never existed.
pub(crate) const UNKNOWN_STAG: Fault = "unknown-stag";
/// Faults with a wrong CRC in a session with an agent.
pub(crate) const AGENT_CRC_FAULTS: [Fault; 8] = [
    "wrong-crc",
    "wrong-crc-empty",
    "wrong-crc-header",
    "wrong-crc-pad",
    "wrong-crc-late",
    "wrong-crc-pieces",
    "wrong-crc-write",
    "wrong-crc-read",
];
/// Other faults of sessions with an agent.
pub(crate) const AGENT_FAULTS: [Fault; 11] = [
    "wrong-queue",
    "used-msn",
    "used-msn-pieces",
    UNKNOWN_STAG,
    "reserved-opcode",
    "gap",
    "write-beyond",
    "write-far",
    "read-beyond",
    "no-write-right",
    "no-read-right",
];
/// Faults of sessions with an SDP socket.
pub(crate) const SDP_FAULTS: [Fault; 17] = [
    "reserved-mid",
    "reserved-mid-payload",
    "len-short",
    "len-long",
    "short-header",
    "send-sm-payload",
    "ch-rcv-buf-payload",
    "mode-value",
    "mode-skipped",
    "src-avail-in-buffered",
    "left-pipelined",
    "ack-of-nothing",
    "rd-compl-too-long",
    "wr-compl-too-long",
    "reserved-flags",
    "req-pipe-in-data",
    "updates",
];
/// Further faults of sessions with an SDP socket that sends no data by itself.
pub(crate) const SDP_ANSWER_FAULTS: [Fault; 4] = ["rd-compl-of-nothing", "send-sm-of-nothing", "fin", SUSPENSION];
/// Faults of sessions with a driven SDP socket. Its user may have cancelled sends or requested a
/// size of the Private Buffers, so the target may have an open SrcAvail or ChRcvBuf at any time.
pub(crate) const DRIVE_FAULTS: [Fault; 17] = [
    "reserved-mid",
    "reserved-mid-payload",
    "len-short",
    "len-long",
    "short-header",
    "send-sm-payload",
    "ch-rcv-buf-payload",
    "mode-value",
    "mode-skipped",
    "src-avail-in-buffered",
    "left-pipelined",
    "rd-compl-too-long",
    "wr-compl-too-long",
    "reserved-flags",
    "req-pipe-in-data",
    "updates",
    "fin",
];
/// A suspension by the tester. It is a further fault of sessions with a driven SDP socket that
/// accepts connections.
pub(crate) const SUSPENSION: Fault = "suspend";
/// Faults of sessions with an SDP socket that the target must accept. The connection stays open.
pub(crate) const ACCEPTED_FAULTS: [Fault; 3] = ["reserved-flags", "req-pipe-in-data", "updates"];
/// Faults of sessions with a port mapper. The client stays open.
pub(crate) const PORTMAP_FAULTS: [Fault; 11] = [
    "pm-time",
    "reserved",
    "padding",
    "unknown-ack",
    "other-ipv",
    "other-version",
    "own-accept",
    "own-deny",
    "empty",
    "short",
    "long",
];

/// Returns whether the connection of a fault stays open after it.
pub(super) fn keeps_connection(fault: Fault) -> bool {
    ACCEPTED_FAULTS.contains(&fault) || PORTMAP_FAULTS.contains(&fault)
}

#[cfg(test)]
mod tests {
    use super::super::case::lua;
    use super::super::service::SessionService;
    use super::super::step::Step;
    use super::*;
    use crate::script::Suites;

    /// Returns whether the case of a session with this fault loads. If the Lua module has no fault
    /// of this name, the name counts as the id of a requirement, and the case does not load.
    fn loads(service: SessionService, fault: Fault) -> bool {
        let step = Step::Fault { connection: 1, fault, at_once: false };
        let text = lua(service, "one", "One fault.", &[step], &[]);
        Suites::generated(&format!("{}/one.lua", service.topic()), text).is_ok()
    }

    #[test]
    fn the_lua_module_has_each_fault() {
        let echo = [&CRC_FAULTS[..], &ECHO_CRC_FAULTS, &[LARGE_CRC_FAULT], &FAULTS, &ECHO_FAULTS].concat();
        let rping = [&CRC_FAULTS[..], &RPING_CRC_FAULTS, &FAULTS, &RPING_FAULTS, &NEIGHBOUR_FAULTS].concat();
        let answering = [&SDP_FAULTS[..], &SDP_ANSWER_FAULTS].concat();
        let agent = [&AGENT_CRC_FAULTS[..], &AGENT_FAULTS].concat();
        for (service, faults) in [
            (SessionService::Echo, echo),
            (SessionService::Rping, rping),
            (SessionService::Agent, agent),
            (SessionService::SdpEcho, answering.clone()),
            (SessionService::SdpSink, answering),
            (SessionService::SdpSource, SDP_FAULTS.to_vec()),
            (SessionService::SdpDrive, [&DRIVE_FAULTS[..], &[SUSPENSION]].concat()),
            (SessionService::SdpConnect, DRIVE_FAULTS.to_vec()),
            (SessionService::PortMapper, PORTMAP_FAULTS.to_vec()),
        ] {
            for fault in faults {
                assert!(loads(service, fault), "{fault}");
            }
            assert!(!loads(service, "no-such-fault"));
        }
    }

    /// The field `is_accepted` of the Lua module shows which faults a target must accept.
    #[test]
    fn only_accepted_faults_keep_the_connection() {
        let module = include_str!("../../library/sdp_faults.lua");
        let entries = module.split("[\"").skip(1).filter_map(|entry| entry.split_once("\"]"));
        let accepted: Vec<&str> =
            entries.filter(|(_, fields)| fields.contains("is_accepted = true")).map(|(name, _)| name).collect();
        assert_eq!(accepted, ACCEPTED_FAULTS);
        let ends = [&FAULTS[..], &ECHO_FAULTS, &RPING_FAULTS, &AGENT_FAULTS, &SDP_ANSWER_FAULTS].concat();
        for fault in ends {
            assert!(!keeps_connection(fault), "{fault}");
        }
        assert!(keeps_connection("pm-time") && keeps_connection("updates"));
    }
}
