//! The signature of a failure: the part of its text that is the same in every run.
//!
//! The text has values that differ in each run: an STag that the target chose, a time, a port, the
//! number of a frame. The signature has `…` in place of such values. Words stay, and also small
//! numbers that identify the failure: revisions, error codes, opcodes, counts of bytes.

/// Replaces a value that changes from run to run.
const LEFT_OUT: &str = "…";
/// Number of hexadecimal digits after `0x` from which a value counts as changing. Opcodes, flags
/// and error codes are shorter.
const LONG_HEX: usize = 4;
/// Number of decimal digits from which a value counts as changing.
const LONG_DECIMAL: usize = 7;
/// Words before a number that depends on the earlier traffic and its timing.
const COUNTERS: [&str; 6] = ["frame", "frames", "packet", "port", "MSeq", "MSeqAck"];
/// If a text has at least this number of consecutive bytes (`de ad be ef`), they count as data or
/// as a CRC. The three bytes of a Terminate's control field identify the error, so they stay.
const MANY_OCTETS: usize = 4;

/// Phrases in texts of earlier versions, each with the current phrase. A baseline may quote the
/// earlier phrase.
const OLD_PHRASES: [(&str, &str); 32] = [
    ("it sent one of ", "it sent a datagram of "),
    (": one from ", ": a connection from "),
    ("its user is notified of none ", "its user is not notified of a completion "),
    ("none within ", "no connection within "),
    ("its user is notified of no completion ", "its user is not notified of a completion "),
    ("its user is notified of nothing within ", "its user is not notified within "),
    (
        " but that work was flushed or the connection ended",
        " (flushed work requests and the end of the connection do not count)",
    ),
    ("its user is notified: ", "its user is notified of the event "),
    ("it is not notified", "its user is not notified"),
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
    (" bytes, or other bytes", " bytes that differ"),
    ("headers in it", "a Terminate with headers"),
    (" was due", " was expected"),
    (" cases waited for it in vain.", " cases waited in vain for an answer."),
    ("The record had no room for ", "weft had no room for "),
];

