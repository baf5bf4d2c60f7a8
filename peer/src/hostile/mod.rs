//! The hostile endpoint: the correct one with named, switchable deviations.
//!
//! A [`Deviation`] is one violation, with the requirements it breaks. They prove that a conformance
//! case or a monitor rule can fail. A connection's settings hold a set of them ([`Deviations`]),
//! empty by default. The correct code does not know what they do. It calls one function of `hook`
//! at each place that a deviation can change, and reads `Conduct` where something is done or left
//! out.
//!
//! [`mangle`] is chaos by seed, for which no requirement has to be named.
//!
//! The correct code knows `hook`, [`Deviations`] and `context`; the tables know the machines' types.
//! So imports run in one direction: machines, `hook`, `deviation`, `context`, plain data.
//!
//! To add a deviation, add:
//! - a row in the table of its subject, with its places and what it does there. The subjects are `startup`, `p2p`, `fpdu` and
//!   `conduct` for MPA; `ddp`, `rdmap`, `extension` for RFC 7306, and `terminate` for what is sent above it; `arrival` for the
//!   processing of what arrives; `placement` for memory; `completion` and `user` for reports to the user; `sdp` for SDP;
//!   `portmap` for its port mapper;
//! - a test that the correct endpoint and the deviating one differ as described. `cli/tests/captures/hostile` compares
//!   the complete catalogue with the monitor.

/// A table of deviations: name, hooks, requirements with the main one first, description.
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
mod sdp;
mod startup;
mod terminate;
mod user;

pub use catalogue::{UnknownDeviation, all, by_name};
pub(crate) use context::conduct::Conduct;
pub use context::fate::Fate;
pub(crate) use context::port_mapper::{PmConduct, PmSide};
pub(crate) use context::sdp_conduct::SdpConduct;
pub(crate) use context::sdp_twin::SdpTwin;
pub(crate) use context::segment::Kept;
pub use deviation::{Deviation, Deviations};
pub use hook::conceals_fate;
