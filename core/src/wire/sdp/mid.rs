//! The message identifier (section 6.1.1 of the SDP draft, Figure 3).

use crate::wire::open_enum::open_enum;

open_enum! {
    /// MID, eight bits. Reserved and experimental values are kept as they are.
    Mid(u8), debug "{:#x} ({})", otherwise "reserved", 0x40..=0x7f => "experimental" {
        /// Hello.
        HELLO = 0x00 => "Hello",
        /// HelloAck.
        HELLO_ACK = 0x01 => "HelloAck",
        /// DisConn.
        DIS_CONN = 0x02 => "DisConn",
        /// AbortConn.
        ABORT_CONN = 0x03 => "AbortConn",
        /// SendSm.
        SEND_SM = 0x04 => "SendSm",
        /// RdmaWrCompl.
        RDMA_WR_COMPL = 0x05 => "RdmaWrCompl",
        /// RdmaRdCompl.
        RDMA_RD_COMPL = 0x06 => "RdmaRdCompl",
        /// ModeChange.
        MODE_CHANGE = 0x07 => "ModeChange",
        /// SrcAvailCancel.
        SRC_AVAIL_CANCEL = 0x08 => "SrcAvailCancel",
        /// SinkAvailCancel.
        SINK_AVAIL_CANCEL = 0x09 => "SinkAvailCancel",
        /// SinkCancelAck.
        SINK_CANCEL_ACK = 0x0a => "SinkCancelAck",
        /// ChRcvBuf.
        CH_RCV_BUF = 0x0b => "ChRcvBuf",
        /// ChRcvBufAck.
        CH_RCV_BUF_ACK = 0x0c => "ChRcvBufAck",
        /// SuspComm.
        SUSP_COMM = 0x0d => "SuspComm",
        /// SuspCommAck.
        SUSP_COMM_ACK = 0x0e => "SuspCommAck",
        /// SinkAvail.
        SINK_AVAIL = 0xfd => "SinkAvail",
        /// SrcAvail.
        SRC_AVAIL = 0xfe => "SrcAvail",
        /// Data.
        DATA = 0xff => "Data",
    }
}

impl Mid {
    /// Returns whether the value is experimental, 0x40 to 0x7F.
    #[must_use]
    pub const fn is_experimental(self) -> bool {
        matches!(self.0, 0x40..=0x7f)
    }

    /// Length in octets of the extended header after the BSDH; `None` for an unassigned MID.
    #[must_use]
    pub const fn extension_len(self) -> Option<usize> {
        match self {
            Mid::HELLO | Mid::SRC_AVAIL => Some(16),
            Mid::HELLO_ACK => Some(12),
            Mid::RDMA_WR_COMPL | Mid::RDMA_RD_COMPL | Mid::MODE_CHANGE | Mid::CH_RCV_BUF | Mid::CH_RCV_BUF_ACK => {
                Some(4)
            }
            Mid::SUSP_COMM => Some(8),
            Mid::SINK_AVAIL => Some(20),
            _ if self.is_assigned() => Some(0),
            _ => None,
        }
    }

    /// Returns whether the draft allows ULP payload after the headers. It allows payload in
    /// experimental messages.
    #[must_use]
    pub const fn may_carry_payload(self) -> bool {
        matches!(self, Mid::SINK_AVAIL | Mid::SRC_AVAIL | Mid::DATA) || self.is_experimental()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 3 has 18 messages and the length of each extended header. Three of the messages have
    /// payload.
    #[test]
    fn figure_3() {
        assert_eq!(Mid::ALL.len(), 18);
        assert_eq!((0..=255).filter(|mid| Mid(*mid).is_assigned()).count(), 18);
        assert_eq!((0..=255).filter(|mid| Mid(*mid).is_experimental()).count(), 64);
        let lengths: Vec<usize> = Mid::ALL.iter().map(|mid| 16 + mid.extension_len().unwrap()).collect();
        assert_eq!(lengths, [32, 28, 16, 16, 16, 20, 20, 20, 16, 16, 16, 20, 20, 24, 16, 36, 32, 16]);
        assert_eq!(Mid(0x0f).extension_len(), None);
        let payload: Vec<Mid> = Mid::ALL.iter().copied().filter(|mid| mid.may_carry_payload()).collect();
        assert_eq!(payload, [Mid::SINK_AVAIL, Mid::SRC_AVAIL, Mid::DATA]);
        assert_eq!((Mid(0x0f).name(), Mid(0xfe).name()), ("reserved", "SrcAvail"));
        let names = [0x3f, 0x40, 0x7f, 0x80].map(|mid| Mid(mid).name());
        assert_eq!(names, ["reserved", "experimental", "experimental", "reserved"]);
    }
}
