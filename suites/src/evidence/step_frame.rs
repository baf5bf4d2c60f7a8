//! Finds the event of the traffic log that belongs to a step of the transcript, and the frame that
//! shows the step.

use weft_peer::driver::{Direction as Side, EventContent, TrafficEvent};

use super::Frames;
use crate::model::{Direction, Octets, Step, StepKind};

/// Returns the index of the event of each step, if the step has an event.
pub(super) fn events(steps: &[Step], traffic: &[TrafficEvent]) -> Vec<Option<usize>> {
    let mut used = vec![false; traffic.len()];
    // Steps and events have the same order. Each step belongs to the first unused event of its
    // kind. All events before the index `begin` are used.
    let mut begin = 0;
    let mut found = Vec::with_capacity(steps.len());
    for step in steps {
        begin += used[begin..].iter().take_while(|used| **used).count();
        let is_next = |index: &usize| !used[*index] && is_of(step, &traffic[*index]);
        let has_event = step.direction != Direction::Observed;
        let event = if has_event { (begin..traffic.len()).find(is_next) } else { None };
        if let Some(index) = event {
            used[index] = true;
        }
        found.push(event);
    }
    found
}

/// Returns the number of the frame that shows the step with the index `step`, from 1. Returns
/// `None` if no frame shows the complete step. For example, the bytes of the step may be in several
/// frames.
pub(crate) fn frame_number(steps: &[Step], step: usize, traffic: &[TrafficEvent], frames: &Frames) -> Option<u64> {
    let index = events(steps, traffic).get(step).copied().flatten()?;
    let (step, event) = (steps.get(step)?, traffic.get(index)?);
    let place = frames.anchors.get(index).copied().flatten()?;
    let frame = frames.list.get(place)?;
    // A capture may lack the FIN or reset of one side, and then show a reset of the other side.
    let is_by_its_sender = frame.from_tester == (event.direction == Side::ToTarget);
    let has_its_octets = match &event.content {
        EventContent::Octets(octets) | EventContent::Datagram { octets, .. } => {
            step.octets.as_ref().is_some_and(|shown| is_same(shown, octets)) && contains(&frame.octets, octets)
        }
        EventContent::Connected { .. } | EventContent::Fin | EventContent::Reset => true,
    };
    (is_by_its_sender && has_its_octets).then_some(place as u64 + 1)
}

fn is_of(step: &Step, event: &TrafficEvent) -> bool {
    let kind = match event.content {
        EventContent::Connected { .. } => StepKind::Connected,
        EventContent::Octets(_) | EventContent::Datagram { .. } => StepKind::Octets,
        EventContent::Fin => StepKind::Fin,
        EventContent::Reset => StepKind::Reset,
    };
    let direction = match event.direction {
        Side::ToTarget => Direction::Sent,
        Side::FromTarget => Direction::Received,
    };
    // The step of a datagram belongs to no connection.
    let connection = match event.content {
        EventContent::Datagram { .. } => 0,
        _ => event.connection + 1,
    };
    step.kind == kind && step.direction == direction && step.connection == connection
}

fn is_same(shown: &Octets, octets: &[u8]) -> bool {
    let all = Octets::new(octets);
    shown.len == all.len && shown.hex == all.hex
}

fn contains(frame: &[u8], octets: &[u8]) -> bool {
    frame.windows(octets.len().max(1)).any(|window| window == octets)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_peer::Instant;

    use super::*;
    use crate::evidence::synthesize_frames;

    const TESTER: ([u8; 4], u16) = ([192, 0, 2, 2], 50_000);
    const TARGET: ([u8; 4], u16) = ([192, 0, 2, 1], 7174);

    fn event(direction: Side, content: EventContent) -> TrafficEvent {
        TrafficEvent { at: Instant::from_nanos(5), connection: 0, direction, content }
    }

    fn octets(direction: Side, octets: &[u8]) -> TrafficEvent {
        event(direction, EventContent::Octets(octets.to_vec().into()))
    }

    fn step(connection: u32, direction: Direction, kind: StepKind, octets: &[u8]) -> Step {
        let octets = (kind == StepKind::Octets).then(|| Octets::new(octets));
        Step { at_ns: 5, connection, direction, kind, text: String::new(), octets }
    }

    fn numbers(steps: &[Step], traffic: &[TrafficEvent], frames: &Frames) -> Vec<Option<u64>> {
        (0..steps.len()).map(|index| frame_number(steps, index, traffic, frames)).collect()
    }

    /// The traffic of a connection, and its steps. One event has more bytes than fit in a frame.
    fn case() -> (Vec<TrafficEvent>, Vec<Step>) {
        use Direction::{Observed, Received, Sent};
        let (tester, target) = (SocketAddr::from(TESTER), SocketAddr::from(TARGET));
        let datagram = EventContent::Datagram { tester, target, octets: b"PMReq".to_vec().into() };
        let traffic = vec![
            event(Side::ToTarget, EventContent::Connected { tester, target }),
            octets(Side::ToTarget, b"request"),
            octets(Side::FromTarget, b"reply"),
            octets(Side::FromTarget, &[7; 2000]),
            event(Side::FromTarget, EventContent::Fin),
            event(Side::ToTarget, datagram),
        ];
        let steps = vec![
            step(1, Sent, StepKind::Connected, b""),
            step(1, Sent, StepKind::Octets, b"request"),
            step(0, Sent, StepKind::Agent, b""),
            step(1, Received, StepKind::Octets, b"reply"),
            step(0, Observed, StepKind::Unmet, b""),
            step(1, Received, StepKind::Octets, &[7; 2000]),
            step(1, Received, StepKind::Fin, b""),
            step(0, Sent, StepKind::Octets, b"PMReq"),
        ];
        (traffic, steps)
    }

    #[test]
    fn a_step_has_the_number_of_its_frame() {
        let (traffic, steps) = case();
        // Frames 1 to 3 are the handshake. Frames 6 and 7 share the bytes of one event. Frame 9
        // acknowledges the FIN.
        assert_eq!(
            numbers(&steps, &traffic, &synthesize_frames(&traffic)),
            [Some(1), Some(4), None, Some(5), None, None, Some(8), Some(10)]
        );
    }

    #[test]
    fn a_frame_with_other_bytes_or_of_the_other_side_has_no_number() {
        let (traffic, mut steps) = case();
        let mut frames = synthesize_frames(&traffic);
        steps[3] = step(1, Direction::Received, StepKind::Octets, b"other");
        frames.list[7].from_tester = true;
        assert_eq!(numbers(&steps, &traffic, &frames), [Some(1), Some(4), None, None, None, None, None, Some(10)]);
    }
}
