//! A start-up frame of the peer, and the private data that it carries.

use bytes::Bytes;
use weft_core::wire::mpa::Enhanced;
use weft_core::wire::mpa::startup::{ENHANCED_LEN, MAX_PD_LENGTH};

/// ULP private data of a start-up frame: 0 to 512 octets (MPA-7.1.1-28), of which an enhanced frame
/// takes 508 (P2P-9-8).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrivateData(pub(super) Bytes);

/// More private data than a start-up frame can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("private data of {octets} bytes; {}start-up frame carries at most {most}",
    if *.most == usize::from(MAX_PD_LENGTH) { "a " } else { "an enhanced " })]
pub struct PrivateDataTooLong {
    /// How many.
    pub octets: usize,
    /// How many can be carried: 512, or 508 after the words of an enhanced frame.
    pub most: usize,
}

impl PrivateData {
    /// Takes up to 512 octets.
    ///
    /// # Errors
    /// There are more.
    pub fn new(octets: impl Into<Bytes>) -> Result<Self, PrivateDataTooLong> {
        let octets = octets.into();
        PrivateData(octets).fits(false)
    }

    /// Itself, if a frame of this kind can carry it.
    pub(super) fn fits(self, enhanced: bool) -> Result<Self, PrivateDataTooLong> {
        let most = usize::from(MAX_PD_LENGTH) - if enhanced { ENHANCED_LEN } else { 0 };
        if self.0.len() > most {
            return Err(PrivateDataTooLong { octets: self.0.len(), most });
        }
        Ok(self)
    }

    /// The octets.
    #[must_use]
    pub fn as_octets(&self) -> &[u8] {
        &self.0
    }
}

/// A start-up frame of the peer that was good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFrame {
    /// M: the peer wants markers.
    pub markers: bool,
    /// C: the peer wants CRCs.
    pub crc: bool,
    /// R: the Responder rejects. Never evaluated in a Request (MPA-7.1.1-16).
    pub reject: bool,
    /// Rev.
    pub revision: u8,
    /// S=1: the peer's IRD, ORD and ready-to-receive flags as it sent them, for the ULP to see
    /// (P2P-9.1-8, P2P-9.1-25).
    pub enhanced: Option<Enhanced>,
    /// Its ULP's data for ours.
    pub private_data: PrivateData,
}
