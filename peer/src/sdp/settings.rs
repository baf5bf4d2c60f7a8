//! Settings of one side of an SDP connection. They are chosen before start-up. Section numbers are
//! those of the SDP draft.

use core::time::Duration;

use weft_core::wire::sdp::FieldOrder;

use super::{BareSettings, Policy, Profile};
use crate::mpa::MpaSettings;

/// Settings of one connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How the start-up of SDP is combined with the start-up of MPA. An Accepting Peer recognises
    /// `natural`, `enhanced` and `private-data` by the bytes that arrive. If an Accepting Peer
    /// recognises none of these, this setting decides between `swapped` and `bare`. Default
    /// `swapped`.
    pub profile: Profile,
    /// Field order of the messages that this side sends. An Accepting Peer answers in the order of
    /// the Hello. Default [`FieldOrder::Figure`].
    pub order: FieldOrder,
    /// MSeq of this side's first message after Hello and HelloAck, 0 or 1. Section 6.1.5 allows
    /// both values. If the peer sends first and begins with 0, this side also begins with 0.
    /// Default 1.
    pub first_mseq: u32,
    /// Settings of MPA. In the enhanced profile, this side always requests revision 2 and a
    /// ready-to-receive message, even if these settings differ.
    pub mpa: MpaSettings,
    /// Settings that replace the MPA start-up frames in the bare profile.
    pub bare: BareSettings,
    /// Number of this side's Private Buffers, 3 to 65535 (section 10). Default 16.
    pub bufs: u16,
    /// Size of this side's Private Buffers in bytes, 37 to 2^31. Default 8192.
    pub recv_size: u32,
    /// The peer can request larger Private Buffers of this side, with DesRemRcvSz or ChRcvBuf. This
    /// setting is the maximum size in bytes that this side grants. Default 65536.
    pub max_recv_size: u32,
    /// DesRemRcvSz of the Hello: the size in bytes that this side wants for the peer's Private
    /// Buffers. Default 8192.
    pub des_rem_rcv_sz: u32,
    /// MaxAdverts: maximum number of open advertisements of the peer, 1 to 65535. Default 16.
    pub max_adverts: u16,
    /// Number of RDMA Reads of the peer that this side serves at the same time, 1 to 65535. Default
    /// 16.
    pub ird: u16,
    /// Number of RDMA Reads that this side may have outstanding, 1 to 65535. Default 16.
    pub ord: u16,
    /// Maximum duration of start-up, from the established TCP connection until HelloAck is sent or
    /// received. It is also the maximum time from a suspension until the next TCP connection.
    /// Default 10 s.
    pub startup_timeout: Duration,
    /// How long an Accepting Peer waits for an MPA Request after the Hello has arrived. After this
    /// time it sends its own Request (`swapped`) or starts iWARP (`bare`). If the peer's Request
    /// arrives after the end of the wait, start-up fails. Default 0.
    pub request_wait: Duration,
    /// How long an Accepting Peer keeps back one of the credits that the Hello granted. The reason
    /// is that HelloAck uses a buffer that the formula of section 10.2 does not count. The wait
    /// also ends when the peer's first message arrives. Default 30 ms.
    pub credit_wait: Duration,
    /// Time without progress after which a close becomes abortive (section 8.2.1). Default 30 s.
    pub close_timeout: Duration,
    /// How long this side keeps TCP open after both DisConns, if this side has to end TCP. The wait
    /// ends early if the peer acknowledges this side's DisConn. Without the wait, messages that the
    /// peer sent before it received the DisConn could arrive at a closed connection. The peer would
    /// then observe a reset. Default 10 ms.
    pub close_linger: Duration,
    /// Rules that select the mechanism for each transfer.
    pub policy: Policy,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profile: Profile::default(),
            order: FieldOrder::default(),
            first_mseq: 1,
            mpa: MpaSettings::default(),
            bare: BareSettings::default(),
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
    /// Returns the settings with valid values in place of invalid sizes, `bufs`, `max_adverts`,
    /// `ird` and `ord`. A connection could not work with the invalid values.
    pub(super) fn clamped(mut self) -> Self {
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
