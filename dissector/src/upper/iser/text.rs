//! The text keys in the data segment of a Login or Text PDU (RFC 7143 section 6.1): pairs in the
//! form `key=value`, each with a zero byte after it.

use weft_core::text::visible_in_line;

/// Maximum length in bytes of the name of a key (RFC 7143 section 6.1).
const MAX_KEY_LEN: usize = 63;
/// Maximum number of shown pairs of a PDU.
const MAX_PAIRS: usize = 128;

/// Returns whether `text` starts with a key name and an equals sign.
pub(super) fn is_key(text: &[u8]) -> bool {
    let Some(len) = text.iter().take(MAX_KEY_LEN + 1).position(|byte| *byte == b'=') else { return false };
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'@' | b'_');
    text[0].is_ascii_alphabetic() && text[..len].iter().all(is_legal)
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

    #[test]
    fn pairs_end_with_zero_bytes_and_have_no_control_characters() {
        assert_eq!(pairs(b"HeaderDigest=None\0DataDigest=None\0\0\0"), ["HeaderDigest=None", "DataDigest=None"]);
        assert_eq!(pairs(b"a=\x1b\n\xff"), ["a=\\x1b\\x0a\u{fffd}"]);
        assert_eq!(pairs(b"\0\0"), [""; 0]);
        assert_eq!(pairs(&b"a=b\0".repeat(1000)).len(), MAX_PAIRS);
    }
}
