//! The settings of the impairments.

use std::time::Duration;

use crate::aim::{FpduPart, SplitAt};
use crate::side::Side;

/// A probability as a number of events per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Probability(u32);

impl Probability {
    const MILLION: u32 = 1_000_000;

    /// A probability in percent, from 0 to 100. Returns `None` if `percent` is out of range.
    #[must_use]
    pub fn from_percent(percent: f64) -> Option<Self> {
        let millionths = percent * 10_000.0;
        // In this range, the conversion loses only the fraction.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (0.0..=1_000_000.0).contains(&millionths).then(|| Probability(millionths.round() as u32))
    }

    /// Whether the event never happens.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Draws whether the event happens. Draws no number if the answer is certain.
    pub(crate) fn draw(self, random: &mut fastrand::Rng) -> bool {
        self.0 >= Self::MILLION || (self.0 > 0 && random.u32(..Self::MILLION) < self.0)
    }
}

/// Times at which TCP receive windows are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedWindow {
    /// How long a window stays closed.
    pub time: Duration,
    /// The period. A window is closed at the end of each period.
    pub every: Duration,
}

/// The impairments of the traffic. The default is no impairment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impairments {
    /// Delay of each frame, in each impaired direction.
    pub delay: Duration,
    /// Maximum additional delay of a frame. The additional delay is random. It does not change the
    /// order of frames.
    pub jitter: Duration,
    /// Probability that a TCP segment is lost.
    pub loss: Probability,
    /// Probability that a TCP segment arrives twice.
    pub duplicate: Probability,
    /// Probability that a TCP segment arrives after the one to three segments that follow it.
    pub reorder: Probability,
    /// Probability that a TCP segment is divided into two segments at a random byte.
    pub split: Probability,
    /// The place of an FPDU at which a segment is divided instead; `None` for a random byte.
    /// [`split`](Self::split) is then the probability for a segment that has such a place.
    pub split_at: Option<SplitAt>,
    /// Maximum payload of a TCP segment in bytes. Longer segments are divided.
    pub segment: Option<u16>,
    /// Probability that one payload byte of a TCP segment is changed. The TCP checksum is
    /// corrected, so that only the CRC of MPA can detect the change.
    pub corrupt: Probability,
    /// The parts of FPDUs in which a byte is changed. If the list is empty, any payload byte is
    /// changed. Otherwise, [`corrupt`](Self::corrupt) is the probability for a segment that has
    /// such a part.
    pub corrupt_in: Vec<FpduPart>,
    /// Maximum length of an IP packet in bytes. A longer packet is lost, and its sender receives an
    /// ICMP error.
    pub mtu: Option<u16>,
    /// Maximum TCP receive window in bytes. Larger windows are reduced to this value.
    pub window: Option<u32>,
    /// When TCP receive windows are closed, so that the peer may not send; `None` for never.
    pub closed_window: Option<ClosedWindow>,
    /// The side whose frames are impaired; `None` for both sides.
    pub from: Option<Side>,
    /// TCP ports. If the list is not empty, only TCP connections from or to one of these ports are
    /// impaired.
    pub ports: Vec<u16>,
    /// During this time after the first frame, only delays happen, and no other impairment.
    pub after: Duration,
    /// Maximum number of faults; `None` for the maximum of the bridge, 1,000,000. A fault is a
    /// lost, duplicated, reordered, divided, corrupted or too long segment.
    pub max_faults: Option<u32>,
}

impl Impairments {
    /// Whether the settings leave all frames unchanged.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let Impairments { loss, duplicate, reorder, split, corrupt, .. } = self;
        [loss, duplicate, reorder, split, corrupt].into_iter().all(|probability| probability.is_zero())
            && self.delay.is_zero()
            && self.jitter.is_zero()
            && (self.segment, self.mtu, self.window, self.closed_window) == (None, None, None, None)
    }

    /// Whether a fault aims at a part of an FPDU.
    #[must_use]
    pub fn is_aimed(&self) -> bool {
        self.split_at.is_some() || !self.corrupt_in.is_empty()
    }

    /// The names of the impairments that need frames. A TCP proxy cannot apply them, because TCP
    /// repairs them before the proxy could see them.
    #[must_use]
    pub fn need_frames(&self) -> Vec<&'static str> {
        let all = [
            ("loss", !self.loss.is_zero()),
            ("duplicate", !self.duplicate.is_zero()),
            ("reorder", !self.reorder.is_zero()),
            ("mtu", self.mtu.is_some()),
            ("window", self.window.is_some()),
            ("close-window", self.closed_window.is_some()),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }
}
