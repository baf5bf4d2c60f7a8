//! The peer's start-up frame and its private data.

use bytes::Bytes;
use weft_core::wire::mpa::Enhanced;
use weft_core::wire::mpa::startup::{ENHANCED_LEN, MAX_PD_LENGTH};

use crate::reject::reject_if;

/// ULP private data of a start-up frame. Its length is 0 to 512 bytes (MPA-7.1.1-28), or at most
/// 508 bytes in an enhanced frame (P2P-9-8).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrivateData(pub(super) Bytes);

/// The private data is too long for the start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the private data has {octets} bytes, but {}start-up frame can carry at most {max} bytes",
    if *.max == usize::from(MAX_PD_LENGTH) { "a " } else { "an enhanced " })]
pub struct PrivateDataTooLong {
    /// Length of the private data in bytes.
    pub octets: usize,
    /// Greatest length in bytes: 512, or 508 in an enhanced frame.
    pub max: usize,
}

impl PrivateData {
    /// Private data of at most 512 bytes.
    ///
    /// # Errors
    /// The data is longer than 512 bytes.
    pub fn new(octets: impl Into<Bytes>) -> Result<Self, PrivateDataTooLong> {
        let octets = octets.into();
        PrivateData(octets).fits(false)
    }

    /// Returns the private data unchanged if a frame can carry it.
    pub(super) fn fits(self, enhanced: bool) -> Result<Self, PrivateDataTooLong> {
        let max = usize::from(MAX_PD_LENGTH) - if enhanced { ENHANCED_LEN } else { 0 };
        reject_if(self.0.len() > max, PrivateDataTooLong { octets: self.0.len(), max })?;
        Ok(self)
    }

    /// The private data as a slice.
    #[must_use]
    pub fn as_octets(&self) -> &[u8] {
        &self.0
    }
}

/// A valid start-up frame of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFrame {
    /// Flag M: the peer wants to receive markers.
    pub markers: bool,
    /// Flag C: the peer wants CRCs.
    pub crc: bool,
    /// Flag R: the Responder rejects. A Responder ignores this flag in a Request (MPA-7.1.1-16).
    pub reject: bool,
    /// MPA revision of the frame.
    pub revision: u8,
    /// The peer's IRD, ORD and ready-to-receive flags as received, for the ULP (P2P-9.1-8,
    /// P2P-9.1-25). `None` if the frame is not enhanced.
    pub enhanced: Option<Enhanced>,
    /// Private data from the peer's ULP to this endpoint's ULP.
    pub private_data: PrivateData,
}
