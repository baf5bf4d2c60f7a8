//! Ids of captures.

use std::ffi::OsStr;

use sha2::{Digest as _, Sha256};

use crate::hex::hex;

/// Returns the id of the file with this name: 16 hexadecimal digits of the name's SHA-256 digest.
pub(super) fn id(name: &OsStr) -> String {
    let digest: [u8; 32] = Sha256::digest(name.as_encoded_bytes()).into();
    hex(&digest[..8])
}