/// Phrases in the monitor's findings of earlier versions, each with the current phrase. If the
/// monitor decides a case, the failure's text quotes its finding.
const OLD_FINDINGS: &[(&str, &str)] = &[
    ("20 05 for a local error that has no code of its own", "error 20 05 for a local error without a separate code"),
    (
        "20 06: IRD is too small for the ORD of the Reply",
        "error 20 06, because IRD is too small for the ORD of the Reply",
    ),
    (
        "20 07: no ready-to-receive type of the Reply can be sent",
        "error 20 07, because the Initiator can send no ready-to-receive type of the Reply",
    ),
    ("C, D, and ORD in the lower 14 bits", "C and D in two bits, and ORD in the lower 14 bits"),
    ("A, B, and IRD in the lower 14 bits", "A and B in two bits, and IRD in the lower 14 bits"),
    ("expected FPDUs from the first one on", "expected only FPDUs after the first FPDU"),
    (" as in the segments before", ", as in the earlier segments"),
    (
        "MSeqAck below the SrcAvailCancel until RdmaRdCompl",
        "an MSeqAck below the MSeq of the SrcAvailCancel until the RdmaRdCompl",
    ),
    (": RDMA Writes and Reads have no number", ", because RDMA Writes and Reads have no number"),
    ("OOB_PRES without it", "OOB_PRES without OOB_PEND"),
    ("and zero where it names no STag", "then zero unless the opcode invalidates an STag"),
    (
        "Remote Protection errors about Read Requests and Sends with Invalidate only",
        "Remote Protection errors only about Read Requests and Sends with Invalidate",
    ),
    ("S = 0 in the Reply to a Request without S", "S = 0 in the Reply to a Request that is not enhanced"),
    (", the SinkSTag,", ", the SinkSTag of the Read Request,"),
    (", the SinkTO,", ", the SinkTO of the Read Request,"),
    ("four bits of Rsvd and two of DV", "four bits of Rsvd and two bits of DV"),
    ("expected ULPDU_Length counts only the ULPDU", "expected a ULPDU_Length that counts only the ULPDU"),
    ("expected ULPDU_Length first", "expected ULPDU_Length as the first field, without a marker"),
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
        "length and DDP header, no RDMA header (M=1, D=1, R=0), with",
    ),
    (
        "markers as in section 4.3, as the peer sent M=1",
        "markers at the positions of section 4.3, as the peer sent M=1",
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
    ("no payload with one credit", "no payload with only one credit left"),
    ("no payload with two credits", "no payload with only two credits left"),
    (
        "nothing but RDMA messages once the stream is in RDMA mode",
        "only RDMA messages after the stream has entered RDMA mode",
    ),
    ("one ULPDU in an FPDU", "one ULPDU in each FPDU"),
    ("one ULPDU: a DDP segment of at least", "one ULPDU with a DDP segment of at least"),
    (
        "one of the ready-to-receive messages of the Initiator's own Request",
        "a ready-to-receive message of a type in the Initiator's own Request",
    ),
    ("one of the ready-to-receive messages of the Reply", "a ready-to-receive message of a type in the Reply"),
    (
        "one of the types offered, or another that the Responder supports",
        "one of the offered types, or another type that the Responder supports",
    ),
    ("one segment for a message of no bytes", "one segment for a message without payload"),
    (
        "requests served although the other half is closed",
        "responses to all requests although the peer has closed its half",
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
    (": not the CRC of Figure", ", which is not the CRC of Figure"),
    (
        ": the right value, most significant octet first",
        ", which is the right value with the most significant byte first",
    ),
    (": the CRC-32 of Ethernet", ", which is the CRC-32 of Ethernet"),
    (": CRC32c without the final complement", ", which is the CRC32c without the final complement"),
    (": computed without ", ", computed without "),
];

/// Returns the text without values that change from run to run.
pub(crate) fn stable(text: &str) -> String {
    let text = OLD_PHRASES.iter().chain(OLD_FINDINGS).fold(text.to_owned(), |text, (old, new)| text.replace(old, new));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // The word before the current word.
    let mut before = "";
    while !rest.is_empty() {
        let word = run(rest, |c| c.is_ascii_alphanumeric());
        if word.is_empty() {
            let len = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(&rest[..len]);
            rest = &rest[len..];
            continue;
        }
        let taken = varying(rest, word, before, &out);
        out.push_str(if taken > 0 { LEFT_OUT } else { current(word) });
        rest = &rest[taken.max(word.len())..];
        before = word;
    }
    out
}

/// Returns the current word for a word in texts of earlier versions. A baseline may quote such
/// texts.
fn current(word: &str) -> &str {
    match word {
        "octet" => "byte",
        "octets" => "bytes",
        other => other,
    }
}

/// Returns the length in bytes of the beginning of `rest` that changes from run to run. The length
/// is 0 if nothing there changes. `rest` begins with `word`.
fn varying(rest: &str, word: &str, before: &str, out: &str) -> usize {
    let is_hex = |text: &str| text.bytes().all(|c| c.is_ascii_hexdigit());
    let is_decimal = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    if let Some(digits) = word.strip_prefix("0x") {
        return if digits.len() >= LONG_HEX && is_hex(digits) { word.len() } else { 0 };
    }
    if is_decimal(word) {
        let fraction = rest[word.len()..].strip_prefix('.').map_or("", |rest| run(rest, |c| c.is_ascii_digit()));
        let number = word.len() + if fraction.is_empty() { 0 } else { 1 + fraction.len() };
        let unit = rest[number..].strip_prefix(' ').map_or("", |rest| run(rest, |c| c.is_ascii_alphanumeric()));
        if matches!(unit, "ms" | "s" | "µs") {
            return number;
        }
        // The port of an address follows a digit or `]`. The line of a script follows a letter.
        let address = out.strip_suffix(':').is_some_and(|out| out.ends_with(|c: char| c.is_ascii_digit() || c == ']'));
        if address || COUNTERS.contains(&before) || word.len() >= LONG_DECIMAL {
            return word.len();
        }
    }
    let octets = octets(rest);
    if octets >= MANY_OCTETS {
        return octets * 3 - 1;
    }
    let is_word_of_hex = matches!(word.len(), 8 | 16) && is_hex(word) && word.contains(|c: char| c.is_ascii_digit());
    if is_word_of_hex { word.len() } else { 0 }
}

/// Returns the number of bytes at the start of `text`, as two digits each with a space between.
fn octets(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    loop {
        let word = run(rest, |c| c.is_ascii_alphanumeric());
        if word.len() != 2 || !word.bytes().all(|c| c.is_ascii_hexdigit()) {
            return count;
        }
        count += 1;
        let Some(next) = rest[2..].strip_prefix(' ') else { return count };
        rest = next;
    }
}

fn run(text: &str, of: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !of(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::stable;

    #[test]
    fn values_of_a_run_are_left_out() {
        for (text, left) in [
            ("STag 0x7110e000, rejected in frame 12: Invalid", "STag …, rejected in frame …: Invalid"),
            ("FIN after 12.3 ms, no byte before", "FIN after … ms, no byte before"),
            ("no octet before 20 octets", "no byte before 20 bytes"),
            ("none within 30 s", "no connection within … s"),
            ("its user is notified of none within 2 s", "its user is not notified of a completion within … s"),
            ("no connection: rping ended, exit status: 3", "no connection, because rping ended, exit status: 3"),
            ("CRC de ad be ef, and it is 01 02 03 04.", "CRC …, and it is …."),
            ("cannot connect to 127.0.0.1:40123: refused", "cannot connect to 127.0.0.1:…: refused"),
            ("a TCP connection to [2001:db8::1]:40123", "a TCP connection to [2001:db8::1]:…"),
            ("found 02 7110e000", "found 02 …"),
            ("AssocHandle 0x600d000000000001", "AssocHandle …"),
            ("it sent Data (MSeq 14, MSeqAck 25, Bufs 16)", "it sent Data (MSeq …, MSeqAck …, Bufs 16)"),
            ("expected a valid Request first, found it", "expected a valid Request before all FPDUs, found it"),
            ("a value of 4294967295", "a value of …"),
        ] {
            assert_eq!(stable(text), left);
        }
    }

    #[test]
    fn what_it_was_stays() {
        for text in [
            "MPA-7.1.1-2: it sent an MPA Reply, revision 1, M=0 C=1 R=0 (20 bytes)",
            "Terminate 02 05",
            "11 05 c0",
            "opcode 0xb, Res = 0x1f",
            "the case has 16383 bytes; mpa/x.lua:12: nil",
            "",
            "… ünder",
        ] {
            assert_eq!(stable(text), text);
        }
    }

    #[test]
    fn it_is_its_own_signature() {
        let once = stable("STag 0x7110e000 after 3 ms at 10.0.0.1:5001, 01 02 03 04 05");
        assert_eq!(stable(&once), once);
    }
}
