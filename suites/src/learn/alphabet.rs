//! The inputs of a learned machine. The Lua module `learn` has a function for each input.

use crate::model::Role;

/// An input: something that the tester sends or does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// The name, which is also its name in the Lua module `learn`.
    pub name: &'static str,
    /// What the tester sends or does.
    pub help: &'static str,
    /// Targets of this role can get the input.
    role: Role,
    /// Targets often answer this input in different ways in different states. So weft plays it after
    /// each input in each state.
    pub(super) is_probe: bool,
    /// The input takes more than a minute, unless the clock is virtual.
    pub slow: bool,
}

const fn input(role: Role, name: &'static str, help: &'static str) -> Input {
    Input { name, help, role, is_probe: false, slow: false }
}

const fn probe(name: &'static str, help: &'static str) -> Input {
    Input { is_probe: true, ..input(Role::Both, name, help) }
}

use Role::{Both, Initiator, Responder};

const INPUTS: &[Input] = &[
    input(Responder, "request", "an MPA Request as the target file describes it, with C=1"),
    input(Responder, "request-without-crc", "an MPA Request with C=0"),
    input(Responder, "request-markers", "an MPA Request with M=1"),
    input(Responder, "request-private-data", "an MPA Request with 10 bytes of private data"),
    input(Responder, "request-private-data-512", "an MPA Request with 512 bytes of private data"),
    input(Responder, "request-private-data-513", "an MPA Request with 513 bytes of private data, one too many"),
    input(Responder, "request-surplus", "an MPA Request with PD_Length 4, but 8 bytes of private data"),
    input(Responder, "request-enhanced", "an enhanced MPA Request with IRD 3 and ORD 5"),
    input(Responder, "request-enhanced-0", "an enhanced MPA Request with IRD 0 and ORD 0"),
    input(Responder, "request-enhanced-open", "an enhanced MPA Request with IRD and ORD 0x3FFF"),
    input(
        Responder,
        "request-peer-to-peer",
        "an enhanced MPA Request with A=1 and all kinds of ready-to-receive message",
    ),
    input(Responder, "request-peer-to-peer-send", "an enhanced MPA Request with A=1, B=1 (Send), C=0 and D=0"),
    input(Responder, "request-peer-to-peer-write", "an enhanced MPA Request with A=1, B=0, C=1 (Write) and D=0"),
    input(
        Responder,
        "request-peer-to-peer-none",
        "an enhanced MPA Request with A=1 and no kind of ready-to-receive message",
    ),
    input(Responder, "request-short-words", "an MPA Request with S=1, revision 2, and only two bytes for IRD and ORD"),
    input(Responder, "request-s-of-revision-1", "an MPA Request with S=1 and revision 1"),
    input(Responder, "request-revision-0", "an MPA Request with revision 0"),
    input(Responder, "request-revision-2", "an MPA Request with revision 2 and S=0"),
    input(Responder, "request-revision-3", "an MPA Request with revision 3"),
    input(Responder, "request-rejecting", "an MPA Request with R=1"),
    input(Responder, "request-reserved-bits", "an MPA Request with reserved bits set to 1"),
    input(Responder, "request-wrong-key", "an MPA Request with a wrong key"),
    input(Responder, "request-in-pieces", "an MPA Request in TCP segments of one byte"),
    input(Responder, "half-request", "the first 10 bytes of an MPA Request; of later inputs, weft sends only `fin`"),
    input(Initiator, "reply", "an MPA Reply that accepts the Request"),
    input(Initiator, "reply-without-crc", "an MPA Reply with C=0"),
    input(Initiator, "reply-markers", "an MPA Reply with M=1"),
    input(Initiator, "reply-rejecting", "an MPA Reply with R=1"),
    input(Initiator, "reply-private-data", "an MPA Reply with 10 bytes of private data"),
    input(Initiator, "reply-private-data-513", "an MPA Reply with 513 bytes of private data, one too many"),
    input(Initiator, "reply-wrong-key", "an MPA Reply with a wrong key"),
    input(Initiator, "reply-revision-0", "an MPA Reply with revision 0"),
    input(Initiator, "reply-revision-3", "an MPA Reply with revision 3"),
    input(Initiator, "reply-reserved-bits", "an MPA Reply with S=0 and reserved bits set to 1"),
    input(Initiator, "reply-many-reads", "an MPA Reply with ORD 0x3FFE"),
    input(Initiator, "reply-no-reads", "an MPA Reply with IRD 0 and ORD 0"),
    input(Initiator, "reply-open-depths", "an MPA Reply with IRD and ORD 0x3FFF"),
    input(Initiator, "reply-send", "an MPA Reply that selects a Send as ready-to-receive message"),
    input(Initiator, "reply-write", "an MPA Reply that selects a Write as ready-to-receive message"),
    input(Initiator, "reply-read", "an MPA Reply that selects a Read as ready-to-receive message"),
    input(Initiator, "reply-read-open", "an MPA Reply like reply-read, with IRD and ORD 0x3FFF"),
    input(Initiator, "reply-no-kind", "an MPA Reply that selects no kind of ready-to-receive message"),
    input(Initiator, "reply-unenhanced", "an MPA Reply with S=0 and revision 1"),
    input(Initiator, "half-reply", "the first 10 bytes of an MPA Reply; of later inputs, weft sends only `fin`"),
    probe("send", "an FPDU with a Send of 4 bytes"),
    probe("send-wrong-crc", "an FPDU with a Send and a wrong CRC"),
    input(Both, "send-in-pieces", "an FPDU with a Send in TCP segments of one byte"),
    input(Both, "half-send", "the first 9 bytes of an FPDU; of later inputs, weft sends only `fin`"),
    probe("empty-fpdu", "an FPDU with an empty ULPDU"),
    probe("send-of-0-bytes", "an FPDU with a Send of 0 bytes"),
    input(Both, "write-of-0-bytes", "an FPDU with a Write of 0 bytes"),
    probe("read-of-0-bytes", "an FPDU with a Read Request for 0 bytes"),
    input(Both, "terminate", "an FPDU with a Terminate"),
    probe("fin", "a FIN"),
    Input {
        slow: true,
        ..input(Both, "wait", "no bytes for 100 s (used only with a virtual clock, or if --inputs names `wait`)")
    },
];

/// Returns the inputs for targets of a role.
pub fn inputs(role: Role) -> impl Iterator<Item = &'static Input> {
    INPUTS.iter().filter(move |input| input.role == Role::Both || input.role == role)
}
