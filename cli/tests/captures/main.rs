//! Captures on the command line: `weft dissect`, `lint`, `stats`, `ladder`, `follow` and `explain`,
//! on files and interfaces; and what the monitor finds in the frames of correct and hostile peers.

mod bad_input;
mod comments;
#[path = "../../../web/src/tests/crowd.rs"]
mod crowd;
mod dissect;
mod excerpts;
mod hostile;
mod incomplete;
mod live;
mod names;
mod selection;
mod several;
