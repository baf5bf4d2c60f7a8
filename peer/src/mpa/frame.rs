//! Collects one start-up frame from a TCP stream. Checks each field as soon as the field has
//! arrived.

use bytes::Bytes;
use weft_core::error::{Found, Layer};
use weft_core::wire::mpa::startup::{
    ENHANCED_LEN, FLAG_S, HEADER_LEN, MAX_PD_LENGTH, RawStartup, Startup, StartupKind,
};
use weft_core::{WireError, requirement};
use zerocopy::FromBytes;

use super::peer_frame::{PeerFrame, PrivateData};
use super::{MpaSettings, Rnic, Role, StartupError, fill};
use crate::hostile::{self, Deviations};

/// Collects the start-up frame that the peer has to send next. Holds at most 532 bytes.
#[derive(Debug)]
pub(super) struct FrameReader {
    receiver: Role,
    pub(super) settings: MpaSettings,
    octets: Vec<u8>,
    pub(super) deviations: Deviations,
}

impl FrameReader {
    pub(super) fn new(receiver: Role, settings: MpaSettings, deviations: Deviations) -> Self {
        FrameReader { receiver, settings, octets: Vec::new(), deviations }
    }

    /// Number of the frame's bytes that have arrived.
    pub(super) fn received(&self) -> usize {
        self.octets.len()
    }

    /// Moves the bytes of the frame from the front of `input` into the buffer. Returns the frame
    /// when it is complete. Returns `None` while the frame is incomplete.
    pub(super) fn read(&mut self, input: &mut &[u8]) -> Result<Option<PeerFrame>, StartupError> {
        fill(&mut self.octets, input, HEADER_LEN);
        hostile::hook::arrived(&self.deviations, self.receiver, &mut self.octets);
        self.check_key()?;
        let Ok((header, _)) = RawStartup::ref_from_prefix(&self.octets) else { return Ok(None) };
        self.check_revision(header)?;
        let pd_length = header.pd_length.get().min(MAX_PD_LENGTH);
        check_room(header)?;
        let length = HEADER_LEN + usize::from(pd_length);
        fill(&mut self.octets, input, length);

        // The parser does not check private data. An incomplete frame can therefore be checked with
        // zeros in place of the missing bytes.
        let mut complete = [0; HEADER_LEN + MAX_PD_LENGTH as usize];
        complete[..self.octets.len()].copy_from_slice(&self.octets);
        let frame = Startup::parse(&complete[..length]).map_err(StartupError::Malformed)?;
        if self.octets.len() < length {
            return Ok(None);
        }
        Ok(Some(PeerFrame {
            markers: frame.markers,
            crc: frame.crc,
            reject: frame.reject,
            revision: frame.revision,
            enhanced: frame.enhanced,
            private_data: PrivateData(Bytes::copy_from_slice(frame.private_data)),
        }))
    }

    /// Checks that `surplus`, the input after the frame, is empty.
    pub(super) fn check_end(&self, surplus: &[u8]) -> Result<(), StartupError> {
        if surplus.is_empty() || hostile::hook::conduct(&self.deviations).takes_surplus {
            return Ok(());
        }
        Err(StartupError::Surplus { octets: surplus.len() })
    }

    /// Compares the received bytes of the key field with the expected key. Reports a wrong byte at
    /// once, because a peer that uses another protocol possibly never sends a complete frame.
    fn check_key(&self) -> Result<(), StartupError> {
        let (kind, expected, requirement) = match self.receiver {
            Role::Initiator => (StartupKind::Reply, "\"MPA ID Rep Frame\"", requirement!("MPA-7.1.1-4")),
            Role::Responder => (StartupKind::Request, "\"MPA ID Req Frame\"", requirement!("MPA-7.1.1-2")),
        };
        let Some(offset) = self.octets.iter().zip(kind.key()).position(|(found, right)| *found != right) else {
            return Ok(());
        };
        if self.receiver == Role::Initiator && self.octets[..=offset] == StartupKind::Request.key()[..=offset] {
            return Err(StartupError::BothInitiators);
        }
        Err(StartupError::Malformed(WireError {
            layer: Layer::Mpa,
            field: "key",
            offset,
            expected,
            found: Found::Value(u64::from(self.octets[offset])),
            requirement: Some(requirement),
        }))
    }

