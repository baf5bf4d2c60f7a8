//! Items of variable layout of NFS version 4 (RFC 7530, 8881, 7862).

use super::super::xdr::Stop;
use super::common::list;
use super::decoder::Decoder;
use super::operation::ParameterKind as P;

/// `NFS4ERR_TOOSMALL`, `NFS4ERR_DENIED`, `NFS4ERR_CLID_INUSE`, `NFS4ERR_LAYOUTTRYLATER` and
/// `NFS4ERR_OFFLOAD_NO_REQS`.
const TOO_SMALL: u32 = 10005;
const DENIED: u32 = 10010;
const CLIENT_IN_USE: u32 = 10017;
const LAYOUT_TRY_LATER: u32 = 10058;
const OFFLOAD_NO_REQUESTS: u32 = 10094;

/// Skips `fattr4`: a bit map and the values.
pub(super) fn attributes(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.skip_bitmap()?;
    decoder.skip_opaque()
}

/// Reads an owner: a client id and opaque bytes.
pub(super) fn owner(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.u64(P::Client)?;
    decoder.skip_opaque()
}

/// Reads `createtype4`.
pub(super) fn create_type(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.u32(P::FileType)? {
        // Block and character devices.
        3 | 4 => decoder.skip(8),
        5 => decoder.data_text(P::LinkTarget),
        _ => Ok(()),
    }
}

/// Reads `locker4`.
pub(super) fn locker(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    let is_new = decoder.xdr().flag()?;
    if is_new {
        decoder.u32(P::Sequence)?;
    }
    decoder.state_id()?;
    decoder.u32(P::Sequence)?;
    if is_new { owner(decoder) } else { Ok(()) }
}

/// Reads `LOCK4denied`, if the status is `NFS4ERR_DENIED`.
pub(super) fn denied(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.status() != DENIED {
        return Ok(());
    }
    decoder.u64(P::Offset)?;
    decoder.u64(P::Length)?;
    decoder.u32(P::LockType)?;
    owner(decoder)
}

/// Reads `openflag4`.
pub(super) fn open_flag(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.u32(P::OpenType)? != 1 {
        return Ok(());
    }
    match decoder.u32(P::CreateMode)? {
        0 | 1 => attributes(decoder),
        2 => decoder.skip(8),
        3 => {
            decoder.skip(8)?;
            attributes(decoder)
        }
        _ => Err(Stop::Malformed),
    }
}

/// Reads `open_claim4`.
pub(super) fn open_claim(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.u32(P::ClaimType)? {
        0 | 3 => decoder.text(P::Name),
        1 => decoder.u32(P::DelegationType).map(|_| ()),
        2 => {
            decoder.state_id()?;
            decoder.text(P::Name)
        }
        4 | 6 => Ok(()),
        5 => decoder.state_id(),
        _ => Err(Stop::Malformed),
    }
}

/// Reads `open_delegation4`.
pub(super) fn delegation(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.u32(P::DelegationType)? {
        0 => Ok(()),
        1 => {
            decoder.state_id()?;
            decoder.skip(4)?;
            access_control_entry(decoder)
        }
        2 => {
            decoder.state_id()?;
            decoder.skip(4)?;
            // The limit of the size: bytes, or blocks and their size. Both have 8 bytes.
            match decoder.xdr().u32()? {
                1 | 2 => decoder.skip(8)?,
                _ => return Err(Stop::Malformed),
            }
            access_control_entry(decoder)
        }
        // No delegation, with a reason. Two reasons have a flag.
        3 => match decoder.xdr().u32()? {
            1 | 2 => decoder.skip(4),
            _ => Ok(()),
        },
        _ => Err(Stop::Malformed),
    }
}

fn access_control_entry(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.skip(12)?;
    decoder.skip_opaque()
}

/// Reads the entries of a READDIR reply.
pub(super) fn entries(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    list(decoder, |decoder| {
        decoder.skip(8)?;
        decoder.skip_opaque()?;
        attributes(decoder)
    })
}

/// Skips the array of security mechanisms in the reply to a SECINFO.
pub(super) fn security_mechanisms(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| match decoder.xdr().u32()? {
        6 => {
            decoder.skip_opaque()?;
            decoder.skip(8)
        }
        _ => Ok(()),
    })
}

/// Skips the client that uses the id, if the status is `NFS4ERR_CLID_INUSE`.
pub(super) fn client_in_use(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.status() != CLIENT_IN_USE {
        return Ok(());
    }
    decoder.skip_opaque()?;
    decoder.skip_opaque()
}

/// Skips the array `callback_sec_parms4`.
pub(super) fn callback_security(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| match decoder.xdr().u32()? {
        0 => Ok(()),
        1 => {
            decoder.skip(4)?;
            decoder.skip_opaque()?;
            decoder.skip(8)?;
            decoder.array(|decoder| decoder.skip(4))
        }
        6 => {
            decoder.skip(4)?;
            decoder.skip_opaque()?;
            decoder.skip_opaque()
        }
        _ => Err(Stop::Unknown),
    })
}

/// Skips `state_protect4_a`.
pub(super) fn protection_arguments(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.xdr().u32()? {
        0 => Ok(()),
        1 => {
            decoder.skip_bitmap()?;
            decoder.skip_bitmap()
        }
        2 => {
            decoder.skip_bitmap()?;
            decoder.skip_bitmap()?;
            decoder.array(Decoder::skip_opaque)?;
            decoder.array(Decoder::skip_opaque)?;
            decoder.skip(8)
        }
        _ => Err(Stop::Malformed),
    }
}

