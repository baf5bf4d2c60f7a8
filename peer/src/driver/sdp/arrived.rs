//! Data that has arrived for the reader: the bytes of receives that ended, and the positions of
//! Out-Of-Band bytes among them. Section numbers are those of the SDP draft.
//!
//! If `inline` is set, an Out-Of-Band byte stays in the stream. Otherwise the byte is removed from
//! the stream when it arrives, and can be read separately. In both cases the position of the byte
//! is called a *mark*. A read stops at a mark. Only a read that begins at the mark returns the
//! bytes after the mark.

use std::collections::VecDeque;

use super::area::Area;
use super::posted::Part;
use super::spare_memory::SpareMemory;
use crate::driver::Device;

/// The bytes that wait for the reader.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    ready: VecDeque<Part>,
    /// Number of bytes that the user has read so far. `end` is the number of bytes that have
    /// arrived so far.
    read: u64,
    end: u64,
    /// The marks: positions where a read stops. A position is a number of bytes from the start of
    /// the stream. Each mark adds one receive to the result of `receives`. Therefore the limit of
    /// unread receives also limits the number of marks.
    marks: VecDeque<u64>,
    /// Out-Of-Band bytes stay in the stream (SO_OOBINLINE).
    pub(super) inline: bool,
    /// The newest Out-Of-Band byte that was removed from the stream and not taken.
    pub(super) urgent: Option<u8>,
    /// Number of Out-Of-Band bytes that were announced and have not arrived.
    pub(super) announced: u64,
}

impl Arrived {
    /// Creates the state before any data has arrived.
    pub(super) fn new(inline: bool) -> Self {
        Arrived { inline, ..Arrived::default() }
    }

    /// Returns how many receives of `size` bytes the unread data would fill. Each mark adds one
    /// receive, because an Out-Of-Band byte ends a receive. A mark at the position of the next read
    /// adds no receive, because the next read does not stop at this mark.
    pub(super) fn receives(&self, size: usize) -> usize {
        let full = self.octets() / size.max(1) as u64;
        let marks = self.marks.iter().filter(|mark| **mark > self.read).count();
        usize::try_from(full).unwrap_or(usize::MAX).saturating_add(marks)
    }

    /// Returns the number of bytes that have arrived and were not read.
    pub(super) fn octets(&self) -> u64 {
        self.end - self.read
    }

    /// Notes that the peer has announced an Out-Of-Band byte.
    pub(super) fn announce(&mut self) {
        self.announced = self.announced.saturating_add(1);
    }

    /// Adds the bytes of a receive that ended. If `urgent` is set, the last byte is Out-Of-Band
    /// data. Memory without unread bytes goes to `spare`. Returns the number of bytes that were
    /// copied.
    ///
    /// If at least `most` receives are unread and the bytes fit into the last unread receive, the
    /// bytes are appended to this receive. The reason is section 9.5.6: messages of a few bytes
    /// must not use up SO_RCVBUF.
    pub(super) fn push(
        &mut self,
        device: &Device,
        mut part: Part,
        urgent: bool,
        most: usize,
        spare: &mut SpareMemory,
    ) -> usize {
        let octets = part.to - part.from;
        if let Some(last) = octets.checked_sub(1).filter(|_| urgent) {
            self.announced = self.announced.saturating_sub(1);
            if !self.inline {
                part.to -= 1;
                let (area, last) = (&part.area, part.to);
                self.urgent = device.verbs(|rnic| area.octets(rnic, last, last + 1).first().copied());
            }
            let mark = self.end + last as u64;
            if self.marks.back() != Some(&mark) {
                self.marks.push_back(mark);
            }
        }
        let Part { area, from, to } = part;
        let octets = to - from;
        self.end += octets as u64;
        if octets == 0 {
            spare.give(device, area);
            return 0;
        }
        let is_late = self.ready.len() >= most;
        let fits = |last: &&mut Part| is_late && last.area.len().saturating_sub(last.to) >= octets;
        if let Some(last) = self.ready.back_mut().filter(fits) {
            device.verbs(|rnic| area.copy(rnic, from, octets, &last.area, last.to));
            last.to += octets;
            spare.give(device, area);
            return octets;
        }
        self.ready.push_back(Part { area, from, to });
        0
    }

    /// Copies unread bytes to `to`, until `to` is full or the next mark is reached. The bytes stay
    /// unread.
    pub(super) fn peek(&self, device: &Device, to: &mut [u8]) -> usize {
        let mut room = self.room(to.len());
        let mut copied = 0;
        for ready in &self.ready {
            let len = (ready.to - ready.from).min(room);
            device.verbs(|rnic| {
                let octets = ready.area.octets(rnic, ready.from, ready.from + len);
                if let Some(to) = to.get_mut(copied..copied + octets.len()) {
                    to.copy_from_slice(octets);
                }
            });
            copied += len;
            room -= len;
            if room == 0 {
                break;
            }
        }
        copied
    }

    /// Acts like [`peek`](Self::peek), but the bytes then count as read. Memory without unread
    /// bytes goes to `spare`.
    pub(super) fn read(&mut self, device: &Device, to: &mut [u8], spare: &mut SpareMemory) -> usize {
        let read = self.peek(device, to);
        self.pass(device, read, spare);
        read
    }

    /// Drops all unread data. Returns whether there was unread data. If the result is true, the
    /// caller can post more receives.
    pub(super) fn clear(&mut self, device: &Device, spare: &mut SpareMemory) -> bool {
        let any = self.read < self.end || !self.marks.is_empty();
        self.read = self.end;
        self.marks.clear();
        self.urgent = None;
        self.ready.drain(..).for_each(|ready| spare.give(device, ready.area));
        any
    }

    fn pass(&mut self, device: &Device, octets: usize, spare: &mut SpareMemory) {
        if octets == 0 {
            return;
        }
        self.read += octets as u64;
        while self.marks.pop_front_if(|mark| *mark < self.read).is_some() {}
        let mut left = octets;
        while let Some(front) = self.ready.front_mut() {
            let len = left.min(front.to - front.from);
            front.from += len;
            left -= len;
            if front.from < front.to {
                return;
            }
            self.ready.pop_front().into_iter().for_each(|ready| spare.give(device, ready.area));
        }
    }

    /// Returns how many bytes a read may return: at most `octets`, and only bytes before the next
    /// mark.
    fn room(&self, octets: usize) -> usize {
        let next = self.marks.iter().find(|mark| **mark > self.read);
        let most = next.map_or(u64::MAX, |mark| mark - self.read);
        octets.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// Returns whether the next read begins at the position of an Out-Of-Band byte.
    pub(super) fn at_mark(&self) -> bool {
        self.marks.front() == Some(&self.read)
    }

    /// Returns whether an Out-Of-Band byte is announced, or has arrived and was not read.
    pub(super) fn has_urgent(&self) -> bool {
        self.announced > 0 || self.urgent.is_some() || self.inline && !self.marks.is_empty()
    }

    /// Returns all memory, so that the caller can move it to another device.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.ready.iter_mut().map(|ready| &mut ready.area)
    }

    /// Returns all memory, so that the caller can free it.
    pub(super) fn into_areas(self) -> impl Iterator<Item = Area> {
        self.ready.into_iter().map(|ready| ready.area)
    }
}
