//! Cases as Lua scripts: loading, the sandbox in which they run, and the objects that they use.
//!
//! A script declares cases with `case { ... }`. The function `run = function(t, p)` receives the
//! tester `t` and the parameters `p`. The methods of `t` and of its connections are in
//! `surface.rs`, messages are in `message/`, and `bind.rs` explains how to add a method. Scripts do
//! not decide verdicts. The stage records which expectations were met, and `crate::run` judges
//! this log.

mod agent;
mod agent_events;
mod agent_objects;
mod agent_options;
mod agent_pair;
mod agent_work;
mod annotate;
mod bind;
mod combination;
mod combine;
mod declare;
mod drawn_session;
mod fields;
mod invoke;
mod load;
mod location;
mod lua_fields;
mod mapper;
pub(crate) mod message;
mod objects;
mod octets;
mod old_names;
mod options;
mod port_mapper;
mod port_mapper_options;
mod sandbox;
mod sdp;
mod sdp_options;
mod sdp_socket;
mod surface;

pub use annotate::annotations;
pub(crate) use declare::variants;
pub(crate) use invoke::{ScriptFault, invoke};
pub(crate) use load::SuiteCase;
pub use load::{LoadError, Suites};
pub use sandbox::Limits;
