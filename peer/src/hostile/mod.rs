//! The hostile endpoint: the correct one with named, switchable deviations.
//!
//! A [`Deviation`] is one misdeed with the requirements it breaks. They prove that a conformance case or a monitor rule can
//! fail. A connection's settings hold a set of them ([`Deviations`]), empty by default. The correct code knows nothing of
//! their inside: it calls one function of `hook` at each place where a misdeed can take hold, and looks at `Conduct` where
//! something is done or left out.
//!
//! [`mangle`] is chaos by seed, for which no requirement has to be named.
//!
//! To add a deviation: a row in the table of its subject (`startup`, `p2p`, `fpdu`, `conduct` for MPA; `ddp`, `rdmap`, `extension` for
//! RFC 7306, `terminate` for what is sent above it, `arrival` for what is made of what arrives; `placement` for memory; `completion` and `told` for what the user is told; `sdp` for SDP, `portmap` for its port mapper), which says what it does
//! at which place, and a test that the correct endpoint and the deviating one differ as its sentence says. The whole catalogue is held against
//! the monitor in `cli/tests/captures/hostile`.

/// A table of deviations: name, hooks, requirements with the main one first, description.
macro_rules! deviations {
    ($($name:literal [$($hook:ident($change:expr)),+ $(,)?] [$($id:literal),+ $(,)?] $description:literal;)+) => {
        /// The deviations of this subject.
        pub(super) static ALL: &[crate::hostile::Deviation] = &[$(crate::hostile::Deviation {
            name: $name,
            layer: crate::hostile::catalogue::layer_of($name),
            breaks: &[$(weft_core::requirement!($id)),+],
            description: $description,
            hooks: &[$(crate::hostile::hook::Hook::$hook($change)),+],
        }),+];
    };
}

mod arrival;
mod catalogue;
mod completion;
mod conduct;
mod ddp;
mod extension;
mod fpdu;
pub(crate) mod hook;
pub mod mangle;
mod p2p;
mod placement;
mod portmap;
mod rdmap;
mod sdp;
mod segment;
mod startup;
mod terminate;
mod told;

pub use catalogue::{Deviation, Deviations, UnknownDeviation, all, by_name};
pub(crate) use conduct::Conduct;
pub(crate) use portmap::PmConduct;
pub(crate) use sdp::{SdpConduct, SdpTwin};
pub(crate) use segment::Kept;
pub use told::{Fate, conceals};
