//! The text keys in the data segment of a Login or Text PDU (RFC 7143 section 6.1): pairs in the
//! form `key=value`, each with a zero byte after it.

use std::ops::Range;

use weft_core::text::visible_in_line;

/// Maximum length in bytes of the name of a key (RFC 7143 section 6.1).
const MAX_KEY_LEN: usize = 63;
/// Maximum number of shown pairs of a PDU. [`structure`] also has this limit.
const MAX_PAIRS: usize = 128;
/// The keys of RFC 7143 section 13, RFC 3720 sections 11 and 12, RFC 7145 section 6, RFC 7144 and
/// RFC 4850.
const STANDARD_KEYS: [&str; 42] = [
    "AuthMethod",
    "CHAP_A",
    "CHAP_C",
    "CHAP_I",
    "CHAP_N",
    "CHAP_R",
    "DataDigest",
    "DataPDUInOrder",
    "DataSequenceInOrder",
    "DefaultTime2Retain",
    "DefaultTime2Wait",
    "ErrorRecoveryLevel",
    "FirstBurstLength",
    "HeaderDigest",
    "IFMarkInt",
    "IFMarker",
    "ImmediateData",
    "InitialR2T",
    "InitiatorAlias",
    "InitiatorName",
    "InitiatorRecvDataSegmentLength",
    "MaxAHSLength",
    "MaxBurstLength",
    "MaxConnections",
    "MaxOutstandingR2T",
    "MaxOutstandingUnexpectedPDUs",
    "MaxRecvDataSegmentLength",
    "OFMarkInt",
    "OFMarker",
    "RDMAExtensions",
    "SendTargets",
    "SessionType",
    "TaggedBufferForSolicitedDataOnly",
    "TargetAddress",
    "TargetAlias",
    "TargetName",
    "TargetPortalGroupTag",
    "TargetRecvDataSegmentLength",
    "TaskReporting",
    "X#NodeArchitecture",
    "iSCSIProtocolLevel",
    "iSERHelloRequired",
];

/// Returns whether `text` starts with a key name and an equals sign.
pub(super) fn is_key(text: &[u8]) -> bool {
    let Some(len) = text.iter().take(MAX_KEY_LEN + 1).position(|byte| *byte == b'=') else { return false };
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'@' | b'_');
    text[0].is_ascii_alphabetic() && text[..len].iter().all(is_legal)
}

/// The ranges of `text` that have no values: the names of standard keys with their equals signs,
/// and the zero bytes. If the first key is not a standard key, only its equals sign is in a range.
/// So the result of [`is_key`] stays the same if all other bytes become letters. The ranges are in
/// order. Only the first 128 pairs are read.
pub(super) fn structure(text: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    for pair in text.split(|byte| *byte == 0).take(MAX_PAIRS) {
        match pair.iter().position(|byte| *byte == b'=') {
            Some(len) if STANDARD_KEYS.iter().any(|key| key.as_bytes() == &pair[..len]) => {
                ranges.push(at..at + len + 1);
            }
            Some(len) if at == 0 && is_key(pair) => ranges.push(len..len + 1),
            _ => {}
        }
        let end = at + pair.len();
        if end < text.len() {
            ranges.push(end..end + 1);
        }
        at = end + 1;
    }
    ranges
}

/// The pairs in `text`, at most 128. Bytes that are not UTF-8 and control characters are replaced.
pub(crate) fn pairs(text: &[u8]) -> Vec<String> {
    let pairs = text.split(|byte| *byte == 0).filter(|pair| !pair.is_empty()).take(MAX_PAIRS);
    pairs.map(|pair| visible_in_line(&String::from_utf8_lossy(pair)).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_name_and_an_equals_sign() {
        for text in ["InitiatorName=iqn.2026-11.example", "X-com.example.a_b=1", "A="] {
            assert!(is_key(text.as_bytes()), "{text}");
        }
        for text in ["", "=", "InitiatorName", "Initiator Name=a", "1a=b", "\0a=b"] {
            assert!(!is_key(text.as_bytes()), "{text}");
        }
        assert!(is_key(format!("{}=", "a".repeat(63)).as_bytes()));
        assert!(!is_key(format!("{}=", "a".repeat(64)).as_bytes()));
    }

    /// The text after the replacement of all bytes that are not in [`structure`].
    fn replaced(text: &[u8]) -> Vec<u8> {
        let ranges = structure(text);
        let is_kept = |at: usize| ranges.iter().any(|range| range.contains(&at));
        text.iter().enumerate().map(|(at, byte)| if is_kept(at) { *byte } else { b'V' }).collect()
    }

    #[test]
    fn structure_has_no_values() {
        for (text, expected) in [
            ("InitiatorName=iqn.a\0SessionType=Normal\0", "InitiatorName=VVVVV\0SessionType=VVVVVV\0"),
            // The first key is unknown. The value of the second key has an equals sign.
            ("X-a=b\0CHAP_R=0bAA==\0X-c=d", "VVV=V\0CHAP_R=VVVVVV\0VVVVV"),
            // The text continues a value of an earlier PDU.
            ("name:x\0TargetAddress=10.0.0.1", "VVVVVV\0TargetAddress=VVVVVVVV"),
            ("a b=c\0\0\0", "VVVVV\0\0\0"),
            ("=a", "VV"),
            ("", ""),
        ] {
            let found = replaced(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected);
            let result = |text: &[u8]| (is_key(text), structure(text));
            assert_eq!(result(&found), result(text.as_bytes()), "{text:?}");
        }
        assert_eq!(structure(&b"A=\0".repeat(1000)).len(), MAX_PAIRS + 1);
    }

    #[test]
    fn pairs_end_with_zero_bytes_and_have_no_control_characters() {
        assert_eq!(pairs(b"HeaderDigest=None\0DataDigest=None\0\0\0"), ["HeaderDigest=None", "DataDigest=None"]);
        assert_eq!(pairs(b"a=\x1b\n\xff"), ["a=\\x1b\\x0a\u{fffd}"]);
        assert_eq!(pairs(b"\0\0"), [""; 0]);
        assert_eq!(pairs(&b"a=b\0".repeat(1000)).len(), MAX_PAIRS);
    }
}
