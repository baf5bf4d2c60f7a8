//! Pages about captures. There is one file for each page, and one file for the common parts.

mod answers;
mod commands;
mod common;
mod connections;
mod findings;
mod list;
mod live;
mod operations;
mod packet;
mod packets;
mod statistics;

use askama::Template;

pub(crate) use commands::{CommandOrder, Selection, ShownCommands, commands};
pub(crate) use common::Head;
pub(super) use common::{Links, part};
pub(crate) use connections::{connections, ladder};
pub(crate) use findings::findings;
pub(crate) use list::{Line, list};
pub(crate) use live::live;
pub(crate) use operations::operations;
pub(crate) use packet::packet;
pub(crate) use packets::{List, invalid, packets};
pub(crate) use statistics::statistics;

#[derive(Template)]
#[template(path = "reading.html")]
struct Reading {
    frames: u64,
}

/// Renders the page that a client gets while a capture is being read.
pub(crate) fn reading(frames: u64) -> Result<String, askama::Error> {
    Reading { frames }.render()
}
