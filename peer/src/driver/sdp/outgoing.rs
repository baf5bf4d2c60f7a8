//! Memory for written data that is not sent yet. A few areas contain the written data in the order
//! of the writes. Sends and Writes gather from these areas, and SrcAvails advertise parts of them.
//! A byte is therefore copied only once on its way from the user to TCP.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::SdpError;
use super::area::Area;
use super::spare_memory::SpareMemory;
use crate::driver::Device;
use crate::memory::{Access, PdId};
use crate::sdp::{Piece, SendId};
use crate::verbs::Sge;

/// Size in bytes of the largest area, and therefore of the largest send (data of one write). If a
/// user writes more bytes at once, the write becomes several sends.
pub(super) const MAX_AREA_LEN: usize = 1 << 20;
/// Size in bytes of the smallest area.
const MIN_AREA_LEN: usize = 4 << 10;

/// The sends that have not ended, in the order in which they were written. A send is the data of
/// one write, or a part of this data. It is not an RDMAP Send.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    chunks: VecDeque<Chunk>,
    /// Running number of the first chunk.
    first_chunk: u64,
    sends: VecDeque<Send>,
    /// Running number of the first send.
    first_send: u64,
    /// Number of bytes that are not sent yet.
    pub(super) octets: usize,
}

/// An area, and the sends in it.
#[derive(Debug)]
struct Chunk {
    area: Area,
    used: usize,
    /// Number of sends in this area that have not ended.
    sends: usize,
}

#[derive(Debug, Clone, Copy)]
struct Send {
    chunk: u64,
    from: usize,
    len: usize,
    over: bool,
}

impl Outgoing {
    /// Returns the ID of the next send.
    pub(super) fn next_id(&self) -> SendId {
        SendId(self.first_send + self.sends.len() as u64)
    }

    /// Makes room for a send of `len` bytes, at most [`MAX_AREA_LEN`].
    pub(super) fn make_room(
        &mut self,
        (device, pd): (&Device, PdId),
        len: usize,
        spare: &mut SpareMemory,
    ) -> Result<(), SdpError> {
        if let Some(last) = self.chunks.back_mut() {
            if last.sends == 0 {
                last.used = 0;
            }
            if last.area.len() - last.used >= len {
                return Ok(());
            }
        }
        let wanted = len.clamp(MIN_AREA_LEN, MAX_AREA_LEN).next_power_of_two();
        let mut area = spare.take(device, wanted..=wanted.saturating_mul(4))?;
        // A spare area is sometimes already registered.
        if let Err(error) = area.ensure_registered(device, pd, Access::LOCAL) {
            spare.give(device, area);
            return Err(error);
        }
        self.chunks.push_back(Chunk { area, used: 0, sends: 0 });
        self.drop_unused(device, spare);
        Ok(())
    }

    /// Adds the next send, which has `len` bytes. Call `make_room` before this function.
    pub(super) fn push(&mut self, device: &Device, octets: &[IoSlice<'_>], len: usize) {
        let number = self.first_chunk + (self.chunks.len() as u64).saturating_sub(1);
        let Some(chunk) = self.chunks.back_mut() else { return };
        let from = chunk.used;
        device.verbs(|rnic| {
            for octets in octets {
                let fits = octets.len().min(from + len - chunk.used);
                chunk.area.put(rnic, chunk.used, octets.get(..fits).unwrap_or_default());
                chunk.used += fits;
            }
        });
        chunk.sends += 1;
        self.octets += len;
        self.sends.push_back(Send { chunk: number, from, len, over: false });
    }

    /// Notes that a send has ended.
    pub(super) fn over(&mut self, device: &Device, send: SendId, spare: &mut SpareMemory) {
        let Some(send) = self.index(send).and_then(|at| self.sends.get_mut(at)).filter(|send| !send.over) else {
            return;
        };
        send.over = true;
        self.octets -= send.len;
        let chunk = usize::try_from(send.chunk - self.first_chunk).ok().and_then(|at| self.chunks.get_mut(at));
        chunk.into_iter().for_each(|chunk| chunk.sends -= 1);
        while self.sends.pop_front_if(|send| send.over).is_some() {
            self.first_send += 1;
        }
        self.drop_unused(device, spare);
    }

    /// Releases areas without sends, except the last area.
    fn drop_unused(&mut self, device: &Device, spare: &mut SpareMemory) {
        while self.chunks.len() > 1 && self.chunks.front().is_some_and(|chunk| chunk.sends == 0) {
            self.chunks.pop_front().into_iter().for_each(|chunk| spare.give(device, chunk.area));
            self.first_chunk += 1;
        }
    }

    /// Returns whether areas exist and no area holds a send.
    pub(super) fn is_unused(&self) -> bool {
        self.sends.is_empty() && !self.chunks.is_empty()
    }

    /// Releases all memory if no area holds a send.
    pub(super) fn rest(&mut self, device: &Device, spare: &mut SpareMemory) {
        if self.sends.is_empty() {
            self.first_chunk += self.chunks.len() as u64;
            self.chunks.drain(..).for_each(|chunk| spare.give(device, chunk.area));
        }
    }

    /// Returns the memory of a part of a send, for a Work Request.
    pub(super) fn sge(&mut self, device: &Device, pd: PdId, piece: Piece) -> Result<Option<Sge>, SdpError> {
        let Some((at, from)) = self.find(piece) else { return Ok(None) };
        let Some(Chunk { area, .. }) = self.chunks.get_mut(at) else { return Ok(None) };
        // After a move to another device, the area is not registered.
        area.ensure_registered(device, pd, Access::LOCAL)?;
        Ok(area.part(from as u64, piece.len))
    }

    /// Returns the area that contains this part of a send, and the part's offset in the area.
    pub(super) fn area(&self, piece: Piece) -> Option<(&Area, usize)> {
        let (at, from) = self.find(piece)?;
        Some((&self.chunks.get(at)?.area, from))
    }

    /// Returns the index of the chunk that contains this part of a send, and the part's offset in
    /// the chunk.
    fn find(&self, piece: Piece) -> Option<(usize, usize)> {
        let send = self.sends.get(self.index(piece.send)?).filter(|send| !send.over)?;
        let from = usize::try_from(piece.from).ok()?;
        let fits = from.checked_add(piece.len as usize).is_some_and(|end| end <= send.len);
        let chunk = usize::try_from(send.chunk - self.first_chunk).ok()?;
        fits.then_some((chunk, send.from + from))
    }

    fn index(&self, send: SendId) -> Option<usize> {
        usize::try_from(send.0.checked_sub(self.first_send)?).ok()
    }

    /// Returns all memory, so that the caller can move it to another device.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.chunks.iter_mut().map(|chunk| &mut chunk.area)
    }

    /// Returns all memory, so that the caller can free it.
    pub(super) fn into_areas(self) -> impl Iterator<Item = Area> {
        self.chunks.into_iter().map(|chunk| chunk.area)
    }
}
