//! Defines the fields of the private data with which NVMe over RDMA opens a connection. All fields
//! are little-endian.

use crate::grammar::field::{Base, Field, Group, Visitor, fields};
use crate::grammar::output::Output;
use crate::upper::Startup;
use crate::upper::nvme::{PrivateData, names};

/// The private data.
pub static PRIVATE_DATA: Group =
    Group { name: "nvme-rdma.cm", label: "NVMe/RDMA private data", section: "NVMe over RDMA" };

fields! { 7:
    REQ_RECFMT: "nvme-rdma.cm.req.recfmt", "RECFMT", Base::Dec, "NVMe over RDMA", le true;
    REQ_QID: "nvme-rdma.cm.req.qid", "QID", Base::Dec, "NVMe over RDMA", le true;
    REQ_HRQSIZE: "nvme-rdma.cm.req.hrqsize", "HRQSIZE", Base::Dec, "NVMe over RDMA", le true;
    REQ_HSQSIZE: "nvme-rdma.cm.req.hsqsize", "HSQSIZE", Base::Dec, "NVMe over RDMA", le true;
    REQ_CNTLID: "nvme-rdma.cm.req.cntlid", "CNTLID", Base::Hex(4), "NVMe over RDMA", le true;
    RSP_RECFMT: "nvme-rdma.cm.rsp.recfmt", "RECFMT", Base::Dec, "NVMe over RDMA", le true;
    RSP_CRQSIZE: "nvme-rdma.cm.rsp.crqsize", "CRQSIZE", Base::Dec, "NVMe over RDMA", le true;
    REJ_RECFMT: "nvme-rdma.cm.rej.recfmt", "RECFMT", Base::Dec, "NVMe over RDMA", le true;
    REJ_STATUS: "nvme-rdma.cm.rej.status", "STS", Base::Hex(4), "NVMe over RDMA", names names::reject_status, le true;
}

/// Visits the private data of a start-up frame.
pub(super) fn visit<V: Visitor>(startup: &Startup<'_>, visitor: &mut V) {
    let Some(data) = PrivateData::of(startup) else { return };
    let start = startup.private_at;
    let len = startup.private.len();
    let mut output = Output::new(visitor, Some(start), start + len);
    output.enter(&PRIVATE_DATA, 0..len);
    match data {
        PrivateData::Request { queue, receive_queue_size, send_queue_size, controller_id } => {
            output.uint(&REQ_RECFMT, 0_u16, 0..2);
            output.uint(&REQ_QID, queue, 2..4);
            output.uint(&REQ_HRQSIZE, receive_queue_size, 4..6);
            output.uint(&REQ_HSQSIZE, send_queue_size, 6..8);
            output.uint(&REQ_CNTLID, controller_id, 8..10);
        }
        PrivateData::Accept { receive_queue_size } => {
            output.uint(&RSP_RECFMT, 0_u16, 0..2);
            output.uint(&RSP_CRQSIZE, receive_queue_size, 2..4);
        }
        PrivateData::Reject { status } => {
            output.uint(&REJ_RECFMT, 0_u16, 0..2);
            output.uint(&REJ_STATUS, status, 2..4);
        }
    }
    output.leave();
}
