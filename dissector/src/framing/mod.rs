//! Splits the octets of one direction into units: start-up frames, FPDUs, and other octets.
//!
//! | file | purpose |
//! | --- | --- |
//! | [`startup`] | finds the start-up frame of the direction |
//! | [`settings`] | determines markers and CRC from the start-up frames of both directions |
//! | [`guess`] | determines markers and CRC without the start-up frame of the peer |
//! | [`lock`] | finds the first FPDU if the direction has no start-up frame |
//! | [`search_budget`] | limits the cost of searches for FPDUs |
//! | [`fast_path`] | reads FPDUs that need no further checks |
//! | [`choose`] | determines the layout of an FPDU |
//! | [`explain`] | explains octets in which no FPDU was found |
//! | [`resync`] | finds the next FPDU after octets in which no FPDU was found |
//! | [`second_startup`] | detects a new start-up frame after a rejected connection |
//! | [`skipped_octets`] | stores octets outside start-up frames and FPDUs until delivery |
//! | [`emit`] | delivers units |
//! | [`record`] | stores the settings of an evicted connection (see the module `connections`) |
//!
//! Octets arrive in capture order. If a step needs octets that have not arrived, it returns
//! [`Pending`](crate::tcp::Pending) and changes nothing. The step is repeated when the octets have
//! arrived.
//!
//! If the start-up frame of a direction was not captured, weft takes the settings of the direction
//! from the start-up frame of the peer. If the start-up frame of the peer arrives only after the
//! first FPDU is found, it has no effect. This module does not check requirements (see
//! [`crate::rules`]).

mod choose;
mod emit;
mod explain;
mod fast_path;
mod guess;
mod hello;
mod lock;
mod reader;
mod record;
mod resync;
mod sdp;
mod search_budget;
mod second_startup;
mod settings;
mod skipped_octets;
mod startup;
mod unit_output;

pub(crate) use choose::crc_good;
pub(crate) use reader::Reader;
pub(crate) use record::ReaderRecord;
pub(crate) use settings::PeerView;
pub(crate) use unit_output::UnitOutput;
