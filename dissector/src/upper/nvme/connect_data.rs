//! [`ConnectData`]: the data of a Connect command. It is in the capsule, or the controller reads it
//! from the host's buffer.

use std::borrow::Cow;
use std::ops::Range;

use weft_core::text::visible_in_line;

use crate::upper::protocol::only;

/// Length of the data in bytes.
pub(crate) const CONNECT_DATA_LEN: usize = 1024;
/// Offsets of the names in the data. Each name has 256 bytes.
pub(crate) const SUBSYSTEM_AT: usize = 256;
pub(crate) const HOST_AT: usize = 512;
const NAME_FIELD_LEN: usize = 256;
/// Offset of CNTLID in the data.
const CONTROLLER_AT: usize = 16;
/// The first bytes of each NQN.
const NAME_PREFIX: &str = "nqn.";
/// Maximum length of an NQN in bytes.
const MAX_NAME: usize = 223;

/// The data of a Connect command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectData<'a> {
    /// HOSTID.
    pub host_id: &'a [u8],
    /// CNTLID. 0xffff requests any controller.
    pub controller_id: u16,
    /// SUBNQN: the name of the subsystem. `None` if it is not printable text of at most 223 bytes.
    pub subsystem: Option<&'a str>,
    /// HOSTNQN: the name of the host, with the same condition.
    pub host: Option<&'a str>,
}

impl<'a> ConnectData<'a> {
    /// Reads the data. Returns `None` if `data` does not have exactly 1024 bytes.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        if data.len() != CONNECT_DATA_LEN {
            return None;
        }
        Some(ConnectData {
            host_id: data.get(..16)?,
            controller_id: u16::from_le_bytes(*data.get(CONTROLLER_AT..)?.first_chunk()?),
            subsystem: name(data.get(SUBSYSTEM_AT..SUBSYSTEM_AT + NAME_FIELD_LEN)?),
            host: name(data.get(HOST_AT..HOST_AT + NAME_FIELD_LEN)?),
        })
    }

    /// Returns whether both names have the form of an NQN.
    pub(super) fn has_names(&self) -> bool {
        [self.subsystem, self.host].iter().all(|name| name.is_some_and(|name| name.starts_with(NAME_PREFIX)))
    }
}

/// The ranges of `data` that identify neither the host nor the subsystem: CNTLID, and of each name
/// the prefix `nqn.` and the NUL at its end. So a name keeps its length. There are no ranges if
/// `data` does not have exactly 1024 bytes.
pub(super) fn headers(data: &[u8]) -> Vec<Range<usize>> {
    if data.len() != CONNECT_DATA_LEN {
        return Vec::new();
    }
    let mut ranges = only(CONTROLLER_AT..CONTROLLER_AT + 2);
    for at in [SUBSYSTEM_AT, HOST_AT] {
        let Some(text) = data.get(at..at + NAME_FIELD_LEN).and_then(name) else { continue };
        if text.starts_with(NAME_PREFIX) {
            ranges.push(at..at + NAME_PREFIX.len());
        }
        let end = at + text.len();
        ranges.push(end..end + 1);
    }
    ranges
}

/// The text before the first NUL.
fn name(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|octet| *octet == 0)?;
    let text = std::str::from_utf8(&field[..end]).ok()?;
    let is_printable = matches!(visible_in_line(text), Cow::Borrowed(_));
    (is_printable && (1..=MAX_NAME).contains(&end)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(subsystem: &[u8], host: &[u8]) -> Vec<u8> {
        let mut data = vec![0; CONNECT_DATA_LEN];
        (data[0], data[16], data[17]) = (0x5f, 0xfe, 0xff);
        data[SUBSYSTEM_AT..SUBSYSTEM_AT + subsystem.len()].copy_from_slice(subsystem);
        data[HOST_AT..HOST_AT + host.len()].copy_from_slice(host);
        data
    }

    #[test]
    fn reads_names_and_numbers() {
        let data = data(b"nqn.2014-08.org.nvmexpress.discovery", b"nqn.2014-08.org.example:host");
        let found = ConnectData::parse(&data).unwrap();
        assert_eq!((found.host_id[0], found.host_id.len(), found.controller_id), (0x5f, 16, 0xfffe));
        assert_eq!(found.subsystem, Some("nqn.2014-08.org.nvmexpress.discovery"));
        assert_eq!(found.host, Some("nqn.2014-08.org.example:host"));
        assert!(found.has_names());
    }

    #[test]
    fn names_that_are_not_text_are_absent() {
        let long = [b'n'; MAX_NAME + 1];
        for wrong in [&b""[..], b"nqn.\x1b[2J", b"nqn.\xff", b"nqn.\n", &long, &[b'n'; NAME_FIELD_LEN]] {
            let data = data(wrong, b"nqn.2014-08.org.example:host");
            let found = ConnectData::parse(&data).unwrap();
            assert_eq!(found.subsystem, None, "{wrong:?}");
            assert!(found.host.is_some() && !found.has_names());
        }
        assert_eq!(ConnectData::parse(&data(&long[..MAX_NAME], b"")).unwrap().subsystem.map(str::len), Some(MAX_NAME));
    }

    #[test]
    fn headers_keep_the_form_and_the_length_of_a_name() {
        let mut ranges: Vec<Range<usize>> = vec![16..18, 256..260, 261..262];
        assert_eq!(headers(&data(b"nqn.a", b"host\xff")), ranges);
        ranges.push(519..520);
        assert_eq!(headers(&data(b"nqn.a", b"my-host")), ranges);
        assert!(headers(&data(b"nqn.a", b"nqn.b")[1..]).is_empty());
    }

    #[test]
    fn data_of_another_length_is_not_read() {
        let data = data(b"nqn.a", b"nqn.b");
        assert_eq!(ConnectData::parse(&data[..CONNECT_DATA_LEN - 1]), None);
        assert_eq!(ConnectData::parse(&[&data[..], &[0]].concat()), None);
    }
}
