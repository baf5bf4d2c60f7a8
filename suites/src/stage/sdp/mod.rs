//! SDP connections of a case: start-up in the target's profile, and messages over FPDUs whose
//! counters the tester keeps.
//!
//! | file | what |
//! | --- | --- |
//! | `talk` | what is known of one connection, and what comes from the target |
//! | `expect` | what a case can expect of it |
//! | `good` | the good exchange with an SDP service |
//! | `look` | what a socket does, whatever it is |
//! | `plain` | the plain exchange of a control |
//! | `start` | Hello and HelloAck, and MPA's frames around them |
//! | `whole` | whole exchanges in one step |

mod expect;
mod good;
mod look;
mod plain;
mod start;
mod talk;
mod whole;

pub(crate) use expect::{Ending, Value, Wanted};
pub use start::SdpStart;
pub(crate) use start::hello;
pub(in crate::stage) use talk::SEGMENT;
pub(crate) use talk::{Carrier, Item, Talk};
