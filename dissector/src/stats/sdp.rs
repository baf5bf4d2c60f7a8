//! Takes the statistics of an SDP connection from the final state of the connection.

use std::fmt;

use serde::Serialize;
use weft_core::wire::sdp::Mode;

use crate::direction::Direction;
use crate::format::counted;
use crate::frame_number::FrameNumber;
use crate::sdp::{Adverts, Profile, SdpState};

/// Statistics of an SDP connection.
#[derive(Debug, Clone, Serialize)]
pub struct SdpConnectionStats {
    /// The start-up sequence: `swapped`, `bare`, `natural`, `enhanced`, `private-data`.
    pub profile: Option<&'static str>,
    /// Number of the direction in which the Connecting Peer sends.
    pub connecting: usize,
    /// Final state: `hello`, `open`, `half_closed`, `closed`, `aborted`, `suspending`, `suspended`.
    pub state: &'static str,
    /// Whether each direction ended gracefully; null if TCP did not end.
    pub graceful: [Option<bool>; 2],
    /// The TCP port at which the connection will resume. A SuspComm contains this port.
    pub suspended_to: Option<u16>,
    /// Whether every message was captured. If false, advertisements and NonDiscards are omitted.
    pub certain: bool,
    /// The half-connections. At index 0, the Data Source sends in direction 0.
    pub halves: [HalfStats; 2],
}

/// Statistics of a half-connection. In a half-connection, one endpoint (the Data Source) sends data
/// to the other endpoint (the Data Sink).
#[derive(Debug, Clone, Serialize)]
pub struct HalfStats {
    /// The last Mode.
    pub mode: Option<String>,
    /// Number of ModeChanges.
    pub mode_changes: u64,
    /// The first ModeChanges: frame number and requested Mode (null for a reserved value).
    pub modes: Vec<(FrameNumber, Option<String>)>,
    /// Number of buffers that the Data Sink announced.
    pub buffers_advertised: u64,
    /// Number of announced buffers that messages used.
    pub buffers_consumed: u64,
    /// The last and the minimum credit of the Data Source.
    pub credits: (Option<u32>, Option<u32>),
    /// Number of gratuitous updates: Data messages without payload, sent to the Data Source.
    pub gratuitous_updates: u64,
    /// Size in octets of the Private Buffers of the Data Sink.
    pub receive_size: Option<u32>,
    /// Number of advertisements that the Data Sink can store.
    pub max_adverts: Option<u16>,
    /// SrcAvails of the Data Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_avails: Option<AdvertStats>,
    /// SinkAvails of the Data Sink.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink_avails: Option<AdvertStats>,
    /// NonDiscards of the Data Sink, and PotentialNonDiscards of the Data Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_discards: Option<(u32, u32)>,
    /// Two counts. The first count is the number of RdmaWrCompl, RdmaRdCompl and SendSm messages
    /// that the Data Source's endpoint sent although no advertisement was open. The second count is
    /// the number of SinkAvail messages of the Data Sink with a NonDiscards value that does not
    /// match earlier messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<(u64, u64)>,
    /// Number of announced Out-Of-Band octets that were not sent.
    pub oob_pending: u32,
}

/// Statistics of SrcAvails or SinkAvails.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AdvertStats {
    /// Total number of advertisements.
    pub made: u64,
    /// Number of advertisements that were open at the end of the connection.
    pub open: u64,
    /// Maximum number of advertisements that were open at the same time.
    pub most_open: u64,
    /// Number of advertisements that RdmaRdCompl or RdmaWrCompl completed.
    pub completed: u64,
    /// Number of SrcAvails for which a SendSm requested the remaining octets as Data.
    pub by_data: u64,
    /// Number of SinkAvails that a message with payload made stale.
    pub stale: u64,
    /// Number of cancelled advertisements.
    pub revoked: u64,
    /// Number of advertisements that a SinkAvail, a Mode change or a DisConn made void.
    pub void: u64,
}

impl SdpConnectionStats {
    pub(super) fn of(sdp: &SdpState) -> Self {
        let closing = &sdp.closing;
        SdpConnectionStats {
            profile: sdp.profile.map(Profile::name),
            connecting: sdp.connecting.into(),
            state: closing.state().name(),
            graceful: Direction::BOTH.map(|direction| closing.graceful(direction)),
            suspended_to: closing.susp_comm.iter().flatten().next().map(|suspension| suspension.port),
            certain: sdp.certain,
            halves: Direction::BOTH.map(|direction| HalfStats::of(sdp, direction)),
        }
    }

