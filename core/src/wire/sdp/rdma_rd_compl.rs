//! The RdmaRdCompl Header (section 6.3.7 of the SDP draft, Figure 10). It follows the BSDH (base
//! header) in a RdmaRdCompl message. The header is one 32-bit word, so it is the same in both field
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

word_header! {
    RdmaRdCompl, RawRdmaRdCompl,
    /// Number of octets that the sender fetched by RDMA Read for the oldest open SrcAvail. The
    /// payload of the SrcAvail message is not included. If this payload was the complete buffer,
    /// the number is 0 (SDP-6.3.7.1-3). The parser does not know the SrcAvail, so it always accepts
    /// 0.
    len = "Len"
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::Figure;
    use super::*;

    #[test]
    fn nothing_may_be_left_to_be_read() {
        assert_eq!(RdmaRdCompl::parse(&[0; 4], Figure), Ok((RdmaRdCompl { len: 0 }, &[][..])));
    }
}
