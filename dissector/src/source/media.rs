//! Media types that have no link type. Some capture formats have such media types. weft gives them
//! numbers above all link types. Each file format has its own range of these numbers.

/// A media type, with its number in the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// The type of an ERF record.
    Erf(u8),
    /// The datalink type of a snoop file (RFC 1761).
    Snoop(u16),
    /// The media type of Network Monitor.
    NetMon(u16),
}

const ERF: u16 = 0x8000;
const SNOOP: u16 = 0x8100;
const NETMON: u16 = 0x9000;

impl Media {
    /// Returns the value of `link_type` in [`Frame`](super::frame::Frame). If the media type is too
    /// large for the range of its file format, returns the last number of the range.
    pub(crate) fn link_type(self) -> u16 {
        match self {
            Media::Erf(number) => ERF + u16::from(number),
            Media::Snoop(number) => SNOOP + number.min(NETMON - SNOOP - 1),
            Media::NetMon(number) => NETMON.saturating_add(number),
        }
    }

    /// Returns the media type for the value of `link_type` in a frame; `None` for a real link type.
    pub(crate) fn of(link_type: u16) -> Option<Self> {
        match link_type {
            NETMON.. => Some(Media::NetMon(link_type - NETMON)),
            SNOOP.. => Some(Media::Snoop(link_type - SNOOP)),
            ERF.. => u8::try_from(link_type - ERF).ok().map(Media::Erf),
            _ => None,
        }
    }
}

impl std::fmt::Display for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Media::Erf(number) => write!(f, "ERF record type {number}"),
            Media::Snoop(number) => write!(f, "snoop datalink type {number}"),
            Media::NetMon(number) => write!(f, "Network Monitor media type {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_media_type_has_a_number_of_its_own() {
        for (media, text) in [
            (Media::Erf(0), "ERF record type 0"),
            (Media::Erf(255), "ERF record type 255"),
            (Media::Snoop(0), "snoop datalink type 0"),
            (Media::Snoop(10), "snoop datalink type 10"),
            (Media::NetMon(10), "Network Monitor media type 10"),
        ] {
            assert_eq!(Media::of(media.link_type()), Some(media));
            assert_eq!(media.to_string(), text);
        }
        assert_eq!(Media::of(Media::Snoop(u16::MAX).link_type()), Some(Media::Snoop(0xeff)));
        assert_eq!(Media::NetMon(u16::MAX).link_type(), u16::MAX);
        assert_eq!(Media::of(0x7fff), None);
    }
}
