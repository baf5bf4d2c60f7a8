//! What the socket's user does with an engine: writes, reads, Out-Of-Band data, the sizes of its
//! buffers.

use std::io::{ErrorKind, IoSlice};
use std::task::Waker;

use weft_core::wire::sdp::Mode;

use super::engine::Engine;
use super::statistics::{HalfStatistics, Statistics};
use super::{SdpError, outgoing};
use crate::sdp::Half;

/// Octets of a send that goes out by messages or Writes.
const PART: usize = 256 << 10;

impl Engine {
    /// Takes octets of the user, as many as there is room for; `None` when there is none. `urgent`:
    /// the last one is Out-Of-Band data, if all are taken.
    pub(super) fn write(&mut self, octets: &[IoSlice<'_>], urgent: bool) -> Option<Result<usize, SdpError>> {
        if self.gone || self.machine.is_over() {
            return Some(Err(self.broken_pipe()));
        }
        let wanted = octets.iter().fold(0usize, |sum, octets| sum.saturating_add(octets.len()));
        if wanted == 0 {
            return Some(Ok(0));
        }
        let room = self.settings.send_buffer.saturating_sub(self.unsent());
        if room == 0 {
            return None;
        }
        let len = wanted.min(room).min(self.most_of_a_send(wanted as u64));
        if let Err(error) = self.outgoing.make_room((&self.device, self.pd), len, &mut self.spare) {
            return Some(Err(error));
        }
        if let Err(refused) = self.machine.send(self.outgoing.next_id(), len as u64, urgent && len == wanted) {
            return match refused {
                // It is as if there were no room: one ends some time.
                crate::sdp::Refused::QueueFull => None,
                _ => {
                    let closed = "this side has shut down sending".to_owned();
                    Some(Err(SdpError::Io(ErrorKind::BrokenPipe, closed)))
                }
            };
        }
        self.outgoing.push(&self.device, octets, len);
        self.copied += len as u64;
        Some(Ok(len))
    }

    /// Why nothing can be sent any more.
    pub(super) fn broken_pipe(&self) -> SdpError {
        let closed = SdpError::Io(ErrorKind::BrokenPipe, "the connection is closed".to_owned());
        self.error.clone().unwrap_or(closed)
    }

    /// Octets that a send may have: few enough that they are still near the processor when they go
    /// to TCP, but where each send costs a round trip of its own.
    fn most_of_a_send(&mut self, wanted: u64) -> usize {
        let by_src_avail =
            self.machine.mode(Half::Out) == Mode::Combined && wanted > self.machine.policy_mut().source_threshold;
        if by_src_avail { outgoing::MOST } else { PART }
    }

    /// Octets that were written and are not out.
    pub(super) fn unsent(&self) -> usize {
        self.outgoing.octets()
    }

    /// Gives the reader octets, as many as fit and are there; `None` when it has to wait, 0 at the
    /// end of the stream. `peek`: they stay to be read.
    pub(super) fn read(&mut self, to: &mut [u8], peek: bool) -> Option<Result<usize, SdpError>> {
        if to.is_empty() || self.discards {
            return Some(Ok(0));
        }
        let read = match peek {
            true => self.arrived.peek(&self.device, to),
            false => self.arrived.read(&self.device, to, &mut self.spare),
        };
        self.copied += read as u64;
        if read > 0 {
            return Some(Ok(read));
        }
        if !self.ended && !self.gone {
            return None;
        }
        if self.error.is_some() || self.graceful == Some(false) {
            return Some(Err(self.why_broken()));
        }
        Some(Ok(0))
    }

    /// There is no reader any more: arriving data is dropped.
    pub(super) fn stop_reading(&mut self) {
        self.discards = true;
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Drops what has arrived for nobody; gives whether there was any.
    pub(super) fn discard(&mut self) -> bool {
        self.discards && self.arrived.clear(&self.device, &mut self.spare)
    }

    /// The Out-Of-Band octet.
    pub(super) fn take_urgent(&mut self) -> Result<u8, SdpError> {
        if let Some(octet) = self.arrived.take_urgent() {
            return Ok(octet);
        }
        Err(if self.arrived.is_announced() && !self.arrived.inline {
            SdpError::Io(ErrorKind::WouldBlock, "the Out-Of-Band byte has not arrived".to_owned())
        } else {
            SdpError::Io(ErrorKind::InvalidInput, "there is no Out-Of-Band byte beside the stream".to_owned())
        })
    }

    /// Octets that may be written and not be out.
    pub(super) fn set_send_buffer(&mut self, octets: usize) {
        self.settings.send_buffer = octets.max(1);
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Octets of the receives that are posted ahead.
    pub(super) fn set_receive_buffer(&mut self, octets: usize) {
        self.settings.receives = octets.div_ceil(self.settings.receive.max(1)).clamp(1, super::MOST_RECEIVES);
    }

    pub(super) fn statistics(&self) -> Statistics {
        let half = |half| HalfStatistics {
            mode: self.machine.mode(half),
            moved: self.machine.moved(half),
            adverts: self.machine.adverts(half),
        };
        Statistics {
            sending: half(Half::Out),
            receiving: half(Half::In),
            credit: self.machine.credit(),
            credit_given: self.machine.credit_given(),
            message_limit: self.machine.message_limit(),
            recv_size: self.machine.recv_size(),
            unsent: self.unsent() as u64,
            unread: self.arrived.octets(),
            copied: self.copied,
        }
    }
}
