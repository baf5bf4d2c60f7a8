//! Recognises captures by the names of their files, for readers of a complete folder.
//!
//! A name is only a hint. [`Capture`](super::Capture) ignores the name, and recognises the format
//! and the compression of a file by its first octets.

use std::ffi::OsStr;

/// File name extensions of the formats that weft reads. Files of Network Monitor have the extension
/// `cap`, too.
pub const CAPTURE_EXTENSIONS: [&str; 5] = ["pcap", "pcapng", "cap", "snoop", "erf"];
/// File name extensions of the compressions that weft reads. They follow the extension of the
/// format.
const COMPRESSION_EXTENSIONS: [&str; 5] = ["gz", "zst", "xz", "bz2", "lz4"];

/// Returns whether this is the name of a visible file with the extension of a capture, for example
/// `a.pcapng` or `B.CAP.XZ`. Digits may follow the extension, because `tcpdump -C` names the files
/// of a ring `a.pcap0`, `a.pcap1` and so on.
#[must_use]
pub fn is_capture_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let plain = match name.rsplit_once('.') {
        Some((plain, extension)) if COMPRESSION_EXTENSIONS.contains(&extension) => plain,
        _ => name.as_str(),
    };
    let Some((_, extension)) = plain.rsplit_once('.') else { return false };
    let extension = extension.trim_end_matches(|c: char| c.is_ascii_digit());
    !name.starts_with('.') && CAPTURE_EXTENSIONS.contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_each_format_and_each_compression_by_name() {
        for format in CAPTURE_EXTENSIONS {
            for compression in ["", ".gz", ".zst", ".xz", ".bz2", ".lz4"] {
                let name = format!("a.b.{format}{compression}");
                assert!(is_capture_name(OsStr::new(&name)), "{name}");
                assert!(is_capture_name(OsStr::new(&name.to_uppercase())), "{name} in upper case");
            }
        }
    }

    #[test]
    fn recognises_the_numbered_files_of_a_ring() {
        for name in ["a.pcap0", "a.pcap17", "a.cap3.gz"] {
            assert!(is_capture_name(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn ignores_hidden_files_and_other_extensions() {
        for name in ["", "pcap", ".pcap", ".a.pcap", "a.txt", "a.gz", "a.txt.gz", "a.pcap.gz.gz", "a.pcapx", "a.1"] {
            assert!(!is_capture_name(OsStr::new(name)), "{name}");
        }
    }
}
