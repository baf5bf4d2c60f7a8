//! Changes of TCP receive windows: a limit, and times at which the windows are closed.

use crate::bridge::{Bridge, MAX_CONNECTIONS, nanoseconds};
use crate::frame::TcpFrame;
use crate::impairments::ClosedWindow;

impl Bridge {
    /// Records the window scale of a SYN.
    pub(super) fn record_window_scale(&mut self, tcp: &TcpFrame, octets: &[u8]) {
        if tcp.is_syn() && self.impairments.window.is_some() {
            if self.window_scales.len() >= MAX_CONNECTIONS {
                self.window_scales.clear();
            }
            let shift = tcp.window_scale(octets);
            self.window_scales.insert((tcp.src, tcp.dst), shift.unwrap_or(0));
            // Windows are scaled only if both SYNs have the option (RFC 7323 section 2.2).
            if shift.is_none() {
                self.window_scales.entry((tcp.dst, tcp.src)).and_modify(|shift| *shift = 0);
            }
        }
    }

    /// Reduces the window of a segment that arrived at `now`, or closes it.
    pub(super) fn limit_window(&self, now: u64, tcp: &TcpFrame, octets: &mut [u8]) {
        if self.closes_windows(now) && !tcp.is_syn() {
            if tcp.window(octets) > 0 {
                tcp.write_window(octets, 0);
            }
            return;
        }
        let Some(most) = self.impairments.window else { return };
        if tcp.is_syn() {
            // The window of a SYN is never scaled. Without a limit here, the next window would move
            // the right edge of the window back.
            let most = u16::try_from(most).unwrap_or(u16::MAX);
            if tcp.window(octets) > most {
                tcp.write_window(octets, most);
            }
            return;
        }
        let Some(shift) = self.window_scales.get(&(tcp.src, tcp.dst)) else { return };
        let most = u16::try_from((most >> shift).max(1)).unwrap_or(u16::MAX);
        if tcp.window(octets) > most {
            tcp.write_window(octets, most);
        }
    }

    /// Whether the windows are closed at `now`. They are closed at the end of each period, so a
    /// connection can start first.
    fn closes_windows(&self, now: u64) -> bool {
        let Some(ClosedWindow { time, every }) = self.impairments.closed_window else { return false };
        let (time, every) = (nanoseconds(time), nanoseconds(every).max(1));
        let start = self.began.unwrap_or(now).saturating_add(nanoseconds(self.impairments.after));
        now.saturating_sub(start) % every >= every.saturating_sub(time)
    }
}
