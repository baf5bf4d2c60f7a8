//! Decompresses a capture file.

use std::io::{self, Cursor, Read};

use super::compressed;

/// Number of octets at the start of a file that identify a compression.
const MAGIC_LEN: u64 = 4;

/// Returns a reader of the octets of `reader`. If the first octets identify a compression that
/// [`Capture`](super::Capture) supports, decompresses the octets.
///
/// # Errors
/// `reader` fails, or the decompressor cannot be created.
pub fn decompressed(mut reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    (&mut reader).take(MAGIC_LEN).read_to_end(&mut head)?;
    let compression = compressed::recognise(&head);
    let all = Box::new(Cursor::new(head).chain(reader));
    match compression {
        Some(compression) => compression.decompress(all),
        None => Ok(all),
    }
}
