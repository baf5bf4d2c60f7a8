//! One side's settings of an SDP connection, configured before start-up.

use core::time::Duration;

use weft_core::wire::sdp::FieldOrder;

use super::{Bare, Policy, Profile};
use crate::mpa::MpaSettings;

/// Settings of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How SDP and MPA start. A side that accepts recognises `natural`, `enhanced` and
    /// `private-data` by what arrives; between `swapped` and `bare` this decides. Default
    /// `swapped`.
    pub profile: Profile,
    /// Field order of what is sent; a side that accepts answers in the order of the Hello. Default:
    /// the figures'.
    pub order: FieldOrder,
    /// MPA. The enhanced profile requests revision 2 and a ready-to-receive message whatever this
    /// setting is.
    pub mpa: MpaSettings,
    /// What replaces MPA's start-up in the bare profile.
    pub bare: Bare,
    /// Receive Private Buffers, 3 to 65535 (section 10). Default 16.
    pub bufs: u16,
    /// Their size in octets, 37 to 2^31. Default 8192.
    pub recv_size: u32,
    /// A peer's ChRcvBuf or DesRemRcvSz makes Private Buffers no larger than this. Default 65536.
    pub max_recv_size: u32,
    /// DesRemRcvSz of the Hello: the wanted size of the peer's Private Buffers, in octets. Default 8192.
    pub des_rem_rcv_sz: u32,
    /// Advertisements of the peer that this side keeps, 1 to 65535. Default 16.
    pub max_adverts: u16,
    /// RDMA Reads of the peer that this side serves at once, 1 to 65535. Default 16.
    pub ird: u16,
    /// RDMA Reads that this side may have outstanding, 1 to 65535. Default 16.
    pub ord: u16,
    /// HelloAck (or what start-up needs before it) has to be here within this time. Default 10 s.
    pub startup_timeout: Duration,
    /// How long a side that accepts waits for a Request after the Hello before it takes the Hello
    /// as complete: a Request that TCP delivers later is met by the own one. Default 0.
    pub request_wait: Duration,
    /// A side that accepted keeps one credit of the Hello back for so long, or until the peer's
    /// first message: HelloAck uses a buffer that the formula of section 10.2 does not see (C6,
    /// C40). Default 30 ms.
    pub credit_wait: Duration,
    /// A close that makes no progress becomes abortive after this time (section 8.2.1). Default 30
    /// s.
    pub close_timeout: Duration,
    /// A side whose DisConn was the last keeps TCP for this time, unless the peer acknowledges it:
    /// what the peer sent before would otherwise meet a connection that is gone, which looks like a
    /// reset to it. Default 10 ms.
    pub close_linger: Duration,
    /// When which mechanism is used.
    pub policy: Policy,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profile: Profile::default(),
            order: FieldOrder::default(),
            mpa: MpaSettings::default(),
            bare: Bare::default(),
            bufs: 16,
            recv_size: 8192,
            max_recv_size: 65536,
            des_rem_rcv_sz: 8192,
            max_adverts: 16,
            ird: 16,
            ord: 16,
            startup_timeout: Duration::from_secs(10),
            request_wait: Duration::ZERO,
            credit_wait: Duration::from_millis(30),
            close_timeout: Duration::from_secs(30),
            close_linger: Duration::from_millis(10),
            policy: Policy::default(),
        }
    }
}

impl Settings {
    /// The same, with what no connection could work with put right: sizes, numbers of buffers and
    /// depths within their bounds.
    pub(super) fn honest(mut self) -> Self {
        use weft_core::wire::sdp::{MIN_INITIAL_BUFS, MIN_PRIVATE_BUFFER};
        self.bufs = self.bufs.max(MIN_INITIAL_BUFS);
        self.recv_size = self.recv_size.clamp(MIN_PRIVATE_BUFFER, 1 << 31);
        self.max_recv_size = self.max_recv_size.clamp(self.recv_size, 1 << 31);
        self.des_rem_rcv_sz = self.des_rem_rcv_sz.min(1 << 31);
        self.max_adverts = self.max_adverts.max(1);
        self.ird = self.ird.max(1);
        self.ord = self.ord.max(1);
        self
    }
}
