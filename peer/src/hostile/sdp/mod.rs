//! Deviations of SDP: what goes out in place of the right thing (`first` for Hello and HelloAck,
//! `header`, `extension`, `carrier` for what is wrong with a message, `sequence` for messages and
//! RDMA that are too many, missing or out of place, `suspend` for socket duplication, `too_late`
//! for what continues although it has ended), the processing of messages that arrive (`arrival`),
//! the options of a peer among them (`permitted`), and the reaction to them (`reaction`), Private
//! Buffers and advertised memory (`memory`), and what the machine does and leaves out (`conduct`).

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
