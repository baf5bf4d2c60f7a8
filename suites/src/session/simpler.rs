//! Simpler steps of the same kind, for a reduction.

use super::step::{MessageFields, Step};

impl Step {
    /// Returns simpler steps of the same kind, the simplest first.
    pub(crate) fn simpler(self) -> Vec<Step> {
        // These values become denser near `value`. So a few tries find a value near the smallest
        // value with which the session still fails.
        let smaller = |value: u32| {
            let tried = [1, value / 2, value - value / 4, value - value / 16, value.saturating_sub(1)];
            tried.into_iter().filter(move |less| *less < value)
        };
        match self {
            Step::Message(fields) => {
                let segment = fields.size.max(1);
                let plain = MessageFields::plain(fields.connection, fields.size, segment);
                let sizes = smaller(fields.size).map(|size| MessageFields { size, ..fields });
                let cuts = [
                    MessageFields { segment, ..fields },
                    MessageFields { solicited: false, ..fields },
                    MessageFields { every: 0, ..fields },
                    MessageFields { stall: 0, ..fields },
                    MessageFields { empty: false, ..fields },
                    MessageFields { descending: false, ..fields },
                ];
                let all = [plain].into_iter().chain(sizes).chain(cuts);
                all.filter(|simpler| *simpler != fields).map(Step::Message).collect()
            }
            Step::Rounds { connection, count, size, segment, to, between, empty, busy } => {
                let of =
                    |count, size, busy| Step::Rounds { connection, count, size, segment, to, between, empty, busy };
                let plain = [
                    Step::Rounds { connection, count, size, segment, to: 0, between, empty, busy },
                    Step::Rounds { connection, count, size, segment, to, between: false, empty, busy },
                    Step::Rounds { connection, count, size, segment, to, between, empty: false, busy },
                    Step::Rounds { connection, count, size, segment: size.max(1), to, between, empty, busy },
                    of(count, size, 0),
                ];
                let counts = smaller(count).map(|count| of(count, size, busy));
                let sizes = smaller(size).map(|size| of(count, size, busy));
                let busier = smaller(busy).map(|busy| of(count, size, busy));
                let all = plain.into_iter().chain(counts).chain(sizes).chain(busier);
                all.filter(|step| *step != self).collect()
            }
            Step::Announce { connection, size, segment, to, empty } => {
                let sizes = smaller(size).map(|size| Step::Announce { connection, size, segment, to, empty });
                let plain = [
                    Step::Announce { connection, size, segment: size.max(1), to, empty },
                    Step::Announce { connection, size, segment, to: 0, empty },
                    Step::Announce { connection, size, segment, to, empty: false },
                ];
                sizes.chain(plain).filter(|step| *step != self).collect()
            }
            Step::Respond { connection, count } => {
                // All segments are simpler than some of them, because no other message can then
                // come between the segments.
                let counts = [0].into_iter().chain(smaller(count)).filter(|less| *less < count);
                counts.map(|count| Step::Respond { connection, count }).collect()
            }
            Step::Write { connection, at, size, segment, align } => {
                let sizes = smaller(size).map(|size| Step::Write { connection, at, size, segment, align });
                let places = smaller(at).map(|at| Step::Write { connection, at, size, segment, align });
                let plain = [
                    Step::Write { connection, at, size, segment: 1024, align },
                    Step::Write { connection, at, size, segment, align: 0 },
                ];
                sizes.chain(places).chain(plain).filter(|step| *step != self).collect()
            }
            Step::Read { connection, at, size, align } => {
                let sizes = smaller(size).map(|size| Step::Read { connection, at, size, align });
                let places = smaller(at).map(|at| Step::Read { connection, at, size, align });
                let plain = [Step::Read { connection, at, size, align: 0 }];
                sizes.chain(places).chain(plain).filter(|step| *step != self).collect()
            }
            Step::Batch { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Batch { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Batch { connection, count, size })).collect()
            }
            Step::Half { connection, size } => smaller(size).map(|size| Step::Half { connection, size }).collect(),
            Step::Fill { connection, count, more, most } => {
                let counts = smaller(count).map(|count| Step::Fill { connection, count, more, most });
                let halves = [0, more / 2].into_iter().filter(|half| *half != more);
                counts.chain(halves.map(|more| Step::Fill { connection, count, more, most })).collect()
            }
            Step::Empty { .. } => Vec::new(),
            Step::Pad { connection, size, value } => {
                smaller(size).map(|size| Step::Pad { connection, size, value }).collect()
            }
            Step::Align { connection, at, by_target } => {
                smaller(at).map(|at| Step::Align { connection, at, by_target }).collect()
            }
            Step::Burst { connection, count, size, spread } => {
                let of = |count, size, spread| Step::Burst { connection, count, size, spread };
                let counts = smaller(count).map(|count| of(count, size, spread));
                let sizes = smaller(size).map(|size| of(count, size, spread));
                let plain = (spread > 0).then(|| of(count, size, 0));
                plain.into_iter().chain(counts).chain(sizes).collect()
            }
            Step::Flood { connection, count, size, segment } => {
                let counts = smaller(count).map(|count| Step::Flood { connection, count, size, segment });
                counts.chain(smaller(size).map(|size| Step::Flood { connection, count, size, segment })).collect()
            }
            Step::Reads { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Reads { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Reads { connection, count, size })).collect()
            }
            Step::Window { connection, count, size } => {
                let counts = smaller(count).map(|count| Step::Window { connection, count, size });
                counts.chain(smaller(size).map(|size| Step::Window { connection, count, size })).collect()
            }
            Step::Refused { count } => {
                smaller(count).filter(|count| *count > 0).map(|count| Step::Refused { count }).collect()
            }
            Step::Request { crc, private, markers, depths, rtr } => {
                let plain = [
                    Step::Request { crc, private, markers, depths: None, rtr: [false; 3] },
                    Step::Request { crc, private, markers, depths, rtr: [false; 3] },
                    Step::Request { crc, private: 0, markers, depths, rtr },
                    Step::Request { crc, private, markers: false, depths, rtr },
                    Step::Request { crc: None, private, markers, depths, rtr },
                ];
                let sizes = smaller(private).map(|private| Step::Request { crc, private, markers, depths, rtr });
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Segments { connection, count } => {
                smaller(count).map(|count| Step::Segments { connection, count }).collect()
            }
            Step::Finish { connection, size, ms } => {
                let sizes = smaller(size).map(|size| Step::Finish { connection, size, ms });
                sizes.chain(smaller(ms).map(|ms| Step::Finish { connection, size, ms })).collect()
            }
            Step::Fault { connection, fault, at_once } => {
                at_once.then_some(Step::Fault { connection, fault, at_once: false }).into_iter().collect()
            }
            Step::Repeat { count, steps } => {
                smaller(count).filter(|count| *count > 0).map(|count| Step::Repeat { count, steps }).collect()
            }
            Step::Pause { ms } => smaller(ms).filter(|ms| *ms > 0).map(|ms| Step::Pause { ms }).collect(),
            Step::Open { connection, crc, private, markers, enhanced, rtr } => {
                let plain = [
                    Step::Open { connection, crc: None, private, markers, enhanced, rtr },
                    Step::Open { connection, crc, private: 0, markers, enhanced, rtr },
                    Step::Open { connection, crc, private, markers: false, enhanced, rtr },
                    Step::Open { connection, crc, private, markers, enhanced, rtr: None },
                    Step::Open { connection, crc, private, markers, enhanced: false, rtr: None },
                ];
                let of = |private| Step::Open { connection, crc, private, markers, enhanced, rtr };
                let sizes = smaller(private).map(of);
                plain.into_iter().chain(sizes).filter(|step| *step != self).collect()
            }
            Step::Sdp(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Sdp).collect(),
            Step::Drive(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Drive).collect(),
            Step::Agent(step) => step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Agent).collect(),
            Step::Portmap(step) => {
                step.simpler(|value| smaller(value).collect()).into_iter().map(Step::Portmap).collect()
            }
            Step::Answers { .. } | Step::Close { .. } | Step::Reset { .. } | Step::UseOthers { .. } => Vec::new(),
        }
    }
}

