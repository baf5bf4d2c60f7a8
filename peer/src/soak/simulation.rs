//! The simulation of a run. It consists of two endpoints, the traffic in both directions, and the
//! clock.

use core::time::Duration;
use std::collections::VecDeque;

use fastrand::Rng;

use super::builtin::BuiltinEndpoint;
use super::endpoint::Endpoint;
use super::rnic::RnicEndpoint;
use super::{GuardedMemory, MemoryViolation};
use crate::connection::{Settings, Transmit};
use crate::hostile::mangle::{Frequency, Kind, Mangler, Mangling, Plan};
use crate::hostile::{self, Deviations};
use crate::mpa::{Depth, EnhancedUse, Model, MpaSettings, PrivateData, Rnic, Rtr, RtrKinds};
use crate::time::Instant;

/// Latency of each direction.
const LATENCY: Duration = Duration::from_micros(20);
/// A sender waits while at least this number of bytes is in flight in its direction.
const WINDOW: usize = 1 << 18;
/// Time at which a user begins to close the connection.
const CLOSED: Duration = Duration::from_secs(20);
/// The connections of both endpoints have to be over before this time. This time is longer than the
/// sum of all time-outs and of all delays by a mangler.
const DEADLINE: Duration = Duration::from_secs(3600);
/// Maximum number of steps of a run. A normal run has some thousands of steps.
const STEPS: u64 = 1_000_000;

/// A description of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// The endpoints and their settings, as text.
    pub description: String,
    /// Number of bytes that arrived at either endpoint.
    pub octets: u64,
    /// Number of steps of the simulation.
    pub steps: u64,
    /// Duration of the run on its virtual clock.
    pub took: Duration,
}

/// A failed check of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SoakError {
    /// An endpoint could not be created.
    #[error("cannot create an endpoint: {0}")]
    NoEndpoint(String),
    /// The connection does not end.
    #[error("the connection has not ended after {after:?} ({description})")]
    Hang {
        /// Time since the start of the run, on the clock of the run.
        after: Duration,
        /// What hangs, and the description of the run.
        description: String,
    },
    /// The memory checks of an endpoint failed.
    #[error("endpoint {end}: {violation}")]
    Memory {
        /// The endpoint: 0 is the Initiator, and 1 is the Responder.
        end: usize,
        /// What is wrong with the memory.
        violation: MemoryViolation,
    },
    /// An endpoint leaked a resource.
    #[error("endpoint {end} leaks a resource: {error}")]
    Leak {
        /// The endpoint: 0 is the Initiator, and 1 is the Responder.
        end: usize,
        /// The error of the verb that frees the resource.
        error: String,
    },
}

/// One direction. It contains what an endpoint has sent and the peer has not received yet.
#[derive(Debug)]
struct Channel {
    mangler: Option<Mangler>,
    queue: VecDeque<(Instant, Transmit)>,
    octets: usize,
}

/// Plays the run of a seed. If `plan` is present, it replaces the plan that the seed determines.
///
/// # Errors
/// A check of the run failed. The function panics only if an endpoint panics.
pub fn play(seed: u64, plan: Option<&Plan>) -> Result<RunReport, SoakError> {
    let (mut simulation, description) = draw_run(seed, plan).map_err(SoakError::NoEndpoint)?;
    let deviates = simulation.deviates;
    simulation.run().map_err(|why| SoakError::Hang {
        after: simulation.now.since_origin(),
        description: format!("{why}; {description}"),
    })?;
    for (end, deviates) in deviates.into_iter().enumerate() {
        if !deviates {
            simulation.ends[end].check().map_err(|violation| SoakError::Memory { end, violation })?;
        }
    }
    let (octets, steps, took) = (simulation.octets, simulation.steps, simulation.now.since_origin());
    if let Some((end, violation)) = simulation.violation.filter(|(end, _)| !deviates[*end]) {
        return Err(SoakError::Memory { end, violation });
    }
    for (end, one) in simulation.ends.into_iter().enumerate().filter(|(end, _)| !deviates[*end]) {
        one.release().map_err(|error| SoakError::Leak { end, error })?;
    }
    Ok(RunReport { description, octets, steps, took })
}

