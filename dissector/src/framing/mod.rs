//! Splits the octets of one direction into units: start-up frames, FPDUs, and other octets.
//!
//! | file | purpose |
//! | --- | --- |
//! | [`startup`] | finds the start-up frame of the direction |
//! | [`settings`] | determines markers and CRC from the start-up frames of both directions |
//! | [`guess`] | determines markers and CRC without the start-up frame of the peer |
//! | [`lock`] | finds the first FPDU if the direction has no start-up frame |
//! | [`effort`] | limits the cost of that search |
//! | [`straight`] | reads FPDUs that need no further checks |
//! | [`choose`] | determines the layout of an FPDU |
//! | [`explain`] | explains octets in which no FPDU was found |
//! | [`resync`] | finds the next FPDU after such octets |
//! | [`again`] | detects a new start-up frame after a rejected connection |
//! | [`emit`] | delivers units |
//! | [`record`] | stores the settings when reading is interrupted |
//!
//! Octets arrive in capture order. A step that needs octets that have not arrived returns
//! [`Later`](crate::tcp::Later) and changes nothing. The step is repeated when the octets have
//! arrived.
//!
//! If the start-up frame of a direction was not captured, the direction uses the frame of the peer,
//! as known when the first FPDU is found. A frame of the peer that is captured later has no effect.
//! This module checks no rules (see [`crate::rules`]).

mod again;
mod choose;
mod effort;
mod emit;
mod explain;
mod guess;
mod hello;
mod lock;
mod reader;
mod record;
mod resync;
mod sdp;
mod settings;
mod startup;
mod straight;
mod stretch;
mod target;

pub(crate) use reader::Reader;
pub(crate) use record::ReaderRecord;
pub(crate) use settings::PeerView;
pub(crate) use target::Target;
