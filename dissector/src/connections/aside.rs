//! Frees the slots of connections, and resumes such connections. [`super`] explains when.

use super::Connections;
use super::connection::Connection;
use super::limits::LINGERING;
use crate::dropped::Dropped;
use crate::ip::Segment;
use crate::parse::Ends;
use crate::sink::Sink;
use crate::tcp::Past;

impl Connections {
    /// Returns whether a connection that was put aside can resume without a loss of state. Then a
    /// segment that does not fit only starts a rival.
    pub(super) fn may_resume(&self, past: &Past, network: u16, segment: &Segment<'_>) -> bool {
        past.aside && (!past.has_octets() || self.table.has_record(segment, network))
    }

    /// Gives a slot to a connection that continues. Returns the slot.
    pub(super) fn go_on(&mut self, past: &Past, network: u16, segment: &Segment<'_>, sink: &mut dyn Sink) -> usize {
        let other = if past.first == segment.src { segment.dst } else { segment.src };
        let (slot, record) = self.open(past.number, (past.first, other), (network, segment.path), sink);
        let cost = Dropped {
            interruptions: u64::from(record.is_some()),
            others: u64::from(record.is_none() && past.has_octets()),
            ..Dropped::default()
        };
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.go_on(past, record);
            connection.interrupted = past.aside.then_some(cost);
            if !past.aside {
                connection.closed = true;
                self.closed.push_back((slot, past.number));
            }
        }
        slot
    }

    /// Delivers the remaining units of the connection in `slot` and frees the slot. If `aside` is
    /// set, the connection was open and may continue.
    pub(super) fn retire(&mut self, slot: usize, aside: bool, sink: &mut dyn Sink) {
        let Some(mut connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.free.push(slot);
        self.memory -= connection.memory;
        self.holding -= usize::from(connection.holds_back);
        let broken = connection.broken;
        let missing = connection.directions.each_ref().map(|direction| direction.half.first_hole());
        connection.finish(sink);
        if let Some(mut rival) = connection.rival.take() {
            rival.connection.finish(sink);
        }
        let Ends { src, dst, .. } = connection.directions[0].ends;
        let network = connection.network;
        let mut past = connection.past(aside);
        let mut record = None;
        if aside && connection.is_mpa() {
            self.dropped.units += connection.broken - broken;
            record = Some(Box::new(connection.into_record()));
        } else if aside {
            past.missing = missing;
        }
        self.table.close(src, dst, network, past, record);
    }

    pub(super) fn retire_closed(&mut self, sink: &mut dyn Sink) {
        while self.closed.len() > LINGERING {
            let Some((slot, number)) = self.closed.pop_front() else { return };
            // Another connection may have the slot now.
            if matches!(self.slots.get(slot), Some(Some(connection)) if connection.number == number) {
                self.retire(slot, false, sink);
            }
        }
    }

    /// Puts aside connections for which `may` returns true, until `enough` returns true.
    /// Connections without MPA and SDP and closed connections come first, the longest idle
    /// connections before others.
    pub(super) fn put_aside(
        &mut self,
        may: impl Fn(&Connection) -> bool,
        enough: impl Fn(&Self) -> bool,
        sink: &mut dyn Sink,
    ) {
        let open = self.slots.iter().enumerate().filter_map(|(slot, it)| Some((slot, it.as_ref()?)));
        let mut idle: Vec<(bool, u64, usize)> = open
            .filter(|(_, it)| may(it))
            .map(|(slot, it)| (it.is_mpa() && !it.closed, it.latest_frame, slot))
            .collect();
        idle.sort_unstable();
        for (_, _, slot) in idle {
            if enough(self) {
                return;
            }
            let aside = self.slots.get(slot).is_some_and(|it| it.as_ref().is_some_and(|it| !it.closed));
            self.retire(slot, aside, sink);
        }
    }
}
