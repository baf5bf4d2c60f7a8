//! The calls of a socket's user on an engine: writing, reading, Out-Of-Band data, and buffer sizes.

use std::io::{ErrorKind, IoSlice};
use std::task::Waker;

use weft_core::wire::sdp::Mode;

use super::engine::Engine;
use super::statistics::{HalfStatistics, Statistics};
use super::{SdpError, outgoing};
use crate::sdp::{CommandError, Half};

/// Maximum size in bytes of a send that Data messages or Writes transfer.
const PART: usize = 256 << 10;

impl Engine {
    /// Accepts bytes of the user, at most the number that fits in the send buffer and in one send.
    /// Returns `None` if the buffer or the queue is already full. If `urgent` is set and all bytes
    /// are accepted, the last byte is Out-Of-Band data.
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
        let len = wanted.min(room).min(self.max_send_len(wanted as u64));
        if let Err(error) = self.outgoing.make_room((&self.device, self.pd), len, &mut self.spare) {
            return Some(Err(error));
        }
        if let Err(refused) = self.machine.send(self.outgoing.next_id(), len as u64, urgent && len == wanted) {
            let closed = || SdpError::Io(ErrorKind::BrokenPipe, "this side has shut down sending".to_owned());
            // A full queue has the same effect as a full buffer. The writer is woken when a send
            // ends.
            return (refused != CommandError::QueueFull).then(|| Err(closed()));
        }
        self.outgoing.push(&self.device, octets, len);
        self.copied += len as u64;
        Some(Ok(len))
    }

    /// Returns the reason why this side can send no more data.
    pub(super) fn broken_pipe(&self) -> SdpError {
        let closed = SdpError::Io(ErrorKind::BrokenPipe, "the connection is closed".to_owned());
        self.error.clone().unwrap_or(closed)
    }

    /// Returns the maximum size in bytes of a send. Small sends are faster, because their bytes are
    /// still in the processor's cache when they go to TCP. But each send by SrcAvail costs a round
    /// trip, so fewer and larger sends are better for SrcAvails.
    fn max_send_len(&mut self, wanted: u64) -> usize {
        let by_src_avail =
            self.machine.mode(Half::Out) == Mode::Combined && wanted > self.machine.policy_mut().source_threshold;
        if by_src_avail { outgoing::MAX_AREA_LEN } else { PART }
    }

    /// Returns the number of bytes that are written and not sent yet.
    pub(super) fn unsent(&self) -> usize {
        self.outgoing.octets
    }

    /// Copies unread bytes to `to`, at most the size of `to`. Returns `None` if the reader has to
    /// wait, and 0 at the end of the stream. If `peek` is set, the bytes stay unread.
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
        let is_broken = self.error.is_some() || self.graceful == Some(false);
        Some(if is_broken { Err(self.end_error()) } else { Ok(0) })
    }

    /// Ends reading: unread and arriving data is dropped.
    pub(super) fn stop_reading(&mut self) {
        self.discards = true;
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    /// Drops unread data if reading has ended. Returns whether it dropped data.
    pub(super) fn discard(&mut self) -> bool {
        self.discards && self.arrived.clear(&self.device, &mut self.spare)
    }

    /// Takes the newest Out-Of-Band byte that was removed from the stream.
    pub(super) fn take_urgent(&mut self) -> Result<u8, SdpError> {
        if let Some(octet) = self.arrived.urgent.take() {
            return Ok(octet);
        }
        Err(if self.arrived.announced > 0 && !self.arrived.inline {
            SdpError::Io(ErrorKind::WouldBlock, "the Out-Of-Band byte has not arrived".to_owned())
        } else {
            let why = "there is no Out-Of-Band byte that can be read separately from the stream";
            SdpError::Io(ErrorKind::InvalidInput, why.to_owned())
        })
    }

    /// Sets the maximum number of bytes that are written and not sent yet.
    pub(super) fn set_send_buffer(&mut self, octets: usize) {
        self.settings.send_buffer = octets.max(1);
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Sets the total size in bytes of the receives that are posted ahead, rounded up to a multiple
    /// of one receive's size.
    pub(super) fn set_receive_buffer(&mut self, octets: usize) {
        self.settings.receives = octets.div_ceil(self.settings.receive.max(1)).clamp(1, super::MAX_RECEIVES);
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
