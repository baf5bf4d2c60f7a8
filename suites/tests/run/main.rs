//! Tests the public API of the engine that runs suites. Each subject has its own file. All files
//! are in one binary, so that the libraries are linked only once.
#![allow(clippy::unwrap_used, reason = "a panic in a helper function fails the test")]
#![allow(unreachable_pub, reason = "modules of a test binary")]

mod agent;
mod allure;
mod baselines;
mod basic_faults;
mod boundary;
mod common;
mod controls;
mod evidence;
mod explore;
mod folder;
mod formats;
mod hostile_targets;
mod initiator;
mod labels;
mod latest;
mod markers;
mod open_codes;
mod postgres;
mod probed;
mod programs;
mod relay;
mod reports;
mod resume;
mod schema;
mod scripts;
mod sdp_expectations;
mod sdp_sessions;
mod sdp_states;
mod sessions;
mod store;
mod store_away;
mod surface;
mod target_check;
mod v01;
mod verdicts;
mod warnings;
