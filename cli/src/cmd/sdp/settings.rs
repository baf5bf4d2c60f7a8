//! The options that configure SDP connections.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::driver::device::DeviceSettings;
use weft_peer::driver::sdp::{SdpSettings, SdpStream, Side};
use weft_peer::driver::{Device, TrafficLog};
use weft_peer::sdp::{CommandError, Half, Policy, Profile, Settings, SrcAvailAnswer};
use weft_peer::verbs::RnicSettings;

use crate::exit::{CommandFailure, HARNESS, UNEXPECTED};
use crate::one_of::one_of;
use crate::{rnic, runtime};

/// If a connection does not close within this time after the last DisConn, weft resets the
/// connection. A reset loses the data that TCP has not delivered yet. To allow for a slow link, the
/// time is as long as Linux waits after it has closed a socket (tcp_fin_timeout).
const CLOSE: Duration = Duration::from_secs(60);

/// The options for each SDP connection.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "SDP")]
pub(crate) struct SdpArguments {
    /// Choose how to combine the start-ups of SDP and MPA
    ///
    /// docs/sdp.md describes the profiles. The accepting side detects the profile from the received
    /// bytes. It cannot distinguish `swapped` from `bare`, so this option decides between these two
    /// profiles.
    #[arg(long, default_value = "swapped", value_parser = one_of([
        ("swapped", "", Profile::Swapped),
        ("bare", "", Profile::Bare),
        ("natural", "", Profile::Natural),
        ("enhanced", "", Profile::Enhanced),
        ("private-data", "", Profile::PrivateData),
    ]))]
    profile: Profile,
    /// Choose the field order of messages: as in the SDP draft's figures, or mirrored
    ///
    /// `mirrored` reverses the fields of each 32-bit word, as in the SDP of InfiniBand. The
    /// accepting side answers in the field order of its peer.
    #[arg(long, default_value = "figure", value_parser = one_of([
        ("figure", "", FieldOrder::Figure),
        ("mirrored", "", FieldOrder::Mirrored),
    ]))]
    order: FieldOrder,
    /// Begin with this MSeq after Hello and HelloAck
    ///
    /// Section 6.1.5 of the SDP draft allows 0 and 1. If the peer sends first and begins with 0,
    /// this side also begins with 0.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1))]
    first_mseq: u32,
    /// Send in this Mode of SDP
    #[arg(long, default_value = "combined", value_parser = one_of([
        ("combined", "", Mode::Combined),
        ("pipelined", "", Mode::Pipelined),
        ("buffered", "", Mode::Buffered),
    ]))]
    mode: Mode,
    /// Do not request CRCs
    ///
    /// If the peer requests CRCs, the connection has CRCs despite this option.
    #[arg(long)]
    no_crc: bool,
    /// Provide this many Receive Private Buffers per connection
    ///
    /// Each of these buffers receives one SDP message of the peer.
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(3..))]
    bufs: u16,
    /// Use Receive Private Buffers of this size, and request this size from the peer
    #[arg(long, value_name = "BYTES", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(37..=1 << 20))]
    buf_size: u32,
    /// Use Bcopy for data of at most this size, and Zcopy for larger data
    ///
    /// The size is the number of bytes that the program writes to the socket at once. Bcopy sends
    /// the data in SDP messages. Zcopy transfers the data by RDMA Reads or RDMA Writes.
    #[arg(long, value_name = "BYTES", default_value_t = 16384)]
    threshold: u64,
    /// Use Bcopy for all data
    #[arg(long, conflicts_with = "threshold")]
    bcopy: bool,
    /// Advertise receive buffers that are larger than this many bytes
    ///
    /// The peer can then transfer its data to these buffers by RDMA Writes.
    #[arg(long, value_name = "BYTES", default_value_t = 16384)]
    sink_threshold: u64,
    /// Advertise at most this many bytes in one SrcAvail
    ///
    /// A SrcAvail is a message that advertises data of the sender for a transfer by Zcopy.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    advertise: u32,
    /// Choose how to answer a SrcAvail
    #[arg(long, default_value = "read", value_parser = one_of([
        ("read", "By RDMA Read", SrcAvailAnswer::Read),
        ("sendsm", "By SendSm", SrcAvailAnswer::SendSm),
        ("mixed", "By one RDMA Read, then by SendSm for the remaining bytes", SrcAvailAnswer::ReadThenSendSm),
    ]))]
    answer: SrcAvailAnswer,
    /// Set the size of the receive buffers that weft posts before data arrive
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    receive: u32,
    /// Post this many receive buffers before data arrive
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    receives: u16,
    /// Buffer at most this many bytes that are written, but not sent yet
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    send_buffer: u32,
    /// Send TCP keep-alive probes after this many silent seconds; 0 disables them
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(..=32_767))]
    keep_alive: u32,
    /// Violate a rule on purpose; repeatable
    ///
    /// `weft deviations` lists the names and the violated rules.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
}

