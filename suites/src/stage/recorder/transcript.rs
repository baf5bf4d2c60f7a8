//! The steps of a case.
//!
//! A transcript has a limit. If it is full, it keeps its first steps and its newest steps. Of the
//! steps in between, it keeps those that show a violation or the stimulus. It only counts the other
//! steps.

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::Step;

/// The steps of a case, in order. Each step has a number, from 0, that does not change if the
/// transcript drops other steps.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// The first steps, at most a quarter of the limit.
    head: Vec<Step>,
    /// Decisive steps after the head with their numbers, at most a quarter of the limit.
    middle: Vec<(u64, Step)>,
    /// The newest steps.
    tail: VecDeque<Step>,
    max_steps: usize,
    /// Number of dropped steps.
    left_out: u64,
    /// Time of the first dropped step.
    left_out_at_ns: u64,
}

impl Default for Transcript {
    /// Creates a transcript without a limit.
    fn default() -> Self {
        Transcript::with_limit(usize::MAX)
    }
}

impl Transcript {
    /// Creates an empty transcript that keeps at most this number of steps.
    pub(in crate::stage) fn with_limit(max_steps: usize) -> Self {
        Transcript {
            head: Vec::new(),
            middle: Vec::new(),
            tail: VecDeque::new(),
            max_steps,
            left_out: 0,
            left_out_at_ns: 0,
        }
    }

    /// Adds a step. If the transcript is full, drops the oldest step between the first steps and
    /// the newest steps that is not decisive.
    pub(crate) fn push(&mut self, step: Step) {
        if self.tail.is_empty() && self.head.len() < self.max_steps / 4 {
            self.head.push(step);
            return;
        }
        self.tail.push_back(step);
        while self.len() > self.max_steps
            && let Some(oldest) = self.tail.pop_front()
        {
            if oldest.is_decisive() && self.middle.len() < self.max_steps / 4 {
                let number = (self.head.len() + self.middle.len()) as u64 + self.left_out;
                self.middle.push((number, oldest));
            } else {
                if self.left_out == 0 {
                    self.left_out_at_ns = oldest.at_ns;
                }
                self.left_out += 1;
            }
        }
    }

    /// Returns the number of kept steps.
    pub(in crate::stage) fn len(&self) -> usize {
        self.head.len() + self.middle.len() + self.tail.len()
    }

    /// Returns whether the transcript can keep a further step without dropping another step.
    pub(in crate::stage) fn has_room(&self) -> bool {
        self.left_out == 0 && self.len() < self.max_steps
    }

    /// Returns the number of dropped steps.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the kept steps, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.numbered().map(|(_, step)| step)
    }

    /// Returns the kept steps with their numbers, in order.
    pub(in crate::stage) fn numbered(&self) -> impl DoubleEndedIterator<Item = (u64, &Step)> {
        let first_of_tail = (self.head.len() + self.middle.len()) as u64 + self.left_out;
        let head = self.head.iter().enumerate().map(|(index, step)| (index as u64, step));
        let middle = self.middle.iter().map(|(number, step)| (*number, step));
        let tail = self.tail.iter().enumerate().map(move |(index, step)| (first_of_tail + index as u64, step));
        head.chain(middle).chain(tail)
    }

    pub(in crate::stage) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Step> {
        let middle = self.middle.iter_mut().map(|(_, step)| step);
        self.head.iter_mut().chain(middle).chain(&mut self.tail)
    }

    /// Returns a kept step by its position among the kept steps.
    pub(in crate::stage) fn get_mut(&mut self, position: usize) -> Option<&mut Step> {
        let (head, middle) = (self.head.len(), self.middle.len());
        if position < head {
            self.head.get_mut(position)
        } else if position < head + middle {
            self.middle.get_mut(position - head).map(|(_, step)| step)
        } else {
            self.tail.get_mut(position - head - middle)
        }
    }

    /// Returns the index, in the list of [`into_steps`](Self::into_steps), of the step with this
    /// number.
    pub(crate) fn index_of(&self, number: u64) -> Option<usize> {
        let position = self.numbered().position(|(other, _)| other == number)?;
        let is_after_note = self.left_out > 0 && position >= self.head.len();
        Some(position + usize::from(is_after_note))
    }

    /// Returns the kept steps. If the transcript dropped steps, a note follows the first steps, and
    /// the range is that of the note and of the decisive steps between the first and the newest
    /// steps. Otherwise the range is empty.
    pub(crate) fn into_steps(self) -> (Vec<Step>, Range<usize>) {
        let Transcript { head: mut steps, middle, tail, max_steps, left_out, left_out_at_ns } = self;
        let begin = steps.len();
        if left_out > 0 {
            steps.push(Step::gap(left_out_at_ns, left_out, max_steps));
        }
        steps.extend(middle.into_iter().map(|(_, step)| step));
        let end = if left_out > 0 { steps.len() } else { begin };
        steps.extend(tail);
        (steps, begin..end)
    }
}

#[cfg(test)]
impl From<Vec<Step>> for Transcript {
    fn from(steps: Vec<Step>) -> Self {
        let mut transcript = Transcript::default();
        steps.into_iter().for_each(|step| transcript.push(step));
        transcript
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Direction, StepKind};

    fn step(number: u64, kind: StepKind) -> Step {
        let text = number.to_string();
        Step { at_ns: number, connection: 1, direction: Direction::Observed, kind, text, octets: None }
    }

    /// A transcript of at most eight steps, after the steps 0 to 19. Step 5 shows a violation.
    fn full() -> Transcript {
        let mut transcript = Transcript::with_limit(8);
        for number in 0..20 {
            transcript.push(step(number, if number == 5 { StepKind::Unmet } else { StepKind::Note }));
        }
        transcript
    }

    #[test]
    fn keeps_the_first_the_newest_and_the_decisive_steps() {
        let transcript = full();
        let numbers: Vec<u64> = transcript.numbered().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 5, 15, 16, 17, 18, 19]);
        assert!(transcript.numbered().all(|(number, step)| step.at_ns == number));
        assert_eq!((transcript.len(), transcript.left_out(), transcript.has_room()), (8, 12, false));
    }

    #[test]
    fn a_note_replaces_the_dropped_steps() {
        let transcript = full();
        let indices = [0, 1, 5, 15, 19].map(|number| transcript.index_of(number).unwrap());
        let (steps, left_out) = transcript.into_steps();
        let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
        let note = "not in the transcript: 12 steps; a transcript keeps at most 8 steps";
        assert_eq!(texts, ["0", "1", note, "5", "15", "16", "17", "18", "19"]);
        assert_eq!((left_out, steps[2].is_gap(), steps[2].at_ns), (2..4, true, 2));
        assert_eq!(indices.map(|index| steps[index].at_ns), [0, 1, 5, 15, 19]);
    }

    #[test]
    fn a_transcript_below_its_limit_is_complete() {
        let mut transcript = Transcript::with_limit(20);
        (0..20).for_each(|number| transcript.push(step(number, StepKind::Note)));
        assert_eq!((transcript.index_of(19), transcript.index_of(20)), (Some(19), None));
        assert_eq!(transcript.get_mut(19).map(|step| step.at_ns), Some(19));
        let (steps, left_out) = transcript.into_steps();
        assert_eq!((steps.len(), left_out.is_empty()), (20, true));
    }
}
