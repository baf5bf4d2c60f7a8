//! Recognises the protocol above RDMAP from the start-up frames and the Sends of a connection.
//!
//! To add a protocol, create a folder that implements `Protocol`, add its `mod` line below, and add
//! a line in `table.rs`. No other change is needed, because all code that needs the protocols uses
//! this table: the recognition, the fields `weft.ulp` and `weft.ulp.message`, the text output and
//! the statistics. If the messages have fields of their own, `grammar` defines these fields. If
//! Wireshark has a dissector for the messages of the protocol, also implement `Protocol::pdu` for
//! `weft export`.
//!
//! `smb2` is not in the table: it reads the messages that `smb_direct` reassembles.
//!
//! `weft scrub` keeps only the bytes of a Send that `Protocol::headers` names. Implement this
//! method, so that the protocol is also recognised in the copy.

pub mod ceph;
pub mod iser;
pub mod lustre;
pub mod ninep;
pub mod nvme;
pub(crate) mod pdu;
mod protocol;
mod recognition;
pub mod rpcrdma;
pub mod rping;
pub mod rsockets;
pub mod smb2;
pub mod smb_direct;
mod startup;
mod table;
#[cfg(test)]
mod tests;

pub use pdu::DissectorName;
pub(crate) use recognition::Recognition;
pub(crate) use startup::{Startup, private_data};
pub use table::{Ulp, UlpMessage};
