//! Learned behaviour: infers the state machine of a target's start-up and teardown from the outside,
//! by playing sequences of inputs and observing the outputs. Nothing is judged.
//!
//! | file | content |
//! | --- | --- |
//! | `alphabet` | the inputs |
//! | `learner` | the algorithm: infers a Mealy machine from sequences of inputs and their outputs |
//! | `machine` | the learned machine, its difference from another machine, and its forms: JSON, DOT |
//! | `player` | plays a sequence of inputs with a target |
//! | `script` | the Lua case of a sequence, and the Lua cases of a difference |
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
pub use script::difference_cases;

use self::learner::{DIES, Learner, Step};
use self::player::{Played, Player};
use crate::run::{RunError, random_seed};
use crate::targets::Target;

/// Sequences that may be repeated because of a different output, before the target counts as random.
const MAX_REPEATED: u64 = 3;
/// One more such sequence is permitted for this number of sequences.
const PLAYED_FOR_EACH_REPEATED: u64 = 100;

/// A target must not answer an input later than `silence`. The check waits this many times longer.
const PATIENCE: u32 = 4;

/// How to learn.
#[derive(Debug, Clone)]
pub struct LearnOptions {
    /// The target: a responder or an initiator, over TCP or inside weft's process.
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
    #[error("{0} has the service {1}; weft learn needs a target with MPA start-up: service `echo`, `rping` or `none`")]
    Service(String, &'static str),
    /// A sequence had no outputs.
    #[error(
        "the sequence [{}] had no outputs: {why} If the target answers slowly, use a longer --silence.",
        inputs.join(", ")
    )]
    NoOutputs {
        /// The sequence.
        inputs: Vec<&'static str>,
        /// The reason.
        why: String,
    },
    /// The same sequence had different outputs.
    #[error(
        "{target} does not always answer in the same way: after [{}], its output was {first:?} and then {second:?}; \
         use a longer --silence, or remove inputs with --without",
        inputs.join(", ")
    )]
    Random {
        /// Name of the target.
        target: String,
        /// The sequence. The outputs of its last input differ.
        inputs: Vec<&'static str>,
        /// An output of the last input.
        first: String,
        /// Another output of the last input.
        second: String,
    },
    /// The target answers later than `silence`.
    #[error(
        "the target answers `{input}` after more than {} ms; use a longer --silence, such as {}",
        silence.as_millis(), silence.as_millis() * u128::from(PATIENCE)
    )]
    Slow {
        /// The input.
        input: &'static str,
        /// The permitted silence.
        silence: Duration,
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

/// The learning of one target. It can continue after the machine is complete.
pub struct Learning {
    player: Player,
    learner: Learner,
    inputs: Vec<&'static Input>,
    options: LearnOptions,
    seed: u64,
    counts: LearnProgress,
    greeting: Option<String>,
}

impl Learning {
    /// Opens the target. Sends nothing to it.
    ///
    /// # Errors
    /// The target has no start-up of MPA, or cannot be opened.
    pub async fn open(options: LearnOptions) -> Result<Self, LearnError> {
        let seed = options.seed.unwrap_or_else(random_seed);
        let player = Player::open(&options.target, options.silence, options.scratch.clone(), seed).await?;
        let inputs = options.inputs.clone();
        let probes = (0..inputs.len()).filter(|index| inputs[*index].is_probe).collect();
        let learner = Learner::new(inputs.len(), probes, options.tests, options.max_states, seed);
        Ok(Learning { player, learner, inputs, options, seed, counts: LearnProgress::default(), greeting: None })
    }

    /// Learns the state machine. Calls `progress` after each sequence.
    ///
    /// # Errors
    /// The target cannot be learned, or the tester cannot work.
    pub async fn learn(&mut self, progress: &mut impl FnMut(&LearnProgress)) -> Result<Learned, LearnError> {
        if self.greeting.is_none() {
            self.check_silence().await?;
        }
        loop {
            let word = match self.learner.next() {
                Step::Play(word) => word,
                Step::TooManyStates => return Err(LearnError::States(self.options.max_states)),
                Step::Done(states) => {
                    let greeting = self.greeting.clone().unwrap_or_default();
                    let is_enhanced = self.player.is_enhanced();
                    let machine = Machine::new(&self.options.target, &self.inputs, greeting, is_enhanced, states);
                    return Ok(Learned { machine, seed: self.seed, progress: self.counts });
                }
            };
            self.play(&word).await?;
            progress(&self.counts);
        }
    }

    /// Plays these sequences, and corrects the machine if their outputs contradict it. Ignores
    /// sequences with inputs that are not used for this target.
    ///
    /// # Errors
    /// The errors of [`learn`](Self::learn).
    pub async fn verify(
        &mut self,
        sequences: impl IntoIterator<Item = &[String]>,
        progress: &mut impl FnMut(&LearnProgress),
    ) -> Result<Learned, LearnError> {
        let place = |name: &String| self.inputs.iter().position(|input| input.name == name.as_str());
        let words: Vec<Vec<usize>> =
            sequences.into_iter().filter_map(|names| names.iter().map(place).collect::<Option<Vec<usize>>>()).collect();
        self.learner.demand(words);
        self.learn(progress).await
    }

    /// Removes the evidence of the last sequence.
    pub fn close(self) {
        self.player.close();
    }

    fn names(&self, word: &[usize]) -> Vec<&'static str> {
        word.iter().map(|symbol| self.inputs[*symbol].name).collect()
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancel.as_ref().is_some_and(|cancel| *cancel.borrow())
    }

    /// Plays each input with a longer silence, and again with the normal silence. If only the first
    /// output is complete, the target answers too late for the normal silence. Each late output
    /// would then be taken for the output of the next input.
    async fn check_silence(&mut self) -> Result<(), LearnError> {
        if self.options.target.has_virtual_clock() {
            return Ok(());
        }
        for symbol in (0..self.inputs.len()).filter(|symbol| !self.inputs[*symbol].slow) {
            if self.is_cancelled() {
                return Err(LearnError::Interrupted);
            }
            let names = self.names(&[symbol]);
            let patient = self.player.play_within(&names, self.options.silence * PATIENCE).await?;
            if patient.has_died {
                continue;
            }
            let hasty = self.player.play(&names).await?;
            self.counts.played += 2;
            if hasty.has_died || hasty.outputs == patient.outputs {
                continue;
            }
            // A target that is only slow has the same output again.
            let again = self.player.play(&names).await?;
            if again.outputs == hasty.outputs {
                return Err(LearnError::Slow { input: names[0], silence: self.options.silence });
            }
            return Err(LearnError::Random {
                target: self.options.target.name().to_owned(),
                inputs: names,
                first: hasty.outputs.join(", "),
                second: again.outputs.join(", "),
            });
        }
        Ok(())
    }

    /// Plays a word, and stores its outputs.
    async fn play(&mut self, word: &[usize]) -> Result<(), LearnError> {
        if self.is_cancelled() {
            return Err(LearnError::Interrupted);
        }
        let names = self.names(word);
        let Played { mut outputs, has_died } = self.player.play(&names).await?;
        self.counts.played += 1;
        if has_died {
            let (shorter, outputs) = self.first_death(word).await?;
            self.learner.learn(&shorter, &outputs);
        } else {
            if let Some(at) = self.learner.contradicts(word, &outputs[1..]) {
                // A slow answer may have been counted as the output of the next input. The second
                // attempt decides, unless this happens often.
                let (known, other) = (self.learner.known(&word[..=at]), outputs[at + 1].clone());
                let again = self.player.play(&names).await?;
                self.counts.played += 1;
                self.counts.repeated += 1;
                let permitted = MAX_REPEATED + self.counts.played / PLAYED_FOR_EACH_REPEATED;
                let is_often = self.counts.repeated > permitted;
                if again.has_died && !is_often {
                    return Ok(());
                }
                outputs = again.outputs;
                if is_often || self.learner.contradicts(word, &outputs[1..]).is_some() {
                    let target = self.options.target.name().to_owned();
                    return Err(LearnError::Random {
                        target,
                        inputs: self.names(&word[..=at]),
                        first: known,
                        second: other,
                    });
                }
            }
            let greeting = self.greeting.get_or_insert_with(|| outputs[0].clone());
            if *greeting != outputs[0] {
                let (target, first) = (self.options.target.name().to_owned(), greeting.clone());
                return Err(LearnError::Random { target, inputs: Vec::new(), first, second: outputs[0].clone() });
            }
            self.learner.learn(word, &outputs[1..]);
        }
        (self.counts.states, self.counts.tested) = (self.learner.states(), self.learner.tested());
        Ok(())
    }

    /// Finds the input of a word that makes the target die. Returns the word up to this input, and its
    /// outputs. The last output is [`DIES`].
    async fn first_death(&mut self, word: &[usize]) -> Result<(Vec<usize>, Vec<String>), LearnError> {
        // The target has survived the known part of the word.
        for len in self.learner.known_len(word) + 1..word.len() {
            let Played { outputs, has_died } = self.player.play(&self.names(&word[..len])).await?;
            self.counts.played += 1;
            if has_died {
                return Ok((word[..len].to_vec(), dying(&self.learner, &word[..len], &outputs)));
            }
            self.learner.learn(&word[..len], &outputs[1..]);
        }
        Ok((word.to_vec(), dying(&self.learner, word, &[])))
    }
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
