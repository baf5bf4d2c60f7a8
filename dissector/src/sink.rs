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

/// A pair of sinks. Each of them receives all results, the first sink before the second.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.0.unit(unit);
        self.1.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.0.finding(finding);
        self.1.finding(finding);
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        self.0.fact(stream, fact);
        self.1.fact(stream, fact);
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.0.exchange(exchange, over);
        self.1.exchange(exchange, over);
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        self.0.ended(stream, context);
        self.1.ended(stream, context);
    }

    fn packet(&mut self, packet: &Packet) {
        self.0.packet(packet);
        self.1.packet(packet);
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.0.segment(stream, segment);
        self.1.segment(stream, segment);
    }

    fn fragment(&mut self, number: FrameNumber) {
        self.0.fragment(number);
        self.1.fragment(number);
    }
}

/// A sink that may be absent. Then the results are dropped.
impl<S: Sink> Sink for Option<S> {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.iter_mut().for_each(|sink| sink.unit(unit));
    }

    fn finding(&mut self, finding: &Finding) {
        self.iter_mut().for_each(|sink| sink.finding(finding));
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        self.iter_mut().for_each(|sink| sink.fact(stream, fact));
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.iter_mut().for_each(|sink| sink.exchange(exchange, over));
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        self.iter_mut().for_each(|sink| sink.ended(stream, context));
    }

    fn packet(&mut self, packet: &Packet) {
        self.iter_mut().for_each(|sink| sink.packet(packet));
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.iter_mut().for_each(|sink| sink.segment(stream, segment));
    }

    fn fragment(&mut self, number: FrameNumber) {
        self.iter_mut().for_each(|sink| sink.fragment(number));
    }
}