impl SdpArguments {
    /// Opens a software RNIC with the selected deviations. The RNIC records its traffic in
    /// `traffic`.
    pub(crate) fn open(&self, traffic: Option<TrafficLog>) -> anyhow::Result<Device> {
        let deviations = rnic::deviations(&self.deviate)?;
        runtime::take_all_descriptors();
        let settings = DeviceSettings { traffic, ..DeviceSettings::default() };
        let device = rnic::open_as(settings, RnicSettings { close_timeout: CLOSE, ..RnicSettings::default() })?;
        device.verbs(|rnic| rnic.deviate(deviations));
        Ok(device)
    }

    /// Returns the settings of a connection.
    pub(crate) fn settings(&self) -> SdpSettings {
        let policy = Policy {
            source_threshold: if self.bcopy { u64::MAX } else { self.threshold },
            sink_threshold: self.sink_threshold,
            max_src_avail: self.advertise,
            answer: self.answer,
            ..Policy::default()
        };
        let mut sdp = Settings {
            profile: self.profile,
            order: self.order,
            first_mseq: self.first_mseq,
            bufs: self.bufs,
            recv_size: self.buf_size,
            max_recv_size: self.buf_size.max(1 << 16),
            des_rem_rcv_sz: self.buf_size,
            policy,
            ..Settings::default()
        };
        sdp.mpa.crc = !self.no_crc;
        sdp.bare.framing_sent.crc = !self.no_crc;
        sdp.bare.framing_received.crc = !self.no_crc;
        SdpSettings {
            sdp,
            send_buffer: self.send_buffer as usize,
            receive: self.receive as usize,
            receives: self.receives.into(),
            keep_alive: self.keep_alive(),
            ..SdpSettings::default()
        }
    }

    /// Returns the settings of a relayed connection. Urgent bytes stay in the stream. So no
    /// urgent byte is lost, even if it arrives before the relay is ready.
    pub(crate) fn relayed(&self) -> SdpSettings {
        SdpSettings { oob_inline: true, ..self.settings() }
    }

    fn keep_alive(&self) -> Option<Duration> {
        (self.keep_alive > 0).then(|| Duration::from_secs(self.keep_alive.into()))
    }

    /// Prepares a new relayed connection: sets the Mode of SDP, or the no-delay and keep-alive
    /// options of TCP.
    pub(crate) fn prepare(&self, side: &Side) -> anyhow::Result<()> {
        match side {
            Side::Sdp(sdp) => self.set_mode(sdp)?,
            Side::Tcp(tcp) => {
                tcp.set_nodelay(true)?;
                if let Some(idle) = self.keep_alive() {
                    SockRef::from(tcp).set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))?;
                }
            }
        }
        Ok(())
    }

    /// Switches a new connection to its Mode.
    pub(crate) fn set_mode(&self, stream: &SdpStream) -> anyhow::Result<()> {
        let mode = self.mode;
        // Each connection starts in Combined Mode.
        if mode == Mode::Combined {
            return Ok(());
        }
        let refused = |error| match error {
            // The connection has closed already.
            CommandError::Closed => {
                CommandFailure { code: UNEXPECTED, text: "the connection broke, because it was reset".to_owned() }
            }
            _ => CommandFailure { code: HARNESS, text: format!("cannot enter {mode} Mode: {error}") },
        };
        Ok(stream.set_mode(Half::Out, mode).map_err(refused)?)
    }
}
