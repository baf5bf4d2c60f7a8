//! The names of values in messages (MS-SMB2 section 2.2, MS-FSCC sections 2.3 to 2.5).

use super::channel::Channel;
use super::command::Command;
use super::status::Status;

/// The name of a command.
pub(crate) fn command(value: u64) -> Option<&'static str> {
    Command(u16::try_from(value).ok()?).name()
}

/// The name of a status.
pub(crate) fn status(value: u64) -> Option<&'static str> {
    Status(u32::try_from(value).ok()?).name()
}

/// The name of a value of Channel.
pub(crate) fn channel(value: u64) -> Option<&'static str> {
    Channel(u32::try_from(value).ok()?).name()
}

/// The name of a dialect.
pub(crate) fn dialect(value: u64) -> Option<&'static str> {
    Some(match value {
        0x0202 => "SMB 2.0.2",
        0x0210 => "SMB 2.1",
        0x0300 => "SMB 3.0",
        0x0302 => "SMB 3.0.2",
        0x0311 => "SMB 3.1.1",
        0x02ff => "SMB 2 wildcard",
        _ => return None,
    })
}

/// The name of a type of share.
pub(crate) fn share_type(value: u64) -> Option<&'static str> {
    Some(match value {
        1 => "disk",
        2 => "pipe",
        3 => "print",
        _ => return None,
    })
}

/// The name of a value of CreateDisposition.
pub(crate) fn disposition(value: u64) -> Option<&'static str> {
    Some(match value {
        0 => "FILE_SUPERSEDE",
        1 => "FILE_OPEN",
        2 => "FILE_CREATE",
        3 => "FILE_OPEN_IF",
        4 => "FILE_OVERWRITE",
        5 => "FILE_OVERWRITE_IF",
        _ => return None,
    })
}

/// The name of a value of CreateAction.
pub(crate) fn create_action(value: u64) -> Option<&'static str> {
    Some(match value {
        0 => "FILE_SUPERSEDED",
        1 => "FILE_OPENED",
        2 => "FILE_CREATED",
        3 => "FILE_OVERWRITTEN",
        _ => return None,
    })
}

/// The name of a level of oplock.
pub(crate) fn oplock(value: u64) -> Option<&'static str> {
    Some(match value {
        0x00 => "SMB2_OPLOCK_LEVEL_NONE",
        0x01 => "SMB2_OPLOCK_LEVEL_II",
        0x08 => "SMB2_OPLOCK_LEVEL_EXCLUSIVE",
        0x09 => "SMB2_OPLOCK_LEVEL_BATCH",
        0xff => "SMB2_OPLOCK_LEVEL_LEASE",
        _ => return None,
    })
}

/// The name of a type of information.
pub(crate) fn info_type(value: u64) -> Option<&'static str> {
    Some(match value {
        1 => "SMB2_0_INFO_FILE",
        2 => "SMB2_0_INFO_FILESYSTEM",
        3 => "SMB2_0_INFO_SECURITY",
        4 => "SMB2_0_INFO_QUOTA",
        _ => return None,
    })
}

/// The name of a class of file information. QUERY_DIRECTORY uses the same classes.
pub(crate) fn file_info(value: u64) -> Option<&'static str> {
    Some(match value {
        1 => "FileDirectoryInformation",
        2 => "FileFullDirectoryInformation",
        3 => "FileBothDirectoryInformation",
        4 => "FileBasicInformation",
        5 => "FileStandardInformation",
        6 => "FileInternalInformation",
        7 => "FileEaInformation",
        8 => "FileAccessInformation",
        9 => "FileNameInformation",
        10 => "FileRenameInformation",
        11 => "FileLinkInformation",
        12 => "FileNamesInformation",
        13 => "FileDispositionInformation",
        14 => "FilePositionInformation",
        15 => "FileFullEaInformation",
        16 => "FileModeInformation",
        17 => "FileAlignmentInformation",
        18 => "FileAllInformation",
        19 => "FileAllocationInformation",
        20 => "FileEndOfFileInformation",
        21 => "FileAlternateNameInformation",
        22 => "FileStreamInformation",
        23 => "FilePipeInformation",
        24 => "FilePipeLocalInformation",
        25 => "FilePipeRemoteInformation",
        28 => "FileCompressionInformation",
        34 => "FileNetworkOpenInformation",
        35 => "FileAttributeTagInformation",
        37 => "FileIdBothDirectoryInformation",
        38 => "FileIdFullDirectoryInformation",
        40 => "FileValidDataLengthInformation",
        41 => "FileShortNameInformation",
        48 => "FileNormalizedNameInformation",
        59 => "FileIdInformation",
        60 => "FileIdExtdDirectoryInformation",
        64 => "FileDispositionInformationEx",
        65 => "FileRenameInformationEx",
        100 => "FilePosixInformation",
        _ => return None,
    })
}

