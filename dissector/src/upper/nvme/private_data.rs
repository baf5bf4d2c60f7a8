//! [`PrivateData`]: the private data with which NVMe over RDMA opens a connection. Each frame of
//! the MPA start-up carries one of the three forms. All fields are little-endian.

use std::fmt;

use weft_core::wire::mpa::StartupKind;

use super::names;
use crate::upper::startup::Startup;

/// Length in bytes of the private data of a Request, and of a Reply that accepts.
const LEN: usize = 32;
/// Length in bytes of the private data of a Reply that rejects.
const REJECT_LEN: usize = 4;
/// The only record format that the specification defines.
const RECORD_FORMAT: u16 = 0;

/// The private data of NVMe over RDMA in a start-up frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateData {
    /// In the Request of the host.
    Request {
        /// QID: the queue that the connection will carry. 0 is the Admin Queue.
        queue: u16,
        /// HRQSIZE: number of receives that the host posts.
        receive_queue_size: u16,
        /// HSQSIZE: size of the Submission Queue minus 1.
        send_queue_size: u16,
        /// CNTLID. Old hosts send 0.
        controller_id: u16,
    },
    /// In a Reply that accepts the connection.
    Accept {
        /// CRQSIZE: number of receives that the controller posts.
        receive_queue_size: u16,
    },
    /// In a Reply that rejects the connection.
    Reject {
        /// STS: the reason.
        status: u16,
    },
}

impl PrivateData {
    /// Reads the private data of a start-up frame.
    pub(crate) fn of(startup: &Startup<'_>) -> Option<Self> {
        match startup.kind {
            StartupKind::Request => Self::request(startup.private),
            StartupKind::Reply => Self::reply(startup.private, startup.rejects),
        }
    }

    /// Reads the private data of a Request. Returns `None` if the private data is not from NVMe
    /// over RDMA: it must have exactly 32 bytes, record format 0, sizes other than 0, and reserved
    /// bytes that are 0.
    #[must_use]
    pub fn request(private: &[u8]) -> Option<Self> {
        let private: &[u8; LEN] = private.try_into().ok()?;
        let [queue, receive_queue_size, send_queue_size, controller_id] = [2, 4, 6, 8].map(|at| short(private, at));
        let is_plausible = short(private, 0) == RECORD_FORMAT && receive_queue_size > 0 && send_queue_size > 0;
        let is_reserved_zero = private[10..].iter().all(|octet| *octet == 0);
        (is_plausible && is_reserved_zero).then_some(PrivateData::Request {
            queue,
            receive_queue_size,
            send_queue_size,
            controller_id,
        })
    }

    /// Reads the private data of a Reply to a Request of NVMe over RDMA. The conditions are the
    /// same as for a Request. The private data of a Reply that rejects has exactly 4 bytes, and a
    /// known status.
    #[must_use]
    pub fn reply(private: &[u8], rejects: bool) -> Option<Self> {
        if rejects {
            let private: &[u8; REJECT_LEN] = private.try_into().ok()?;
            let status = short(private, 2);
            let is_reject = short(private, 0) == RECORD_FORMAT && names::reject_status(status.into()).is_some();
            return is_reject.then_some(PrivateData::Reject { status });
        }
        let private: &[u8; LEN] = private.try_into().ok()?;
        let receive_queue_size = short(private, 2);
        let is_accept = short(private, 0) == RECORD_FORMAT && receive_queue_size > 0;
        let is_reserved_zero = private[4..].iter().all(|octet| *octet == 0);
        (is_accept && is_reserved_zero).then_some(PrivateData::Accept { receive_queue_size })
    }
}

impl fmt::Display for PrivateData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivateData::Request { queue, receive_queue_size, send_queue_size, .. } => {
                write!(f, "queue {queue} HRQSIZE {receive_queue_size} HSQSIZE {send_queue_size}")
            }
            PrivateData::Accept { receive_queue_size } => write!(f, "accept CRQSIZE {receive_queue_size}"),
            PrivateData::Reject { status } => {
                let name = names::reject_status((*status).into()).unwrap_or("unknown status");
                write!(f, "reject STS {status:#06x} ({name})")
            }
        }
    }
}

fn short(octets: &[u8], at: usize) -> u16 {
    octets.get(at..at + 2).map_or(0, |octets| u16::from_le_bytes([octets[0], octets[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// The private data of frames 4 and 6 of `captures/storage/nvme-discover.pcap`, without the
    /// words of RFC 6581.
    fn captured() -> [Vec<u8>; 2] {
        [format!("0000 0000 2000 1f00 {}", "00".repeat(24)), format!("0000 2000 {}", "00".repeat(28))]
            .map(|private| hex(&private))
    }

    #[test]
    fn reads_the_private_data_of_a_host_and_a_controller() {
        let [request, accept] = captured();
        let expected = PrivateData::Request { queue: 0, receive_queue_size: 32, send_queue_size: 31, controller_id: 0 };
        assert_eq!(PrivateData::request(&request), Some(expected));
        assert_eq!(PrivateData::reply(&accept, false), Some(PrivateData::Accept { receive_queue_size: 32 }));
        let reject = PrivateData::reply(&hex("0000 0500"), true).unwrap();
        assert_eq!(reject.to_string(), "reject STS 0x0005 (Invalid HRQSIZE)");
    }

    #[test]
    fn other_private_data_is_not_read() {
        let [request, accept] = captured();
        // The bytes are the record format, HRQSIZE, HSQSIZE, and the first and last reserved byte.
        for (at, value) in [(0, 1), (4, 0), (6, 0), (10, 1), (31, 1)] {
            let mut wrong = request.clone();
            wrong[at] = value;
            assert_eq!(PrivateData::request(&wrong), None, "byte {at}");
        }
        for (at, value) in [(1, 1), (2, 0), (4, 1), (31, 1)] {
            let mut wrong = accept.clone();
            wrong[at] = value;
            assert_eq!(PrivateData::reply(&wrong, false), None, "byte {at}");
        }
        for len in (0..LEN).chain([LEN + 1, 512]) {
            let mut cut = request.clone();
            cut.resize(len, 0);
            assert_eq!(PrivateData::request(&cut), None, "{len} bytes");
            assert_eq!(PrivateData::reply(&cut, false), None, "{len} bytes");
        }
        for wrong in ["0000 0000", "0000 0a00", "0100 0100", "0000 01", "0000 0100 00", ""] {
            assert_eq!(PrivateData::reply(&hex(wrong), true), None, "{wrong}");
        }
        assert_eq!(PrivateData::reply(&accept, true), None);
    }
}
