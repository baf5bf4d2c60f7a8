//! Finds the start-up frame of a direction. The frame is at the start of the direction or after
//! streaming data.

use memchr::memmem;
use weft_core::wire::mpa::startup::{HEADER_LEN, KEY_LEN, MAX_PD_LENGTH, MAX_REVISION};
use weft_core::wire::mpa::{RawStartup, StartupKind};
use zerocopy::FromBytes;

use super::hello::{HELLO_LEN, Hello, hello_order, private_at, streaming_hello};
use super::reader::{MAX_BUFFERED_OCTETS, Reader, State};
use super::settings::{OwnStartup, negotiate};
use super::unit_output::UnitOutput;
use crate::parse::{Carrier, Kind};
use crate::tcp::{DirectionStream, Pending};

/// The common start of both keys: "MPA ID Re".
const KEY_START: &[u8] = b"MPA ID Re";
impl Reader {
    /// Searches for the start-up frame of this direction and, if there is none, for FPDUs with
    /// correct CRCs.
    pub(super) fn search(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        if !half.has_begun() {
            if half.isn().is_none() && half.weight() < MAX_BUFFERED_OCTETS && !half.is_finished() {
                return Err(Pending::NEXT);
            }
            half.begin();
            self.zero = half.consumed();
            self.searched = self.zero;
        }
        if half.consumed() == self.zero && self.hello.is_none() {
            self.hello = streaming_hello(half);
            self.sdp = self.hello.or(self.peer.hello);
        }
        if let Some((at, kind)) = self.find_key(half)? {
            return self.take_startup(half, at, kind, out);
        }
        self.keyless = half.is_finished();
        self.begin_bare(half, out)?;
        if self.state != State::Searching {
            return Ok(());
        }
        let unread = half.end().saturating_sub(half.consumed());
        let wait = if half.is_finished() {
            self.peer.undecided
        } else {
            self.peer.held_back && unread < MAX_BUFFERED_OCTETS as u64
        };
        if wait || self.blocked.is_some_and(|pending| half.still_awaits(&pending)) {
            // Wait for the start-up frame of the peer, because it can show the settings for the
            // search.
            return Err(Pending::NEXT);
        }
        self.settings = negotiate(None, self.peer.startup.as_ref());
        let lock = self.lock(half, half.consumed(), half.settled());
        self.blocked = lock.pending;
        if lock.found {
            self.sync_at(half, lock.to, out);
            return Ok(());
        }
        if half.consumed() == self.zero && half.settled() < self.zero + HELLO_LEN && !half.is_finished() {
            // It is possible that the first segment contains only a part of a Hello.
            return Err(Pending::NEXT);
        }
        // Skip octets that cannot start an FPDU. Keep the last octets, because they can be an
        // incomplete key.
        let keep = half.settled().saturating_sub(if half.is_finished() { 0 } else { KEY_LEN as u64 + 4 });
        let to = lock.to.min(keep);
        if to <= half.consumed() {
            return Err(Pending::NEXT);
        }
        if let Some(hello) = self.hello
            && half.consumed() == self.zero
        {
            if !half.is_finished() || to < self.zero + HELLO_LEN {
                // Keep the octets of the Hello, because a start-up frame can follow.
                return Err(Pending::NEXT);
            }
            self.emit_hello(half, hello, out);
        }
        self.skip_to(half, to);
        Ok(())
    }

    /// The position and kind of the first start-up frame at or after `searched`. A frame counts
    /// only if all 20 octets of its fixed part have arrived.
    fn find_key(&mut self, half: &DirectionStream) -> Result<Option<(u64, StartupKind)>, Pending> {
        let from = self.searched.max(half.consumed());
        let captured: Vec<(u64, u64)> =
            half.spans(from, half.settled()).filter(|span| span.captured).map(|span| (span.start, span.end)).collect();
        for (start, end) in captured {
            let octets = half.contiguous(start);
            let octets = &octets[..octets.len().min(usize::try_from(end - start).unwrap_or(usize::MAX))];
            for index in memmem::find_iter(octets, KEY_START) {
                let at = start + index as u64;
                let Ok((raw, _)) = RawStartup::ref_from_prefix(&octets[index..]) else {
                    if end == half.settled() && !half.is_finished() {
                        return Err(Pending::NEXT);
                    }
                    continue;
                };
                let Some(kind) = StartupKind::of_key(&raw.key) else { continue };
                let sane = raw.revision <= MAX_REVISION && raw.pd_length.get() <= MAX_PD_LENGTH;
                if sane || at == self.zero {
                    return Ok(Some((at, kind)));
                }
            }
        }
        self.searched = half.settled().saturating_sub(KEY_LEN as u64 - 1).max(from);
        Ok(None)
    }

