//! The RdmaWrCompl Header (section 6.3.6 of the SDP draft, Figure 9). It follows the BSDH (base
//! header) in a RdmaWrCompl message. The header is one 32-bit word, so it is the same in both field
//! orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              Len                              |
//! +---------------------------------------------------------------+
//! ```

use super::word::word_header;

// No requirement states the minimum of Len. By section 8.2.2, an invalid value is a protocol
// violation even without such a requirement.
word_header! {
    RdmaWrCompl, RawRdmaWrCompl,
    /// Number of octets that the sender wrote by RDMA Write into the buffer of the oldest open
    /// SinkAvail, at least 1.
    len = "Len", least 1, "at least 1", None
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::Figure;
    use super::*;

    #[test]
    fn nothing_moved_is_no_completion() {
        let error = RdmaWrCompl::parse(&[0; 4], Figure).unwrap_err();
        assert_eq!((error.field, error.offset, error.requirement), ("Len", 16, None));
    }
}
