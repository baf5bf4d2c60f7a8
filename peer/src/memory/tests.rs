//! Tests registered memory. [`Setup`] has helper functions, and one memory with two Protection
//! Domains (PDs).

mod domains;
mod fast_register;
mod invalidation;
mod model;
mod regions;
mod shared;
mod windows;

use super::*;

/// Checks each expression. If the expression is true, records in `proof` that the test has verified
/// the requirement whose ID precedes the expression.
macro_rules! shows {
    ($proof:ident: $($id:literal => $check:expr;)+) => {
        $($proof.verify(weft_core::requirement!($id), || assert!($check, "{}", $id));)+
    };
}
use shows;

/// A memory with two PDs, a buffer of eight pages, and a Queue Pair in each PD.
struct Setup {
    memory: Memory,
    pd: PdId,
    other_pd: PdId,
    buffer: Buffer,
    qp: Accessor,
    /// Another Queue Pair in the same PD as `qp`.
    same_pd_qp: Accessor,
    /// A Queue Pair in `other_pd`.
    other_pd_qp: Accessor,
}

const PAGE: u64 = 4096;
/// A virtual address with First Byte Offset 0.
const VA: u64 = 0x7000_0000_0000;

impl Setup {
    fn new() -> Self {
        Setup::with(MemorySettings::default())
    }

    fn with(settings: MemorySettings) -> Self {
        let mut memory = Memory::new(settings);
        let pd = memory.allocate_pd().unwrap();
        let other_pd = memory.allocate_pd().unwrap();
        let buffer = memory.allocate_buffer(8 * PAGE as usize).unwrap();
        let qp = Accessor { pd, qp: QpId(1), physical: false };
        let same_pd_qp = Accessor { qp: QpId(2), ..qp };
        let other_pd_qp = Accessor { pd: other_pd, qp: QpId(3), physical: false };
        Setup { memory, pd, other_pd, buffer, qp, same_pd_qp, other_pd_qp }
    }

    /// Returns a registration of `length` bytes of the buffer. The bytes start at `offset`.
    fn registration(&self, offset: u64, length: u64) -> Registration {
        let list = PhysicalBufferList::of(self.buffer, offset, length, PAGE as u32);
        Registration {
            pd: self.pd,
            key: StagKey(0x5a),
            list,
            base: ToBase::ZeroBased,
            remote: true,
            access: Access::ALL,
        }
    }

    /// Registers a VA based region of `length` bytes with all rights.
    fn region(&mut self, length: u64) -> Stag {
        let registration = Registration { base: ToBase::VaBased(VA), ..self.registration(0, length) };
        self.memory.register(&registration).unwrap().stag
    }

    fn fast(&self, stag: Stag, length: u64) -> FastRegistration {
        let Registration { list, base, access, .. } = self.registration(0, length);
        FastRegistration { stag, list, base, access }
    }

    fn state(&self, index: StagIndex) -> StagState {
        match self.memory.query_region(index) {
            Ok(region) => region.state,
            Err(_) => self.memory.query_window(index).unwrap().state,
        }
    }

    fn locate(&self, stag: Stag, to: u64, len: usize, right: Right) -> Result<MemoryRange, AccessError> {
        self.memory.locate(self.qp, stag.to_bits(), to, len, right)
    }

    /// Returns whether the Queue Pair has any right to the byte at `to`.
    fn is_reachable(&self, stag: Stag, to: u64) -> bool {
        [Right::LocalRead, Right::LocalWrite, Right::RemoteRead, Right::RemoteWrite]
            .into_iter()
            .any(|right| self.locate(stag, to, 1, right).is_ok())
    }

    fn bind(&mut self, window: StagIndex, key: u8, region: Stag, address: u64, length: u64) -> Result<Stag, BindError> {
        let window = Stag { index: window, key: StagKey(key) };
        let access = RemoteAccess { read: true, write: true };
        self.memory.bind(self.qp, &Bind { window, region, address, length, va_based: false, access })?;
        Ok(window)
    }
}