    /// Checks the revision of the frame. An IETF Responder accepts revisions 1 and 2, and an RDMAC
    /// Responder accepts revisions 0 and 1. An Initiator accepts a Reply whose revision is at most
    /// the revision of its Request. An IETF endpoint accepts revision 0 only if the endpoint is
    /// permissive. The S flag has a meaning only in revision 2. A frame of revision 2 without S has
    /// the format of revision 1 (P2P-10-10).
    fn check_revision(&self, header: &RawStartup) -> Result<(), StartupError> {
        let settings = &self.settings;
        let enhanced = header.revision == 2 && header.flags & FLAG_S != 0;
        let known = match (self.receiver, settings.rnic, header.revision) {
            (Role::Responder, Rnic::Ietf | Rnic::PermissiveIetf, 2) if enhanced && !settings.answers_enhanced() => {
                return Err(StartupError::UnsupportedEnhanced);
            }
            (_, Rnic::Rdmac | Rnic::PermissiveIetf, 0)
            | (_, Rnic::Ietf | Rnic::PermissiveIetf, 1)
            | (Role::Responder, Rnic::Rdmac, 1)
            | (Role::Responder, Rnic::Ietf | Rnic::PermissiveIetf, 2) => true,
            (Role::Initiator, Rnic::Ietf | Rnic::PermissiveIetf, 2) => settings.requests_enhanced(),
            _ => false,
        };
        if known {
            return Ok(());
        }
        Err(StartupError::UnsupportedRevision { revision: header.revision, receiver: self.receiver })
    }
}

/// Checks that an enhanced frame has space for its 4 bytes of IRD, ORD and flags (P2P-6-12).
fn check_room(header: &RawStartup) -> Result<(), StartupError> {
    let pd_length = header.pd_length.get();
    if header.revision != 2 || header.flags & FLAG_S == 0 || usize::from(pd_length) >= ENHANCED_LEN {
        return Ok(());
    }
    Err(StartupError::Malformed(WireError {
        layer: Layer::Mpa,
        field: "pd_length",
        offset: 18,
        expected: "at least 4 with S=1",
        found: Found::Value(u64::from(pd_length)),
        requirement: Some(requirement!("P2P-6-12")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Passes `pieces` to the reader of a Responder. Returns the reader's result, and the number of
    /// bytes that the reader held.
    fn read(pieces: &[&[u8]]) -> (Result<Option<PeerFrame>, StartupError>, usize) {
        let mut reader = FrameReader::new(Role::Responder, MpaSettings::default(), Deviations::NONE);
        for piece in pieces {
            let mut input = *piece;
            match reader.read(&mut input) {
                Ok(None) => assert!(input.is_empty()),
                done => return (done, reader.received()),
            }
        }
        (Ok(None), reader.received())
    }

    proptest! {
        /// A split of the frame at any position does not change the result. This is also true if
        /// one octet of the frame is wrong, or if `PD_Length` is not the number of octets that
        /// follow. The reader never holds more than one frame.
        #[test]
        fn a_split_changes_nothing(
            at in 0usize..24, change: u8, pd_length in 0u16..600, rest in prop::collection::vec(any::<u8>(), 0..600),
            cut: prop::sample::Index,
        ) {
            let mut octets = [&b"MPA ID Req Frame\x40\x01"[..], &pd_length.to_be_bytes(), &rest].concat();
            if let Some(octet) = octets.get_mut(at) {
                *octet ^= change;
            }
            let (uncut, held) = read(&[&octets]);
            let (first, second) = octets.split_at(cut.index(octets.len()));
            prop_assert_eq!(&read(&[first, second]).0, &uncut);
            prop_assert!(held <= HEADER_LEN + usize::from(MAX_PD_LENGTH));
            if let Ok(Some(frame)) = uncut {
                let words = if frame.enhanced.is_some() { ENHANCED_LEN } else { 0 };
                prop_assert_eq!(&octets[HEADER_LEN + words..held], frame.private_data.as_octets());
            }
        }
    }
}
