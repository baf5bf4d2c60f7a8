//! The hostile endpoint is the correct endpoint with named deviations that can be switched on.
//!
//! A [`Deviation`] is one deliberate violation of a rule. It lists the requirements that it breaks.
//! Deviations prove that a conformance case or a rule of the monitor can fail. The settings of a
//! connection have a set of deviations ([`Deviations`]), which is empty by default.
//!
//! A *hook* is a point in the correct code that a deviation can change. At each hook the correct
//! code calls one function of `hook`. If a deviation adds or omits an action, the correct code
//! reads a flag of `Conduct` instead. The correct code does not know the effects of deviations.
//!
//! [`mangle`] makes random changes, which belong to no requirement. A seed determines these
//! changes.
//!
//! The correct code uses only `hook`, [`Deviations`] and `context`, but not the tables of
//! deviations. Therefore imports run in one direction: from the state machines to `hook`, then to
//! `deviation`, to `context`, and to plain data. Plain data includes types that the modules of the
//! state machines define, such as `Role` and `Fault`. The tables may also import such types.
//!
//! To add a deviation, add:
//! - an entry in the table of its subject, with its hooks and their effects. The subjects are:
//!   - `startup`, `p2p`, `fpdu` and `conduct` for MPA,
//!   - `ddp`, `rdmap`, `extension` (RFC 7306) and `terminate` for messages sent above MPA,
//!   - `arrival` for the processing of received segments,
//!   - `placement` for memory,
//!   - `reassembly` for the TCP of a target on the virtual link,
//!   - `completion` and `user` for reports to the user,
//!   - `sdp` for SDP, and `portmap` for the SDP port mapper.
//! - a test which shows that the endpoint with the deviation differs from the correct endpoint as
//!   the description states. `cli/tests/captures/hostile` checks which deviations of the catalogue
//!   the monitor reports.

/// Defines a table of deviations. Each entry has a name, hooks, requirements and a description. The
/// first requirement is the main requirement.
macro_rules! deviations {
    ($($name:literal [$($hook:ident($change:expr)),+ $(,)?] [$($id:literal),+ $(,)?] $description:literal;)+) => {
        /// The deviations of this subject.
        pub(super) static ALL: &[crate::hostile::Deviation] = &[$(crate::hostile::Deviation {
            name: $name,
            layer: crate::hostile::deviation::layer_of($name),
            breaks: &[$(weft_core::requirement!($id)),+],
            description: $description,
            hooks: &[$(crate::hostile::deviation::Hook::$hook($change)),+],
        }),+];
    };
}

mod arrival;
mod catalogue;
mod completion;
mod conduct;
mod context;
mod ddp;
mod deviation;
mod extension;
mod fpdu;
pub(crate) mod hook;
pub mod mangle;
mod old_names;
mod p2p;
mod placement;
mod portmap;
mod rdmap;
mod reassembly;
mod sdp;
mod startup;
mod terminate;
mod user;

pub use catalogue::{UnknownDeviation, all, by_name};
pub(crate) use context::conduct::Conduct;
pub use context::connection_outcome::ConnectionOutcome;
pub(crate) use context::port_mapper::{PmConduct, PmSide};
pub(crate) use context::reassembly::ReassemblyConduct;
pub(crate) use context::sdp_conduct::SdpConduct;
pub(crate) use context::sdp_hostile::SdpHostile;
pub(crate) use context::segment::DeviationState;
pub use deviation::{Deviation, Deviations};
pub use hook::conceals_outcome;
