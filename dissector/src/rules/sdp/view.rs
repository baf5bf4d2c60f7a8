//! An SDP message that rules may believe, and what its sender knew.

use std::ops::Range;

use weft_core::wire::sdp::{FieldOrder, Mid, RawBsdh, RawHeader};

use crate::follow::Books;
use crate::follow::sdp;
use crate::part::Part;
use crate::unit::{Carrier, Kind, Unit};

/// An SDP message whose BSDH was captured, and whose octets are those that were sent where they were sent.
///
/// `books` already know the message; what its sender knew without it is [`SdpView::before`].
pub(crate) struct SdpView<'a> {
    /// The books behind the message.
    pub(crate) books: &'a sdp::Books,
    /// What carried it.
    pub(crate) carrier: Carrier,
    /// The order of its fields.
    pub(crate) order: FieldOrder,
    /// Its octets.
    pub(crate) part: Part<'a>,
    /// Its BSDH.
    pub(crate) bsdh: RawBsdh,
    /// Its sender's direction.
    pub(crate) direction: usize,
}

impl<'a> SdpView<'a> {
    /// `None` where `unit` is no SDP message, or its octets may not be those that were sent.
    pub(crate) fn of(books: &'a Books, unit: &Unit<'a>) -> Option<Self> {
        let Kind::Sdp(carrier, order, part) = unit.kind else { return None };
        let books = books.context().sdp.as_deref()?;
        let direction = usize::from(unit.direction);
        if carrier == Carrier::Send && !books.believes(direction) {
            return None;
        }
        let (bsdh, _) = RawBsdh::read(part.get(0..RawBsdh::LEN)?, order)?;
        Some(SdpView { books, carrier, order, part, bsdh, direction })
    }

    /// Hello or HelloAck, or what was sent in their place?
    pub(crate) fn is_set_up(&self) -> bool {
        self.carrier != Carrier::Send || matches!(self.mid(), Mid::HELLO | Mid::HELLO_ACK)
    }

    /// MID.
    pub(crate) fn mid(&self) -> Mid {
        self.bsdh.mid()
    }

    /// Its sender when it sent it.
    pub(crate) fn before(&self) -> &'a sdp::Before {
        &self.books.latest.before
    }

    /// The direction of its receiver.
    pub(crate) fn peer(&self) -> usize {
        1 - self.direction
    }

    /// Octets of the whole message, captured or not.
    pub(crate) fn size(&self) -> usize {
        self.part.len()
    }

    /// Octets of BSDH and extended header that its MID asks for; `None` where no message has the MID.
    pub(crate) fn header_len(&self) -> Option<usize> {
        self.mid().extension_len().map(|len| RawBsdh::LEN + len)
    }

    /// Octets behind BSDH and extended header.
    pub(crate) fn payload_len(&self) -> usize {
        self.size().saturating_sub(self.header_len().unwrap_or(RawBsdh::LEN))
    }

    /// Its extended header, where all of it was sent and captured. `T` is that of its MID.
    pub(crate) fn extension<T: RawHeader>(&self) -> Option<T> {
        let octets = self.part.get(RawBsdh::LEN..RawBsdh::LEN + T::LEN)?;
        Some(T::read(octets, self.order)?.0)
    }

    /// Where a field stands, given its octets in the figures.
    pub(crate) fn place(&self, figure: Range<usize>) -> Range<usize> {
        self.order.place(figure)
    }
}
