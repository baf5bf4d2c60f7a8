//! Credentials and verifiers of RPC messages (RFC 5531 section 8).

use std::fmt;

use weft_core::text::visible_in_line;

use super::xdr::{Stop, Xdr};

/// Maximum length of the body of a credential or verifier in bytes (RFC 5531 section 8.2).
const MAX_BODY: u32 = 400;
/// Maximum length of a machine name in bytes (RFC 5531 appendix A).
const MAX_MACHINE_NAME: u32 = 255;
/// Maximum number of further groups (RFC 5531 appendix A).
const MAX_GROUPS: u32 = 16;
/// Flavour numbers.
const AUTH_SYS: u32 = 1;
const RPCSEC_GSS: u32 = 6;
/// The procedure of an RPCSEC_GSS message with data, and the service without protection (RFC 2203
/// sections 5.3.1 and 5.3.3).
const GSS_DATA: u32 = 0;
const GSS_NONE: u32 = 1;

/// The name of a flavour; `None` if the name is not known.
#[must_use]
pub fn flavor_name(flavor: u32) -> Option<&'static str> {
    match flavor {
        0 => Some("AUTH_NONE"),
        AUTH_SYS => Some("AUTH_SYS"),
        2 => Some("AUTH_SHORT"),
        3 => Some("AUTH_DH"),
        RPCSEC_GSS => Some("RPCSEC_GSS"),
        7 => Some("AUTH_TLS"),
        _ => None,
    }
}

/// Text from a peer, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerText(Box<str>);

impl PeerText {
    /// Makes text of `bytes`. Bytes that are not UTF-8 become replacement characters, and control
    /// characters become escapes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        PeerText(visible_in_line(&String::from_utf8_lossy(bytes)).into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A credential or a verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// Flavour.
    pub flavor: u32,
    /// Length of the body in bytes, without padding.
    pub length: u32,
    /// Offset of the flavour in the RPC message, in bytes.
    pub at: u32,
    /// The body of a credential of flavour `AUTH_SYS`.
    pub unix: Option<UnixCredential>,
    /// Whether the arguments and results of the call are encrypted or have a checksum. weft does
    /// not decode them.
    pub is_protected: bool,
}

/// The body of a credential of flavour `AUTH_SYS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixCredential {
    /// Stamp.
    pub stamp: u32,
    /// Name of the caller's machine.
    pub machine_name: PeerText,
    /// Length of the machine name on the wire in bytes, without padding.
    pub machine_name_len: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Further group ids.
    pub gids: Vec<u32>,
}

impl Auth {
    /// Offset of the end of the body and its padding in the RPC message, in bytes.
    #[must_use]
    pub fn end(&self) -> u32 {
        // The body has at most 400 bytes, so the padding cannot overflow.
        self.at.saturating_add(8).saturating_add(self.length.next_multiple_of(4))
    }

    /// Reads a verifier.
    ///
    /// # Errors
    /// Bytes are missing, or the body is too long.
    pub(super) fn verifier(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let at = xdr.at();
        let flavor = xdr.u32()?;
        let body = xdr.opaque(MAX_BODY)?;
        Ok(Auth { flavor, length: body.len() as u32, at, unix: None, is_protected: false })
    }

    /// Reads a credential.
    ///
    /// # Errors
    /// Bytes are missing, or the body is too long.
    pub(super) fn credential(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let at = xdr.at();
        let flavor = xdr.u32()?;
        let body = xdr.opaque(MAX_BODY)?;
        let mut inner = Xdr::new(body, true);
        let (unix, is_protected) = match flavor {
            AUTH_SYS => (UnixCredential::read(&mut inner).ok(), false),
            RPCSEC_GSS => (None, is_protected(&mut inner).unwrap_or(true)),
            _ => (None, false),
        };
        Ok(Auth { flavor, length: body.len() as u32, at, unix, is_protected })
    }
}

/// Reads version, procedure, sequence number and service of an RPCSEC_GSS credential.
fn is_protected(xdr: &mut Xdr<'_>) -> Result<bool, Stop> {
    let (_version, procedure, _sequence, service) = (xdr.u32()?, xdr.u32()?, xdr.u32()?, xdr.u32()?);
    Ok((procedure, service) != (GSS_DATA, GSS_NONE))
}

impl UnixCredential {
    fn read(xdr: &mut Xdr<'_>) -> Result<Self, Stop> {
        let stamp = xdr.u32()?;
        let name = xdr.opaque(MAX_MACHINE_NAME)?;
        let (machine_name, machine_name_len) = (PeerText::new(name), name.len() as u32);
        let (uid, gid, count) = (xdr.u32()?, xdr.u32()?, xdr.u32()?);
        if count > MAX_GROUPS {
            return Err(Stop::Malformed);
        }
        let gids = (0..count).map(|_| xdr.u32()).collect::<Result<_, _>>()?;
        Ok(UnixCredential { stamp, machine_name, machine_name_len, uid, gid, gids })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The credential of the Linux client.
    const CREDENTIAL: &str = "00000001 0000001c 00000000 00000006 286e6f6e65290000 00000000 00000000 00000000";

    #[test]
    fn reads_a_unix_credential() {
        let bytes = hex(CREDENTIAL);
        let mut xdr = Xdr::new(&bytes, true);
        let credential = Auth::credential(&mut xdr).unwrap();
        assert_eq!((credential.flavor, credential.length, xdr.at()), (1, 28, 36));
        let unix = credential.unix.unwrap();
        assert_eq!((unix.machine_name.as_str(), unix.uid, unix.gid, unix.gids), ("(none)", 0, 0, vec![]));
    }

    #[test]
    fn lengths_beyond_the_limits_are_errors() {
        for (wrong, stop) in [
            (CREDENTIAL.replace("0000001c", "00000191"), Some(Stop::Malformed)),
            (CREDENTIAL.replace("0000001c", "00000020"), Some(Stop::Malformed)),
            // The body is damaged, but its end is known.
            (CREDENTIAL.replace("00000006", "00000106"), None),
            (format!("{} 00000011", CREDENTIAL.strip_suffix(" 00000000").unwrap()), None),
        ] {
            let found = Auth::credential(&mut Xdr::new(&hex(&wrong), true));
            match (found, stop) {
                (Ok(found), None) => assert_eq!(found.unix, None, "{wrong}"),
                (found, stop) => assert_eq!(found.err(), stop, "{wrong}"),
            }
        }
    }

    #[test]
    fn only_unprotected_gss_data_can_be_decoded() {
        let protected = |words: &str| {
            let bytes = hex(&format!("00000006 00000014 {words} 00000000"));
            Auth::credential(&mut Xdr::new(&bytes, true)).unwrap().is_protected
        };
        assert!(!protected("00000001 00000000 00000007 00000001"));
        assert!(protected("00000001 00000000 00000007 00000003"));
        assert!(protected("00000001 00000001 00000007 00000001"));
    }

    #[test]
    fn text_has_no_control_characters() {
        assert_eq!(PeerText::new(b"a\n\x1b[2Jb").as_str(), "a\\x0a\\x1b[2Jb");
        assert_eq!(PeerText::new(b"\xff").as_str(), "\u{fffd}");
    }
}
