//! Finds the event of the traffic log that belongs to a step of the transcript, and the frame that
//! shows the step.
//!
//! Steps and events have the same order. If the transcript and the traffic log are complete, the
//! first step of a kind belongs to the first event of this kind, and so on. If one of them lacks
//! its middle, steps before the gap count from the beginning, and steps after the gap count from
//! the end.

use std::collections::HashMap;
use std::ops::Range;

use weft_peer::driver::{Direction as Side, EventContent, TrafficEvent};

use super::Frames;
use crate::model::{Direction, Octets, Step, StepKind};

/// Maximum number of steps without an event between two steps with events, if they count from the
/// end. A step has no event if its bytes were not sent, because the target had reset the
/// connection.
const MAX_WITHOUT_EVENT: usize = 64;

/// The kind of a step: its connection, its direction, and what happened.
type Key = (u32, Direction, StepKind);

/// The steps and the events of one kind, as indices.
#[derive(Default)]
struct Pairing {
    /// Steps before and after the place where the transcript lacks steps.
    steps: [Vec<usize>; 2],
    /// Events before and after the place where the traffic log dropped events.
    events: [Vec<usize>; 2],
    has_gap: bool,
}

/// Returns the index of the event of each step, if the step has an event. `left_out` is the place
/// of the steps that the transcript lacks. The steps in this range get no event.
pub(super) fn events(steps: &[Step], left_out: &Range<usize>, traffic: &[TrafficEvent]) -> Vec<Option<usize>> {
    let mut pairings: HashMap<Key, Pairing> = HashMap::new();
    for (index, event) in traffic.iter().enumerate() {
        let pairing = pairings.entry(key_of_event(event)).or_default();
        match event.content {
            EventContent::Dropped(_) => pairing.has_gap = true,
            _ => pairing.events[usize::from(pairing.has_gap)].push(index),
        }
    }
    for (index, step) in steps.iter().enumerate() {
        if let Some(pairing) = key_of_step(step).and_then(|key| pairings.get_mut(&key))
            && !left_out.contains(&index)
        {
            pairing.steps[usize::from(index >= left_out.end && !left_out.is_empty())].push(index);
        }
    }
    let mut found = vec![None; steps.len()];
    for pairing in pairings.into_values() {
        let Pairing { steps: [first_steps, last_steps], events: [first_events, last_events], has_gap } = pairing;
        for (step, event) in first_steps.iter().zip(&first_events) {
            found[*step] = Some(*event);
        }
        if left_out.is_empty() && !has_gap {
            continue;
        }
        // A list without a gap ends with its newest elements, too.
        let mut steps_left = if left_out.is_empty() { &first_steps[..] } else { &last_steps[..] };
        let events_left = if has_gap { &last_events[..] } else { &first_events[..] };
        for event in events_left.iter().rev() {
            let mut newest = steps_left.iter().rev().take(MAX_WITHOUT_EVENT).enumerate();
            if let Some((skipped, step)) = newest.find(|(_, step)| is_alike(&steps[**step], &traffic[*event])) {
                found[*step] = Some(*event);
                steps_left = &steps_left[..steps_left.len() - skipped - 1];
            }
        }
    }
    found
}

/// Returns the number of the frame that shows the step with the index `step`, from 1. If several
/// frames share the bytes of the step, returns the number of the last of them. Returns `None` if no
/// frame shows the step. For example, the traffic log may have dropped the bytes.
pub(crate) fn frame_number(
    steps: &[Step],
    step: usize,
    left_out: &Range<usize>,
    traffic: &[TrafficEvent],
    frames: &Frames,
) -> Option<u64> {
    let index = events(steps, left_out, traffic).get(step).copied().flatten()?;
    let (step, event) = (steps.get(step)?, traffic.get(index)?);
    let [first, last] = [&frames.anchors, &frames.ends].map(|places| places.get(index).copied().flatten());
    let place = match &event.content {
        EventContent::Octets(octets) | EventContent::Datagram { octets, .. } => {
            step.octets.as_ref().filter(|shown| is_same(shown, octets))?;
            let has_all = |place: &usize| frames.list.get(*place).is_some_and(|frame| contains(&frame.octets, octets));
            // If one frame has the first and the last byte but not all bytes, it has other bytes.
            first.filter(has_all).or(last.filter(|_| first != last))?
        }
        EventContent::Connected { .. } | EventContent::Fin | EventContent::Reset => first?,
        EventContent::Dropped(_) => return None,
    };
    // A capture may lack the FIN or reset of one side, and then show a reset of the other side.
    let is_by_its_sender = frames.list.get(place)?.from_tester == (event.direction == Side::ToTarget);
    is_by_its_sender.then_some(place as u64 + 1)
}

