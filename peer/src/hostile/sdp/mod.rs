//! Deviations of SDP.
//!
//! | file | deviations |
//! | --- | --- |
//! | `first` | fields of Hello and HelloAck |
//! | `header`, `extension`, `carrier` | fields of later messages, and options of their Sends |
//! | `sequence` | additional, missing or misplaced messages and RDMA operations |
//! | `suspend` | socket duplication |
//! | `too_late` | actions that continue after an event that ends them |
//! | `arrival` | processing of received messages |
//! | `permitted` | rejection of permitted actions of the peer |
//! | `reaction` | answers to received messages |
//! | `memory` | Private Buffers and advertised memory |
//! | `conduct` | actions of the machine |

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

/// Returns the deviations of all these subjects.
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
