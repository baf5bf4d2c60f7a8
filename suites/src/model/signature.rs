//! The signature of a failure: the part of its text that is the same in every run.
//!
//! The text has values that differ in each run: an STag that the target chose, a time, a port, the
//! number of a frame. The signature has `…` in place of such values. Words stay. Small numbers that
//! identify the failure also stay: revisions, error codes, opcodes, counts of bytes.

use super::old_phrases;

/// Replaces a value that changes from run to run.
const LEFT_OUT: &str = "…";
/// If a value has at least this number of hexadecimal digits after `0x`, weft assumes that it
/// changes from run to run. Opcodes, flags and error codes are shorter.
const LONG_HEX: usize = 4;
/// If a value has at least this number of decimal digits, weft assumes that it changes from run to
/// run.
const LONG_DECIMAL: usize = 7;
/// Words before a number that depends on the earlier traffic and its timing.
const COUNTERS: [&str; 6] = ["frame", "frames", "packet", "port", "MSeq", "MSeqAck"];
/// If a text has at least this number of consecutive bytes (`de ad be ef`), weft assumes that they
/// change from run to run. Such bytes are data or a CRC. The three bytes of a Terminate's control
/// field identify the error, so they stay.
const MANY_OCTETS: usize = 4;

/// Returns the text without values that change from run to run.
pub(crate) fn stable(text: &str) -> String {
    let text = old_phrases::current(text);
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

/// `rest` may begin with a value that changes from run to run. Returns the length of this value in
/// bytes. The length is 0 if there is no such value. `rest` begins with `word`.
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
        // In front of the colon, an address has a digit or `]`, and a script (`mpa/x.lua:12`) has a
        // letter. So a line number is not taken for a port.
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

/// Returns the number of bytes at the start of `text`. Each byte has two hexadecimal digits. A
/// single space separates the bytes.
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
            ("its user is notified of none within 2 s", "the target's user is not notified of a completion within … s"),
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