/// Skips `state_protect4_r`.
pub(super) fn protection_results(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.xdr().u32()? {
        0 => Ok(()),
        1 => {
            decoder.skip_bitmap()?;
            decoder.skip_bitmap()
        }
        2 => {
            decoder.skip_bitmap()?;
            decoder.skip_bitmap()?;
            decoder.skip(16)?;
            decoder.array(Decoder::skip_opaque)
        }
        _ => Err(Stop::Malformed),
    }
}

/// Skips the array `nfs_impl_id4`.
pub(super) fn implementation(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| {
        decoder.skip_opaque()?;
        decoder.skip_opaque()?;
        decoder.skip(12)
    })
}

/// Reads `channel_attrs4`.
pub(super) fn channel(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.skip(4)?;
    decoder.u32(P::MaxRequestSize)?;
    decoder.u32(P::MaxResponseSize)?;
    decoder.skip(4)?;
    decoder.u32(P::MaxOperations)?;
    decoder.u32(P::MaxRequests)?;
    decoder.array(|decoder| decoder.skip(4))
}

/// Skips `newoffset4` or `newsize4`.
pub(super) fn new_number(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(|decoder| decoder.skip(8))
}

/// Skips `newtime4`.
pub(super) fn new_time(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(|decoder| decoder.skip(12))
}

/// Reads a layout update, or the body of a device address: a type and opaque bytes.
pub(super) fn typed_opaque(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.u32(P::LayoutType)?;
    decoder.skip_opaque()
}

/// Reads `layoutreturn4`.
pub(super) fn layout_return(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.xdr().u32()? {
        1 => {
            decoder.u64(P::Offset)?;
            decoder.u64(P::Length)?;
            decoder.state_id()?;
            decoder.skip_opaque()
        }
        2 | 3 => Ok(()),
        _ => Err(Stop::Malformed),
    }
}

/// Reads the state id in the reply to a LAYOUTRETURN.
pub(super) fn optional_state_id(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.optional(Decoder::state_id)
}

/// Reads the layouts in the reply to a LAYOUTGET.
pub(super) fn layouts(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| {
        decoder.u64(P::Offset)?;
        decoder.u64(P::Length)?;
        decoder.u32(P::IoMode)?;
        typed_opaque(decoder)
    })
}

/// Skips the flag of a LAYOUTGET, if the status is `NFS4ERR_LAYOUTTRYLATER`.
pub(super) fn layout_try_later(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.status() == LAYOUT_TRY_LATER { decoder.skip(4) } else { Ok(()) }
}

/// Skips the minimum count of a GETDEVICEINFO, if the status is `NFS4ERR_TOOSMALL`.
pub(super) fn too_small(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.status() == TOO_SMALL { decoder.skip(4) } else { Ok(()) }
}

/// Skips the device ids in the reply to a GETDEVICELIST.
pub(super) fn devices(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| decoder.skip(16))
}

/// Skips an array of state ids.
pub(super) fn state_ids(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| decoder.skip(16))
}

/// Skips an array of numbers of 32 bits.
pub(super) fn words(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| decoder.skip(4))
}

/// Skips the array of a LAYOUTERROR: device id, status and operation.
pub(super) fn device_errors(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| decoder.skip(24))
}

/// Skips an array of `netloc4`.
pub(super) fn locations(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(location)
}

/// Skips `netloc4`.
pub(super) fn location(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.xdr().u32()? {
        // A name and a URL.
        1 | 2 => decoder.skip_opaque(),
        // A network address.
        3 => {
            decoder.skip_opaque()?;
            decoder.skip_opaque()
        }
        _ => Err(Stop::Malformed),
    }
}

/// Reads `write_response4`.
pub(super) fn write_response(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    state_ids(decoder)?;
    decoder.u64(P::Count)?;
    decoder.u32(P::Committed)?;
    decoder.skip(8)
}

/// Skips the requirements of a COPY, if the status is `NFS4ERR_OFFLOAD_NO_REQS`.
pub(super) fn copy_requirements(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    if decoder.status() == OFFLOAD_NO_REQUESTS { decoder.skip(8) } else { Ok(()) }
}

/// Reads the contents in the reply to a READ_PLUS.
pub(super) fn contents(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| {
        let content = decoder.xdr().u32()?;
        decoder.u64(P::Offset)?;
        match content {
            0 => decoder.data_length(P::ReadDataLength),
            1 => decoder.u64(P::Length),
            _ => Err(Stop::Malformed),
        }
    })
}

/// Reads the names in the reply to a LISTXATTRS.
pub(super) fn names(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| decoder.text(P::Name))
}

/// Reads the range of a `CB_LAYOUTRECALL`.
pub(super) fn layout_recall(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    match decoder.xdr().u32()? {
        1 => {
            super::common::file_handle(decoder)?;
            decoder.u64(P::Offset)?;
            decoder.u64(P::Length)?;
            decoder.state_id()
        }
        2 => decoder.skip(16),
        3 => Ok(()),
        _ => Err(Stop::Malformed),
    }
}

/// Skips the referring calls of a `CB_SEQUENCE`.
pub(super) fn referring_calls(decoder: &mut Decoder<'_>) -> Result<(), Stop> {
    decoder.array(|decoder| {
        decoder.skip(16)?;
        decoder.array(|decoder| decoder.skip(8))
    })
}
