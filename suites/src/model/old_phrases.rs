//! Phrases that earlier versions used in failures and findings, each with the current phrase.
//!
//! A baseline may quote the text of an earlier version. Such a quotation must match the current
//! text. Some texts contain a value, for example a length. If the words around the value were
//! rewritten, this list cannot convert the text. A baseline that quotes such a text no longer
//! matches.

/// Phrases that earlier versions used to explain a verdict, each with the current phrase.
const VERDICTS: &[(&str, &str)] = &[
    ("it sent one of ", "it sent a datagram of "),
    (": one from ", ": a connection from "),
    ("its user is notified of none ", "the target's user is not notified of a completion "),
    ("none within ", "no connection within "),
    ("its user is notified of no completion ", "the target's user is not notified of a completion "),
    ("its user is notified of nothing within ", "the target's user is not notified within "),
    (
        " but that work was flushed or the connection ended",
        " (flushed work requests and the end of the connection do not count)",
    ),
    ("its user is notified: ", "the target's user is notified of the event "),
    (", with a right CRC", ", with a correct CRC"),
    ("it is not notified", "the target's user is not notified"),
    ("its user is ", "the target's user is "),
    ("its command does not start", "the target's command does not start"),
    (" a right PM", " a correct PM"),
    ("in a plain exchange ", "in a correct exchange "),
    ("no connection: ", "no connection, because "),
    (", to another port of the port mapper's", ", to the wrong port of the port mapper"),
    (" bytes (no message)", " bytes (not a port mapper message)"),
    (", whose payload is another", ", whose payload differs"),
    (": nothing is decided. ", ", so nothing is decided. "),
    ("it sent other bytes back", "it returned different bytes"),
    ("it answered Data with other bytes", "it answered Data with different bytes"),
    (" bytes with others", " bytes with different bytes"),
    ("it sent some, or closed", "it sent bytes, or closed the connection"),
    ("on a connection of its own, ", "on a separate connection, "),
    (
        "its Read Request requests other bytes than those advertised",
        "its Read Request does not request the advertised bytes",
    ),
    ("what it wrote is not what it read", "it wrote different bytes than it had read"),
    (" bytes gives others than those written", " bytes returns different bytes than were written"),
    ("it wants ", "it advertised a buffer of "),
    (" bytes read, and rping has ", " bytes, but a buffer of rping has "),
    ("its first Send is not rping's", "its first Send is not a message of rping"),
    ("a close, but the answer to an FPDU with a CRC ", "a close, although it answers an FPDU with a CRC "),
    ("an untagged one", "an untagged segment"),
    ("a tagged one", "a tagged segment"),
    ("program that did not connect ended", "program without a connection ended"),
    ("No control was run, since ", "weft made no control run (the case without its unusual step), because "),
    ("No control was run, because ", "weft made no control run (the case without its unusual step), because "),
    ("No control was run: ", "weft made no control run (the case without its unusual step), because "),
    ("The control fails, too", "The control run (the case without its unusual step) fails, too"),
    ("In the control, ", "In the control run, "),
    (
        "The control did not get as far as the step that deviates.",
        "The control run (the case without its unusual step) ended before this step.",
    ),
    ("where its ", "when its "),
    ("where the echo of its ", "when the echo of the tester's "),
    ("the echo of its ", "the echo of the tester's "),
    ("where HelloAck was ", "when HelloAck was "),
    ("where Data was ", "when Data was "),
    ("where DisConn was ", "when DisConn was "),
    ("where it had to advertise its sink", "when it had to advertise its sink buffer"),
    (
        "it did not wait for the first FPDU after its Reply",
        "after its Reply, it did not wait for the tester's first FPDU",
    ),
    (" bytes, or other bytes", " bytes that differ"),
    ("headers in it", "a Terminate with headers"),
    (" was due", " was expected"),
    (" cases waited for it in vain.", " cases waited in vain for an answer."),
    ("The record had no room for ", "weft had no room for "),
    (
        "no stimulus or expectation, but a pass needs evidence that the target was alive",
        "no stimulus and no expectation, so it shows nothing about the target",
    ),
    (
        "before its stimulus, but a pass needs evidence that the target was alive",
        "before its stimulus, so nothing shows that the target was alive then",
    ),
    ("The target is unreachable, as the first case found: ", "The first case found that the target is unreachable: "),
    (", and the case judges a target that is ", ", but the case judges only targets with the role "),
    ("The tester stood still for ", "The tester did not run for "),
    ("so this is a note, and no failure.", "so this is a note, not a failure."),
    ("The target died of the case.", "The target died during the case."),
];

