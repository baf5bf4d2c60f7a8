//! Defines `SdpView`, the input of the SDP rules: an SDP message with trustworthy octets, and the
//! state of its sender before the message.

use std::ops::Range;

use weft_core::wire::sdp::{FieldOrder, Mid, RawBsdh, RawHeader};

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::follow::sdp;
use crate::parse::{Carrier, Kind, Unit};
use crate::part::Part;

/// An SDP message whose BSDH was captured and whose octets are trustworthy: the captured octets are
/// probably the octets that were sent.
///
/// `state` already includes the message. [`SdpView::sender_state`] is the state of the sender
/// before the message.
pub(crate) struct SdpView<'a> {
    /// The state of the connection, including this message.
    pub(crate) state: &'a sdp::SdpState,
    /// Whether the message came in streaming mode, in private data, or in a Send.
    pub(crate) carrier: Carrier,
    /// The field order of the message.
    pub(crate) order: FieldOrder,
    /// The octets of the message.
    pub(crate) part: Part<'a>,
    /// The BSDH of the message.
    pub(crate) bsdh: RawBsdh,
    /// The direction of the sender.
    pub(crate) direction: Direction,
}

impl<'a> SdpView<'a> {
    /// Returns `None` if `unit` is not an SDP message, or if it is possible that its octets differ
    /// from the octets that were sent.
    pub(crate) fn of(state: &'a ConnectionState, unit: &Unit<'a>) -> Option<Self> {
        let Kind::Sdp(carrier, order, part) = unit.kind else { return None };
        let state = state.context().sdp.as_deref()?;
        let direction = unit.direction();
        if carrier == Carrier::Send && !state.has_trusted_send(direction) {
            return None;
        }
        let order = state.latest.other_order.unwrap_or(order);
        let (bsdh, _) = RawBsdh::read(part.get(0..RawBsdh::LEN)?, order)?;
        Some(SdpView { state, carrier, order, part, bsdh, direction })
    }

    /// Returns whether the message is a Hello or HelloAck. A message outside a Send counts as well,
    /// because only a Hello is allowed outside a Send.
    pub(crate) fn is_setup_message(&self) -> bool {
        self.carrier != Carrier::Send || matches!(self.mid(), Mid::HELLO | Mid::HELLO_ACK)
    }

    pub(crate) fn mid(&self) -> Mid {
        self.bsdh.mid()
    }

    /// Returns the state of the sender just before the message.
    pub(crate) fn sender_state(&self) -> &'a sdp::SenderState {
        &self.state.latest.sender_state
    }

    /// The direction of the receiver.
    pub(crate) fn peer(&self) -> Direction {
        self.direction.peer()
    }

    /// Returns whether the message is the first Send of the Accepting Peer, but is not a readable
    /// HelloAck.
    pub(crate) fn replaces_hello_ack(&self) -> bool {
        self.direction != self.state.connecting
            && self.state.closing.hello_ack.is_none()
            && self.state.latest.send.is_some_and(|sent| sent.follows && sent.is_first())
    }

    /// The length of the complete message in octets. Octets that were not captured count, too.
    pub(crate) fn size(&self) -> usize {
        self.part.len()
    }

    /// The length of BSDH and extended header for this MID, in octets; `None` if no message has
    /// this MID.
    pub(crate) fn header_len(&self) -> Option<usize> {
        self.mid().extension_len().map(|len| RawBsdh::LEN + len)
    }

    /// The length of the payload after BSDH and extended header, in octets.
    pub(crate) fn payload_len(&self) -> usize {
        self.size().saturating_sub(self.header_len().unwrap_or(RawBsdh::LEN))
    }

    /// The extended header, if all of it was sent and captured. `T` is the type for this MID.
    pub(crate) fn extension<T: RawHeader>(&self) -> Option<T> {
        let octets = self.part.get(RawBsdh::LEN..RawBsdh::LEN + T::LEN)?;
        Some(T::read(octets, self.order)?.0)
    }

    /// The extended header, as for [`SdpView::extension`]. `None` if the message has another MID.
    pub(crate) fn extension_of<T: RawHeader>(&self, mid: Mid) -> Option<T> {
        if self.mid() == mid { self.extension() } else { None }
    }

    /// Converts an octet range in figure order ([`FieldOrder::Figure`]) to the field order of the
    /// message.
    pub(crate) fn range(&self, figure: Range<usize>) -> Range<usize> {
        self.order.wire_range(figure)
    }
}
