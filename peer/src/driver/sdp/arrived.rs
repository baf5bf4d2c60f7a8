//! What has arrived for the reader: the octets of receives that ended, and the places of
//! Out-Of-Band octets among them.
//!
//! An Out-Of-Band octet is taken out of the stream when it arrives, and can be had by itself; with
//! `inline` it stays where it is. In both cases its place is a mark: a read ends there, and only
//! one that begins there goes on.

use std::collections::VecDeque;

use super::area::Area;
use super::posted::Part;
use super::spare::Spare;
use crate::driver::Device;

/// The octets that wait for the reader.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    ready: VecDeque<Part>,
    /// Octets that were read, and those that arrived, since the start.
    read: u64,
    end: u64,
    /// Places that a read stops at, counted as `read` is. Each counts as a receive, so that there
    /// are not many.
    marks: VecDeque<u64>,
    /// Out-Of-Band octets stay in the stream (SO_OOBINLINE).
    pub(super) inline: bool,
    /// The newest Out-Of-Band octet that was taken out of the stream.
    urgent: Option<u8>,
    /// Those that were announced and have not arrived.
    announced: u64,
}

impl Arrived {
    /// Nothing has arrived.
    pub(super) fn new(inline: bool) -> Self {
        Arrived { inline, ..Arrived::default() }
    }

    /// As many receives of `size` octets as what is not read takes up: octets fill them, and an
    /// Out-Of-Band octet ends one. The place where the next read begins takes up none: it is passed
    /// when more arrives.
    pub(super) fn receives(&self, size: usize) -> usize {
        let full = self.octets() / size.max(1) as u64;
        let marks = self.marks.iter().filter(|mark| **mark > self.read).count();
        usize::try_from(full).unwrap_or(usize::MAX).saturating_add(marks)
    }

    /// Octets that are not read.
    pub(super) fn octets(&self) -> u64 {
        self.end - self.read
    }

    /// Out-Of-Band data is on its way.
    pub(super) fn announce(&mut self) {
        self.announced = self.announced.saturating_add(1);
    }

    /// Octets of a receive that ended; `urgent`: the last one is Out-Of-Band data. Memory of which
    /// nothing is left to be read goes to `spare`. Gives how many octets were copied.
    ///
    /// When the reader is late by `most` receives, octets are appended to those of the last one,
    /// where that has room: messages of few octets must not use up SO_RCVBUF (section 9.5.6).
    pub(super) fn push(
        &mut self,
        device: &Device,
        mut part: Part,
        urgent: bool,
        most: usize,
        spare: &mut Spare,
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

    /// Copies what is there, as far as it fits and up to the next mark; nothing is taken away.
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

    /// The same, and the octets are the reader's. Memory that is not needed any more goes to
    /// `spare`.
    pub(super) fn read(&mut self, device: &Device, to: &mut [u8], spare: &mut Spare) -> usize {
        let read = self.peek(device, to);
        self.pass(device, read, spare);
        read
    }

    /// Drops all; gives whether there was any that a receive waits for.
    pub(super) fn clear(&mut self, device: &Device, spare: &mut Spare) -> bool {
        let any = self.read < self.end || !self.marks.is_empty();
        self.read = self.end;
        self.marks.clear();
        self.urgent = None;
        self.ready.drain(..).for_each(|ready| spare.give(device, ready.area));
        any
    }

    fn pass(&mut self, device: &Device, octets: usize, spare: &mut Spare) {
        if octets == 0 {
            return;
        }
        self.read += octets as u64;
        while self.marks.front().is_some_and(|mark| *mark < self.read) {
            self.marks.pop_front();
        }
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

    /// How many of `octets` a read may have: up to the next mark that it does not begin at.
    fn room(&self, octets: usize) -> usize {
        let next = self.marks.iter().find(|mark| **mark > self.read);
        let most = next.map_or(u64::MAX, |mark| mark - self.read);
        octets.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// The next read begins where an Out-Of-Band octet is, or was.
    pub(super) fn at_mark(&self) -> bool {
        self.marks.front() == Some(&self.read)
    }

    /// The Out-Of-Band octet that was taken out of the stream.
    pub(super) fn take_urgent(&mut self) -> Option<u8> {
        self.urgent.take()
    }

    /// One is on its way.
    pub(super) fn is_announced(&self) -> bool {
        self.announced > 0
    }

    /// One is on its way, or here and not read.
    pub(super) fn has_urgent(&self) -> bool {
        self.announced > 0 || self.urgent.is_some() || self.inline && !self.marks.is_empty()
    }

    /// All memory, to be moved.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.ready.iter_mut().map(|ready| &mut ready.area)
    }

    /// All memory, to be given back.
    pub(super) fn into_areas(self) -> impl Iterator<Item = Area> {
        self.ready.into_iter().map(|ready| ready.area)
    }
}
