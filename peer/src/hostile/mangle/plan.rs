//! Defines which changes a mangler makes, and how often. This module also parses the value of
//! `--mangle`.

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
    /// A write is sent after the next write.
    Reorder,
    /// The connection is reset in the middle of a write.
    Reset,
    /// A PDU is truncated.
    Truncate,
}

use Kind::{Cut, Delay, Duplicate, Edge, Flip, HalfClose, Insert, Reorder, Reset, Truncate};

impl Kind {
    /// All kinds, in the order in which the text of a [`Plan`] lists them.
    pub const ALL: [Kind; 10] = [Flip, Edge, Truncate, Duplicate, Insert, Reorder, Cut, Delay, HalfClose, Reset];

    /// The kinds that the word `mutate` includes.
    const MUTATIONS: [Kind; 5] = [Flip, Edge, Truncate, Duplicate, Insert];

    /// Returns the word for this kind in a plan, and the default rate N, which means once in N PDUs
    /// or writes.
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
pub enum Frequency {
    /// Never.
    #[default]
    Never,
    /// On average once in N PDUs or writes. N is at least 1. The seed decides which PDUs or writes
    /// are changed.
    OneIn(u32),
    /// Only for the Nth PDU or write of a connection, counted from 1.
    At(u32),
}

/// How often each kind of change happens.
///
/// The text of a plan is a list of words, separated by commas. A word is a kind, `all`, or
/// `mutate`. `mutate` means `flip`, `edge`, `truncate`, `duplicate` and `insert`. `=N` after a word
/// means once in N PDUs or writes on average, and `=0` means never. `@N` after a word means only
/// the Nth PDU or write. The start-up frame is the first PDU. If two words set the rate of the same
/// kind, the last word counts.
///
/// ```
/// use weft_peer::hostile::mangle::Plan;
///
/// let plan: Plan = "mutate=10,delay,reset=1000".parse().unwrap();
/// assert_eq!(plan.to_string(), "flip=10,edge=10,truncate=10,duplicate=10,insert=10,delay=20,reset=1000");
/// assert_eq!("reset@3".parse::<Plan>().unwrap().to_string(), "reset@3");
/// assert!("all,cut=0".parse::<Plan>().unwrap().to_string().starts_with("flip=20,"));
/// let error = "cut=0".parse::<Plan>().unwrap_err();
/// assert_eq!(error.to_string(), "\"cut=0\" mangles nothing; use a number of at least 1");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan([Frequency; Kind::ALL.len()]);

impl Plan {
    /// Returns a plan with every kind at its default rate.
    #[must_use]
    pub fn all() -> Plan {
        let mut plan = Plan::default();
        Kind::ALL.into_iter().for_each(|kind| plan.set(kind, Frequency::OneIn(kind.word().1)));
        plan
    }

    /// Returns how often a kind happens.
    #[must_use]
    pub const fn frequency(&self, kind: Kind) -> Frequency {
        self.0[kind as usize]
    }

    /// Sets how often a kind happens.
    pub const fn set(&mut self, kind: Kind, frequency: Frequency) {
        self.0[kind as usize] = frequency;
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for kind in Kind::ALL {
            let (sign, number) = match self.frequency(kind) {
                Frequency::Never => continue,
                Frequency::OneIn(number) => ('=', number),
                Frequency::At(number) => ('@', number),
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
    #[error("{0:?} mangles nothing; use a number of at least 1")]
    Nothing(String),
    /// The text after `=` is not a number.
    #[error("{0:?} is not a number; use =N to mangle, on average, 1 of N PDUs or 1 of N writes")]
    Number(String),
    /// The text after `@` is not a number of at least 1.
    #[error("{0:?} is not a number of at least 1; write @N to mangle only the Nth PDU or write")]
    Which(String),
    /// The word is not a kind of change.
    #[error("{0:?} is not a kind of mangling; use {words}", words = words())]
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
            let (word, frequency) = match (part.split_once('='), part.split_once('@')) {
                (Some((word, number)), _) => {
                    let number = number.parse().map_err(|_| BadPlan::Number(number.to_owned()))?;
                    (word, Some(if number == 0 { Frequency::Never } else { Frequency::OneIn(number) }))
                }
                (None, Some((word, number))) => {
                    let which = number.parse().ok().filter(|number| *number > 0);
                    (word, Some(Frequency::At(which.ok_or_else(|| BadPlan::Which(number.to_owned()))?)))
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
                plan.set(*kind, frequency.unwrap_or(Frequency::OneIn(kind.word().1)));
            }
        }
        if plan == Plan::default() {
            return Err(BadPlan::Nothing(text.to_owned()));
        }
        Ok(plan)
    }
}
