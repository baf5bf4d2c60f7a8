//! The receiver of the dissector's results.

use crate::context::Context;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::follow::exchange::Exchange;
use crate::frame_number::FrameNumber;
use crate::packet::{Packet, TcpSegment};
use crate::stream_id::StreamId;
use crate::unit::Unit;

/// A receiver of the dissector's results.
#[allow(unused_variables, reason = "by default, a sink ignores everything except units")]
pub trait Sink {
    /// Receives a unit. The units of one direction arrive in stream order.
    fn unit(&mut self, unit: &Unit<'_>);

    /// Receives a finding. A finding arrives after the unit that shows the violation, or at the end
    /// of the connection. A finding about a bad CRC arrives when the receiver has acknowledged the
    /// FPDU. A finding about a datagram can be delayed by several seconds of capture time. If
    /// another datagram arrives during this time and explains the behaviour, the finding does not
    /// arrive. [`Dissector::units_only`](crate::Dissector::units_only) delivers no findings.
    fn finding(&mut self, finding: &Finding) {}

    /// Receives a fact about the connection `stream`. A fact arrives after the unit that made the
    /// fact certain, or at the end of the connection.
    /// [`Dissector::units_only`](crate::Dissector::units_only) delivers no facts.
    fn fact(&mut self, stream: StreamId, fact: &Fact) {}

    /// Receives an exchange of messages with a port mapper. An exchange can prepare several TCP
    /// connections. Each time such a connection is opened, the exchange arrives. The connection is
    /// the last element of `exchange.streams`, unless the list is full. When the dissector drops
    /// the exchange, or when the capture ends, the exchange arrives once more, with `over` set.
    fn exchange(&mut self, exchange: &Exchange, over: bool) {}

    /// Receives the final state of the connection `stream`, when the connection or the capture
    /// ends.
    fn ended(&mut self, stream: StreamId, context: &Context) {}

    /// Receives the TCP or UDP packet of a frame. The packet arrives before the units that the
    /// frame completes.
    fn packet(&mut self, packet: &Packet) {}

    /// Receives a TCP segment of the connection `stream`. The segment arrives after its packet, and
    /// before the units that it completes. Two kinds of segments do not arrive: a RST that the
    /// receiver ignores because of its sequence number, and a segment that repeats octets of a
    /// connection whose state was already dropped.
    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {}

    /// Receives the number of a frame with a fragment of an IP packet that is still incomplete. The
    /// sink later receives a [`Packet`] for the frame that completes the IP packet.
    fn fragment(&mut self, number: FrameNumber) {}
}
