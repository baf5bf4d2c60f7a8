//! Deviations of SDP. Output: `first` for Hello and HelloAck; `header`, `extension` and `carrier`
//! for wrong fields of a message; `sequence` for surplus, missing or misplaced messages and RDMA;
//! `suspend` for socket duplication; `too_late` for actions after their end. Input: `arrival` for
//! the processing of messages, `permitted` for options of a peer, `reaction` for the answers.
//! `memory` has Private Buffers and advertised memory, `conduct` the actions of the machine.

mod arrival;
mod carrier;
mod conduct;
mod extension;
mod first;
mod header;
mod memory;
mod permitted;
mod reaction;
mod sequence;
mod suspend;
mod too_late;

/// The deviations of all these subjects.
pub(super) fn all() -> impl Iterator<Item = &'static super::Deviation> {
    let tables = [
        arrival::ALL,
        carrier::ALL,
        conduct::ALL,
        extension::ALL,
        first::ALL,
        header::ALL,
        reaction::ALL,
        memory::ALL,
        permitted::ALL,
        sequence::ALL,
        suspend::ALL,
        too_late::ALL,
    ];
    tables.into_iter().flatten()
}
