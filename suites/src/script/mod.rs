//! Cases as Lua scripts: loading, the sandbox they run in, and what they can say.
//!
//! A script declares cases with `case { ... }`; `run = function(t, p)` gets the tester `t` and its
//! parameters `p`. What `t` and its connections can do is in `surface.rs`; messages are in
//! `message/`. Nothing here decides a verdict: expectations are recorded, and [`crate::run`] judges
//! the record.

mod agent;
mod agent_options;
mod agent_pair;
mod agent_told;
mod annotate;
mod asked;
mod asked_options;
mod combine;
mod declare;
mod fields;
mod invoke;
mod load;
mod location;
mod mapper;
pub(crate) mod message;
mod methods;
mod octets;
mod old_names;
mod options;
mod sandbox;
mod sdp;
mod sdp_options;
mod surface;

pub use annotate::annotations;
pub(crate) use declare::choices;
pub(crate) use invoke::{ScriptFault, invoke};
pub(crate) use load::SuiteCase;
pub use load::{LoadError, Suites};
pub use sandbox::Limits;
