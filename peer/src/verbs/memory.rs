//! PD and memory management verbs (draft sections 9.2.2 and 9.2.6): [`crate::memory`]'s, while the
//! RNIC is open.
//!
//! Registration is for privileged Consumers (VERBS-7.5-2), which hold the [`Rnic`] itself.

use super::rnic::Rnic;
use crate::memory::{
    Buffer, BufferError, Memory, MemoryError, PdId, RegionAttributes, Registered, Registration, SharedRegistration,
    Stag, StagIndex, WindowAttributes,
};

impl Rnic {
    fn memory_mut(&mut self) -> Result<&mut Memory, MemoryError> {
        if self.open { Ok(&mut self.shared.memory) } else { Err(MemoryError::InvalidRnicHandle) }
    }

    fn memory(&self) -> Result<&Memory, MemoryError> {
        if self.open { Ok(&self.shared.memory) } else { Err(MemoryError::InvalidRnicHandle) }
    }

    /// Allocate PD.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn allocate_pd(&mut self) -> Result<PdId, MemoryError> {
        self.memory_mut()?.allocate_pd()
    }

    /// Deallocate PD.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `PdInUse`.
    pub fn deallocate_pd(&mut self, pd: PdId) -> Result<(), MemoryError> {
        self.memory_mut()?.deallocate_pd(pd)
    }

    /// A new buffer of `len` octets, all zero. Not a verb: the memory that others would get from
    /// their operating system.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn allocate_buffer(&mut self, len: usize) -> Result<Buffer, MemoryError> {
        self.memory_mut()?.allocate_buffer(len)
    }

    /// Gives a buffer back.
    ///
    /// # Errors
    /// No such buffer, or regions use it.
    pub fn free_buffer(&mut self, buffer: Buffer) -> Result<(), BufferError> {
        self.shared.memory.free_buffer(buffer)
    }

    /// The bytes of a buffer. Later writes of peers are visible in the next call.
    ///
    /// # Errors
    /// No such buffer.
    pub fn buffer(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        self.shared.memory.buffer(buffer)
    }

    /// The octets of a buffer, to be changed.
    ///
    /// # Errors
    /// No such buffer.
    pub fn buffer_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.shared.memory.buffer_mut(buffer)
    }

    /// Allocate Non-Shared MR STag.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_stag(&mut self, pd: PdId, pbl_entries: u32, remote: bool) -> Result<Registered, MemoryError> {
        self.memory_mut()?.allocate_stag(pd, pbl_entries, remote)
    }

    /// Register Non-Shared MR.
    ///
    /// # Errors
    /// Draft Figure 33, RI-Register.
    pub fn register(&mut self, registration: &Registration) -> Result<Registered, MemoryError> {
        self.memory_mut()?.register(registration)
    }

    /// Reregister Non-Shared MR.
    ///
    /// # Errors
    /// Draft Figure 33, RI-Reregister; see [`Memory::reregister`] for what becomes of the region
    /// then.
    pub fn reregister(&mut self, index: StagIndex, registration: &Registration) -> Result<Registered, MemoryError> {
        self.memory_mut()?.reregister(index, registration)
    }

    /// Register Shared MR.
    ///
    /// # Errors
    /// Draft Figure 33, Register Shared MR.
    pub fn register_shared(&mut self, existing: Stag, new: &SharedRegistration) -> Result<Stag, MemoryError> {
        self.memory_mut()?.register_shared(existing, new)
    }

    /// Query MR.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`.
    pub fn query_region(&self, index: StagIndex) -> Result<RegionAttributes, MemoryError> {
        self.memory()?.query_region(index)
    }

    /// Deallocate STag.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`, `WindowsStillBound`.
    pub fn deallocate_stag(&mut self, index: StagIndex) -> Result<(), MemoryError> {
        self.memory_mut()?.deallocate(index)
    }

    /// Allocate MW.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_window(&mut self, pd: PdId) -> Result<StagIndex, MemoryError> {
        self.memory_mut()?.allocate_window(pd)
    }

    /// Query MW.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`.
    pub fn query_window(&self, index: StagIndex) -> Result<WindowAttributes, MemoryError> {
        self.memory()?.query_window(index)
    }
}
