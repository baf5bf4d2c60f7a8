//! Options of an SDP connection.

use std::time::Duration;

use clap::ValueEnum;
use socket2::{SockRef, TcpKeepalive};
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::Deviations;
use weft_peer::driver::device::DeviceSettings;
use weft_peer::driver::sdp::{SdpSettings, SdpStream, Side};
use weft_peer::driver::{Device, Tape};
use weft_peer::sdp::{Half, Policy, Profile, Refused, Settings, SrcAvailAnswer};
use weft_peer::verbs::RnicSettings;

use crate::exit::{BadInput, HARNESS, UNEXPECTED, Unsuccessful};
use crate::{rnic, runtime};

/// A connection is reset if it does not end within this time after the last DisConn. That loses
/// data that TCP still has, so a peer on a slow link gets as long as a closed socket of Linux
/// (tcp_fin_timeout).
const CLOSE: Duration = Duration::from_secs(60);

/// Settings of each connection.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "SDP")]
pub(crate) struct SdpArguments {
    /// Combine the start-ups of SDP and MPA in this way
    ///
    /// An accepting side detects all profiles except swapped and bare from the received bytes.
    #[arg(long, value_enum, default_value_t = ProfileName::Swapped)]
    profile: ProfileName,
    /// Set the field order: of the draft's figures, or mirrored
    ///
    /// An accepting side answers in the peer's order.
    #[arg(long, value_enum, default_value_t = OrderName::Figure)]
    order: OrderName,
    /// Send in this mode
    #[arg(long, value_enum, default_value_t = ModeName::Combined)]
    mode: ModeName,
    /// Do not request CRCs; they are omitted if the peer does not request them either
    #[arg(long)]
    no_crc: bool,
    /// Provide this many Receive Private Buffers
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(3..))]
    bufs: u16,
    /// Set the size of each buffer, and request it from the peer
    #[arg(long, value_name = "BYTES", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(37..=1 << 20))]
    buf_size: u32,
    /// Send writes of at most this size by Bcopy, larger ones by Zcopy
    #[arg(long, value_name = "BYTES", default_value_t = 16384)]
    threshold: u64,
    /// Send all writes by Bcopy
    #[arg(long, conflicts_with = "threshold")]
    bcopy: bool,
    /// Advertise receives that are larger than this
    #[arg(long, value_name = "BYTES", default_value_t = 16384)]
    sink_threshold: u64,
    /// Advertise at most this many bytes in one SrcAvail
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, value_parser = clap::value_parser!(u32).range(1..=1 << 31))]
    advertise: u32,
    /// Answer SrcAvails in this way
    #[arg(long, value_enum, default_value_t = AnswerName::Read)]
    answer: AnswerName,
    /// Set the size of a receive that is posted ahead
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    receive: u32,
    /// Post this many receives ahead
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    receives: u16,
    /// Buffer at most this many written bytes that are not sent yet
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    send_buffer: u32,
    /// Probe a peer by TCP keep-alive after this many silent seconds; 0 never probes
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(..=32_767))]
    keep_alive: u32,
    /// Violate a rule on purpose; repeatable
    ///
    /// `weft deviations` lists the names.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    Swapped,
    Bare,
    Natural,
    Enhanced,
    PrivateData,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderName {
    Figure,
    Mirrored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    Combined,
    Pipelined,
    Buffered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerName {
    /// By RDMA Read
    Read,
    /// By SendSm
    Sendsm,
    /// By one RDMA Read, and SendSm for the rest
    Mixed,
}

impl SdpArguments {
    /// Opens a software RNIC, recorded on `tape`, with the selected deviations.
    pub(crate) fn open(&self, tape: Option<Tape>) -> anyhow::Result<Device> {
        let deviations = Deviations::from_names(self.deviate.iter().map(String::as_str))
            .map_err(|error| BadInput(error.to_string()))?;
        runtime::take_all_descriptors();
        let settings = DeviceSettings { tape, ..DeviceSettings::default() };
        let device = rnic::open_as(settings, RnicSettings { close_timeout: CLOSE, ..RnicSettings::default() })?;
        device.verbs(|rnic| rnic.deviate(deviations));
        Ok(device)
    }

    /// The settings.
    pub(crate) fn settings(&self) -> SdpSettings {
        let policy = Policy {
            source_threshold: if self.bcopy { u64::MAX } else { self.threshold },
            sink_threshold: self.sink_threshold,
            max_src_avail: self.advertise,
            answer: match self.answer {
                AnswerName::Read => SrcAvailAnswer::Read,
                AnswerName::Sendsm => SrcAvailAnswer::SendSm,
                AnswerName::Mixed => SrcAvailAnswer::ReadThenSendSm,
            },
            ..Policy::default()
        };
        let mut sdp = Settings {
            profile: match self.profile {
                ProfileName::Swapped => Profile::Swapped,
                ProfileName::Bare => Profile::Bare,
                ProfileName::Natural => Profile::Natural,
                ProfileName::Enhanced => Profile::Enhanced,
                ProfileName::PrivateData => Profile::PrivateData,
            },
            order: match self.order {
                OrderName::Figure => FieldOrder::Figure,
                OrderName::Mirrored => FieldOrder::Mirrored,
            },
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

    /// The settings of a relayed connection: no urgent byte is lost, even if it arrives early.
    pub(crate) fn relayed(&self) -> SdpSettings {
        SdpSettings { oob_inline: true, ..self.settings() }
    }

    fn keep_alive(&self) -> Option<Duration> {
        (self.keep_alive > 0).then(|| Duration::from_secs(self.keep_alive.into()))
    }

    /// Prepares a new relayed connection: its Mode, or the corresponding settings of TCP.
    pub(crate) fn dress(&self, side: &Side) -> anyhow::Result<()> {
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
        let mode = match self.mode {
            ModeName::Combined => return Ok(()),
            ModeName::Pipelined => Mode::Pipelined,
            ModeName::Buffered => Mode::Buffered,
        };
        let refused = |error| match error {
            // It was closed before.
            Refused::Closed => Unsuccessful { code: UNEXPECTED, text: "the connection broke: it was reset".to_owned() },
            _ => Unsuccessful { code: HARNESS, text: format!("cannot enter {mode} Mode: {error}") },
        };
        Ok(stream.set_mode(Half::Out, mode).map_err(refused)?)
    }
}
