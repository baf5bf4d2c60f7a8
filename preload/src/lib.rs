//! The `LD_PRELOAD` shim: lets programs that know nothing of SDP use it through the socket calls they make already.
//!
//! It will interpose the socket functions of the C library and pass stream sockets to `weft-peer`'s SDP sockets; it is the one
//! place beside memory placement where unsafe code may stand. It exports nothing yet.
