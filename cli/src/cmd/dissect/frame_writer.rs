//! [`FrameWriter`]: writes frames of any capture to a pcapng.

use std::collections::HashMap;
use std::io::{self, Write};

use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};
use weft_dissector::source::Frame;

/// Writes frames. Each pair of interface and link type in the input becomes an interface of the
/// output.
pub(in crate::cmd) struct FrameWriter<W> {
    writer: Writer<W>,
    interfaces: HashMap<(u32, u16), u32>,
}

impl<W: Write> FrameWriter<W> {
    /// Writes the header of the file, with a comment.
    pub(in crate::cmd) fn new(out: W, comment: &str) -> io::Result<Self> {
        Ok(FrameWriter { writer: Writer::new(out, Some(comment))?, interfaces: HashMap::new() })
    }

    /// Writes a frame with comments.
    pub(in crate::cmd) fn frame(&mut self, frame: &Frame<'_>, comments: &[String]) -> io::Result<()> {
        let key = (frame.interface, frame.link_type);
        let interface = match self.interfaces.get(&key) {
            Some(number) => *number,
            None => {
                let interface = Interface { link_type: frame.link_type, ..Interface::default() };
                let number = self.writer.interface(&interface)?;
                self.interfaces.insert(key, number);
                number
            }
        };
        self.writer.packet(&PacketBlock {
            interface,
            time: frame.time,
            octets: frame.octets,
            wire_len: frame.wire_len,
            direction: None,
            comments,
        })
    }

    /// Writes the buffered bytes. More frames can follow.
    pub(in crate::cmd) fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    /// Writes the buffered bytes.
    pub(in crate::cmd) fn finish(self) -> io::Result<()> {
        self.writer.finish().map(drop)
    }
}
