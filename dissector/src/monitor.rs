//! The monitor of one connection: the state of the connection, and the rules that check the
//! connection.

use crate::direction::Direction;
use crate::finding::Finding;
use crate::follow;
use crate::ip::Segment;
use crate::parse::{Kind, SegmentView, Unit};
use crate::retransmission::DamagedFpdus;
use crate::rules::{Findings, check_end, check_unit};
use crate::sink::Sink;
use crate::stream_id::StreamId;
use crate::unit;

/// The monitor of one connection: the state of the connection, and the rules that check the
/// connection.
#[derive(Default)]
pub(crate) struct Monitor {
    pub(crate) state: follow::ConnectionState,
    /// Buffer for findings. The buffer is empty between units. It is a field only to reuse its
    /// memory.
    found: Vec<Finding>,
    /// Findings about damaged FPDUs. They wait, because TCP may still retransmit these FPDUs.
    damaged: DamagedFpdus,
}

impl Monitor {
    /// Records a TCP segment.
    pub(crate) fn segment(&mut self, direction: Direction, segment: &Segment<'_>) {
        self.damaged.segment(&mut self.state, direction, segment, &mut self.found);
        self.state.record_segment(direction, segment);
    }

    /// Delivers a unit, its facts, and the findings of the rules.
    pub(crate) fn unit(&mut self, unit: &Unit<'_>, sink: &mut dyn Sink) {
        // Deliver the delayed findings that became certain with the last segments.
        self.deliver(sink);
        let view = SegmentView::of(unit);
        if matches!(unit.kind, Kind::Startup(..)) && self.state.is_rejected() {
            self.state.restart();
        }
        self.state.record_unit(unit, view.as_ref());
        sink.unit(&unit::Unit { parsed: unit, context: self.state.context_of(unit) });
        if let Some(stream) = unit.stream {
            self.state.facts().iter().for_each(|fact| sink.fact(stream, fact));
        }
        check_unit(&self.state, unit, view.as_ref(), &mut Findings::new(unit.stream, &mut self.found));
        let (direction, frame) = (unit.direction(), unit.frame);
        if self.damaged.hold(&self.state, unit, &mut self.found) {
            self.state.traffic.repair(direction, frame, None);
        }
        self.deliver(sink);
    }

    /// Delivers the remaining findings and facts, and the final state. Call this when the
    /// connection ends.
    pub(crate) fn end(&mut self, stream: StreamId, sink: &mut dyn Sink) {
        self.state.finish();
        self.damaged.finish(&mut self.found);
        check_end(&self.state, &mut Findings::new(Some(stream), &mut self.found));
        self.deliver(sink);
        self.state.last_facts().for_each(|fact| sink.fact(stream, &fact));
        sink.ended(stream, self.state.context());
    }

    /// A SuspComm is the SDP message that suspends a connection. If the peer has acknowledged a
    /// SuspComm, returns the direction of the SuspComm, and the TCP port in the SuspComm.
    pub(crate) fn suspended(&self) -> Option<(Direction, u16)> {
        let closing = &self.state.context().sdp.as_deref()?.closing;
        let of = |local: Direction| closing.susp_comm[local].filter(|_| closing.susp_comm_ack[local.peer()].is_some());
        Direction::BOTH.into_iter().find_map(|local| of(local).map(|suspension| (local, suspension.port)))
    }

    /// Memory in bytes. Counts only the memory that grows with the activity of the connection.
    pub(crate) fn memory(&self) -> usize {
        self.state.memory() + self.damaged.memory()
    }

    fn deliver(&mut self, sink: &mut dyn Sink) {
        for finding in self.found.drain(..) {
            sink.finding(&finding);
        }
    }
}