/// Phrases that earlier versions used in the monitor's findings, each with the current phrase. If a
/// finding decides a case, the failure's text quotes the finding.
const FINDINGS: &[(&str, &str)] = &[
    ("20 05 for a local error that has no code of its own", "error 20 05 for a local error without a separate code"),
    (
        "20 06: IRD is too small for the ORD of the Reply",
        "error 20 06, because IRD is too small for the ORD of the Reply",
    ),
    (
        "20 07: no ready-to-receive type of the Reply can be sent",
        "error 20 07, because the Initiator can send no ready-to-receive type that the Reply accepts",
    ),
    (
        "C, D, and ORD in the lower 14 bits",
        "a 16-bit word with C and D in the upper two bits and ORD in the lower 14 bits",
    ),
    (
        "A, B, and IRD in the lower 14 bits",
        "a 16-bit word with A and B in the upper two bits and IRD in the lower 14 bits",
    ),
    ("expected FPDUs from the first one on", "expected only FPDUs after the first FPDU"),
    (" as in the segments before", ", as in the earlier segments"),
    (
        "MSeqAck below the SrcAvailCancel until RdmaRdCompl",
        "no acknowledgement of the SrcAvailCancel in MSeqAck before the RdmaRdCompl",
    ),
    (": RDMA Writes and Reads have no number", ", because RDMA Writes and Reads have no number"),
    ("OOB_PRES without it", "OOB_PRES without OOB_PEND"),
    ("and zero where it names no STag", "then four zero bytes unless the opcode invalidates an STag"),
    (
        "Remote Protection errors about Read Requests and Sends with Invalidate only",
        "Remote Protection errors only about Read Requests and Sends with Invalidate",
    ),
    ("S = 0 in the Reply to a Request without S", "S = 0 in the Reply to a Request that is not enhanced"),
    (", the SinkSTag,", ", the SinkSTag of the Read Request,"),
    (", the SinkTO,", ", the SinkTO of the Read Request,"),
    ("four bits of Rsvd and two of DV", "four bits of Rsvd and two bits of DV"),
    ("expected ULPDU_Length counts only the ULPDU", "expected a ULPDU_Length that counts only the ULPDU"),
    ("expected ULPDU_Length first", "expected ULPDU_Length as the first field of the FPDU, not a marker"),
    ("expected 00 00 00 00, then ULPDU_Length", "expected the marker 00 00 00 00, then ULPDU_Length"),
    ("a SrcAvailCancel found nothing to cancel", "no SrcAvail was open when the SrcAvailCancel arrived"),
    ("a Terminate of layer 2 about the CRC", "a Terminate of layer 2 about the bad CRC"),
    (
        "a flag for each ready-to-receive type of the Initiator",
        "a flag for each ready-to-receive type that the Initiator can send",
    ),
    ("expected a valid Request first", "expected a valid Request before all FPDUs"),
    ("expected a value that is assigned", "expected an assigned layer, type and code"),
    ("all markers of an FPDU point to its ULPDU_Length", "markers that all point to the ULPDU_Length of the FPDU"),
    ("an FPDU without its markers", "an FPDU without markers"),
    ("an FPDU, and there is no Reply", "an FPDU, although there is no Reply"),
    ("an FPDU; the Initiator sent none", "an FPDU, although the Initiator sent no FPDU"),
    ("an MPA error: type 0, code 1 to 7", "an MPA error of type 0, with code 1 to 7"),
    ("expected at most 64768,", "expected ULPDU_Length of at most 64768,"),
    (" Reads without response, as agreed on", " Reads without a response, as the endpoints agreed"),
    ("found in the private data of an MPA Request", "found a Hello in the private data of an MPA Request"),
    ("its own SinkAvail took precedence", "the sender's own SinkAvail took precedence"),
    ("layer 2, type 0, no header copied", "layer 2, type 0, no copied header, and MSN 1 of queue 2"),
    ("layer, type and code of Figure 9", "layer, type and code of RFC 5040 Figure 9"),
    (
        "length and DDP header (M=1, D=1) and no RDMA header with",
        "length and DDP header, but no RDMA header (M=1, D=1, R=0), for",
    ),
    (
        "markers as in section 4.3, as the peer sent M=1",
        "markers at the positions of RFC 5044 section 4.3, because the peer sent M=1",
    ),
    ("no FPDU from the Responder before a Request", "no FPDU from the Responder before it has received a Request"),
    (
        "no FPDU from the Responder before a valid one of the Initiator",
        "no FPDU from the Responder before a valid FPDU from the Initiator",
    ),
    ("no RDMA header about a message of RFC 7306", "no RDMA header (R=0) in a Terminate about a message of RFC 7306"),
    (
        "expected no header with a Local Catastrophic or LLP error",
        "expected no copied header with a Local Catastrophic or LLP error",
    ),
    ("no payload with one credit", "no payload when only one credit is left"),
    ("no payload with two credits", "no payload when only two credits are left"),
    (
        "nothing but RDMA messages once the stream is in RDMA mode",
        "only RDMA messages after the stream has entered RDMA mode",
    ),
    ("one ULPDU in an FPDU", "one ULPDU in each FPDU"),
    ("one ULPDU: a DDP segment of at least", "one ULPDU with a DDP segment of at least"),
    (
        "one of the ready-to-receive messages of the Initiator's own Request",
        "a ready-to-receive message of a type that the Initiator's own Request offers",
    ),
    (
        "one of the ready-to-receive messages of the Reply",
        "a ready-to-receive message of a type that the Reply accepts",
    ),
    (
        "one of the types offered, or another that the Responder supports",
        "one of the offered ready-to-receive types, or another type that the Responder supports",
    ),
    ("one segment for a message of no bytes", "one segment for a message without payload"),
    (
        "requests served although the other half is closed",
        "responses to all requests, even after the peer has closed its half of the connection",
    ),
    ("the CRC field, used or not", "a CRC field, even if CRC is not used"),
    (
        "the Read Response before that to the later Atomic Request",
        "the Read Response before the Response to the later Atomic Request",
    ),
    ("the SrcAvailCancel was answered", "the SrcAvailCancel was already answered"),
    ("the connection closed, and no Reply", "the end of the connection, and no Reply"),
    ("the connection torn down after an error of MPA", "the end of the connection after an error of MPA"),
    ("expected the header of a segment that was sent", "expected the header of a segment that the peer sent"),
    ("the next FPDU where the CRC field belongs", "the next FPDU in place of the CRC field"),
    ("type 3 left to the LLP", "no error type 3, which is reserved for the LLP"),
    (" in one segment: L=1, MO 0", " in one segment, with L=1 and MO 0"),
    (
        "expected length and DDP header, no RDMA header (M=1, D=1, R=0), found",
        "expected length and DDP header of the segment, but no RDMA header (M=1, D=1, R=0), found",
    ),
    ("RDMA header (M=1, D=1, R=1), found", "RDMA header (M=1, D=1, R=1) of the segment, found"),
    (": no CRC was generated, though ", ", because no CRC was generated, although "),
    (": no CRC was generated", ", because no CRC was generated"),
    (": not the CRC of Figure", ", which is not the CRC in RFC 5044 Figure"),
    (
        ": the right value, most significant octet first",
        ", which is the right value with the most significant byte first",
    ),
    (": the CRC-32 of Ethernet", ", which is the CRC-32 of Ethernet"),
    (": CRC32c without the final complement", ", which is the CRC32c without the final complement"),
    (": computed without ", ", computed without "),
    ("the path is known to protect as well as CRC", "the path is known to protect data equally well"),
    (", with L=0 and with earlier bytes", ", with L=0 and a lower offset"),
    ("no Terminate, or one with error 20 06", "no Terminate, or a Terminate with error 20 06"),
    (" more bytes after them", " additional bytes after the Private Data"),
    ("about markers from an end that sent M = 0", "about markers from an endpoint that sent M = 0"),
    ("M = 1 from an end that needs markers", "M = 1 from an endpoint that needs markers"),
    (", as before, found", ", as in the earlier segments, found"),
    ("unless the end gives up the connection", "unless the endpoint gives up the connection"),
    ("an earlier DisConn from the same end,", "a DisConn from the same endpoint before the AbortConn,"),
    ("one more besides ", "another SrcAvail; already open: "),
    (" bytes arrive as Data, as a SendSm requested", " bytes arrive as Data, because a SendSm requested them"),
    ("found an earlier ModeChange", "found a ModeChange before the acknowledgement of the earlier ModeChange"),
    (", as the peer sent M=", ", because the peer sent M="),
    (", as the Reply has ", ", because the Reply has "),
    (", as the Request has ", ", because the Request has "),
    (", as a Request had arrived", ", because a Request had arrived"),
    (", as TCP segments carry ", ", because TCP segments carry "),
    (", as RDMARDSZ is 0", ", because RDMARDSZ is 0"),
    (", as the segment is not a Read Request", ", because the segment is not a Read Request"),
    ("a message of the ULP, as A = 0", "a message of the ULP, because A = 0 in the Request and the Reply"),
    (", as A = 1", ", because A = 1"),
    (", as B = 0 in the Reply", ", because B = 0 in the Reply"),
    (", as C = 0 in the Reply", ", because C = 0 in the Reply"),
    (", as D = 0 in the Reply", ", because D = 0 in the Reply"),
    ("Write or Send, as the Reply chose", "Write or Send of a type that the Reply accepts"),
    (", since DV is ", ", because DV is "),
    ("MT 0 or 2, as a client sends", "MT 0 or 2 from a client"),
    ("MT 1 or 3, as a server sends", "MT 1 or 3 from a server"),
    ("the Request only later, in frame ", "the Request came only later, in frame "),
    ("no FPDU before both start-up frames", "FPDUs only after both start-up frames"),
    (
        "a combination of AssocHandle, CpIPAddr and CpPort that differs from frame ",
        "a different AssocHandle, CpIPAddr or CpPort than in frame ",
    ),
    ("another AssocHandle than in the PMReq of frame ", "a different AssocHandle than in the PMReq of frame "),
    ("another five-tuple than in the PMReq of frame ", "a different five-tuple than in the PMReq of frame "),
    (" (another service)", ", because another service is requested"),
    (", before another message and FIN in frame ", ", although another message follows before the FIN in frame "),
    (", to a peer of the RDMA Consortium", ", sent to a peer that uses the RDMA Consortium's variant of MPA"),
    (" FPDUs begin a segment and ", " FPDUs begin at the start of a segment and "),
    ("expected ApPort and ApIPAddr as in frame ", "expected the same ApPort and ApIPAddr as in frame "),
    (", because this PMReq repeats that PMReq", ", because this PMReq repeats the earlier PMReq"),
    ("first Data with the ", "before this message, Data with the "),
    (" in all segments up to L=1", " in all segments up to the segment with L=1"),
    (" STags at even steps of ", " STags at equal distances of "),
    (
        "the peer's DisConn or the sender's AbortConn between the sender's DisConn and FIN",
        "a DisConn from the peer, or an AbortConn from the sender, between the sender's DisConn and its FIN",
    ),
    ("a second DDP segment after the first ", "a second DDP segment in the ULPDU, after "),
    (
        "a valid first and second byte, even without payload",
        "valid control bytes of DDP and RDMAP, even in a segment without payload",
    ),
];

/// Returns the text with current phrases in place of the phrases of earlier versions.
pub(super) fn current(text: &str) -> String {
    phrases().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
}

fn phrases() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    VERDICTS.iter().chain(FINDINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No row changes the current phrase of another row. So the conversion of a current text
    /// changes nothing.
    #[test]
    fn each_old_phrase_leads_to_its_current_phrase() {
        for (old, new) in phrases() {
            assert_eq!((current(old), current(new)), ((*new).to_owned(), (*new).to_owned()));
        }
    }
}