/// The name of a class of file system information.
pub(crate) fn fs_info(value: u64) -> Option<&'static str> {
    Some(match value {
        1 => "FileFsVolumeInformation",
        2 => "FileFsLabelInformation",
        3 => "FileFsSizeInformation",
        4 => "FileFsDeviceInformation",
        5 => "FileFsAttributeInformation",
        6 => "FileFsControlInformation",
        7 => "FileFsFullSizeInformation",
        8 => "FileFsObjectIdInformation",
        11 => "FileFsSectorSizeInformation",
        100 => "FileFsPosixInformation",
        _ => return None,
    })
}

/// The name of a control code of IOCTL.
pub(crate) fn ioctl(value: u64) -> Option<&'static str> {
    Some(match value {
        0x0006_0194 => "FSCTL_DFS_GET_REFERRALS",
        0x0006_01b0 => "FSCTL_DFS_GET_REFERRALS_EX",
        0x0009_0000 => "FSCTL_REQUEST_OPLOCK_LEVEL_1",
        0x0009_009c => "FSCTL_GET_OBJECT_ID",
        0x0009_00a4 => "FSCTL_SET_REPARSE_POINT",
        0x0009_00a8 => "FSCTL_GET_REPARSE_POINT",
        0x0009_00ac => "FSCTL_DELETE_REPARSE_POINT",
        0x0009_00c0 => "FSCTL_CREATE_OR_GET_OBJECT_ID",
        0x0009_00c4 => "FSCTL_SET_SPARSE",
        0x0009_027c => "FSCTL_GET_INTEGRITY_INFORMATION",
        0x0009_0284 => "FSCTL_QUERY_FILE_REGIONS",
        0x0009_40cf => "FSCTL_QUERY_ALLOCATED_RANGES",
        0x0009_8208 => "FSCTL_FILE_LEVEL_TRIM",
        0x0009_8268 => "FSCTL_OFFLOAD_WRITE",
        0x0009_8344 => "FSCTL_DUPLICATE_EXTENTS_TO_FILE",
        0x0009_80c8 => "FSCTL_SET_ZERO_DATA",
        0x0009_4264 => "FSCTL_OFFLOAD_READ",
        0x0009_c040 => "FSCTL_SET_COMPRESSION",
        0x0009_c280 => "FSCTL_SET_INTEGRITY_INFORMATION",
        0x0011_0018 => "FSCTL_PIPE_WAIT",
        0x0011_400c => "FSCTL_PIPE_PEEK",
        0x0011_c017 => "FSCTL_PIPE_TRANSCEIVE",
        0x0014_0078 => "FSCTL_SRV_REQUEST_RESUME_KEY",
        0x0014_0204 => "FSCTL_VALIDATE_NEGOTIATE_INFO",
        0x0014_01d4 => "FSCTL_LMR_REQUEST_RESILIENCY",
        0x0014_01fc => "FSCTL_QUERY_NETWORK_INTERFACE_INFO",
        0x0014_4064 => "FSCTL_SRV_ENUMERATE_SNAPSHOTS",
        0x0014_41bb => "FSCTL_SRV_READ_HASH",
        0x0014_40f2 => "FSCTL_SRV_COPYCHUNK",
        0x0014_80f2 => "FSCTL_SRV_COPYCHUNK_WRITE",
        _ => return None,
    })
}

/// The name of a compression algorithm.
pub(crate) fn compression(value: u64) -> Option<&'static str> {
    Some(match value {
        0 => "NONE",
        1 => "LZNT1",
        2 => "LZ77",
        3 => "LZ77+Huffman",
        4 => "Pattern_V1",
        5 => "LZ4",
        _ => return None,
    })
}
