//! What the objects of the surface can do, told for whoever writes a script: names, parameters and
//! purposes of their methods.
//!
//! The methods themselves are where they are done; the editor's file is written from here
//! ([`super::annotate`]).

mod mapper;
mod sdp;

pub(super) use mapper::{MAPPER, PORT_MAPPER};
pub(super) use sdp::{READ_FIELDS, SDP, WRITE_FIELDS};

/// A method: its name, its parameters in front of the table with their types, the name of the
/// table, what it gives, what it is for.
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [(&'static str, &'static str)],
    pub(super) table: Option<&'static str>,
    pub(super) gives: Option<&'static str>,
    pub(super) about: &'static str,
}

const fn method(name: &'static str, about: &'static str) -> Method {
    Method { name, parameters: &[], table: None, gives: None, about }
}

pub(super) const TESTER: &[Method] = &[
    Method {
        table: Some("good_exchange"),
        ..method("good_exchange", "The target does its work on a connection of its own; call it before the stimulus")
    },
    Method {
        table: Some("good_exchange"),
        ..method("liveness", "A good exchange behind the last expectation: the target still works")
    },
    Method {
        gives: Some("weft.Connection"),
        ..method("connect", "A TCP connection; no MPA frame is sent. An initiator is started for it, and waited for")
    },
    Method {
        table: Some("mpa.request"),
        gives: Some("weft.Connection, weft.Reply"),
        ..method("start_up", "A connection on which the target accepted the Request; the next is the first FPDU")
    },
    Method {
        table: Some("mpa.request"),
        gives: Some("weft.Connection, weft.Operation"),
        ..method(
            "operate",
            "A connection in Full Operation: the service's first exchange is done, and FPDUs went both ways",
        )
    },
    Method {
        table: Some("mpa.request"),
        gives: Some("weft.Message"),
        ..method("request", "The Request that this target accepts")
    },
    Method {
        parameters: &[("holds", "boolean")],
        table: Some("check"),
        ..method("check", "An expectation that the script made out itself")
    },
    Method {
        parameters: &[("why", "string")],
        ..method("unimplemented", "The target does not do what the case is about, and may: the case ends")
    },
    Method {
        table: Some("sdp"),
        gives: Some("weft.Sdp, weft.SdpMessage"),
        ..method("sdp", "An SDP connection, started in the target's profile, and its HelloAck")
    },
    Method {
        table: Some("accept_sdp"),
        gives: Some("weft.Sdp, weft.SdpMessage"),
        ..method("accept_sdp", "An SDP connection that the target opened, and its Hello")
    },
    Method {
        table: Some("sdp"),
        gives: Some("weft.Connection"),
        ..method("greet", "A connection on which a Hello was sent, and nothing was waited for")
    },
    Method {
        table: Some("mapper"),
        gives: Some("weft.Mapper"),
        ..method("mapper", "A socket for datagrams to the target's port mapper")
    },
    Method {
        table: Some("mapper"),
        gives: Some("weft.PortMapper"),
        ..method("port_mapper", "The port mapper that a target asks, and where it is sent")
    },
    Method { parameters: &[("seconds", "number")], ..method("pause", "Time passes; the target goes on") },
    Method { parameters: &[("text", "string")], ..method("note", "A line for the transcript") },
];

pub(super) const CONNECTION: &[Method] = &[
    Method {
        parameters: &[("message", "weft.Message|string")],
        table: Some("send"),
        ..method("send", "Sends a message or octets, in pieces where cuts are given")
    },
    Method {
        table: Some("expect_reply"),
        gives: Some("weft.Reply"),
        ..method("expect_reply", "The target answers with an MPA Reply of these fields")
    },
    Method {
        table: Some("expect_request"),
        gives: Some("weft.Reply"),
        ..method("expect_request", "The target, an initiator, sends an MPA Request of these fields")
    },
    Method {
        table: Some("mpa.reply"),
        gives: Some("weft.Message"),
        ..method("reply", "The right Reply to the Request that came")
    },
    Method {
        table: Some("expect_fpdu"),
        gives: Some("weft.Fpdu"),
        ..method("expect_fpdu", "The target sends an FPDU of these fields")
    },
    Method {
        table: Some("expect_terminate"),
        gives: Some("weft.Terminate?"),
        ..method(
            "expect_terminate",
            "The target refuses the message: it sends a Terminate with one of these errors, or closes. `requirement` is about the refusal, `terminate` about the Terminate, `code` about its error",
        )
    },
    Method {
        table: Some("expect_octets"),
        gives: Some("string"),
        ..method("expect_octets", "The target's next octets begin so")
    },
    Method { table: Some("expect_silence"), ..method("expect_silence", "The target sends no octet") },
    Method {
        table: Some("expect_close"),
        gives: Some("number"),
        ..method("expect_close", "The target closes and sends no octet before; gives the seconds it took")
    },
    Method { table: Some("expect_sdp"), ..method("expect_sdp", "The target begins SDP: a Hello comes first") },
    Method { table: Some("expect_from"), ..method("expect_from", "The connection came from this address, or port") },
    Method {
        table: Some("expect_plain"),
        ..method("expect_plain", "What comes first is no Hello, and no start-up frame of MPA; nothing may come")
    },
    Method {
        table: Some("waiting"),
        gives: Some("\"reply\"|\"request\"|\"fpdu\"|\"octets\"|\"close\"|nil, weft.Reply|weft.Fpdu|nil"),
        ..method(
            "next",
            "What comes next, and decides nothing: a start-up frame or an FPDU with its fields, octets that are neither, the connection's end, or nil where nothing comes",
        )
    },
    Method {
        gives: Some("integer"),
        ..method("position", "Octets sent behind the tester's start-up frame: where its next FPDU begins")
    },
    method("finish", "Closes the tester's half: FIN"),
    method("close", "FIN, and waits a while for the target's"),
    method("reset", "Resets the connection"),
];

