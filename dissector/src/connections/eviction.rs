//! Frees the slots of connections, and resumes connections that lost their slot. The parent module
//! [`super`] explains when this happens.

use super::Connections;
use super::connection::Connection;
use super::limits::MAX_LINGERING;
use crate::dropped::DroppedState;
use crate::frame_number::FrameNumber;
use crate::ip::Segment;
use crate::parse::Endpoints;
use crate::sink::Sink;
use crate::tcp::ConnectionSummary;

impl Connections {
    /// Returns whether the connection was evicted, and either has a record or had no octets. If
    /// true, a segment that does not fit the connection only starts a possible replacement.
    pub(super) fn may_resume(&self, past: &ConnectionSummary, network: u16, segment: &Segment<'_>) -> bool {
        past.evicted && (!past.has_octets() || self.table.has_record(segment, network))
    }

    /// Gives a new slot to a connection that lost its slot and now continues. Returns the slot.
    pub(super) fn resume(
        &mut self,
        past: &ConnectionSummary,
        network: u16,
        segment: &Segment<'_>,
        sink: &mut dyn Sink,
    ) -> usize {
        let other = if past.first == segment.src { segment.dst } else { segment.src };
        let (slot, record) = self.open(past.number, (past.first, other), (network, segment.path), sink);
        let cost = DroppedState {
            interruptions: u64::from(record.is_some()),
            other_interruptions: u64::from(record.is_none() && past.has_octets()),
            ..DroppedState::default()
        };
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.resume(past, record);
            connection.pending_cost = past.evicted.then_some(cost);
            if !past.evicted {
                connection.closed = true;
                self.closed.push_back((slot, past.number));
            }
        }
        slot
    }

    /// Delivers the remaining units of the connection in `slot` and frees the slot. If `evicted` is
    /// set, the connection was open, and further segments of it can arrive.
    pub(super) fn retire(&mut self, slot: usize, evicted: bool, sink: &mut dyn Sink) {
        let Some(mut connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        self.memory -= connection.memory;
        self.holding -= usize::from(connection.holds_back);
        let incomplete_units = connection.incomplete_units;
        let missing = connection.directions.each_ref().map(|direction| direction.half.first_hole());
        connection.finish(sink);
        if let Some(mut replacement) = connection.replacement.take() {
            replacement.connection.finish(sink);
        }
        let Endpoints { src, dst, .. } = connection.directions[0].ends;
        let network = connection.network;
        let mut past = connection.summary(evicted);
        let mut record = None;
        if evicted && connection.is_mpa() {
            self.dropped.incomplete_units += connection.incomplete_units - incomplete_units;
            record = Some(Box::new(connection.into_record()));
        } else if evicted {
            past.missing = missing;
        }
        self.table.close(src, dst, network, past, record);
    }

    pub(super) fn retire_closed(&mut self, sink: &mut dyn Sink) {
        while self.closed.len() > MAX_LINGERING {
            let Some((slot, number)) = self.closed.pop_front() else { return };
            // Another connection may have got the slot in the meantime.
            if matches!(self.slots.get(slot), Some(Some(connection)) if connection.number == number) {
                self.retire(slot, false, sink);
            }
        }
    }

    /// Evicts connections for which `may` returns true, until `enough` returns true. First evicts
    /// closed connections and connections with neither MPA nor SDP, and then the remaining
    /// connections. In each of these two groups, the connection that was idle for the longest time
    /// comes first.
    pub(super) fn evict(
        &mut self,
        may: impl Fn(&Connection) -> bool,
        enough: impl Fn(&Self) -> bool,
        sink: &mut dyn Sink,
    ) {
        let open = self.slots.iter().enumerate().filter_map(|(slot, it)| Some((slot, it.as_ref()?)));
        let mut idle: Vec<(bool, FrameNumber, usize)> = open
            .filter(|(_, it)| may(it))
            .map(|(slot, it)| (it.is_mpa() && !it.closed, it.latest_frame, slot))
            .collect();
        idle.sort_unstable();
        for (_, _, slot) in idle {
            if enough(self) {
                return;
            }
            let evicted = self.slots.get(slot).is_some_and(|it| it.as_ref().is_some_and(|it| !it.closed));
            self.retire(slot, evicted, sink);
        }
    }
}
