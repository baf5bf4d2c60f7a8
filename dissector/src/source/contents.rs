//! The octets of a capture file, without its compression.

use std::io::{self, Cursor, Read};

use super::compressed;

/// Octets that identify a compression.
const MAGIC_LEN: u64 = 4;

/// The octets of `reader`, decompressed if they begin like a compression that
/// [`Capture`](super::Capture) reads.
///
/// # Errors
/// Errors of `reader`, and an unreadable compression.
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
