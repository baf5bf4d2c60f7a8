//! The macro for the four extended headers that consist of one 32-bit word. Such a header is the
//! same in both field orders.
//!
//! The files of `RdmaWrCompl`, `RdmaRdCompl`, `ChRcvBuf` and `ChRcvBufAck` define the meaning and
//! the valid values of the word.

/// Declares the raw and the checked header. The parameters are the two type names, and the field
/// with its name in the figures. A minimum of the field can follow: its value, its description for
/// errors, and the requirement that states the minimum.
macro_rules! word_header {
    (
        $name:ident, $raw:ident, $(#[$doc:meta])* $field:ident = $text:literal
        $(, least $least:expr, $expected:literal, $requirement:expr)?
    ) => {
        /// Raw view of the header.
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Immutable,
            zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $raw {
            /// Octets 16 to 19: a number of octets.
            pub $field: zerocopy::network_endian::U32,
        }

        impl super::RawHeader for $raw {}

        #[doc = concat!("A valid ", stringify!($name), " Header.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name {
            $(#[$doc])*
            pub $field: u32,
        }

        impl $name {
            /// Reads the header from the octets after the BSDH. Returns the header and the octets
            /// after it.
            ///
            /// # Errors
            /// There are less than 4 octets, or the value is below its minimum. The offset in the
            /// error counts from the start of the message.
            pub fn parse(octets: &[u8], order: super::FieldOrder) -> Result<(Self, &[u8]), crate::WireError> {
                let (raw, rest): ($raw, _) =
                    super::check::extension(octets, order, concat!(stringify!($name), " Header"))?;
                let $field = raw.$field.get();
                $(super::check::field($field >= $least, $text, (order, 16, 4), $expected, $field, $requirement)?;)?
                Ok(($name { $field }, rest))
            }

            /// The raw header.
            #[must_use]
            pub fn to_raw(self) -> $raw {
                $raw { $field: self.$field.into() }
            }
        }
    };
}

pub(super) use word_header;

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::super::{ChRcvBuf, ChRcvBufAck, RawHeader, RdmaRdCompl, RdmaWrCompl};

    macro_rules! is_one_word {
        ($name:ident, $field:ident) => {
            for order in [Figure, Mirrored] {
                let header = $name { $field: 0x0102_0304 };
                let mut out = Vec::new();
                header.to_raw().append(order, &mut out);
                assert_eq!(out, [1, 2, 3, 4]);
                assert_eq!($name::parse(&out, order), Ok((header, &[][..])));
            }
            assert!($name::parse(&[0; 3], Figure).is_err());
        };
    }

    /// Tests the headers of Figures 9, 10, 13 and 14 of the SDP draft.
    #[test]
    fn one_word_in_either_order() {
        is_one_word!(RdmaWrCompl, len);
        is_one_word!(RdmaRdCompl, len);
        is_one_word!(ChRcvBuf, des_sz);
        is_one_word!(ChRcvBufAck, act_sz);
    }
}