fn after(duration: Duration) -> Instant {
    Instant::ORIGIN + duration
}

struct Simulation {
    rng: Rng,
    now: Instant,
    ends: [Box<dyn Endpoint>; 2],
    /// The direction from the Initiator, then the direction from the Responder.
    channels: [Channel; 2],
    /// When the users perform actions.
    action_times: VecDeque<Instant>,
    /// When each user closes the connection.
    close_times: [Instant; 2],
    octets: u64,
    steps: u64,
    violation: Option<(usize, MemoryViolation)>,
    deviates: [bool; 2],
}

impl Simulation {
    /// Plays the run until both endpoints are over.
    fn run(&mut self) -> Result<(), String> {
        let mut closed = [false; 2];
        while self.steps < STEPS {
            self.steps += 1;
            (0..2).for_each(|end| self.collect_output(end));
            if self.ends.iter().all(|end| end.is_over()) && self.channels.iter().all(|channel| channel.queue.is_empty())
            {
                return Ok(());
            }
            let hangs = || {
                // An endpoint with deviations can keep a connection open that it should close.
                let hangs = |end: &usize| !self.deviates[*end] && !self.ends[*end].is_over();
                (0..2).filter(hangs).map(|end| format!("the connection of endpoint {end} has not ended")).next()
            };
            let user = self.action_times.front().copied();
            let closing = (0..2).filter(|end| !closed[*end]).map(|end| self.close_times[end]);
            let next = (0..2).filter_map(|end| self.next(end)).chain(user).chain(closing).min();
            let Some(next) = next else {
                return hangs().map_or(Ok(()), |hangs| Err(format!("no event is due, but {hangs}")));
            };
            if next > after(DEADLINE) {
                return hangs().map_or(Ok(()), Err);
            }
            self.now = self.now.max(next);
            if self.action_times.pop_front_if(|at| *at <= self.now).is_some() {
                let remotes = [self.ends[1].remote(), self.ends[0].remote()];
                for (end, remote) in self.ends.iter_mut().zip(remotes) {
                    end.perform_action(&mut self.rng, remote.as_ref());
                }
            }
            for (end, closed) in closed.iter_mut().enumerate() {
                if !*closed && self.close_times[end] <= self.now {
                    *closed = true;
                    self.ends[end].close(self.now);
                }
                self.handle(end);
            }
        }
        Err(format!("stopped after {STEPS} steps"))
    }

    /// Returns when the next event is due at an endpoint, or at the mangler of its output.
    fn next(&self, end: usize) -> Option<Instant> {
        let reads = self.ends[end].reads();
        let arrival = self.channels[1 - end].queue.front().map(|(at, _)| *at).filter(|_| reads);
        let channel = &self.channels[end];
        let mangled = channel.mangler.as_ref().filter(|_| channel.octets < WINDOW).and_then(Mangler::poll_timeout);
        [arrival, self.ends[end].poll_timeout(), mangled].into_iter().flatten().min()
    }

    /// Handles everything that is due at an endpoint.
    fn handle(&mut self, end: usize) {
        while self.ends[end].reads()
            && let Some((_, arrived)) = self.channels[1 - end].queue.pop_front_if(|(at, _)| *at <= self.now)
        {
            if let Transmit::Octets(octets) = &arrived {
                self.channels[1 - end].octets -= octets.len();
                self.octets += octets.len() as u64;
                if self.ends[end].is_over() {
                    // The endpoint's connection is over, so the endpoint's host answers with a
                    // reset.
                    let reset = (self.now + LATENCY, Transmit::Reset);
                    let channel = &mut self.channels[end];
                    if !channel.queue.iter().any(|(_, transmit)| matches!(transmit, Transmit::Reset)) {
                        channel.queue.push_back(reset);
                    }
                    continue;
                }
            }
            self.ends[end].arrived(self.now, &arrived);
            self.collect_output(end);
        }
        if self.ends[end].poll_timeout().is_some_and(|at| at <= self.now) {
            self.ends[end].handle_timeout(self.now);
        }
    }

