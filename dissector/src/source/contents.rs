//! The octets of a capture file, without its compression.

use std::io::{self, Cursor, Read};

use super::compressed;

/// Octets by which a compression is recognised.
const MAGIC_LEN: u64 = 4;

/// What `reader` gives, decompressed if its first octets are those of a compression that
/// [`Capture`](super::Capture) reads.
///
/// # Errors
/// What `reader` gives, and a compression that cannot be read at all.
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
