//! RdmaRdCompl: the RdmaRdCompl Header (section 6.3.7, Figure 10) behind the BSDH: one 32-bit word, the same in both field orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              Len                              |
//! +---------------------------------------------------------------+
//! ```

use super::word::word_header;

// No row fixes the least value: an invalid value without a rule of its own is a protocol violation (section 8.2.2).
word_header! {
    RdmaRdCompl, RawRdmaRdCompl,
    /// Octets fetched by RDMA Read for the oldest open SrcAvail, at least 1; payload of the SrcAvail not counted.
    len = "Len", least 1, "at least 1", None
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::Figure;
    use super::*;

    #[test]
    fn nothing_moved_is_no_completion() {
        let error = RdmaRdCompl::parse(&[0; 4], Figure).unwrap_err();
        assert_eq!((error.field, error.offset, error.requirement), ("Len", 16, None));
    }
}
