//! Limits on the command line of a live capture.

use std::time::Duration;

use crate::exit::BadInput;

/// The values of `-a` or `-b`: the limit of each quantity. `None` means that there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(super) octets: Option<u64>,
    pub(super) duration: Option<Duration>,
    pub(super) packets: Option<u64>,
    pub(super) files: Option<u64>,
}

impl Limits {
    /// Parses the values of the option. `usage` lists the valid values for an error message.
    pub(super) fn read(words: &[String], option: &str, usage: &str) -> Result<Self, BadInput> {
        let mut limits = Limits::default();
        for word in words {
            let wrong = || BadInput(format!("{option} {word}: use {usage}"));
            let (what, value) = word.split_once(':').ok_or_else(wrong)?;
            match what {
                "filesize" => limits.octets = Some(kilobytes(value).ok_or_else(wrong)?),
                "duration" => limits.duration = Some(seconds(value).ok_or_else(wrong)?),
                "packets" => limits.packets = Some(count(value).ok_or_else(wrong)?),
                "files" => limits.files = Some(count(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(limits)
    }
}

/// Parses a positive number of seconds, which can have a fraction.
fn seconds(value: &str) -> Option<Duration> {
    let seconds = value.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses a positive number.
fn count(value: &str) -> Option<u64> {
    value.parse().ok().filter(|count| *count > 0)
}

/// Parses a positive number of kilobytes and returns bytes. As in tshark, 1 kB is 1000 bytes.
fn kilobytes(value: &str) -> Option<u64> {
    count(value)?.checked_mul(1000)
}