    /// Takes everything that an endpoint sends, up to the window.
    fn collect_output(&mut self, end: usize) {
        let (now, channel) = (self.now, &mut self.channels[end]);
        while channel.octets < WINDOW {
            let transmit = match &mut channel.mangler {
                None => self.ends[end]
                    .transmit(now, &mut self.rng)
                    .inspect(|sent| Self::check_sent(&mut self.violation, end, sent)),
                Some(mangler) => {
                    while mangler.has_room()
                        && let Some(transmit) = self.ends[end].transmit(now, &mut self.rng)
                    {
                        Self::check_sent(&mut self.violation, end, &transmit);
                        mangler.push(now, transmit);
                    }
                    mangler.poll(now)
                }
            };
            let Some(transmit) = transmit else { return };
            if let Transmit::Octets(octets) = &transmit {
                channel.octets += octets.len();
            }
            channel.queue.push_back((now + LATENCY, transmit));
        }
    }

    /// Checks that an endpoint sends no byte of memory that its peer may not read.
    fn check_sent(violation: &mut Option<(usize, MemoryViolation)>, end: usize, sent: &Transmit) {
        if let Transmit::Octets(octets) = sent
            && let Err(found) = GuardedMemory::check_sent(octets)
        {
            violation.get_or_insert((end, found));
        }
    }
}

/// Draws a run. Returns the run and its description.
fn draw_run(seed: u64, plan: Option<&Plan>) -> Result<(Simulation, String), String> {
    let now = Instant::ORIGIN;
    let mut generator = Rng::with_seed(seed);
    let rng = &mut generator;
    let is_rnic = [rng.u32(0..3) > 0, rng.u32(0..3) > 0];
    let emss = *rng.choice(&[128, 536, 1460, 8960, 65_495]).unwrap_or(&1460);
    // The number of the endpoint whose output is not mangled. The value 2 means that the outputs of
    // both endpoints are mangled.
    let who = rng.u32(0..3);
    let mut mangling = |end: u32| {
        let plan = plan.cloned().unwrap_or_else(|| draw_plan(rng));
        let longest = *rng.choice(&[1, 100, 3000, 15_000]).unwrap_or(&1);
        let longest_delay = Duration::from_millis(longest);
        (who != end).then(|| Mangling { longest_delay, ..Mangling::new(plan, seed.rotate_left(32) ^ u64::from(end)) })
    };
    let manglings = [mangling(0), mangling(1)];
    let deviations = [deviations(rng), deviations(rng)];
    let mpa = [draw_mpa(rng), draw_mpa(rng)];
    let data = [private_data(rng), private_data(rng)];
    let [first, second] = is_rnic.map(|is_rnic| if is_rnic { "RNIC" } else { "builtin" });
    let plans = manglings.each_ref().map(|mangling| mangling.as_ref().map(|mangling| mangling.plan.to_string()));
    let description = format!("{first} to {second}, EMSS {emss}, mangled {plans:?}, deviations {deviations:?}");
    let end = |rng: &mut Rng, end: usize| -> Result<Box<dyn Endpoint>, String> {
        let initiates = end == 0;
        if is_rnic[end] {
            let made = RnicEndpoint::new(now, rng, mpa[end], initiates, data[end].clone(), &deviations[end], emss)?;
            return Ok(Box::new(made));
        }
        let settings = Settings {
            mpa: mpa[end],
            emss,
            deviations: deviations[end].clone(),
            private_data: data[end].clone(),
            ..Settings::default()
        };
        let made = if initiates {
            BuiltinEndpoint::initiator(now, settings).map_err(|error| error.to_string())?
        } else {
            BuiltinEndpoint::responder(now, settings)
        };
        Ok(Box::new(made))
    };
    let ends = [end(rng, 0)?, end(rng, 1)?];
    let manglers = manglings.map(|mangling| mangling.map(|mangling| mangling.mangler(0)));
    let channels = manglers.map(|mangler| Channel { mangler, queue: VecDeque::new(), octets: 0 });
    let mut action_times: Vec<Instant> =
        (0..rng.u32(1..=6)).map(|_| after(Duration::from_millis(rng.u64(0..3000)))).collect();
    action_times.sort_unstable();
    let close_times = [after(CLOSED), after(CLOSED + Duration::from_secs(rng.u64(0..2)))];
    let simulation = Simulation {
        rng: generator,
        now,
        ends,
        channels,
        action_times: action_times.into(),
        close_times,
        octets: 0,
        steps: 0,
        violation: None,
        deviates: deviations.map(|set| !set.is_empty()),
    };
    Ok((simulation, description))
}

