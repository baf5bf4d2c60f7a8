//! Learned behaviour: infers the state machine of a target's start-up and teardown from the outside,
//! by playing sequences of inputs and observing the outputs. Nothing is judged.
//!
//! | file | content |
//! | --- | --- |
//! | `alphabet` | the inputs |
//! | `learner` | the algorithm: infers a Mealy machine from sequences of inputs and their outputs |
//! | `machine` | the learned machine, its difference from another machine, and its forms: JSON, DOT |
//! | `player` | plays a sequence of inputs with a target |
//! | `script` | the Lua case of a sequence |
//!
//! The module `learn` of the Lua library plays the inputs and describes the outputs.
//!
//! Limits: a machine shows only what the inputs of the alphabet cause. A target with random or
//! time-dependent outputs cannot be learned. weft then reports the sequence with different outputs.
//! If the tests find no sequence that contradicts the machine, the machine may still lack states.

mod alphabet;
mod learner;
mod machine;
mod player;
mod script;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

pub use alphabet::{Input, inputs};
pub use machine::{Difference, Machine, MachineError, State, Transition};
pub use script::difference_case;

use self::learner::{DIES, Learner, Step};
use self::player::{Played, Player};
use crate::run::{RunError, random_seed};
use crate::targets::Target;

/// Sequences that may be repeated because of a different output, before the target counts as random.
const MAX_REPEATED: u64 = 3;
/// One more such sequence is permitted for this number of sequences.
const PLAYED_FOR_EACH_REPEATED: u64 = 100;

/// How to learn.
#[derive(Debug, Clone)]
pub struct LearnOptions {
    /// The target: a responder or an initiator over TCP or in process.
    pub target: Target,
    /// The inputs, from [`inputs`] of the target.
    pub inputs: Vec<&'static Input>,
    /// How long the target must be silent before the next input is sent.
    pub silence: Duration,
    /// Number of random sequences that must agree with the machine before learning ends.
    pub tests: u32,
    /// Maximum number of states. A target with more states is not learned.
    pub max_states: usize,
    /// Seed of the random sequences. If it is `None`, weft draws a random seed.
    pub seed: Option<u64>,
    /// Folder for the evidence of the current sequence. It is removed at the end.
    pub scratch: PathBuf,
    /// Becomes `true` when learning shall stop.
    pub cancel: Option<watch::Receiver<bool>>,
}

/// Counts of the learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LearnProgress {
    /// Number of sequences that were played.
    pub played: u64,
    /// Number of sequences that were played again, because their first outputs contradicted earlier
    /// outputs.
    pub repeated: u64,
    /// Number of states of the current machine.
    pub states: usize,
    /// Number of random sequences since the last change of the machine.
    pub tested: u32,
}

/// A learned machine, and how it was learned.
#[derive(Debug, Clone)]
pub struct Learned {
    /// The machine.
    pub machine: Machine,
    /// The seed of the random sequences.
    pub seed: u64,
    /// The counts at the end.
    pub progress: LearnProgress,
}

/// Why a target was not learned.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The target's service has no start-up of MPA.
    #[error("{0} has the service {1}; weft learn needs a target with MPA start-up: service echo, rping or none")]
    Service(String, &'static str),
    /// A sequence had no outputs.
    #[error("the sequence [{}] had no outputs: {why}", inputs.join(", "))]
    NoOutputs {
        /// The sequence.
        inputs: Vec<&'static str>,
        /// The reason.
        why: String,
    },
    /// The same sequence had different outputs.
    #[error(
        "the target does not always answer in the same way: after [{}], its output was {first:?} and then {second:?}; \
         use a longer --silence, or remove inputs with --without",
        inputs.join(", ")
    )]
    Random {
        /// The sequence. The outputs of its last input differ.
        inputs: Vec<&'static str>,
        /// An output of the last input.
        first: String,
        /// Another output of the last input.
        second: String,
    },
    /// The target has too many states.
    #[error(
        "the target has more than {0} states for these inputs; remove inputs with --without, or use a larger --states"
    )]
    States(usize),
    /// The user interrupted the learning.
    #[error("learning was interrupted")]
    Interrupted,
    /// The tester cannot work.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Learns the state machine of a target. Calls `progress` after each sequence.
