//! Decompresses a capture file.

use std::io::{self, Cursor, Read};

use super::compressed;

/// Number of octets at the start of a file that identify a compression.
const MAGIC_LEN: u64 = 4;

/// Returns the octets of `reader`, decompressed if the first octets identify a compression that
/// [`Capture`](super::Capture) supports.
///
/// # Errors
/// An error of `reader`, or an error when the decompressor is created.
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
