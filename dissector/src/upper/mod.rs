//! Protocols above RDMAP: names the protocol in the Sends of a connection if it is certain.
//!
//! A new protocol is a folder here, which implements `Protocol`, its `mod` line below, and a line in
//! `table.rs`. The recognition, the fields `weft.ulp` and `weft.ulp.message`, the text output and
//! the statistics read the table.

mod protocol;
mod recognition;
pub mod rpcrdma;
pub mod rping;
pub mod smb_direct;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use recognition::Recognition;
pub use table::{Ulp, UlpMessage};
