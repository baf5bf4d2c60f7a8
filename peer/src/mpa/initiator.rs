//! The Initiator's start-up: it sent its Request and waits for the Reply (RFC 5044 section 7.1.2,
//! rules 1 and 3; RFC 6581 section 9).

use weft_core::wire::mpa::{Startup, StartupKind};

use super::frame::FrameReader;
use super::{
    MpaSettings, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong, Role, RtrKinds, SetupError, StartupError,
    enhanced,
};
use crate::hostile::{self, Deviations};

/// The Request is out.
#[derive(Debug)]
pub struct WaitReply {
    settings: MpaSettings,
    reader: FrameReader,
    deviations: Deviations,
}

/// Where octets led.
#[derive(Debug)]
pub enum AfterReply {
    /// R=0: Full Operation begins.
    Accepted(Negotiated, PeerFrame),
    /// R=0, but this endpoint cannot continue. A Terminate has the reason, and nothing else
    /// follows.
    Impossible(Negotiated, PeerFrame, SetupError),
    /// R=1: MPA is left, TCP is the ULP's.
    Rejected(PeerFrame),
    /// The Reply is not complete yet.
    Waiting(WaitReply),
}

impl WaitReply {
    /// Appends the Request to `out`: revision 1; 2 when it is enhanced, 0 of an RDMAC endpoint.
    ///
    /// # Errors
    /// The Request is enhanced, and there are more than 508 octets of private data.
    pub fn start(
        settings: MpaSettings,
        private_data: &PrivateData,
        deviations: Deviations,
        out: &mut Vec<u8>,
    ) -> Result<Self, PrivateDataTooLong> {
        let asks = settings.asks_enhanced();
        let private_data = private_data.clone().fits(asks)?;
        let mut frame = Startup {
            kind: StartupKind::Request,
            markers: settings.m(),
            crc: settings.c(),
            reject: false,
            revision: settings.request_revision(),
            enhanced: asks.then(|| enhanced::request(&settings.enhanced_settings)),
            private_data: private_data.as_octets(),
        };
        hostile::hook::request(&deviations, &mut frame);
        frame.emit(out);
        hostile::hook::frame(&deviations, out);
        Ok(WaitReply { settings, reader: FrameReader::new(Role::Initiator, settings, deviations.clone()), deviations })
    }

    /// Takes the Reply's octets off the front of `input`.
    ///
    /// # Errors
    /// The Reply is malformed, or more came with it: the Responder may send nothing before the
    /// first FPDU (MPA-7.1.2-17).
    pub fn handle_octets(mut self, mut input: &[u8]) -> Result<AfterReply, StartupError> {
        let Some(mut frame) = self.reader.read(&mut input)? else { return Ok(AfterReply::Waiting(self)) };
        if frame.reject {
            hostile::hook::reported_frame(&self.deviations, &mut frame);
            return Ok(AfterReply::Rejected(frame));
        }
        self.reader.check_end(input)?;
        Ok(self.accepted(frame))
    }

    /// Octets of the Reply that are here.
    #[must_use]
    pub fn received(&self) -> usize {
        self.reader.received()
    }

    /// A Reply of a lower revision, or with S=0, to an enhanced Request is a Responder's fault that
    /// leaves an unenhanced connection; no rule defines the Initiator's reaction, and this one
    /// continues.
    fn accepted(self, mut frame: PeerFrame) -> AfterReply {
        let rdmac = frame.revision == 0;
        let mut negotiated = Negotiated {
            role: Role::Initiator,
            peer_revision: frame.revision,
            version: if rdmac { 0 } else { 1 },
            crc: rdmac || self.settings.c() || frame.crc,
            markers_sent: rdmac || frame.markers,
            markers_received: rdmac || self.settings.m(),
            enhanced: None,
            rtr: self.settings.agreed_rtr.map_or(RtrKinds::NONE, RtrKinds::only),
        };
        let words = frame.enhanced;
        hostile::hook::reported_frame(&self.deviations, &mut frame);
        let Some(mut words) = words else { return AfterReply::Accepted(negotiated, frame) };
        hostile::hook::reckons(&self.deviations, &mut words);
        negotiated.rtr = RtrKinds::NONE;
        match enhanced::conclude(&words, &self.settings.enhanced_settings) {
            Ok((agreed, rtr)) => {
                negotiated.enhanced = Some(agreed);
                negotiated.rtr = rtr.map_or(RtrKinds::NONE, RtrKinds::only);
                AfterReply::Accepted(negotiated, frame)
            }
            Err(error) => AfterReply::Impossible(negotiated, frame, error),
        }
    }
}
