//! The receiver of the dissector's results.

use crate::context::Context;
use crate::fact::Fact;
use crate::finding::Finding;
use crate::follow::exchange::Exchange;
use crate::packet::Packet;
use crate::stream_id::StreamId;
use crate::unit::Unit;

/// A receiver of the dissector's results.
pub trait Sink {
    /// A unit. Units of one direction come in stream order.
    fn unit(&mut self, unit: &Unit<'_>);

    /// A finding. It comes after the unit that shows it, or at the end of the connection. A finding
    /// about a bad CRC comes when the receiver has acknowledged the unit. A finding about a
    /// datagram may come seconds later, if no other datagram explains it.
    /// [`Dissector::units_only`](crate::Dissector::units_only) has none.
    fn finding(&mut self, finding: &Finding) {
        let _ = finding;
    }

    /// A fact that became certain. It comes after the unit that made it certain, or at the end of
    /// the connection `stream`. [`Dissector::units_only`](crate::Dissector::units_only) has none.
    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        let _ = (stream, fact);
    }

    /// An exchange of the port mapper. It comes when a connection follows it, which is the last of
    /// `streams` (or one more than that list can hold). It also comes when it is `over`: dropped,
    /// or the capture ends.
    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        let _ = (exchange, over);
    }

    /// A connection or the capture ends; `context` is the final state of the connection.
    fn ended(&mut self, stream: StreamId, context: &Context) {
        let _ = (stream, context);
    }

    /// The packet of a frame. It comes before the units that the frame completes. Frames without
    /// TCP or UDP have none.
    fn packet(&mut self, packet: &Packet) {
        let _ = packet;
    }

    /// The frame `number` carried a fragment of an IP packet that is not complete yet. The frame
    /// that completes it has the [`Packet`].
    fn fragment(&mut self, number: u64) {
        let _ = number;
    }
}
