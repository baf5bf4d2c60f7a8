//! Defines the fields of NVMe over RDMA: private data of start-up frames, command capsules, and
//! response capsules.
//!
//! weft shows these fields only on connections on which it recognised the protocol. If Wireshark
//! has the same field, weft uses Wireshark's name for it. The field of a Fabrics command has a
//! different name than the same field of another command.
//!
//! A capsule can have several segments. Then the fields follow the last segment, and have no
//! octets.

pub mod command;
pub mod completion;
pub mod fabrics;
pub mod start_up;

use weft_core::wire::mpa::StartupKind;

use super::field::{Field, Visitor};
use super::output::Output;
use crate::direction::Direction;
use crate::part::Part;
use crate::upper::Startup;
use crate::upper::nvme::{COMMAND_LEN, CONNECT, CONNECT_DATA_LEN, Command, Message};

/// Every field of NVMe over RDMA.
pub(super) fn fields() -> impl Iterator<Item = &'static Field> {
    [start_up::FIELDS, command::FIELDS, fabrics::FIELDS, completion::FIELDS].into_iter().flatten().copied()
}

/// Visits the private data of a start-up frame.
pub(super) fn visit_startup<V: Visitor>(kind: StartupKind, direction: Direction, part: Part<'_>, visitor: &mut V) {
    if let Some(startup) = Startup::read(kind, direction, part) {
        start_up::visit(&startup, visitor);
    }
}

/// Visits the message that an FPDU completes. `payload` is the payload of the FPDU, and `end` is
/// the offset after the payload in the unit.
pub(super) fn visit_message<V: Visitor>(message: &Message, payload: Option<Part<'_>>, end: usize, visitor: &mut V) {
    let len = payload.map_or(0, |payload| payload.len());
    // The message is in this FPDU if the FPDU has all of its octets.
    let is_here = match message {
        Message::Command(command) => len == command.len as usize,
        Message::Response(_) | Message::ConnectData => true,
    };
    let start = is_here.then(|| end.saturating_sub(len));
    let mut output = Output::new(visitor, start, end);
    match message {
        Message::Command(command) => {
            visit_command(command, &mut output);
            let data_at = usize::try_from(command.sgl.address).ok().and_then(|at| at.checked_add(COMMAND_LEN));
            let data_at = data_at.filter(|_| command.fabrics_type() == Some(CONNECT) && command.sgl.is_in_capsule());
            if let Some((at, payload)) = data_at.zip(payload).filter(|_| is_here) {
                connect_data(payload, at, &mut output);
            }
        }
        Message::Response(completion) => completion::visit(completion, &mut output),
        Message::ConnectData => {
            if let Some(payload) = payload {
                connect_data(payload, 0, &mut output);
            }
        }
    }
}

/// Visits a command.
fn visit_command<V: Visitor>(command: &Command, output: &mut Output<'_, V>) {
    output.enter(&command::COMMAND, 0..COMMAND_LEN);
    if let Some(queue) = command.queue {
        output.derived(&command::QID, queue);
    }
    output.name(&command::NAME, command.code().name());
    match command.fabrics_type() {
        Some(kind) => fabrics::visit(command, kind, output),
        None => command::visit(command, output),
    }
    if command.data_len() > 0 {
        output.derived(&command::DATA_LEN, command.data_len());
    }
    output.leave();
}

/// Visits the data of a Connect command, which starts at offset `at` of `payload`.
fn connect_data<V: Visitor>(payload: Part<'_>, at: usize, output: &mut Output<'_, V>) {
    let data = at.checked_add(CONNECT_DATA_LEN).and_then(|end| payload.get(at..end));
    if let Some(data) = data {
        fabrics::visit_connect_data(data, at, output);
    }
}

#[cfg(test)]
mod tests;
