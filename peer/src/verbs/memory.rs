//! PD and memory management verbs (draft sections 9.2.2 and 9.2.6). If the RNIC is open, these
//! verbs call [`crate::memory`].
//!
//! Only privileged Consumers may register memory (VERBS-7.5-2). A Consumer with access to the
//! [`Rnic`] itself is privileged.

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

    /// Allocate PD: creates a Protection Domain.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn allocate_pd(&mut self) -> Result<PdId, MemoryError> {
        self.memory_mut()?.allocate_pd()
    }

    /// Deallocate PD: removes a Protection Domain.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `PdInUse`.
    pub fn deallocate_pd(&mut self, pd: PdId) -> Result<(), MemoryError> {
        self.memory_mut()?.deallocate_pd(pd)
    }

    /// Allocates a buffer of `len` bytes, which are all zero. The draft has no such verb, because
    /// the memory of other RNICs comes from the operating system.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InsufficientResources`.
    pub fn allocate_buffer(&mut self, len: usize) -> Result<Buffer, MemoryError> {
        self.memory_mut()?.allocate_buffer(len)
    }

    /// Frees a buffer.
    ///
    /// # Errors
    /// The buffer does not exist, or regions use it.
    pub fn free_buffer(&mut self, buffer: Buffer) -> Result<(), BufferError> {
        self.shared.memory.free_buffer(buffer)
    }

    /// The contents of a buffer. Bytes that a peer writes later are visible in the next call.
    ///
    /// # Errors
    /// The buffer does not exist.
    pub fn buffer(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        self.shared.memory.buffer(buffer)
    }

    /// The contents of a buffer. The caller may change the contents.
    ///
    /// # Errors
    /// The buffer does not exist.
    pub fn buffer_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        self.shared.memory.buffer_mut(buffer)
    }

    /// Allocate Non-Shared MR STag: allocates an STag in Invalid state.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_stag(&mut self, pd: PdId, pbl_entries: u32, remote: bool) -> Result<Registered, MemoryError> {
        self.memory_mut()?.allocate_stag(pd, pbl_entries, remote)
    }

    /// Register Non-Shared MR: creates a region in Valid state.
    ///
    /// # Errors
    /// The errors of draft Figure 33 for RI-Register.
    pub fn register(&mut self, registration: &Registration) -> Result<Registered, MemoryError> {
        self.memory_mut()?.register(registration)
    }

    /// Reregister Non-Shared MR: replaces all attributes of a Non-Shared region.
    ///
    /// # Errors
    /// The errors of draft Figure 33 for RI-Reregister. [`Memory::reregister`] describes the state
    /// of the region after an error.
    pub fn reregister(&mut self, index: StagIndex, registration: &Registration) -> Result<Registered, MemoryError> {
        self.memory_mut()?.reregister(index, registration)
    }

    /// Register Shared MR: creates another region for the memory of `existing`.
    ///
    /// # Errors
    /// The errors of draft Figure 33 for Register Shared MR.
    pub fn register_shared(&mut self, existing: Stag, new: &SharedRegistration) -> Result<Stag, MemoryError> {
        self.memory_mut()?.register_shared(existing, new)
    }

    /// Query MR: returns the attributes of a region.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`.
    pub fn query_region(&self, index: StagIndex) -> Result<RegionAttributes, MemoryError> {
        self.memory()?.query_region(index)
    }

    /// Deallocate STag: removes a region or window.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`, `WindowsStillBound`.
    pub fn deallocate_stag(&mut self, index: StagIndex) -> Result<(), MemoryError> {
        self.memory_mut()?.deallocate(index)
    }

    /// Allocate MW: creates a window in Invalid state.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidPdId`, `InsufficientResources`.
    pub fn allocate_window(&mut self, pd: PdId) -> Result<StagIndex, MemoryError> {
        self.memory_mut()?.allocate_window(pd)
    }

    /// Query MW: returns the attributes of a window.
    ///
    /// # Errors
    /// `InvalidRnicHandle`, `InvalidStagIndex`.
    pub fn query_window(&self, index: StagIndex) -> Result<WindowAttributes, MemoryError> {
        self.memory()?.query_window(index)
    }
}
