//! The ChRcvBufAck Header (section 6.4.2 of the SDP draft, Figure 14). It follows the BSDH (base
//! header) in a ChRcvBufAck message. The header is one 32-bit word, so it is the same in both field
//! orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             ActSz                             |
//! +---------------------------------------------------------------+
//! ```

use super::MIN_PRIVATE_BUFFER;
use super::word::word_header;
use crate::requirement;

word_header! {
    ChRcvBufAck, RawChRcvBufAck,
    /// New size in octets of the sender's receive Private Buffers, at least 37.
    act_sz = "ActSz", least MIN_PRIVATE_BUFFER, "at least 37", Some(requirement!("SDP-10-7"))
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::Figure;
    use super::*;

    #[test]
    fn a_buffer_holds_at_least_the_largest_header_and_an_octet() {
        assert!(ChRcvBufAck::parse(&[0, 0, 0, 37], Figure).is_ok());
        let error = ChRcvBufAck::parse(&[0, 0, 0, 36], Figure).unwrap_err();
        assert_eq!((error.field, error.requirement), ("ActSz", Some(requirement!("SDP-10-7"))));
    }
}