/// Replaces a step by its simplest step until no step is simpler, and returns the last step. Fails
/// if this does not end.
#[cfg(test)]
pub(super) fn assert_simpler_steps_end(mut step: Step) -> Step {
    for _ in 0..1000 {
        let simpler = step.simpler();
        assert!(!simpler.contains(&step), "{step}");
        let Some(next) = simpler.first() else { return step };
        step = *next;
    }
    panic!("a step has simpler steps without end: {step}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_steps_end() {
        let step = Step::Message(MessageFields {
            connection: 1,
            size: 1_000_000,
            segment: 7,
            solicited: true,
            every: 3,
            stall: 9,
            empty: true,
            descending: true,
        });
        assert_eq!(assert_simpler_steps_end(step), Step::message(1, 0, 1));
    }

    #[test]
    fn simpler_steps_of_a_kind_differ_from_the_step() {
        for step in [
            Step::Burst { connection: 1, count: 4100, size: 4, spread: 60 },
            Step::Pad { connection: 1, size: 5, value: 0xff },
            Step::Align { connection: 1, at: 24, by_target: true },
            Step::Finish { connection: 1, size: 4000, ms: 300 },
            Step::Fault { connection: 1, fault: "wrong-crc", at_once: true },
            Step::Fill { connection: 1, count: 0, more: -3, most: 4000 },
            Step::Repeat { count: 20, steps: 2 },
        ] {
            let simpler = step.simpler();
            assert!(!simpler.is_empty() && !simpler.contains(&step), "{step}");
            let kind = std::mem::discriminant(&step);
            assert!(simpler.iter().all(|step| std::mem::discriminant(step) == kind), "{step}");
        }
        assert!(Step::Fault { connection: 1, fault: "wrong-crc", at_once: false }.simpler().is_empty());
        assert!(Step::Empty { connection: 1, read: true }.simpler().is_empty());
    }

    /// Sizes and counts are halved, and end at their smallest value.
    #[test]
    fn simpler_numbers_end() {
        let fill = Step::Fill { connection: 1, count: 9, more: -40, most: 4000 };
        assert_eq!(assert_simpler_steps_end(fill), Step::Fill { connection: 1, count: 0, more: 0, most: 4000 });
        assert!(fill.simpler().contains(&Step::Fill { connection: 1, count: 9, more: -20, most: 4000 }));
        let repeat = Step::Repeat { count: 60, steps: 2 };
        assert!(repeat.simpler().contains(&Step::Repeat { count: 30, steps: 2 }));
        assert_eq!(assert_simpler_steps_end(repeat), Step::Repeat { count: 1, steps: 2 });
    }

    /// The simplest steps of a reduction. A Response in one call has no other message between its
    /// segments, so it is the simplest Response.
    #[test]
    fn simpler_announcements_and_requests_end() {
        let announce = Step::Announce { connection: 1, size: 60_000, segment: 9, to: 1 << 40, empty: true };
        let request =
            Step::Request { crc: Some(true), private: 508, markers: true, depths: Some([0, 16]), rtr: [true; 3] };
        for (step, simplest) in [
            (announce, "s:announce(1, { size = 0, segment = 1, to = 0x0 })"),
            (Step::Respond { connection: 2, count: 7 }, "s:respond(2)"),
            (request, "s:request {}"),
        ] {
            assert_eq!(assert_simpler_steps_end(step).to_string(), simplest);
        }
    }
}
