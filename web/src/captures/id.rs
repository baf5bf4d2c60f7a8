//! Ids of captures.

use std::ffi::OsStr;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The id of the file with that name.
pub(super) fn id(name: &OsStr) -> String {
    let digest = Sha256::digest(name.as_encoded_bytes());
    digest.iter().take(8).fold(String::new(), |mut id, octet| {
        let _ = write!(id, "{octet:02x}");
        id
    })
}
