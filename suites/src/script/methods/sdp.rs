//! What an SDP connection of a case can do, and the fields of what is read of it beside SDP's own
//! messages.

use super::{Method, method};

pub(in crate::script) const SDP: &[Method] = &[
    Method {
        parameters: &[("message", "weft.Message|string")],
        table: Some("carrier"),
        ..method("send", "Sends an SDP message in a Send; its counters are filled in where it leaves them open")
    },
    Method {
        parameters: &[("line", "string")],
        ..method("command", "Sends Data with a line of commands for a driven socket")
    },
    Method {
        parameters: &[("message", "weft.Message|string")],
        gives: Some("weft.Message"),
        ..method("fill", "The message with its counters filled in, to be changed before it is sent")
    },
    Method {
        parameters: &[("name", "string|string[]")],
        table: Some("sdp_expect"),
        gives: Some("weft.SdpMessage"),
        ..method("expect", "The target's next message is of this kind; updates may come before")
    },
    Method {
        table: Some("expect_read"),
        gives: Some("weft.ReadRequest"),
        ..method("expect_read", "The target sends an RDMA Read Request")
    },
    Method {
        parameters: &[("read", "weft.ReadRequest"), ("octets", "string")],
        ..method("answer_read", "Sends the Read Response")
    },
    Method {
        table: Some("expect_write"),
        gives: Some("weft.Write"),
        ..method("expect_write", "The target sends RDMA Writes of so many octets")
    },
    Method { table: Some("read"), ..method("read", "Sends an RDMA Read Request") },
    Method {
        table: Some("expect_response"),
        gives: Some("string"),
        ..method("expect_response", "The target answers a Read Request")
    },
    Method {
        parameters: &[("src_avail", "weft.SdpMessage")],
        table: Some("fetch"),
        gives: Some("string"),
        ..method("fetch", "Reads what a SrcAvail has beside its payload, and sends the RdmaRdCompl")
    },
    Method { table: Some("write"), ..method("write", "Sends an RDMA Write") },
    Method {
        table: Some("sdp_quiet"),
        gives: Some("weft.SdpMessage[]"),
        ..method("expect_quiet", "The target sends nothing but updates and keeps the connection")
    },
    Method {
        parameters: &[("octets", "integer")],
        table: Some("sdp_quiet"),
        gives: Some("string"),
        ..method(
            "collect",
            "Takes so many octets as the target offers them: payload, and what SrcAvails name by RDMA Read",
        )
    },
    Method {
        parameters: &[("octets", "string")],
        table: Some("serve"),
        ..method("serve", "Answers the target's Reads of octets that were advertised, until all are read")
    },
    Method { table: Some("sdp_quiet"), ..method("close", "DisConn from both sides, and the end of TCP") },
    Method {
        table: Some("next"),
        gives: Some("string, table"),
        ..method(
            "next",
            "What comes next but updates: the name of a message, or \"read\" for an RDMA Read Request; and its fields",
        )
    },
    Method { table: Some("expect_open"), ..method("expect_open", "The connection does not end, whatever comes") },
    Method {
        table: Some("sdp_end"),
        gives: Some("weft.SdpMessage[]"),
        ..method("expect_end", "The target ends the connection; AbortConn or a Terminate may come before")
    },
    Method {
        table: Some("counters"),
        gives: Some("{ mseq: integer, mseq_ack: integer, bufs: integer }"),
        ..method(
            "counters",
            "The counters of the next message. `bufs` sets the announced buffers, `updates` whether updates are sent automatically",
        )
    },
    Method { gives: Some("weft.Connection"), ..method("connection", "The TCP connection below") },
];

/// The fields of a Read Request, and of an RDMA Write, from the target.
pub(in crate::script) const READ_FIELDS: [(&str, &str); 5] = [
    ("sink_stag", "integer"),
    ("sink_to", "integer"),
    ("length", "integer"),
    ("src_stag", "integer"),
    ("src_to", "integer"),
];
pub(in crate::script) const WRITE_FIELDS: [(&str, &str); 3] =
    [("stag", "integer"), ("va", "integer"), ("payload", "string")];
