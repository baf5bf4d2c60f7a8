//! Conformance suites: Lua cases, the engine that runs them against a target, verdicts, evidence,
//! reports and results.
//!
//! ```text
//! script -> stage -> link (weft-peer) -> target
//!             |
//!             +-> log, traffic log -> judge, monitor (weft-dissector)
//!                   -> CaseResult -> events, store, evidence -> reports
//! ```
//!
//! A case is a script with a declaration ([`model::CaseInfo`]). [`run`](fn@run) runs each variant
//! ([`model::CaseKey`]) of the selected cases against one [`targets::Target`]. It sends one stream
//! of [`model::Event`]s and returns a [`model::RunReport`], which [`report::write_all`] writes in
//! every format.
//!
//! ```no_run
//! use std::sync::Arc;
//! use weft_suites::{Filter, RunOptions, report, script::Suites, targets::Target};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = RunOptions {
//!     target: Target::resolve("builtin")?,
//!     suites: Suites::embedded()?,
//!     filter: Filter::everything(),
//!     out: "out".into(),
//!     seed: None,
//!     cancel: None,
//! };
//! let report = weft_suites::run(options, Arc::new(report::Terminal::new(std::io::stdout(), false))).await?;
//! report::write_all(&report, "out".as_ref())?;
//! std::process::exit(report.summary.exit_code.code().into());
//! # }
//! ```
//!
//! This crate has no command line and no pages. `weft`, the web dashboard and the terminal screens
//! read the event stream and the results [`store`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod agent;
pub mod baseline;
pub mod clock;
mod correct;
pub mod coverage;
pub mod diff;
pub mod evidence;
pub mod explore;
mod file;
pub mod folder;
pub mod learn;
pub mod model;
pub mod prove;
pub mod recover;
pub mod report;
mod run;
pub mod script;
mod sdp;
mod session;
mod stage;
pub mod store;
pub mod targets;

pub use run::{DEFAULT_SEED, Filter, Forecast, Plan, RunError, RunOptions, Schedule, random_seed, run, run_with};
