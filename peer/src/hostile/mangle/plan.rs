//! Which changes a mangler makes, and how often. Also parses the value of `--mangle`.

use std::fmt;
use std::str::FromStr;

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A write is split into pieces.
    Cut,
    /// A write is delayed, together with everything after it.
    Delay,
    /// A PDU is sent twice.
    Duplicate,
    /// A field gets a value at the edge of its range.
    Edge,
    /// Some bits are flipped.
    Flip,
    /// The sending direction is closed in the middle of a write.
    HalfClose,
    /// Unsolicited bytes are inserted into a PDU, or between two PDUs.
    Insert,
    /// A write is sent after the next one.
    Reorder,
    /// The connection is reset in the middle of a write.
    Reset,
    /// A PDU is truncated.
    Truncate,
}

use Kind::{Cut, Delay, Duplicate, Edge, Flip, HalfClose, Insert, Reorder, Reset, Truncate};

impl Kind {
    /// All kinds, in the order of [`Plan`]'s text.
    pub const ALL: [Kind; 10] = [Flip, Edge, Truncate, Duplicate, Insert, Reorder, Cut, Delay, HalfClose, Reset];

    /// The kinds that the word `mutate` includes.
    const MUTATIONS: [Kind; 5] = [Flip, Edge, Truncate, Duplicate, Insert];

    /// Returns the word in a plan, and the default rate N: once in N PDUs or writes.
    const fn word(self) -> (&'static str, u32) {
        match self {
            Flip => ("flip", 20),
            Edge => ("edge", 20),
            Truncate => ("truncate", 50),
            Duplicate => ("duplicate", 50),
            Insert => ("insert", 50),
            Reorder => ("reorder", 50),
            Cut => ("cut", 5),
            Delay => ("delay", 20),
            HalfClose => ("half-close", 200),
            Reset => ("reset", 200),
        }
    }
}

/// How often a kind of change happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Often {
    /// Never.
    #[default]
    Never,
    /// On average once in N PDUs or writes, N at least 1. The seed decides which ones.
    OneIn(u32),
    /// Only to the Nth PDU or write of a connection, counted from 1.
    At(u32),
}

/// How often each kind of change happens.
///
/// The text of a plan is a list of words, separated by commas. A word is a kind, `mutate` (`flip`,
/// `edge`, `truncate`, `duplicate`, `insert`) or `all`. `=N` after a word means once in N PDUs or
/// writes on average. `@N` after a word means only the Nth PDU or write. The start-up frame is the
/// first one. A later word overrides an earlier one.
///
/// ```
/// use weft_peer::hostile::mangle::Plan;
///
/// let plan: Plan = "mutate=10,delay,reset=1000".parse().unwrap();
/// assert_eq!(plan.to_string(), "flip=10,edge=10,truncate=10,duplicate=10,insert=10,delay=20,reset=1000");
/// assert_eq!("reset@3".parse::<Plan>().unwrap().to_string(), "reset@3");
/// assert!("all,cut=0".parse::<Plan>().unwrap().to_string().starts_with("flip=20,"));
/// assert_eq!("cut=0".parse::<Plan>().unwrap_err().to_string(), "\"cut=0\" mangles nothing: use a number from 1");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan([Often; Kind::ALL.len()]);

impl Plan {
    /// Returns a plan with every kind at its default rate.
    #[must_use]
    pub fn all() -> Plan {
        let mut plan = Plan::default();
        Kind::ALL.into_iter().for_each(|kind| plan.set(kind, Often::OneIn(kind.word().1)));
        plan
    }

    /// How often a kind happens.
    #[must_use]
    pub const fn often(&self, kind: Kind) -> Often {
        self.0[kind as usize]
    }

    /// Sets how often a kind happens.
    pub const fn set(&mut self, kind: Kind, often: Often) {
        self.0[kind as usize] = often;
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for kind in Kind::ALL {
            let (sign, number) = match self.often(kind) {
                Often::Never => continue,
                Often::OneIn(number) => ('=', number),
                Often::At(number) => ('@', number),
            };
            write!(f, "{comma}{}{sign}{number}", kind.word().0)?;
            comma = ",";
        }
        Ok(())
    }
}

/// Why a text is not a valid plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// All kinds have the rate 0, which means never.
    #[error("{0:?} mangles nothing: use a number from 1")]
    Nothing(String),
    /// The text after `=` is not a number.
    #[error("{0:?} is not a frequency: use a number N, to mangle one in N")]
    Number(String),
    /// The text after `@` is not a number of at least 1.
    #[error("{0:?} does not name a PDU or write: use a number N, for the Nth one")]
    Which(String),
    /// There is no such kind.
    #[error("nothing is mangled by {0:?}; there is {words}", words = words())]
    Word(String),
}

fn words() -> String {
    let kinds = Kind::ALL.map(|kind| kind.word().0).join(", ");
    format!("all, mutate, {kinds}")
}

impl FromStr for Plan {
    type Err = BadPlan;

    fn from_str(text: &str) -> Result<Self, BadPlan> {
        let mut plan = Plan::default();
        for part in text.split(',').map(str::trim) {
            let (word, often) = match (part.split_once('='), part.split_once('@')) {
                (Some((word, number)), _) => {
                    let number = number.parse().map_err(|_| BadPlan::Number(number.to_owned()))?;
                    (word, Some(if number == 0 { Often::Never } else { Often::OneIn(number) }))
                }
                (None, Some((word, number))) => {
                    let which = number.parse().ok().filter(|number| *number > 0);
                    (word, Some(Often::At(which.ok_or_else(|| BadPlan::Which(number.to_owned()))?)))
                }
                (None, None) => (part, None),
            };
            let one = Kind::ALL.into_iter().find(|kind| kind.word().0 == word);
            let kinds = match (word, &one) {
                ("all", _) => &Kind::ALL[..],
                ("mutate", _) => &Kind::MUTATIONS,
                (_, Some(kind)) => std::slice::from_ref(kind),
                (_, None) => return Err(BadPlan::Word(word.to_owned())),
            };
            for kind in kinds {
                plan.set(*kind, often.unwrap_or(Often::OneIn(kind.word().1)));
            }
        }
        if plan == Plan::default() {
            return Err(BadPlan::Nothing(text.to_owned()));
        }
        Ok(plan)
    }
}
