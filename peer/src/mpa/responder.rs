//! The Responder's start-up: it waits for the Request, then for its ULP (RFC 5044 section 7.1.2,
//! rules 2 and 4; RFC 6581 section 9).

use weft_core::wire::mpa::{Enhanced, Startup, StartupKind};

use super::enhanced::{self, Answer};
use super::frame::FrameReader;
use super::{MpaSettings, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong, Rnic, Role, RtrKinds, StartupError};
use crate::hostile::{self, Deviations};

/// Nothing was sent yet.
#[derive(Debug)]
pub struct WaitRequest {
    settings: MpaSettings,
    reader: FrameReader,
    deviations: Deviations,
}

/// Where octets led.
#[derive(Debug)]
pub enum AfterRequest {
    /// A good Request: the ULP accepts or rejects.
    Arrived(WaitDecision),
    /// The Request is not complete yet.
    Waiting(WaitRequest),
}

/// A good Request is here, and no Reply was sent.
#[derive(Debug, Clone)]
pub struct WaitDecision {
    settings: MpaSettings,
    frame: PeerFrame,
    /// The Request, as it is reported to the ULP.
    reported: PeerFrame,
    /// To an enhanced Request.
    answer: Option<Answer>,
    deviations: Deviations,
}

impl WaitRequest {
    /// The state in which a Responder begins.
    #[must_use]
    pub fn start(settings: MpaSettings, deviations: Deviations) -> Self {
        let reader = FrameReader::new(Role::Responder, settings, deviations.clone());
        WaitRequest { settings, reader, deviations }
    }

    /// Takes the Request's octets.
    ///
    /// # Errors
    /// The Request is malformed, or more came with it: an Initiator sends nothing between Request
    /// and Reply (MPA-7.1.2-11).
    pub fn handle_octets(mut self, mut input: &[u8]) -> Result<AfterRequest, StartupError> {
        let Some(request) = self.reader.read(&mut input)? else { return Ok(AfterRequest::Waiting(self)) };
        self.reader.check_end(input)?;
        let answer = request.enhanced.map(|words| enhanced::answer(&words, &self.settings.enhanced_settings));
        let (settings, deviations) = (self.settings, self.deviations);
        let mut reported = request.clone();
        hostile::hook::reported_frame(&deviations, &mut reported);
        Ok(AfterRequest::Arrived(WaitDecision { settings, frame: request, reported, answer, deviations }))
    }

    /// Octets of the Request that are here.
    #[must_use]
    pub fn received(&self) -> usize {
        self.reader.received()
    }
}

/// A Reply of revision 1 to no Request in particular. It shows an RDMAC Initiator why the
/// connection is closed (RFC 5044 C.2.1).
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
    /// The Request.
    #[must_use]
    pub fn request(&self) -> &PeerFrame {
        &self.reported
    }

    /// The Request's IRD is too low for this endpoint's ULP: reject (P2P-9.1-21).
    #[must_use]
    pub fn is_insufficient(&self) -> bool {
        self.answer.is_some_and(|answer| answer.insufficient)
    }

    /// May the Reply carry it?
    ///
    /// # Errors
    /// The Reply will be enhanced, and there are more than 508 octets.
    pub fn check(&self, private_data: &PrivateData) -> Result<(), PrivateDataTooLong> {
        private_data.clone().fits(self.answer.is_some()).map(|_| ())
    }

    /// Appends an accepting Reply to `out`. No FPDU may follow it before a valid one arrived
    /// (MPA-7.1.2-17). Private data that does not pass [`check`](Self::check) is cut.
    #[must_use]
    pub fn accept(self, private_data: &PrivateData, out: &mut Vec<u8>) -> Negotiated {
        let words = self.answer.map(|answer| answer.words);
        self.reply(false, words, private_data, out);
        let agreed_rtr = self.settings.agreed_rtr.map_or(RtrKinds::NONE, RtrKinds::only);
        Negotiated {
            role: Role::Responder,
            peer_revision: self.frame.revision,
            version: if self.is_rdmac() { 0 } else { 1 },
            crc: self.crc(),
            markers_sent: self.is_rdmac() || self.frame.markers,
            markers_received: self.markers(),
            enhanced: self.answer.map(|answer| answer.agreed),
            rtr: words.map_or(agreed_rtr, |words| RtrKinds::of(&words)),
        }
    }

    /// Appends a rejecting Reply to `out`; MPA is left then (MPA-7.1.2-5, MPA-7.1.2-7).
    pub fn reject(self, private_data: &PrivateData, out: &mut Vec<u8>) {
        let words = self.answer.map(|answer| enhanced::rejection(&answer, &self.settings.enhanced_settings));
        self.reply(true, words, private_data, out);
    }

    /// The RDMA Consortium's protocols will be spoken.
    fn is_rdmac(&self) -> bool {
        self.frame.revision == 0 || self.settings.rnic == Rnic::Rdmac
    }

    /// M of the Reply: never 0 to an RDMAC Initiator (MPA-C.2.3-2).
    fn markers(&self) -> bool {
        self.is_rdmac() || self.settings.m()
    }

    /// C of the Reply is set whenever CRCs will be used, so that both frames are true (MPA-4.4-9).
    fn crc(&self) -> bool {
        self.is_rdmac() || self.settings.c() || self.frame.crc
    }

    /// The revision is the Request's: 1, or 2, which an Initiator of that revision expects; 0 of
    /// and to RDMAC.
    fn reply(&self, reject: bool, words: Option<Enhanced>, private_data: &PrivateData, out: &mut Vec<u8>) {
        let mut frame = Startup {
            kind: StartupKind::Reply,
            markers: self.markers(),
            crc: self.crc(),
            reject,
            revision: if self.is_rdmac() { 0 } else { self.frame.revision },
            enhanced: words,
            private_data: private_data.as_octets(),
        };
        hostile::hook::reply(&self.deviations, &self.frame, &mut frame);
        frame.emit(out);
        hostile::hook::frame(&self.deviations, out);
    }
}
