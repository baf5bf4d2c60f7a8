//! Adapters: each translates the messages of one storage protocol into [`IoEvent`]s.
//!
//! To add a protocol, add a file with a function `read`, its `mod` line, and its line in [`read`].

mod nvme;

use super::event::IoEvent;
use crate::upper::UlpMessage;

/// Adds what `message` means to `events`. Returns whether the protocol has an adapter.
pub(super) fn read(message: &UlpMessage, events: &mut Vec<IoEvent>) -> bool {
    match message {
        UlpMessage::Nvme(message) => nvme::read(message, events),
        _ => return false,
    }
    true
}
