//! The monitor of one connection: its state, and the rules that check it.

use crate::direction::Direction;
use crate::finding::Finding;
use crate::follow;
use crate::follow::exchange::Exchange;
use crate::ip::Segment;
use crate::parse::{Kind, SegmentView, Unit};
use crate::repair::Repairs;
use crate::rules::{Findings, judge_end, judge_unit};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit;

/// The monitor of one connection: its state, and the rules that check it.
#[derive(Default)]
pub(crate) struct Watch {
    state: follow::ConnectionState,
    /// Buffer for findings, empty between units. It is a field to reuse its memory.
    found: Vec<Finding>,
    /// Delayed findings about FPDUs that TCP may retransmit.
    repairs: Repairs,
}

impl Watch {
    /// Records a TCP segment.
    pub(crate) fn segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.repairs.segment(&mut self.state, direction, segment, &mut self.found);
        self.state.segment(direction, segment);
    }

    /// Delivers a unit, its facts, and the findings of the rules.
    pub(crate) fn unit(&mut self, unit: &Unit<'_>, sink: &mut dyn Sink) {
        // Deliver findings that the last segments released.
        self.hand_out(sink);
        let view = SegmentView::of(unit);
        if matches!(unit.kind, Kind::Startup(..)) && self.state.are_of_rejected() {
            self.state.restart();
        }
        self.state.unit(unit, view.as_ref());
        sink.unit(&unit::Unit { parsed: unit, context: self.state.context_of(unit) });
        if let Some(stream) = unit.stream {
            self.state.facts().iter().for_each(|fact| sink.fact(stream, fact));
        }
        judge_unit(&self.state, unit, view.as_ref(), &mut Findings::new(unit.stream, &mut self.found));
        let (direction, frame) = (unit.direction(), unit.frame);
        if self.repairs.hold(&self.state, unit, &mut self.found) {
            self.state.traffic.repair(direction, frame, None);
        }
        self.hand_out(sink);
    }

    /// The connection ends: delivers the remaining findings and facts, and the final state.
    pub(crate) fn end(&mut self, stream: StreamId, sink: &mut dyn Sink) {
        self.state.finish();
        self.repairs.finish(&mut self.found);
        judge_end(&self.state, &mut Findings::new(Some(stream), &mut self.found));
        self.hand_out(sink);
        self.state.last_facts().for_each(|fact| sink.fact(stream, &fact));
        sink.ended(stream, self.state.context());
    }

    /// The connection follows an exchange of the port mapper.
    pub(crate) fn join(&mut self, exchange: &Exchange) {
        self.state.join(exchange);
    }

    /// Records whether the direction opposite to the next units has octets that are not read yet.
    pub(crate) fn peer_has_unread(&mut self, has_unread: bool) {
        self.state.peer_has_unread = has_unread;
    }

    /// The connection replaces a suspended SDP connection.
    pub(crate) fn resume(&mut self) {
        self.state.resume();
    }

    /// The direction and the TCP port of a SuspComm that the peer has acknowledged.
    pub(crate) fn suspended(&self) -> Option<(Direction, u16)> {
        let closing = &self.state.context().sdp.as_deref()?.closing;
        let of = |local: Direction| closing.susp_comm[local].filter(|_| closing.susp_comm_ack[local.peer()].is_some());
        Direction::BOTH.into_iter().find_map(|local| of(local).map(|suspension| (local, suspension.port)))
    }

    /// Memory in bytes that grows with the activity of the connection.
    pub(crate) fn memory(&self) -> usize {
        self.state.memory() + self.repairs.memory()
    }

    fn hand_out(&mut self, sink: &mut dyn Sink) {
        for finding in self.found.drain(..) {
            sink.finding(&finding);
        }
    }
}
