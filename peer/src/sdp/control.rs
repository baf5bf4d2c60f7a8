//! Answers that wait to be sent, and the options with which a message is sent. Section numbers are
//! those of the SDP draft.

use std::collections::VecDeque;

use weft_core::wire::sdp::Mid;

use super::sink::Answer;
use super::{OpId, Piece};

/// An answer: a message that is due because of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    SendSm,
    RdmaRdCompl {
        len: u32,
        last: Option<u32>,
    },
    RdmaWrCompl {
        len: u32,
        stag: u32,
    },
    /// End of a SrcAvailCancel: a SendSm if `send_sm` is set, otherwise no message.
    SrcCanceled {
        send_sm: bool,
    },
    SinkCancelAck,
    AbortConn,
    /// Data without payload.
    Update,
}

impl From<Answer> for Control {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::RdmaRdCompl { len, last } => Control::RdmaRdCompl { len, last },
            Answer::SendSm => Control::SendSm,
            Answer::Canceled { send_sm } => Control::SrcCanceled { send_sm },
        }
    }
}

/// Appends answers to `queue`.
pub(super) fn queue_answers(queue: &mut VecDeque<Control>, answers: impl IntoIterator<Item = Answer>) {
    for answer in answers.into_iter().map(Control::from) {
        match (queue.back_mut(), answer) {
            // Both answers concern the same SrcAvail, and the first answer is not sent yet. One
            // message therefore reports both answers.
            (Some(Control::RdmaRdCompl { len, last: end @ None }), Control::RdmaRdCompl { len: more, last }) => {
                *len = len.saturating_add(more);
                *end = last;
            }
            _ => queue.push_back(answer),
        }
    }
}

/// Payload, flags and Send options of a message.
#[derive(Clone, Copy, Default)]
pub(super) struct Carrier {
    pub(super) payload: Option<Piece>,
    pub(super) urgent: bool,
    pub(super) req_pipe: bool,
    pub(super) op: Option<OpId>,
    pub(super) invalidate: Option<u32>,
}

/// Returns whether section 14.2 requires a Solicited Event for this message type.
pub(crate) fn is_solicited(mid: Mid) -> bool {
    matches!(
        mid,
        Mid::ABORT_CONN
            | Mid::SUSP_COMM
            | Mid::SUSP_COMM_ACK
            | Mid::SEND_SM
            | Mid::SRC_AVAIL_CANCEL
            | Mid::SINK_AVAIL_CANCEL
            | Mid::HELLO_ACK
            | Mid::RDMA_WR_COMPL
            | Mid::RDMA_RD_COMPL
            | Mid::SINK_CANCEL_ACK
    )
}
