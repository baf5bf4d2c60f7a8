//! Recognises the protocol above RDMAP from the Sends of a connection.
//!
//! To add a protocol, create a folder that implements `Protocol`, add its `mod` line below, and add
//! a line in `table.rs`. No other change is needed, because all code that needs the protocols uses
//! this table: the recognition, the fields `weft.ulp` and `weft.ulp.message`, the text output and
//! the statistics.

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
