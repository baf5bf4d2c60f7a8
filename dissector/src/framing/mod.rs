//! From the octets of one direction to MPA's units: start-up frames, FPDUs, and other octets.
//!
//! | file | question |
//! | --- | --- |
//! | [`startup`] | where is the direction's own start-up frame? |
//! | [`settings`] | are there markers and CRCs, by both frames? |
//! | [`guess`] | the same if the peer's frame is not in the capture |
//! | [`lock`] | where do FPDUs begin without a start-up frame? |
//! | [`effort`] | how much may that search cost? |
//! | [`straight`] | which FPDUs need no further checks? |
//! | [`choose`] | what is the layout of the FPDU that begins here? |
//! | [`explain`] | what would explain that framing was lost? |
//! | [`resync`] | where do FPDUs continue after framing was lost? |
//! | [`again`] | does a rejected connection start again? |
//! | [`emit`] | how are units delivered? |
//! | [`record`] | what is kept when reading is interrupted? |
//!
//! Octets come in the order of the capture, so a question may have to wait:
//! [`Later`](crate::tcp::Later) is returned through `?`, and nothing is changed. The same question
//! is repeated when the awaited octets have arrived. A direction whose own start-up frame was not
//! captured uses what is known of the peer's frame when it locks; a frame that was captured later
//! changes nothing. This module checks no rules; see [`crate::rules`].

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
