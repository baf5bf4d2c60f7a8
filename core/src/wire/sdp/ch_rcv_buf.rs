//! The ChRcvBuf Header (section 6.4.1 of the SDP draft, Figure 13). It follows the BSDH (base
//! header) in a ChRcvBuf message. The header is one 32-bit word, so it is the same in both field
//! orders.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             DesSz                             |
//! +---------------------------------------------------------------+
//! ```

use super::word::word_header;

word_header! {
    ChRcvBuf, RawChRcvBuf,
    /// Requested size in octets of the peer's receive Private Buffers. The draft sets no limits.
    des_sz = "DesSz"
}
