//! Performs the actions of the two endpoints. The endpoints perform every operation in both
//! directions, or make a deliberate error.

use weft_core::wire::rdmap::{AtomicOperation, Immediate};
use weft_peer::memory::Access;
use weft_peer::verbs::{Operation, Payload, RemoteAddress, Sge};

use crate::hostile::side::{LENGTH, Side, VA};
use crate::hostile::world::World;

/// Offsets in the region of each end. At `SOURCE` is the data to send, at `INBOX` are the receive
/// buffers, at `SHARED` is the memory that the peer writes and reads, and at `SINK` is the
/// destination of Reads.
pub(crate) const SOURCE: u32 = 0;
pub(crate) const INBOX: u32 = 0x4000;
pub(crate) const SHARED: u32 = 0x8000;
pub(crate) const SINK: u32 = 0xc000;
/// Offset of the eight bytes for Atomic Operations.
pub(crate) const WORD: u32 = SHARED + 0x2000;
/// Length of each receive buffer in bytes.
pub(crate) const RECEIVE: u32 = 4096;

fn fill(side: &mut Side, salt: u8) {
    for (at, octet) in side.memory().iter_mut().enumerate() {
        *octet = (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ salt;
    }
    side.memory()[WORD as usize..WORD as usize + 8].copy_from_slice(&5_u64.to_le_bytes());
    (0..100).for_each(|_| side.post_receive(INBOX, RECEIVE));
}

pub(crate) fn send(side: &Side, length: u32, solicited: bool, invalidate: Option<u32>) -> Operation {
    Operation::Send { payload: Payload::Gather(vec![side.sge(SOURCE, length)]), solicited, invalidate }
}

pub(crate) fn write(side: &Side, length: u32, remote: RemoteAddress) -> Operation {
    Operation::Write { payload: Payload::Gather(vec![side.sge(SOURCE, length)]), remote }
}

pub(crate) fn read(side: &Side, at: u32, length: u32, remote: RemoteAddress) -> Operation {
    Operation::Read { local: side.sge(SINK + at, length), remote, invalidate_local: false }
}

const ADD: AtomicOperation = AtomicOperation::FetchAdd { add_data: 3, add_mask: 0 };

fn swap(compare_data: u64, swap_data: u64) -> AtomicOperation {
    AtomicOperation::CmpSwap { swap_data, swap_mask: u64::MAX, compare_data, compare_mask: u64::MAX }
}

impl World {
    /// Completes the start-up, and posts receives at both ends.
    pub(crate) fn begin(&mut self) {
        let [a, b] = &mut self.sides;
        fill(a, 0x00);
        fill(b, 0x77);
        self.run();
    }

    /// Posts operations at end `from`. `operations` returns them. Its arguments are the peer and
    /// the end `from`.
    pub(crate) fn posts(&mut self, from: usize, operations: impl FnOnce(&Side, &mut Side) -> Vec<Operation>) {
        let [a, b] = &mut self.sides;
        let (side, peer) = if from == 0 { (a, b) } else { (b, a) };
        for operation in operations(side, peer) {
            side.post(operation);
        }
        self.run();
    }

    /// Performs all operations in both directions.
    pub(crate) fn traffic(&mut self) {
        for from in 0..2 {
            self.posts(from, |side, peer| {
                let pd = peer.pd;
                let stags = [peer.register(pd, Access::ALL), peer.register(pd, Access::ALL)];
                vec![
                    send(side, 10, false, None),
                    send(side, 20, false, None),
                    send(side, 4000, false, None),
                    send(side, 0, false, None),
                    // This Send has two segments. Without markers, both have the maximum length.
                    send(side, 2872, false, None),
                    send(side, 8, true, None),
                    send(side, 3000, false, Some(stags[0])),
                    send(side, 5, true, Some(stags[1])),
                ]
            });
            self.posts(from, |side, peer| {
                vec![
                    write(side, 7000, peer.remote(SHARED)),
                    write(side, 0, peer.remote(SHARED)),
                    write(side, 2880, peer.remote(SHARED)),
                    write(side, 10, peer.remote(SHARED + 5001)),
                    write(side, 10, peer.remote(SHARED + 5001)),
                    send(side, 1, false, None),
                    send(side, 1, false, None),
                ]
            });
            self.posts(from, |side, peer| {
                vec![
                    read(side, 0, 16, peer.remote(SHARED)),
                    read(side, 16, 24, peer.remote(SHARED + 101)),
                    read(side, 41, 5000, peer.remote(SHARED)),
                    read(side, 8, 0, peer.remote(SHARED)),
                    read(side, 0, 8, RemoteAddress { stag: peer.stag.to_bits(), tagged_offset: VA + 0x8000 }),
                    read(side, 6000, 0, RemoteAddress { stag: 0, tagged_offset: 0 }),
                ]
            });
            let pd = self.sides[from].pd;
            let own: Vec<u32> = (0..8).map(|_| self.sides[from].register(pd, Access::ALL)).collect();
            self.posts(from, |side, peer| {
                let into = |stag| Operation::Read {
                    local: Sge { stag, ..side.sge(SINK, 4) },
                    remote: peer.remote(SHARED),
                    invalidate_local: false,
                };
                own.into_iter().map(into).collect()
            });
            self.posts(from, |side, peer| {
                let remote = peer.remote(WORD);
                let of = |operation| Operation::Atomic { remote, operation };
                let masked = AtomicOperation::FetchAdd { add_data: 0xff00_0000, add_mask: 1 << 31 };
                vec![
                    of(ADD),
                    of(AtomicOperation::FetchAdd { add_data: 0, add_mask: 0 }),
                    of(swap(8, 0x0102_0304)),
                    of(swap(9, 77)),
                    of(masked),
                    of(masked),
                    read(side, 9000, 8, remote),
                    of(ADD),
                    read(side, 9008, 8, remote),
                ]
            });
            self.posts(from, |_, _| {
                let data = Immediate { data: [1, 2, 3, 4, 5, 6, 7, 8] };
                vec![Operation::Immediate { data, solicited: false }, Operation::Immediate { data, solicited: true }]
            });
        }
    }

    /// Closes the first end, and lets time pass until both ends have closed.
    pub(crate) fn end(&mut self) {
        self.sides[0].close(self.now);
        self.run();
        self.sides[1].close(self.now);
        self.run();
        self.pass(std::time::Duration::from_secs(60));
    }
}

/// A deliberate error: an action of the first end that the second end rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Unlike the other variants, this is not an error: the first end posts a Read before the first
    /// Send.
    EarlyRead,
    LongSend,
    NoReceive,
    WriteStag,
    WriteBounds,
    WriteWrap,
    WriteRights,
    WritePd,
    ReadStag,
    ReadBounds,
    ReadWrap,
    ReadRights,
    ReadPd,
    Invalidate,
    /// This is an error of the second end, which sends from memory outside its region.
    LocalError,
}

