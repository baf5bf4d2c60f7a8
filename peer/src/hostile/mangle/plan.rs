//! What a mangler does, and how often: the words of `--mangle`.

use std::fmt;
use std::str::FromStr;

/// One way of mangling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A write is cut to pieces.
    Cut,
    /// A write, and all behind it, is late.
    Delay,
    /// A PDU goes out twice.
    Duplicate,
    /// A field has a value from the edge of its range.
    Edge,
    /// Some bits are flipped.
    Flip,
    /// The sending half is closed in the middle of a write.
    HalfClose,
    /// Octets that nobody asked for stand in a PDU, or between two.
    Insert,
    /// A write goes out behind the next one.
    Reorder,
    /// The connection is reset in the middle of a write.
    Reset,
    /// A PDU lacks its end.
    Truncate,
}

use Kind::{Cut, Delay, Duplicate, Edge, Flip, HalfClose, Insert, Reorder, Reset, Truncate};

impl Kind {
    /// All of them, in the order of [`Plan`]'s text.
    pub const ALL: [Kind; 10] = [Flip, Edge, Truncate, Duplicate, Insert, Reorder, Cut, Delay, HalfClose, Reset];

    /// What `mutate` stands for.
    const MUTATIONS: [Kind; 5] = [Flip, Edge, Truncate, Duplicate, Insert];

    /// Its word, and how rare it is where nothing is said: once in so many PDUs or writes.
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

/// How often each kind happens.
///
/// Its text is a list of words with commas between them: a kind, `mutate` (`flip`, `edge`, `truncate`, `duplicate`, `insert`) or `all`;
/// `=N` behind a word says: once in N PDUs or writes on average. What comes later in the list overrules what came before.
///
/// ```
/// use weft_peer::hostile::mangle::Plan;
///
/// let plan: Plan = "mutate=10,delay,reset=1000".parse().unwrap();
/// assert_eq!(plan.to_string(), "flip=10,edge=10,truncate=10,duplicate=10,insert=10,delay=20,reset=1000");
/// assert!("all,cut=0".parse::<Plan>().unwrap().to_string().starts_with("flip=20,"));
/// assert_eq!("cut=0".parse::<Plan>().unwrap_err().to_string(), "\"cut=0\" mangles nothing: 0 is never");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan([u32; Kind::ALL.len()]);

impl Plan {
    /// Everything, as often as where nothing is said.
    #[must_use]
    pub fn all() -> Plan {
        let mut plan = Plan::default();
        Kind::ALL.into_iter().for_each(|kind| plan.set(kind, kind.word().1));
        plan
    }

    /// Once in so many PDUs or writes; 0 is never.
    #[must_use]
    pub const fn one_in(&self, kind: Kind) -> u32 {
        self.0[kind as usize]
    }

    /// Sets how often a kind happens.
    pub const fn set(&mut self, kind: Kind, one_in: u32) {
        self.0[kind as usize] = one_in;
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let planned = Kind::ALL.into_iter().filter(|kind| self.one_in(*kind) > 0);
        for (i, kind) in planned.enumerate() {
            write!(f, "{}{}={}", if i == 0 { "" } else { "," }, kind.word().0, self.one_in(kind))?;
        }
        Ok(())
    }
}

/// A text that is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    /// Each kind of it is said to happen never.
    #[error("{0:?} mangles nothing: 0 is never")]
    Nothing(String),
    /// The number behind `=` is none.
    #[error("{0:?} is not how often: a number N, for once in N")]
    Number(String),
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
            let (word, number) = part.split_once('=').unzip();
            let word = word.unwrap_or(part);
            let number =
                number.map(|number| number.parse().map_err(|_| BadPlan::Number(number.to_owned()))).transpose()?;
            let one = Kind::ALL.into_iter().find(|kind| kind.word().0 == word);
            let kinds = match (word, &one) {
                ("all", _) => &Kind::ALL[..],
                ("mutate", _) => &Kind::MUTATIONS,
                (_, Some(kind)) => std::slice::from_ref(kind),
                (_, None) => return Err(BadPlan::Word(word.to_owned())),
            };
            for kind in kinds {
                plan.set(*kind, number.unwrap_or(kind.word().1));
            }
        }
        if plan == Plan::default() {
            return Err(BadPlan::Nothing(text.to_owned()));
        }
        Ok(plan)
    }
}
