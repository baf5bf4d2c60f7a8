//! Items of variable layout that several operations of NFS version 3 share (RFC 1813 section 2.6).

use super::super::xdr::Stop;
use super::decoder::Decoder;
use super::operation::ParameterKind as P;

/// Maximum length of a file handle in bytes: 64 in version 3, 128 in version 4.
const MAX_FILE_HANDLE: u32 = 128;
/// Length in bytes of `fattr3` after the type and before the size, and after the size.
const ATTRIBUTES: (u32, u32) = (16, 56);

/// Reads a file handle.
pub(super) fn file_handle(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.bytes(P::FileHandle, MAX_FILE_HANDLE)
}

/// Reads `fattr3`. Stores the type and the size.
pub(super) fn attributes(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.u32(P::FileType)?;
    decoder.skip(ATTRIBUTES.0)?;
    decoder.u64(P::FileSize)?;
    decoder.skip(ATTRIBUTES.1)
}

/// Skips `post_op_attr`.
pub(super) fn post_attributes(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(|decoder| decoder.skip(4 + ATTRIBUTES.0 + 8 + ATTRIBUTES.1))
}

/// Skips `wcc_data`.
pub(super) fn weak_cache_consistency(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(|decoder| decoder.skip(24))?;
    post_attributes(decoder)
}

/// Reads `post_op_fh3`.
pub(super) fn post_file_handle(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(file_handle)
}

/// Skips `sattr3`.
pub(super) fn settable_attributes(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    // Mode, uid and gid.
    for _ in 0..3 {
        decoder.optional(|decoder| decoder.skip(4))?;
    }
    decoder.optional(|decoder| decoder.u64(P::FileSize))?;
    // The times of the last access and of the last change: 2 is a time from the client.
    for _ in 0..2 {
        match decoder.xdr().u32()? {
            0 | 1 => {}
            2 => decoder.skip(8)?,
            _ => return Err(Stop::Malformed),
        }
    }
    Ok(())
}

/// Skips the guard of a SETATTR.
pub(super) fn guard(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(|decoder| decoder.skip(8))
}

/// Reads how a CREATE creates the file.
pub(super) fn create_how(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.u32(P::CreateMode)? {
        0 | 1 => settable_attributes(decoder),
        2 => decoder.skip(8),
        _ => Err(Stop::Malformed),
    }
}

/// Reads the data of a MKNOD.
pub(super) fn node(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.u32(P::FileType)? {
        // Block and character devices.
        3 | 4 => {
            settable_attributes(decoder)?;
            decoder.skip(8)
        }
        // Sockets and pipes.
        6 | 7 => settable_attributes(decoder),
        _ => Ok(()),
    }
}

/// Reads the entries of a READDIR reply. Stores their number and the end flag.
pub(super) fn entries(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    list(decoder, |decoder| {
        decoder.skip(8)?;
        decoder.skip_opaque()?;
        decoder.skip(8)
    })
}

/// Reads the entries of a READDIRPLUS reply. Stores their number and the end flag.
pub(super) fn entries_plus(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    list(decoder, |decoder| {
        decoder.skip(8)?;
        decoder.skip_opaque()?;
        decoder.skip(8)?;
        post_attributes(decoder)?;
        decoder.optional(Decoder::skip_opaque)
    })
}

/// Reads a list of directory entries and the end flag. `entry` reads one entry. If the list ends
/// early, the number of complete entries is stored.
pub(super) fn list(
    decoder: &mut Decoder<'_>,
    entry: impl Fn(&mut Decoder<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut count = 0;
    let result = loop {
        match decoder.xdr().flag() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(stop) => break Err(stop),
        }
        if let Err(stop) = entry(decoder) {
            break Err(stop);
        }
        count += 1;
    };
    decoder.counted(P::Entries, count);
    result?;
    decoder.u32(P::Eof).map(|_| ())
}
