//! The settings of a new connection.

use core::time::Duration;

use crate::hostile::Deviations;
use crate::mpa::{EnhancedUse, MpaSettings, PrivateData};

/// Settings of one connection. The defaults are those of a correct endpoint that asks for MPA
/// revision 1 and takes revision 2.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Responder: accept a good Request at once, where the Reply has room for `private_data`.
    /// Otherwise [`Event::Request`](super::Event::Request) asks the user. Default true.
    pub accept: bool,
    /// Once this endpoint is closing: reset when so long nothing went out, and, unless it closes
    /// for an error, nothing arrived. Default 10 s.
    pub close_timeout: Duration,
    /// Misdeeds; none by default.
    pub deviations: Deviations,
    /// Effective maximum segment size of the TCP connection in octets; FPDUs are cut to it. Default 1460.
    pub emss: u32,
    /// Responder: close when no FPDU has arrived so long after the accepting Reply (MPA-7.1.2-29).
    /// Default 60 s.
    pub first_fpdu_timeout: Duration,
    /// Most receives that may be posted at a time. Default 4096.
    pub max_receives: usize,
    /// Most Sends that may be outstanding. Default 4096.
    pub max_sends: usize,
    /// Revision, CRCs, markers, the enhanced set-up: what this endpoint wants of MPA.
    pub mpa: MpaSettings,
    /// Private data of the Request, or of an automatic Reply.
    pub private_data: PrivateData,
    /// Close when the peer's start-up frame is not complete by then (MPA-7.1.2-28). Default 10 s.
    pub startup_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            accept: true,
            close_timeout: Duration::from_secs(10),
            deviations: Deviations::NONE,
            emss: 1460,
            first_fpdu_timeout: Duration::from_secs(60),
            max_receives: 4096,
            max_sends: 4096,
            mpa: MpaSettings::default(),
            private_data: PrivateData::default(),
            startup_timeout: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// The same for a new connection of revision 1 after the peer closed on an enhanced Request
    /// ([`Connection::may_fall_back`](super::Connection::may_fall_back), P2P-10-5). The ULPs must
    /// then agree on IRD, ORD and the side that sends first.
    #[must_use]
    pub fn unenhanced(&self) -> Settings {
        let mut settings = self.clone();
        settings.mpa.enhanced = EnhancedUse::Answer;
        settings
    }
}
