//! Tests the commands that read captures: `weft dissect`, `lint`, `why`, `stats`, `io`, `ladder`,
//! `follow`, `explain` and `scrub`, on files and interfaces. The module `hostile` tests the findings
//! of the monitor (the dissector with its rules) about correct and hostile endpoints.

mod bad_input;
mod between;
mod comments;
#[path = "../../../web/src/tests/crowd.rs"]
mod crowd;
mod dissect;
mod excerpts;
mod export;
mod extcap;
mod hostile;
mod incomplete;
mod io;
mod live;
mod names;
mod scrub;
mod selection;
mod several;
#[path = "../endpoint/skip.rs"]
mod skip;
mod tshark;
mod until;
mod why;
mod wire;
