//! A [`World`] has two endpoints with RNICs, the wire between them, and a capture of the traffic.

use std::time::Duration;

use weft_core::wire::rdmap::TerminateError;
use weft_peer::verbs::CompletionStatus;
use weft_peer::{Deviations, Instant};

use crate::hostile::capture::Capture;
use crate::hostile::side::{DEPTH, Put, Side, Wants};

pub(crate) struct World {
    pub(crate) now: Instant,
    /// The Initiator and the Responder.
    pub(crate) sides: [Side; 2],
    pub(crate) capture: Capture,
}

/// The default settings of an end. They use the enhanced set-up, which negotiates IRD and ORD.
pub(crate) fn wants(deviations: &Deviations) -> Wants {
    let mut mpa = weft_peer::mpa::MpaSettings { enhanced: weft_peer::mpa::EnhancedUse::Request, ..Default::default() };
    mpa.enhanced_settings.ird = weft_peer::mpa::Depth::negotiated(DEPTH);
    mpa.enhanced_settings.ord = weft_peer::mpa::Depth::negotiated(DEPTH);
    mpa.enhanced_settings.max_ird = DEPTH;
    Wants { mpa, private_data: Default::default(), emss: 1460, deviations: deviations.clone() }
}

impl World {
    pub(crate) fn new(initiator: &Deviations, responder: &Deviations) -> Self {
        World::with(wants(initiator), wants(responder))
    }

    pub(crate) fn with(initiator: Wants, responder: Wants) -> Self {
        let capture = Capture::connected(initiator.emss);
        World { now: Instant::ORIGIN, sides: [Side::initiator(initiator), Side::responder(responder)], capture }
    }

    /// Delivers all output until both ends send nothing more.
    pub(crate) fn run(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            for from in 0..2 {
                while let Some(put) = self.sides[from].put(self.now) {
                    moved = true;
                    let to = &mut self.sides[1 - from];
                    match put {
                        Put::Octets(octets) if octets.is_empty() => {}
                        Put::Octets(octets) => {
                            self.capture.octets(from, &octets);
                            to.octets(self.now, &octets);
                        }
                        Put::Fin => {
                            self.capture.fin(from);
                            to.fin(self.now);
                        }
                        Put::Reset => {
                            self.capture.reset(from);
                            to.reset(self.now);
                        }
                    }
                }
            }
            if !moved {
                return;
            }
        }
        panic!("the two ends never fall silent");
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        for side in &mut self.sides {
            side.pass(self.now);
        }
        self.run();
    }

    /// Returns the error of the Terminate that each end sent or received.
    pub(crate) fn terminates(&self) -> [Option<TerminateError>; 2] {
        [0, 1].map(|end| self.sides[end].terminate().map(|(error, _)| error))
    }

    /// Returns the results that the users of both ends get.
    pub(crate) fn outcome(&mut self) -> String {
        let of = |side: &mut Side| {
            let memory = weft_core::crc::crc32c(side.memory());
            let completions: Vec<String> = side
                .completions
                .iter()
                .filter(|c| c.status != CompletionStatus::Flushed)
                .map(|c| {
                    format!("{:?}/{:?}/{}/{:?}/{:?}", c.operation, c.status, c.octets, c.original_value, c.invalidated)
                })
                .collect();
            format!("{:?} {:?} {memory:08x} {completions:?}", side.state(), side.terminate())
        };
        let [a, b] = &mut self.sides;
        format!("{}\n{}\n{:?}", of(a), of(b), self.capture.ends)
    }
}
