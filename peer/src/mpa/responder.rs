//! Start-up of the Responder: it waits for the Request, and then for the decision of its ULP (RFC
//! 5044 section 7.1.2, rules 2 and 4; RFC 6581 section 9).

use weft_core::wire::mpa::{Enhanced, Startup, StartupKind};

use super::enhanced::{self, Answer};
use super::frame::FrameReader;
use super::{MpaSettings, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong, Rnic, Role, RtrKinds, StartupError};
use crate::hostile::{self, Deviations};

/// Initial state of a Responder, which waits for a Request.
#[derive(Debug)]
pub struct WaitRequest {
    reader: FrameReader,
}

/// Result of [`WaitRequest::handle_octets`].
#[derive(Debug)]
pub enum AfterRequest {
    /// A valid Request arrived. The ULP has to accept it or reject it.
    Arrived(WaitDecision),
    /// The Request is still incomplete.
    Waiting(WaitRequest),
}

/// State after a valid Request has arrived and before the Reply is sent.
#[derive(Debug, Clone)]
pub struct WaitDecision {
    settings: MpaSettings,
    frame: PeerFrame,
    /// The Request that is reported to the ULP. With [deviations](crate::hostile), it can differ
    /// from `frame`.
    reported: PeerFrame,
    /// Answer to an enhanced Request. `None` if the Request is not enhanced.
    answer: Option<Answer>,
    deviations: Deviations,
}

impl WaitRequest {
    /// Creates the initial state.
    #[must_use]
    pub fn start(settings: MpaSettings, deviations: Deviations) -> Self {
        WaitRequest { reader: FrameReader::new(Role::Responder, settings, deviations) }
    }

    /// Processes bytes that arrived for the Request.
    ///
    /// # Errors
    /// The Request is malformed, or bytes follow the Request. An Initiator must not send between
    /// its Request and the Reply (MPA-7.1.2-11).
    pub fn handle_octets(mut self, mut input: &[u8]) -> Result<AfterRequest, StartupError> {
        let Some(request) = self.reader.read(&mut input)? else { return Ok(AfterRequest::Waiting(self)) };
        self.reader.check_end(input)?;
        let FrameReader { settings, deviations, .. } = self.reader;
        let answer = request.enhanced.map(|enhanced| enhanced::answer(&enhanced, &settings.enhanced_settings));
        let mut reported = request.clone();
        hostile::hook::reported_frame(&deviations, &mut reported);
        Ok(AfterRequest::Arrived(WaitDecision { settings, frame: request, reported, answer, deviations }))
    }

    /// Number of the Request's bytes that have arrived.
    #[must_use]
    pub fn received(&self) -> usize {
        self.reader.received()
    }
}

/// Returns a Reply of revision 1 that does not depend on a Request. This Reply shows an RDMAC
/// Initiator why this endpoint closes the connection (RFC 5044 C.2.1).
#[must_use]
pub fn plain_reply(settings: &MpaSettings) -> Vec<u8> {
    let mut out = Vec::new();
    let reply = Startup {
        kind: StartupKind::Reply,
        markers: settings.m(),
        crc: true,
        reject: false,
        revision: 1,
        enhanced: None,
        private_data: &[],
    };
    reply.emit(&mut out);
    out
}

impl WaitDecision {
    /// The Request that is reported to the ULP.
    #[must_use]
    pub fn request(&self) -> &PeerFrame {
        &self.reported
    }

    /// Returns whether the IRD of the Request is too low for this endpoint's ULP. In this case, the
    /// Responder has to reject the Request (P2P-9.1-21).
    #[must_use]
    pub fn is_insufficient(&self) -> bool {
        self.answer.is_some_and(|answer| answer.insufficient)
    }

    /// Checks that the private data fits into the Reply.
    ///
    /// # Errors
    /// The Reply will be enhanced, and the private data is longer than 508 bytes.
    pub fn check(&self, private_data: &PrivateData) -> Result<(), PrivateDataTooLong> {
        private_data.clone().fits(self.answer.is_some()).map(|_| ())
    }

    /// Appends an accepting Reply to `out`. The Responder must not send an FPDU before it has
    /// received a valid FPDU (MPA-7.1.2-17). If the private data does not pass
    /// [`check`](Self::check), the Reply has only the part that fits.
    #[must_use]
    pub fn accept(self, private_data: &PrivateData, out: &mut Vec<u8>) -> Negotiated {
        let enhanced = self.answer.map(|answer| answer.enhanced);
        self.reply(false, enhanced, private_data, out);
        let agreed_rtr = self.settings.agreed_rtr.map_or(RtrKinds::NONE, RtrKinds::only);
        Negotiated {
            role: Role::Responder,
            peer_revision: self.frame.revision,
            version: if self.is_rdmac() { 0 } else { 1 },
            crc: self.crc(),
            markers_sent: self.is_rdmac() || self.frame.markers,
            markers_received: self.markers(),
            enhanced: self.answer.map(|answer| answer.agreed),
            rtr: enhanced.map_or(agreed_rtr, |enhanced| RtrKinds::of(&enhanced)),
        }
    }

    /// Appends a rejecting Reply to `out`. After this Reply, the connection does not use MPA
    /// (MPA-7.1.2-5, MPA-7.1.2-7).
    pub fn reject(self, private_data: &PrivateData, out: &mut Vec<u8>) {
        let enhanced = self.answer.map(|answer| enhanced::rejection(&answer, &self.settings.enhanced_settings));
        self.reply(true, enhanced, private_data, out);
    }

    /// Returns whether the connection will use the RDMA Consortium's protocols.
    fn is_rdmac(&self) -> bool {
        self.frame.revision == 0 || self.settings.rnic == Rnic::Rdmac
    }

    /// Flag M of the Reply. The flag is always 1 if one side is RDMAC (MPA-C.2.3-2).
    fn markers(&self) -> bool {
        self.is_rdmac() || self.settings.m()
    }

    /// Flag C of the Reply. The flag is 1 if the connection will use CRCs, even if only the
    /// Initiator wants CRCs (MPA-4.4-9).
    fn crc(&self) -> bool {
        self.is_rdmac() || self.settings.c() || self.frame.crc
    }

    /// Appends a Reply to `out`. The Reply has the revision of the Request, because an Initiator
    /// expects that revision. If one side is RDMAC, the Reply has revision 0.
    fn reply(&self, reject: bool, enhanced: Option<Enhanced>, private_data: &PrivateData, out: &mut Vec<u8>) {
        let mut frame = Startup {
            kind: StartupKind::Reply,
            markers: self.markers(),
            crc: self.crc(),
            reject,
            revision: if self.is_rdmac() { 0 } else { self.frame.revision },
            enhanced,
            private_data: private_data.as_octets(),
        };
        hostile::hook::reply(&self.deviations, &self.frame, &mut frame);
        frame.emit(out);
        hostile::hook::frame(&self.deviations, out);
    }
}
