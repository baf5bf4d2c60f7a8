//! Ids of captures.

use std::ffi::OsStr;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the id of the file with this name: 16 hexadecimal digits of the name's SHA-256 digest.
pub(super) fn id(name: &OsStr) -> String {
    let digest = Sha256::digest(name.as_encoded_bytes());
    digest.iter().take(8).fold(String::new(), |mut id, octet| {
        let _ = write!(id, "{octet:02x}");
        id
    })
}
