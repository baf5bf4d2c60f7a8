//! The settings of a new connection.

use core::time::Duration;

use crate::hostile::Deviations;
use crate::mpa::{EnhancedUse, MpaSettings, PrivateData};

/// Settings of one connection. The defaults are for a correct endpoint. With the defaults, an
/// Initiator sends a Request of revision 1, and a Responder accepts revisions 1 and 2.
#[derive(Debug, Clone)]
pub struct Settings {
    /// True: a Responder answers each valid Request automatically if the Reply can carry
    /// `private_data`. If the IRD in the Request is lower than the ORD that the Responder needs,
    /// the Responder rejects the Request. Otherwise it accepts the Request. If the Reply cannot
    /// carry `private_data`, or if this setting is false,
    /// [`Event::Request`](super::Event::Request) lets the user decide. Default true.
    pub accept: bool,
    /// Time-out while this endpoint is closing. When the time-out expires, the endpoint resets the
    /// connection. Each transmission restarts the time-out. If no error caused the close, bytes
    /// that arrive after start-up also restart the time-out. Default 10 s.
    pub close_timeout: Duration,
    /// Deliberate protocol violations ([deviations](crate::hostile)). By default, there are none.
    pub deviations: Deviations,
    /// Effective maximum segment size of the TCP connection in bytes. Messages are cut into
    /// segments whose FPDUs fit into a TCP segment. Default 1460.
    pub emss: u32,
    /// A Responder closes the connection if no FPDU arrives within this time after the accepting
    /// Reply (MPA-7.1.2-29). Default 60 s.
    pub first_fpdu_timeout: Duration,
    /// Greatest number of posted receives. Default 4096.
    pub max_receives: usize,
    /// Greatest number of outstanding Sends. Default 4096.
    pub max_sends: usize,
    /// MPA settings of this endpoint: revision, CRCs, markers, enhanced set-up.
    pub mpa: MpaSettings,
    /// Private data of the Request, or of an automatic Reply.
    pub private_data: PrivateData,
    /// The endpoint closes the connection if the peer's start-up frame is not complete within this
    /// time (MPA-7.1.2-28). Default 10 s.
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
    /// The same settings, but with a Request of revision 1. Use these settings for a new connection
    /// after the peer closed the connection in answer to an enhanced Request
    /// ([`Connection::may_fall_back`](super::Connection::may_fall_back), P2P-10-5). The ULPs must
    /// then agree on IRD, ORD and the side that sends first.
    #[must_use]
    pub fn unenhanced(&self) -> Settings {
        let mut settings = self.clone();
        settings.mpa.enhanced = EnhancedUse::Answer;
        settings
    }
}