fn key_of_event(event: &TrafficEvent) -> Key {
    let kind = match event.content {
        EventContent::Connected { .. } => StepKind::Connected,
        EventContent::Octets(_) | EventContent::Datagram { .. } | EventContent::Dropped(_) => StepKind::Octets,
        EventContent::Fin => StepKind::Fin,
        EventContent::Reset => StepKind::Reset,
    };
    let direction = match event.direction {
        Side::ToTarget => Direction::Sent,
        Side::FromTarget => Direction::Received,
    };
    // The step of a datagram belongs to no connection.
    let is_datagram = match &event.content {
        EventContent::Datagram { .. } => true,
        EventContent::Dropped(dropped) => dropped.datagrams,
        _ => false,
    };
    let connection = if is_datagram { 0 } else { event.connection + 1 };
    (connection, direction, kind)
}

/// Returns `None` if a step can have no event.
fn key_of_step(step: &Step) -> Option<Key> {
    let is_empty = step.octets.as_ref().is_some_and(|octets| octets.len == 0);
    (step.direction != Direction::Observed && !is_empty).then_some((step.connection, step.direction, step.kind))
}

/// Returns whether the bytes of a step can be those of an event. The transcript does not have the
/// bytes of all steps.
fn is_alike(step: &Step, event: &TrafficEvent) -> bool {
    let (EventContent::Octets(octets) | EventContent::Datagram { octets, .. }) = &event.content else { return true };
    step.octets.as_ref().is_some_and(|shown| {
        shown.len == octets.len() as u64 && shown.shown().zip(octets.iter()).all(|(shown, octet)| shown == *octet)
    })
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
    use weft_peer::driver::DroppedOctets;

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
        (0..steps.len()).map(|index| frame_number(steps, index, &(0..0), traffic, frames)).collect()
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
        // Frames 1 to 3 are the handshake. Frames 6 and 7 share the bytes of one event, and frame 7
        // has the last of them. Frame 9 acknowledges the FIN.
        assert_eq!(
            numbers(&steps, &traffic, &synthesize_frames(&traffic)),
            [Some(1), Some(4), None, Some(5), None, Some(7), Some(8), Some(10)]
        );
    }

    fn marked(number: u8) -> [u8; 20] {
        [number; 20]
    }

    /// The target sent nine messages. The traffic log has the messages 1, 2, 8 and 9. Frames 1 to 3
    /// are the handshake, and frames 4 to 7 have the messages.
    fn with_gap() -> Vec<TrafficEvent> {
        let (tester, target) = (SocketAddr::from(TESTER), SocketAddr::from(TARGET));
        let until = Instant::from_nanos(5);
        let dropped = DroppedOctets { datagrams: false, events: 5, octets: 100, crc: 0, until };
        let mut traffic = vec![event(Side::ToTarget, EventContent::Connected { tester, target })];
        traffic.extend([1, 2].map(|number| octets(Side::FromTarget, &marked(number))));
        traffic.push(event(Side::FromTarget, EventContent::Dropped(dropped)));
        traffic.extend([8, 9].map(|number| octets(Side::FromTarget, &marked(number))));
        traffic
    }

    fn received(number: u8) -> Step {
        step(1, Direction::Received, StepKind::Octets, &marked(number))
    }

    #[test]
    fn steps_after_dropped_events_count_from_the_end() {
        let traffic = with_gap();
        let steps: Vec<Step> = (1..=9).map(received).collect();
        let expected = [Some(4), Some(5), None, None, None, None, None, Some(6), Some(7)];
        assert_eq!(numbers(&steps, &traffic, &synthesize_frames(&traffic)), expected);
    }

    /// The transcript lacks the steps of the messages 2 to 6. It has a note in their place.
    #[test]
    fn steps_after_missing_steps_count_from_the_end() {
        let traffic = with_gap();
        let mut steps = vec![received(1), step(0, Direction::Observed, StepKind::Note, b"")];
        steps.extend([7, 8, 9].map(received));
        let frames = synthesize_frames(&traffic);
        let numbers: Vec<_> = (0..5).map(|step| frame_number(&steps, step, &(1..2), &traffic, &frames)).collect();
        assert_eq!(numbers, [Some(4), None, None, Some(6), Some(7)]);
    }

    /// The target reset the connection before the tester sent the last message.
    #[test]
    fn a_step_without_an_event_does_not_move_the_steps_before_it() {
        let traffic = with_gap();
        let steps: Vec<Step> = (1..=10).map(received).collect();
        let numbers = numbers(&steps, &traffic, &synthesize_frames(&traffic));
        assert_eq!(numbers[7..], [Some(6), Some(7), None]);
    }

    #[test]
    fn a_frame_with_other_bytes_or_of_the_other_side_has_no_number() {
        let (traffic, mut steps) = case();
        let mut frames = synthesize_frames(&traffic);
        steps[3] = step(1, Direction::Received, StepKind::Octets, b"other");
        frames.list[7].from_tester = true;
        let expected = [Some(1), Some(4), None, None, None, Some(7), None, Some(10)];
        assert_eq!(numbers(&steps, &traffic, &frames), expected);
    }
}
