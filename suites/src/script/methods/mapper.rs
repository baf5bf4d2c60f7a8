//! What a case can do with the target's port mapper, and as the port mapper of a target that asks
//! one.

use super::{Method, method};

pub(in crate::script) const MAPPER: &[Method] = &[
    Method {
        table: Some("portmap.message"),
        gives: Some("weft.Message"),
        ..method("request", "The PMReq that is right; `service` may be \"mapped\", \"unmapped\" or \"made\"")
    },
    Method {
        parameters: &[("answer", "weft.PortMapperMessage")],
        table: Some("portmap.message"),
        gives: Some("weft.Message"),
        ..method("ack", "The PMAck to a PMAccept")
    },
    Method {
        parameters: &[("message", "weft.Message|string")],
        table: Some("mapper_send"),
        ..method("send", "Sends a datagram")
    },
    Method {
        table: Some("mapper_expect"),
        gives: Some("weft.PortMapperMessage"),
        ..method("expect", "A message of these fields comes next")
    },
    Method { table: Some("mapper_quiet"), ..method("expect_quiet", "No datagram comes") },
    Method {
        parameters: &[("answer", "weft.PortMapperMessage")],
        table: Some("mapper_quiet"),
        gives: Some("weft.Connection"),
        ..method("connect", "A TCP connection to the address that a PMAccept gave")
    },
];

pub(in crate::script) const PORT_MAPPER: &[Method] = &[
    Method {
        table: Some("asked_service"),
        gives: Some("weft.Place"),
        ..method("service", "The Conventional Address of a service")
    },
    Method {
        table: Some("asked_place"),
        gives: Some("weft.Place"),
        ..method("place", "A TCP address of the tester's of its own")
    },
    Method {
        table: Some("asked_service"),
        ..method("start", "Has the target connect to a service, and waits until something comes of it")
    },
    Method {
        table: Some("asked_expect"),
        gives: Some("weft.PortMapperMessage"),
        ..method("expect", "A datagram of these fields comes next; connections are kept")
    },
    Method {
        parameters: &[("request", "weft.PortMapperMessage")],
        table: Some("portmap.message"),
        gives: Some("weft.Message"),
        ..method("accept", "The right PMAccept to a PMReq, with the address of a place, `at`, for SDP Address")
    },
    Method {
        parameters: &[("request", "weft.PortMapperMessage")],
        table: Some("portmap.message"),
        gives: Some("weft.Message"),
        ..method("deny", "The right PMDeny to a PMReq")
    },
    Method {
        parameters: &[("request", "weft.PortMapperMessage"), ("message", "weft.Message|string")],
        table: Some("asked_send"),
        ..method("answer", "Answers a PMReq, and its repetitions")
    },
    Method {
        parameters: &[("message", "weft.Message|string"), ("request", "weft.PortMapperMessage")],
        table: Some("asked_send"),
        ..method("send", "Sends a datagram to where a PMReq came from")
    },
    Method {
        gives: Some("\"connection\"|\"datagram\"|nil"),
        ..method("waiting", "What the next expectation will see, as far as it is here")
    },
    Method {
        table: Some("asked_repeats"),
        gives: Some("integer, \"connection\"|\"most\"|\"quiet\""),
        ..method("count_repeats", "Counts datagrams until the target connects, there are enough, or none comes")
    },
    Method { table: Some("asked_quiet"), ..method("expect_quiet", "No datagram comes but PMReqs that were answered") },
    Method { table: Some("asked_quiet"), ..method("expect_no_connection", "No connection comes") },
    Method {
        table: Some("asked_connection"),
        gives: Some("weft.Connection"),
        ..method("expect_connection", "The next connection goes to this place")
    },
];