/// Draws a plan for a mangler. The plan has each kind of mangling with a probability of one half.
/// The rate of each kind is also random.
fn draw_plan(rng: &mut Rng) -> Plan {
    let mut plan = Plan::default();
    for kind in Kind::ALL {
        let ends = matches!(kind, Kind::HalfClose | Kind::Reset);
        if rng.bool() {
            plan.set(kind, Frequency::OneIn(if ends { rng.u32(10..500) } else { 1 << rng.u32(1..9) }));
        }
    }
    plan
}

/// Draws a set of deviations. One set in eight has at least one deviation.
fn deviations(rng: &mut Rng) -> Deviations {
    let mut set = Deviations::NONE;
    while rng.u32(0..8) == 0 {
        let all: Vec<_> = hostile::all().collect();
        if let Some(one) = rng.choice(&all) {
            set.insert(one);
        }
    }
    set
}

/// Draws the MPA settings of an endpoint.
pub(crate) fn draw_mpa(rng: &mut Rng) -> MpaSettings {
    let kinds = [Rtr::Send, Rtr::Write, Rtr::Read];
    let kind = kinds[rng.usize(0..3)];
    let mut mpa = MpaSettings { crc: rng.u32(0..4) > 0, markers: rng.u32(0..3) == 0, ..MpaSettings::default() };
    match rng.u32(0..8) {
        0..=3 => mpa.enhanced = EnhancedUse::Request,
        4 => mpa.agreed_rtr = Some(kind),
        5 => mpa.rnic = Rnic::PermissiveIetf,
        6 => mpa.rnic = Rnic::Rdmac,
        _ => {}
    }
    let enhanced = &mut mpa.enhanced_settings;
    if rng.bool() {
        enhanced.model = Model::PeerToPeer;
        enhanced.preferred_rtr = kind;
        if rng.bool() {
            enhanced.rtr = RtrKinds::only(kind);
        }
    }
    let depth = |rng: &mut Rng| if rng.u32(0..6) == 0 { Depth::fixed(8) } else { Depth::negotiated(rng.u16(0..=20)) };
    (enhanced.ird, enhanced.ord) = (depth(rng), depth(rng));
    mpa
}

fn private_data(rng: &mut Rng) -> PrivateData {
    let length = *rng.choice(&[0, 0, 0, 5, 300, 508]).unwrap_or(&0);
    PrivateData::new(vec![0x5a; length]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        for seed in 0..20 {
            assert_eq!(play(seed, None), play(seed, None), "seed {seed}");
        }
    }

    /// This soak is short. A separate command runs long soaks.
    #[test]
    fn nothing_breaks_whatever_arrives() {
        for seed in 1000..1500 {
            if let Err(error) = play(seed, None) {
                panic!("seed {seed}: {error}");
            }
        }
    }
}
