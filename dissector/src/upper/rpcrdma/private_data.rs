//! [`PrivateData`]: the settings that an endpoint announces in the private data of its start-up
//! frame (RFC 8797 section 4).

/// The first word of the settings.
pub const FORMAT_IDENTIFIER: u32 = 0xf6ab_0e18;
/// Length of the settings in bytes.
pub const LEN: usize = 8;
/// The inline threshold in bytes if an endpoint announces no settings (RFC 8166 section 3.3.3).
pub const DEFAULT_INLINE_THRESHOLD: u32 = 1024;
/// The only version.
const VERSION: u8 = 1;
/// The bit R: the sender supports remote invalidation.
const REMOTE_INVALIDATION: u8 = 1;

/// The settings of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrivateData {
    /// Version of the format.
    pub version: u8,
    /// The reserved bits and R.
    pub flags: u8,
    /// The field Send Size. See [`PrivateData::send_size`].
    pub encoded_send_size: u8,
    /// The field Receive Size. See [`PrivateData::receive_size`].
    pub encoded_receive_size: u8,
    /// Offset of the settings in the private data, in bytes.
    pub at: usize,
}

impl PrivateData {
    /// Searches private data for settings. The settings can start at any offset (RFC 8797 section
    /// 5.2). Settings of an unknown version are returned, too.
    #[must_use]
    pub fn find(private: &[u8]) -> Option<Self> {
        let at = private.windows(LEN).position(|window| window[..4] == FORMAT_IDENTIFIER.to_be_bytes())?;
        let &[version, flags, encoded_send_size, encoded_receive_size] = private.get(at + 4..)?.first_chunk()?;
        Some(PrivateData { version, flags, encoded_send_size, encoded_receive_size, at })
    }

    /// Whether the receiver knows the version. If not, the receiver ignores the settings.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.version == VERSION
    }

    /// Whether the sender supports remote invalidation.
    #[must_use]
    pub fn has_remote_invalidation(&self) -> bool {
        self.flags & REMOTE_INVALIDATION != 0
    }

    /// Maximum length of the Sends of the endpoint, in bytes: 1024 to 262144.
    #[must_use]
    pub fn send_size(&self) -> u32 {
        (u32::from(self.encoded_send_size) + 1) * 1024
    }

    /// Maximum length of a Send that the endpoint accepts, in bytes: 1024 to 262144.
    #[must_use]
    pub fn receive_size(&self) -> u32 {
        (u32::from(self.encoded_receive_size) + 1) * 1024
    }
}

/// The settings of a connection, which both endpoints derive from the private data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// For each direction, the inline threshold: the maximum length of a Send in bytes.
    pub inline_thresholds: [u32; 2],
    /// Whether replies may use Send with Invalidate.
    pub remote_invalidation: bool,
}

impl Settings {
    /// The settings if the endpoints announce `private`. The element of a direction belongs to the
    /// sender of this direction. If an endpoint announces no settings of version 1, the defaults of
    /// RFC 8166 apply to this endpoint.
    pub(super) fn new(private: &[Option<PrivateData>; 2]) -> Self {
        let known = private.map(|settings| settings.filter(PrivateData::is_known));
        let default = (DEFAULT_INLINE_THRESHOLD, DEFAULT_INLINE_THRESHOLD);
        let sizes = known.map(|known| known.map_or(default, |known| (known.send_size(), known.receive_size())));
        let [(first_sends, first_receives), (second_sends, second_receives)] = sizes;
        Settings {
            inline_thresholds: [first_sends.min(second_receives), second_sends.min(first_receives)],
            remote_invalidation: known.iter().all(|known| known.is_some_and(|it| it.has_remote_invalidation())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use crate::testing::hex;
    use crate::upper::startup::private_data;

    /// The private data of the Linux client and server (after IRD and ORD).
    #[test]
    fn reads_the_settings_of_linux() {
        let [client, server] = ["f6ab0e18 01010303", "f6ab0e18 01000307"].map(|bytes| PrivateData::find(&hex(bytes)));
        let found = client.unwrap();
        assert_eq!((found.version, found.has_remote_invalidation(), found.at), (1, true, 0));
        assert_eq!((found.send_size(), found.receive_size()), (4096, 4096));
        let settings = Settings::new(&[client, server]);
        assert_eq!((settings.inline_thresholds, settings.remote_invalidation), ([4096, 4096], false));
        assert!(Settings::new(&[client, client]).remote_invalidation);
        // An endpoint without settings sends and receives at most 1024 bytes.
        assert_eq!(Settings::new(&[client, None]).inline_thresholds, [1024, 1024]);
    }

    /// The MPA Request of the Linux client. The words of RFC 6581 precede the settings.
    #[test]
    fn settings_follow_the_words_of_rfc_6581() {
        let frame = hex("4d504120494420526571204672616d65 1002000c 00800000 f6ab0e1801010303");
        let (private, at) = private_data(Part::complete(&frame)).unwrap();
        assert_eq!((private, at), (&hex("f6ab0e1801010303")[..], 24));
        assert_eq!(private_data(Part::complete(&frame[..31])), None);
        // PD_Length is too small for the words.
        let frame = hex("4d504120494420526571204672616d65 10020002 0080");
        assert_eq!(private_data(Part::complete(&frame)), None);
    }

    #[test]
    fn the_smaller_size_of_both_endpoints_is_the_threshold() {
        let [first, second] = ["f6ab0e18 010007ff", "f6ab0e18 0100ff00"].map(|bytes| PrivateData::find(&hex(bytes)));
        assert_eq!(Settings::new(&[first, second]).inline_thresholds, [1024, 262_144]);
    }

    #[test]
    fn finds_the_settings_at_any_offset() {
        let found = PrivateData::find(&hex("aabbcc f6ab0e18 02000000")).unwrap();
        assert_eq!((found.at, found.is_known()), (3, false));
        for short in ["", "f6ab0e18", "f6ab0e18 010003", "f6ab0e17 01000303"] {
            assert_eq!(PrivateData::find(&hex(short)), None, "{short}");
        }
    }
}
