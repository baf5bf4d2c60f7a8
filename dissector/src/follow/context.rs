//! [`Context`]: facts about a unit that the monitor knows from earlier units, and that the unit's
//! own octets do not show. Outputs and filters receive the context with each unit.

use super::exchange::Exchange;
use super::sdp;
use crate::upper::smb_direct::SmbState;
use crate::upper::{Ulp, UlpMessage, rpcrdma};

/// The state of a connection after the current unit.
#[derive(Debug, Default)]
pub struct Context {
    /// The state of the SDP connection; `None` if the connection does not carry SDP.
    pub sdp: Option<Box<sdp::SdpState>>,
    /// A port mapper exchange. For a datagram of a port mapper, this is the exchange to which the
    /// datagram belongs. For a unit of a connection, this is the exchange that prepared the
    /// connection, in the state that the exchange had when the connection was opened.
    pub exchange: Option<Exchange>,
    /// The protocol above RDMAP, if it is certain.
    pub ulp: Option<Ulp>,
    /// The protocol to which the private data of the current start-up frame belongs, if weft knows
    /// the private data.
    pub ulp_startup: Option<Ulp>,
    /// The ULP message that ends with the current FPDU, if it could be parsed.
    pub ulp_message: Option<UlpMessage>,
    /// The state of SMB Direct and SMB; `None` if the connection does not carry SMB Direct.
    pub smb: Option<Box<SmbState>>,
    /// The message of RPC-over-RDMA that ends with the current FPDU.
    pub rpc: Option<Box<rpcrdma::Decoded>>,
}

impl Context {
    /// Memory in use, in octets.
    pub(crate) fn memory(&self) -> usize {
        self.sdp.as_ref().map_or(0, |sdp| sdp.memory()) + self.smb.as_ref().map_or(0, |smb| smb.memory())
    }
}