    fn take_startup(
        &mut self,
        half: &mut DirectionStream,
        at: u64,
        kind: StartupKind,
        out: &mut UnitOutput<'_>,
    ) -> Result<(), Pending> {
        let Some(octets) = half.octets(at, at + HEADER_LEN as u64)? else { return Err(Pending::NEXT) };
        let Ok(header) = RawStartup::read_from_bytes(octets) else { return Err(Pending::NEXT) };
        let full = at + HEADER_LEN as u64 + u64::from(header.pd_length.get());
        half.octets(at, full)?;
        let end = full.min(half.end());
        if let Some(hello) = self.hello
            && at - half.consumed() >= HELLO_LEN
            && half.consumed() == self.zero
        {
            self.emit_hello(half, hello, out);
        }
        self.skipped.absorb(half, half.consumed(), at);
        self.startup_follows_hole = self.skipped.has_hole() || half.isn().is_none();
        self.skipped.deliver_streaming(half, out);
        half.consume(at);
        let (frame, time) = half.frame_of(at, end);
        self.startup = Some(OwnStartup { kind, header });
        let part = self.scratch.part(half, std::iter::once(at..end));
        let incomplete = end < full || !part.is_complete();
        out.unit(half, at, (frame, time), incomplete, Kind::Startup(kind, part));
        let skip = HEADER_LEN + private_at(&header);
        let private = part.from(skip);
        if kind == StartupKind::Request && self.hello.is_none() {
            let order = private.all().and_then(hello_order);
            self.hello = order.map(|order| Hello { carrier: Carrier::PrivateData, order });
            self.sdp = self.hello.or(self.peer.hello);
        }
        if let Some(Hello { carrier: Carrier::PrivateData, order }) = self.sdp
            && let Some(&[a, b, c, d]) = private.get(4..8)
        {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if (16..=private.len()).contains(&length) {
                let message = private.up_to(length);
                let kind = Kind::Sdp(Carrier::PrivateData, order, message);
                out.unit(half, at + skip as u64, (frame, time), !message.is_complete(), kind);
            }
        }
        half.consume(end);
        self.origin = end;
        self.state = State::Starting;
        Ok(())
    }

    /// If this is an SDP connection without start-up frames, starts to read its FPDUs. In such a
    /// connection, at least one direction has a Hello in streaming mode, and neither direction has
    /// a start-up key.
    fn begin_bare(&mut self, half: &mut DirectionStream, out: &mut UnitOutput<'_>) -> Result<(), Pending> {
        let streaming = |hello: Option<Hello>| hello.is_some_and(|hello| hello.carrier == Carrier::Streaming);
        if self.peer.startup.is_some()
            || !(streaming(self.hello) || streaming(self.peer.hello))
            || half.consumed() != self.zero
        {
            return Ok(());
        }
        let skip = if self.hello.is_some() { HELLO_LEN } else { 0 };
        let here = half.contiguous(self.zero + skip).len() >= KEY_LEN;
        let decided = half.is_finished() && !self.peer.undecided
            || (here || self.hello.is_some()) && (self.peer.has_no_startup || half.is_finished());
        if !decided {
            return Err(Pending::NEXT);
        }
        if let Some(hello) = self.hello {
            self.emit_hello(half, hello, out);
        }
        self.origin = self.zero + skip;
        self.state = State::Starting;
        Ok(())
    }

    /// Returns whether this direction certainly has no start-up frame, neither at its start nor
    /// after a Hello at its start.
    pub(crate) fn has_no_startup(&self, half: &DirectionStream) -> bool {
        let skip = if self.hello.is_some() { HELLO_LEN } else { 0 };
        self.startup.is_none() && (self.zero != 0) && {
            let octets = half.contiguous(self.zero + skip);
            half.consumed() > self.zero || octets.len() >= KEY_LEN && StartupKind::of_key(&octets[..KEY_LEN]).is_none()
        }
    }

    /// Returns whether a start-up frame of this direction may still be found.
    pub(crate) fn is_undecided(&self, half: &DirectionStream) -> bool {
        self.state == State::Searching && !(half.is_finished() && (self.keyless || !half.has_octets()))
    }
}

#[cfg(test)]
mod tests {

    use weft_core::wire::sdp::{FieldOrder, Mid};

    use crate::testing::sdp::{SdpScript, hello_ack, ordered};
    use crate::testing::{Wire, hello};

    #[test]
    fn a_hello_without_start_up_frames_may_come_in_pieces() {
        for order in [FieldOrder::Figure, FieldOrder::Mirrored] {
            for cut in 1..32 {
                let (mut wire, octets) = (Wire::connected(), ordered(order, hello()));
                wire.send(0, &octets[..cut]);
                wire.send(0, &octets[cut..]);
                let mut script = SdpScript::after_hello(wire, order);
                script.send_octets(5, 1, &hello_ack());
                for direction in [0, 1, 0, 1] {
                    script.both_receive_all();
                    script.send(direction, Mid::DATA, "", 1);
                }
                (0..2).for_each(|direction| script.wire.fin(direction));
                assert_eq!(script.wire.errors(), [], "cut at {cut}");
            }
        }
    }
}
