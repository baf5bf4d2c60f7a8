//! Tests the commands that run suites: `weft test`, `diff`, `target` and `web`, and their error
//! messages. Other tests check the project itself: its architecture, its guide, its packages and
//! its texts.

mod action;
mod arrows;
mod compose;
mod counts_agree;
mod dialect;
mod error_messages;
mod guide;
mod interrupted;
mod learn;
mod packaging;
mod prose;
mod siw_image;
#[path = "../endpoint/skip.rs"]
mod skip;
mod target_add;
mod target_check;
mod test_report;
mod test_resume;
mod test_runs;
#[path = "../endpoint/wait.rs"]
mod wait;
mod web;
mod words;