impl Wrong {
    pub(crate) const ALL: &'static [Wrong] = &[
        Wrong::EarlyRead,
        Wrong::LongSend,
        Wrong::NoReceive,
        Wrong::WriteStag,
        Wrong::WriteBounds,
        Wrong::WriteWrap,
        Wrong::WriteRights,
        Wrong::WritePd,
        Wrong::ReadStag,
        Wrong::ReadBounds,
        Wrong::ReadWrap,
        Wrong::ReadRights,
        Wrong::ReadPd,
        Wrong::Invalidate,
        Wrong::LocalError,
    ];
}

impl World {
    pub(crate) fn goes_wrong(&mut self, wrong: Wrong) {
        if wrong == Wrong::EarlyRead {
            return self.posts(0, |side, peer| vec![read(side, 0, 16, peer.remote(SHARED))]);
        }
        self.posts(0, |side, _| vec![send(side, 1, false, None)]);
        if wrong == Wrong::LocalError {
            return self.posts(1, |side, peer| {
                let mut sge = side.sge(SOURCE, 10);
                sge.stag ^= 0xffff_ff00;
                vec![Operation::Write { payload: Payload::Gather(vec![sge]), remote: peer.remote(SHARED) }]
            });
        }
        if wrong == Wrong::NoReceive {
            return self.posts(0, |side, _| (0..150).map(|_| send(side, 1, false, None)).collect());
        }
        self.posts(0, |side, peer| {
            let (pd, other) = (peer.pd, peer.other_pd);
            let none = Access { local_read: true, ..Access::default() };
            let base = peer.remote(SHARED);
            let stag = |stag| RemoteAddress { stag, ..base };
            let end = peer.remote(LENGTH - 7);
            let wrap = RemoteAddress { tagged_offset: 8_u64.wrapping_neg(), ..base };
            let unknown = stag(base.stag ^ 0x00ff_ff00);
            vec![match wrong {
                Wrong::LongSend => send(side, RECEIVE + 1, false, None),
                Wrong::WriteStag => write(side, 16, unknown),
                Wrong::WriteBounds => write(side, 8, end),
                Wrong::WriteWrap => write(side, 16, wrap),
                Wrong::WriteRights => write(side, 16, stag(peer.register(pd, none))),
                Wrong::WritePd => write(side, 16, stag(peer.register(other, Access::ALL))),
                Wrong::ReadStag => read(side, 0, 16, unknown),
                Wrong::ReadBounds => read(side, 0, 8, end),
                Wrong::ReadWrap => read(side, 0, 16, wrap),
                Wrong::ReadRights => read(side, 0, 16, stag(peer.register(pd, none))),
                Wrong::ReadPd => read(side, 0, 16, stag(peer.register(other, Access::ALL))),
                Wrong::Invalidate => send(side, 1, false, Some(unknown.stag)),
                Wrong::EarlyRead | Wrong::NoReceive | Wrong::LocalError => unreachable!("done above"),
            }]
        });
        // The first end also sends data after its error. The second end drops this data.
        self.posts(0, |side, _| vec![send(side, 2, false, None)]);
    }
}