pub(super) const MESSAGE: &[Method] = &[
    Method {
        parameters: &[("octet", "integer"), ("mask", "integer?")],
        gives: Some("weft.Message"),
        ..method("flip", "The message with bits of one octet, counted from 0, changed")
    },
    Method {
        parameters: &[("first", "integer"), ("octets", "string")],
        gives: Some("weft.Message"),
        ..method("replace", "The message with other octets from `first`, counted from 0")
    },
    Method {
        parameters: &[("len", "integer")],
        gives: Some("weft.Message"),
        ..method("cut", "The first octets alone")
    },
    Method { gives: Some("string"), ..method("octets", "The octets as a string") },
];

pub(super) const AGENT: &[Method] = &[
    Method { gives: Some("table"), ..method("device", "What the device is and holds, as docs/agent.md has it") },
    Method { gives: Some("integer"), ..method("domain", "A Protection Domain beside the usual one") },
    Method {
        table: Some("agent_region"),
        gives: Some("weft.Region"),
        ..method("region", "Registered memory of the target")
    },
    Method {
        table: Some("agent_window"),
        gives: Some("weft.Window"),
        ..method("window", "A memory window, bound to nothing")
    },
    Method { table: Some("agent_shared"), gives: Some("weft.Shared"), ..method("shared", "A shared receive queue") },
    Method {
        table: Some("agent_operate"),
        gives: Some("weft.Connection, weft.Pair, weft.Operated"),
        ..method(
            "operate",
            "A connection in Full Operation, in either role: the opening Send is done, and FPDUs may go both ways",
        )
    },
    Method {
        table: Some("agent_pair"),
        gives: Some("weft.Connection, weft.Pair"),
        ..method("connect", "An initiator connects: TCP is there, and its Request is on the way")
    },
    Method {
        table: Some("agent_request"),
        gives: Some("weft.Pair, table"),
        ..method(
            "expect_request",
            "The responder's user is told of the Request that was sent, with these private data; and what it is told",
        )
    },
    Method {
        parameters: &[("seed", "integer"), ("length", "integer")],
        gives: Some("string"),
        ..method("pattern", "The octets that `fill` puts into memory")
    },
];

pub(super) const PAIR: &[Method] = &[
    Method {
        table: Some("agent_pair"),
        ..method("open", "Makes the Queue Pair of a connection that asks; receives can be posted then")
    },
    Method { table: Some("agent_pair"), ..method("accept", "Accepts it") },
    Method { table: Some("agent_pair"), ..method("reject", "Rejects it, with these private data") },
    Method { ..method("disconnect", "The user ends the connection") },
    Method { ..method("destroy", "The user gives the connection back, without a word to the peer but TCP's") },
    Method {
        table: Some("post_receive"),
        gives: Some("integer?, string?"),
        ..method("post_receive", "Posts a receive; gives its number, or why it was refused")
    },
    Method { table: Some("post_send"), gives: Some("integer?, string?"), ..method("post_send", "Posts a Send") },
    Method {
        table: Some("post_write"),
        gives: Some("integer?, string?"),
        ..method("post_write", "Posts an RDMA Write to `stag` and `to`")
    },
    Method {
        table: Some("post_read"),
        gives: Some("integer?, string?"),
        ..method("post_read", "Posts an RDMA Read from `stag` and `to`")
    },
    Method {
        table: Some("post_atomic"),
        gives: Some("integer?, string?"),
        ..method(
            "post_atomic",
            "Posts an Atomic Operation on eight octets at `stag` and `to`: `add`, or `compare` and `swap`",
        )
    },
    Method {
        table: Some("post_invalidate"),
        gives: Some("integer?, string?"),
        ..method("post_invalidate", "Posts an Invalidate Local of an STag of the target")
    },
    Method {
        table: Some("post_bind"),
        gives: Some("integer?, integer|string|nil"),
        ..method("post_bind", "Posts a Bind of a window to octets of a region; gives the STag that it has then")
    },
    Method {
        table: Some("expect_completion"),
        gives: Some("weft.Completion"),
        ..method("expect_completion", "The user is told that a work request has completed so")
    },
    Method {
        table: Some("expect_event"),
        gives: Some("weft.Event"),
        ..method("expect_event", "The user is told of one of these events of the connection")
    },
    Method {
        table: Some("expect_error"),
        ..method(
            "expect_error",
            "The user is told that something went wrong: an event of its Queue Pair, or a completion in error that is no flush",
        )
    },
    Method {
        table: Some("expect_no_completion"),
        ..method("expect_no_completion", "The user is told of no completion")
    },
];

pub(super) const REGION: &[Method] = &[
    Method { table: Some("agent_octets"), gives: Some("string"), ..method("get", "Octets of the memory") },
    Method { table: Some("agent_octets"), ..method("put", "Puts `octets` there") },
    Method { table: Some("agent_octets"), ..method("fill", "Fills it with the pattern of `seed`") },
    Method { table: Some("agent_octets"), gives: Some("integer"), ..method("hash", "CRC32c of its octets") },
    Method { ..method("destroy", "Deregisters it") },
];

pub(super) const SHARED: &[Method] = &[
    Method {
        table: Some("post_receive"),
        gives: Some("integer?, string?"),
        ..method("post_receive", "Posts a receive")
    },
    Method {
        parameters: &[("receives", "integer")],
        gives: Some("boolean, string?"),
        ..method(
            "limit",
            "The user is to be told when less than so many receives are left; whether the device does that, or why not",
        )
    },
    Method {
        table: Some("expect_limit"),
        ..method("expect_limit", "The user is told that less are left than the limit")
    },
];
