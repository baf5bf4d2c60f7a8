//! Start-up of the Initiator: it sends a Request and waits for the Reply (RFC 5044 section 7.1.2,
//! rules 1 and 3; RFC 6581 section 9).

use weft_core::wire::mpa::{Startup, StartupKind};

use super::frame::FrameReader;
use super::{
    MpaSettings, Negotiated, PeerFrame, PrivateData, PrivateDataTooLong, Role, RtrKinds, SetupError, StartupError,
    enhanced,
};
use crate::hostile::{self, Deviations};

/// State after the Initiator has sent its Request.
#[derive(Debug)]
pub struct WaitReply {
    reader: FrameReader,
}

/// Result of [`WaitReply::handle_octets`].
#[derive(Debug)]
pub enum AfterReply {
    /// The Reply accepts (R=0). FPDUs can follow.
    Accepted(Negotiated, PeerFrame),
    /// The Reply accepts (R=0), but this endpoint cannot continue. The endpoint has to send a
    /// Terminate with the reason, and must not send anything else.
    Unacceptable(Negotiated, PeerFrame, SetupError),
    /// The Reply rejects (R=1). From now on, the ULP uses TCP without MPA.
    Rejected(PeerFrame),
    /// The Reply is still incomplete.
    Waiting(WaitReply),
}

impl WaitReply {
    /// Appends the Request to `out`. The Request has revision 1, or 2 if it is enhanced. The
    /// Request of an RDMAC endpoint has revision 0.
    ///
    /// # Errors
    /// The Request is enhanced, and the private data is longer than 508 bytes.
    pub fn start(
        settings: MpaSettings,
        private_data: &PrivateData,
        deviations: Deviations,
        out: &mut Vec<u8>,
    ) -> Result<Self, PrivateDataTooLong> {
        let asks = settings.requests_enhanced();
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
        Ok(WaitReply { reader: FrameReader::new(Role::Initiator, settings, deviations) })
    }

    /// Processes bytes that arrived for the Reply.
    ///
    /// # Errors
    /// The Reply is malformed, or bytes follow an accepting Reply. The Responder must not send
    /// before it has received the first FPDU (MPA-7.1.2-17).
    pub fn handle_octets(mut self, mut input: &[u8]) -> Result<AfterReply, StartupError> {
        let Some(mut frame) = self.reader.read(&mut input)? else { return Ok(AfterReply::Waiting(self)) };
        if frame.reject {
            hostile::hook::reported_frame(&self.reader.deviations, &mut frame);
            return Ok(AfterReply::Rejected(frame));
        }
        self.reader.check_end(input)?;
        Ok(self.accepted(frame))
    }

    /// Number of the Reply's bytes that have arrived.
    #[must_use]
    pub fn received(&self) -> usize {
        self.reader.received()
    }

    /// Computes the result of an accepting Reply. If a Reply to an enhanced Request has a lower
    /// revision or S=0, this is a fault of the Responder. No rule defines how the Initiator reacts
    /// to this fault. This Initiator continues without the enhanced set-up.
    fn accepted(self, mut frame: PeerFrame) -> AfterReply {
        let FrameReader { settings, deviations, .. } = &self.reader;
        let rdmac = frame.revision == 0;
        let mut negotiated = Negotiated {
            role: Role::Initiator,
            peer_revision: frame.revision,
            version: if rdmac { 0 } else { 1 },
            crc: rdmac || settings.c() || frame.crc,
            markers_sent: rdmac || frame.markers,
            markers_received: rdmac || settings.m(),
            enhanced: None,
            rtr: settings.agreed_rtr.map_or(RtrKinds::NONE, RtrKinds::only),
        };
        let enhanced = frame.enhanced;
        hostile::hook::reported_frame(deviations, &mut frame);
        let Some(mut enhanced) = enhanced else { return AfterReply::Accepted(negotiated, frame) };
        hostile::hook::reply_parameters(deviations, &mut enhanced);
        negotiated.rtr = RtrKinds::NONE;
        match enhanced::conclude(&enhanced, &settings.enhanced_settings) {
            Ok((agreed, rtr)) => {
                negotiated.enhanced = Some(agreed);
                negotiated.rtr = rtr.map_or(RtrKinds::NONE, RtrKinds::only);
                AfterReply::Accepted(negotiated, frame)
            }
            Err(error) => AfterReply::Unacceptable(negotiated, frame, error),
        }
    }
}
