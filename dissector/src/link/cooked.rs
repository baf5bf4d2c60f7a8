//! Reads the headers of Linux "cooked" captures, versions 1 and 2. A capture on the device `any`
//! has these headers.

use super::ether_type;
use super::header::{Step, u16_at};

/// Protocol number of IEEE 802.2. This number is smaller than all EtherTypes.
const LLC: u16 = 4;

pub(super) fn read(bytes: &[u8]) -> Step {
    protocol(u16_at(bytes, 14)?, 16)
}

pub(super) fn read_v2(bytes: &[u8]) -> Step {
    protocol(u16_at(bytes, 0)?, 20)
}

fn protocol(number: u16, at: usize) -> Step {
    match number {
        LLC => Ok((super::header::Header::Llc, at)),
        ether_type => ether_type::without_length(ether_type, at),
    }
}
