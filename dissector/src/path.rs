//! The network of a packet: the capture interface, VLANs, and virtual networks of tunnels.
//!
//! Two connections in different networks can have equal addresses and ports. This module ignores
//! numbers that do not identify a network. MPLS labels and TEIDs of GTP are different in the two
//! directions of a connection. The session numbers of ERSPAN only identify a session of remote
//! capture.

/// Maximum number of stored tags. Further tags are hashed into the last tag.
const MAX_TAGS: usize = 4;

/// A number in a header that identifies a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Interface number in a capture of several interfaces (Linux cooked 2).
    Interface(u32),
    /// VLAN number of 802.1Q or 802.1ad: 12 bits, not 0.
    Vlan(u16),
    /// Number of a virtual network, 24 bits: I-SID (802.1ah), VNI (VXLAN, GENEVE) or VSID (NVGRE).
    Virtual(u32),
}

/// The network of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Path {
    interface: u32,
    /// Tags, the outermost first. Unused elements are 0.
    tags: [u32; MAX_TAGS],
}

impl Path {
    /// The network of a packet that was captured on interface `interface`, without tags.
    pub(crate) fn on(interface: u32) -> Self {
        Path { interface, ..Path::default() }
    }

    /// Adds the tag of the next inner header.
    pub(crate) fn add(&mut self, tag: Tag) {
        let number = match tag {
            Tag::Interface(number) => {
                self.interface = self.interface.rotate_left(16) ^ number;
                return;
            }
            Tag::Vlan(number) => 1 << 24 | u32::from(number),
            Tag::Virtual(number) => 2 << 24 | number & 0x00ff_ffff,
        };
        match self.tags.iter_mut().find(|tag| **tag == 0) {
            Some(free) => *free = number,
            None => self.tags[MAX_TAGS - 1] = self.tags[MAX_TAGS - 1].rotate_left(5) ^ number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(interface: u32, tags: &[Tag]) -> Path {
        let mut path = Path::on(interface);
        tags.iter().for_each(|tag| path.add(*tag));
        path
    }

    #[test]
    fn interface_order_and_kind_of_tags_count() {
        let tags = [Tag::Vlan(7), Tag::Virtual(7)];
        assert_eq!(path(1, &tags), path(1, &tags));
        assert_ne!(path(1, &tags), path(0, &tags));
        assert_ne!(path(1, &tags), path(1, &[Tag::Virtual(7), Tag::Vlan(7)]));
        assert_ne!(path(1, &tags[..1]), path(1, &tags[1..]));
        assert_ne!(path(0, &[Tag::Interface(2)]), path(0, &[Tag::Interface(3)]));
    }

    #[test]
    fn tags_beyond_those_that_are_kept_count() {
        let deep = |last| path(0, &[1, 2, 3, 4, 5, last].map(Tag::Vlan));
        assert_eq!(deep(6), deep(6));
        assert_ne!(deep(6), deep(7));
    }
}
