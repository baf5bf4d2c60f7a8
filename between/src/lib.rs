//! Connects two implementations, impairs their traffic, and attributes violations.
//!
//! `weft between A B` connects two implementations. Neither implementation is weft. Two monitors
//! judge the traffic: one has the frames that side A sent and received, the other has the frames of
//! side B. Between the two sides, a [`Bridge`] can lose, delay, duplicate, reorder, divide or
//! corrupt segments. A violation that only the receiver's monitor finds is therefore an effect of
//! the network.
//!
//! | module | content |
//! | --- | --- |
//! | [`impairments`] | the settings of the impairments |
//! | [`fault`] | the record of the injected faults |
//! | `fault_index` | finds the fault that caused a violation |
//! | [`bridge`] | the bridge, which impairs frames |
//! | [`aim`] | the parts of FPDUs, so that a fault can aim at one of them |
//! | [`frame`] | the TCP segment in an Ethernet frame |
//! | [`synthetic`] | the frames of the TCP proxy |
//! | [`tap`] | the monitor and the capture of one side |
//! | [`attribution`] | which side violated which requirement, and the outcome of each fault |
//! | [`run`] | bridge and taps together |
//! | [`driver`] | the two ways to connect: network interfaces, and a TCP proxy |
//!
//! All modules except [`driver`] are sans-IO: they use no clock, no socket and no interface.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

pub mod aim;
pub mod attribution;
pub mod bridge;
pub mod driver;
pub mod fault;
mod fault_index;
pub mod frame;
pub mod impairments;
pub mod run;
pub mod side;
pub mod synthetic;
pub mod tap;
#[cfg(test)]
mod testing;

pub use aim::{FpduPart, SplitAt};
pub use attribution::{Attributed, Attribution, Judged, Outcome};
pub use bridge::Bridge;
pub use fault::{Fault, FaultKind};
pub use impairments::{ClosedWindow, Impairments, Probability};
pub use run::{Results, Run};
pub use side::{PerSide, Side};