///
/// # Errors
/// The target cannot be learned, or the tester cannot work.
pub async fn learn(options: &LearnOptions, mut progress: impl FnMut(&LearnProgress)) -> Result<Learned, LearnError> {
    let seed = options.seed.unwrap_or_else(random_seed);
    let player = Player::open(&options.target, options.silence, options.scratch.clone(), seed).await?;
    let learned = drive(options, &player, seed, &mut progress).await;
    player.close();
    learned
}

async fn drive(
    options: &LearnOptions,
    player: &Player,
    seed: u64,
    progress: &mut impl FnMut(&LearnProgress),
) -> Result<Learned, LearnError> {
    let names: Vec<&'static str> = options.inputs.iter().map(|input| input.name).collect();
    let of = |word: &[usize]| -> Vec<&'static str> { word.iter().map(|symbol| names[*symbol]).collect() };
    let probes = (0..names.len()).filter(|index| options.inputs[*index].is_probe).collect();
    let mut learner = Learner::new(names.len(), probes, options.tests, options.max_states, seed);
    let mut counts = LearnProgress::default();
    let mut greeting = None;
    loop {
        let word = match learner.next() {
            Step::Play(word) => word,
            Step::TooManyStates => return Err(LearnError::States(options.max_states)),
            Step::Done(states) => {
                let machine = Machine::new(
                    &options.target,
                    &options.inputs,
                    greeting.unwrap_or_default(),
                    player.is_enhanced(),
                    states,
                );
                return Ok(Learned { machine, seed, progress: counts });
            }
        };
        if options.cancel.as_ref().is_some_and(|cancel| *cancel.borrow()) {
            return Err(LearnError::Interrupted);
        }
        let Played { mut outputs, has_died } = player.play(&of(&word)).await?;
        counts.played += 1;
        if has_died {
            let (shorter, outputs) = first_death(player, &learner, &word, &of, &mut counts).await?;
            learner.learn(&shorter, &outputs);
            progress(&counts);
            continue;
        }
        if let Some(at) = learner.contradicts(&word, &outputs[1..]) {
            // A slow answer may have been counted as the output of the next input. The second
            // attempt decides, unless this happens often.
            let (known, other) = (learner.known(&word[..=at]), outputs[at + 1].clone());
            outputs = player.play(&of(&word)).await?.outputs;
            counts.played += 1;
            counts.repeated += 1;
            let is_frequent = counts.repeated > MAX_REPEATED + counts.played / PLAYED_FOR_EACH_REPEATED;
            if is_frequent || learner.contradicts(&word, &outputs[1..]).is_some() {
                return Err(LearnError::Random { inputs: of(&word[..=at]), first: known, second: other });
            }
        }
        greeting.get_or_insert_with(|| outputs[0].clone());
        learner.learn(&word, &outputs[1..]);
        (counts.states, counts.tested) = (learner.states(), learner.tested());
        progress(&counts);
    }
}

/// Finds the input of a word that makes the target die. Returns the word up to this input, and its
/// outputs. The last output is [`DIES`].
async fn first_death(
    player: &Player,
    learner: &Learner,
    word: &[usize],
    of: &impl Fn(&[usize]) -> Vec<&'static str>,
    counts: &mut LearnProgress,
) -> Result<(Vec<usize>, Vec<String>), LearnError> {
    // The target has survived the known part of the word.
    for len in learner.known_len(word) + 1..word.len() {
        let Played { outputs, has_died } = player.play(&of(&word[..len])).await?;
        counts.played += 1;
        if has_died {
            return Ok((word[..len].to_vec(), dying(learner, &word[..len], &outputs)));
        }
    }
    Ok((word.to_vec(), dying(learner, word, &[])))
}

/// Returns the outputs of a word whose last input makes the target die.
fn dying(learner: &Learner, word: &[usize], played: &[String]) -> Vec<String> {
    let of = |at: usize| match at + 1 == word.len() {
        true => DIES.to_owned(),
        false => played
            .get(at + 1)
            .cloned()
            .filter(|output| !output.is_empty())
            .unwrap_or_else(|| learner.known(&word[..=at])),
    };
    (0..word.len()).map(of).collect()
}
