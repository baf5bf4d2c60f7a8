//! The worker threads: one for the runs inside weft's process, one for the runs over TCP.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;
use std::{io, thread};

use weft_peer::driver::soak::SoakPair;
use weft_peer::hostile::mangle::Plan;
use weft_peer::soak::play;

use super::Transport;
use crate::runtime;

/// Whether any thread or task has panicked. This includes tasks whose results weft does not read.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The work of a worker thread.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) over: Transport,
    /// Seed of the first run.
    pub(super) first: u64,
    /// Maximum number of runs.
    pub(super) runs: Option<u64>,
    /// The time after which no further run starts.
    pub(super) until: Instant,
    /// How to damage the traffic.
    pub(super) plan: Option<Plan>,
    /// Number of connections at a time over TCP.
    pub(super) lanes: u8,
}

/// The result of a run.
pub(super) enum Outcome {
    /// All checks passed.
    Played {
        /// How the endpoints were connected.
        over: Transport,
        /// Number of bytes that the endpoints received. Always 0 over TCP, because weft does not
        /// count these bytes there.
        octets: u64,
    },
    /// A check failed.
    Broken {
        /// How the endpoints were connected.
        over: Transport,
        /// The seed that replays the run.
        seed: u64,
        /// The failure.
        why: String,
    },
}

/// Starts a worker thread. It ends after the last run, or when a check fails.
pub(super) fn start(work: Work, sender: Sender<Outcome>) -> io::Result<()> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::SeqCst);
        hook(info);
    }));
    let thread = thread::Builder::new();
    match work.over {
        Transport::Virtual => thread.spawn(move || in_process(&work, &sender)),
        Transport::Tcp => thread.spawn(move || over_tcp(&work, &sender)),
    }?;
    Ok(())
}

impl Work {
    /// Returns the seeds of the runs. When the time is over, the iterator returns no more seeds. A
    /// single run (`--runs 1`) always starts.
    fn seeds(&self) -> impl Iterator<Item = u64> + use<'_> {
        let all = 0..self.runs.unwrap_or(u64::MAX);
        all.map(|run| self.first.wrapping_add(run)).take_while(|_| self.runs == Some(1) || Instant::now() < self.until)
    }
}

/// Runs pairs of endpoints inside weft's process until the work is done.
fn in_process(work: &Work, sender: &Sender<Outcome>) {
    let over = Transport::Virtual;
    for seed in work.seeds() {
        let played = panic::catch_unwind(AssertUnwindSafe(|| play(seed, work.plan.as_ref())));
        let (outcome, ends) = match played {
            Ok(Ok(played)) => (Outcome::Played { over, octets: played.octets }, false),
            Ok(Err(error)) => (Outcome::Broken { over, seed, why: error.to_string() }, true),
            Err(_) => (Outcome::Broken { over, seed, why: panic_text() }, true),
        };
        // After a failure, the receiver can be gone.
        if sender.send(outcome).is_err() || ends {
            return;
        }
    }
}

/// Runs endpoints over TCP until the work is done. Each lane is a task with one connection at a
/// time.
fn over_tcp(work: &Work, sender: &Sender<Outcome>) {
    let plan = work.plan.clone().unwrap_or_else(Plan::all);
    let lanes = if work.runs == Some(1) { 1 } else { work.lanes };
    let played = runtime::on_one_thread(async {
        let mut tasks = tokio::task::JoinSet::new();
        for lane in 0..u64::from(lanes) {
            // The seeds of the lanes are so far apart that no two runs have the same seed.
            let first = work.first.wrapping_add(lane << 40);
            let (work, plan, sender) = (Work { first, ..work.clone() }, plan.clone(), sender.clone());
            tasks.spawn(async move { run_lane(&work, &plan, &sender).await });
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    });
    if let Err(error) = played {
        let _ = sender.send(Outcome::Broken { over: Transport::Tcp, seed: work.first, why: error.to_string() });
    }
}

/// The message for a panic. The panic hook has already printed the details.
fn panic_text() -> String {
    "weft panicked; the message is above".to_owned()
}

/// Runs the connections of a lane, one after the other.
async fn run_lane(work: &Work, plan: &Plan, sender: &Sender<Outcome>) {
    let over = Transport::Tcp;
    let mut pair = match SoakPair::new(plan, work.first) {
        Ok(pair) => pair,
        Err(error) => {
            let _ = sender.send(Outcome::Broken { over, seed: work.first, why: error.to_string() });
            return;
        }
    };
    for seed in work.seeds() {
        // Play in a separate task, because the runtime reports a panic of a separate task as an
        // error.
        let played = tokio::spawn(async move {
            let played = pair.play().await;
            (pair, played)
        });
        let why = match played.await {
            Ok((same, played)) => {
                pair = same;
                let panicked = PANICKED.load(Ordering::SeqCst);
                played.err().map(|error| error.to_string()).or_else(|| panicked.then(panic_text))
            }
            Err(_) => {
                let _ = sender.send(Outcome::Broken { over, seed, why: panic_text() });
                return;
            }
        };
        let ends = why.is_some();
        let outcome = why.map_or(Outcome::Played { over, octets: 0 }, |why| Outcome::Broken { over, seed, why });
        if sender.send(outcome).is_err() || ends {
            return;
        }
    }
}