    pub(super) fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  SDP: {} start-up, {}", self.profile.unwrap_or("unknown"), self.state.replace('_', "-"))?;
        match self.graceful {
            [Some(true), Some(true)] => write!(f, ", ended gracefully")?,
            [Some(false), Some(false)] => write!(f, ", ended abortively")?,
            [Some(first), Some(_)] => {
                write!(f, ", ended gracefully for the {} endpoint only", if first { "first" } else { "second" })?;
            }
            _ => {}
        }
        if let Some(port) = self.suspended_to {
            write!(f, ", will resume at port {port}")?;
        }
        if !self.certain {
            write!(f, "; messages are missing, so advertisements are not shown")?;
        }
        writeln!(f)
    }
}

impl HalfStats {
    fn of(sdp: &SdpState, direction: Direction) -> Self {
        let (source, sink) = (&sdp.peers[direction], &sdp.peers[direction.peer()]);
        let (credits, changes) = (&sdp.credits[direction], &sdp.changes[direction]);
        let name = |mode: Mode| mode.to_string();
        let sure = |adverts: &Adverts| sdp.certain.then(|| AdvertStats::of(adverts));
        HalfStats {
            mode: sdp.modes[direction].map(name),
            mode_changes: changes.count,
            modes: changes.listed.iter().map(|change| (change.frame, change.mode.map(name))).collect(),
            buffers_advertised: credits.advertised,
            buffers_consumed: credits.consumed,
            credits: (credits.left(), credits.min_left),
            gratuitous_updates: credits.gratuitous,
            receive_size: sink.receive_size,
            max_adverts: sink.max_adverts,
            src_avails: sure(&source.source.adverts),
            sink_avails: sure(&sink.sink.adverts),
            non_discards: sdp.certain.then_some((sink.sink.non_discards, source.source.potential_non_discards)),
            unexplained: sdp.certain.then_some((source.unmatched, sink.sink.non_discards_differ)),
            oob_pending: source.oob_pending,
        }
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "    SDP Mode {}", self.mode.as_deref().unwrap_or("unknown"))?;
        for (index, (frame, mode)) in self.modes.iter().enumerate() {
            let lead = if index == 0 { "; changed to" } else { "," };
            write!(f, "{lead} {} in frame {frame}", mode.as_deref().unwrap_or("a reserved Mode"))?;
        }
        if self.mode_changes > self.modes.len() as u64 {
            write!(f, ", and {}", counted(self.mode_changes - self.modes.len() as u64, "more change"))?;
        }
        writeln!(f)?;
        write!(f, "    SDP buffers: {} advertised, {} used", self.buffers_advertised, self.buffers_consumed)?;
        if let (Some(left), Some(least)) = self.credits {
            write!(f, ", credit {left} at the end, minimum {least}")?;
        }
        write!(f, ", {}", counted(self.gratuitous_updates, "gratuitous update"))?;
        if let Some(size) = self.receive_size {
            write!(f, ", buffer size {size} bytes")?;
        }
        writeln!(f)?;
        for (what, adverts) in [("SrcAvails", self.src_avails), ("SinkAvails of the receiver", self.sink_avails)] {
            if let Some(adverts) = adverts.filter(|adverts| adverts.made > 0) {
                writeln!(f, "    SDP {what}: {adverts}")?;
            }
        }
        if let Some((sink, source)) = self.non_discards.filter(|counts| *counts != (0, 0)) {
            writeln!(f, "    SDP NonDiscards {sink}, PotentialNonDiscards {source}")?;
        }
        if let Some((unmatched, differ)) = self.unexplained.filter(|counts| *counts != (0, 0)) {
            writeln!(
                f,
                "    SDP RdmaRdCompl, RdmaWrCompl and SendSm messages without an advertisement: {unmatched}; \
                 SinkAvail messages with an unexpected NonDiscards field: {differ}"
            )?;
        }
        if self.oob_pending > 0 {
            writeln!(f, "    SDP Out-Of-Band bytes announced but not sent: {}", self.oob_pending)?;
        }
        Ok(())
    }
}

impl AdvertStats {
    fn of(adverts: &Adverts) -> Self {
        let Adverts { made, completed, by_data, stale, revoked, void, max_open: most_open, .. } = *adverts;
        let open = adverts.open().len() as u64;
        AdvertStats { made, open, most_open, completed, by_data, stale, revoked, void }
    }
}

impl fmt::Display for AdvertStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at most {} at a time", self.made, self.most_open)?;
        let fates = [
            (self.completed, "completed"),
            (self.by_data, "sent as Data"),
            (self.stale, "stale"),
            (self.revoked, "revoked"),
            (self.void, "void"),
            (self.open, "open"),
        ];
        for (count, fate) in fates.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {fate}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
