//! Sessions: random legal traffic between a tester and the service of a target.
//!
//! | file | content |
//! | --- | --- |
//! | `service` | the services of targets that have sessions |
//! | `profile` | what the sessions with a target may do |
//! | `step` | the steps of a session with the service echo or rping |
//! | `sdp_step` | the steps of a session with an SDP socket |
//! | `drive_step` | the steps of a session with a driven SDP socket |
//! | `agent_step` | the steps of a session with an agent |
//! | `portmap_step` | the steps of a session with a port mapper |
//! | `fault` | the faults: illegal messages, and legal messages that a target may handle wrongly |
//! | `draw` | draws the steps of a session with the service echo or rping |
//! | `echo_draw` | draws the operations of the service echo |
//! | `rping_draw` | draws the operations of the service rping |
//! | `fault_draw` | draws a fault of a session with the service echo or rping |
//! | `sdp_draw` | draws the steps of a session with an SDP socket |
//! | `drive_draw` | draws the steps of a session with a driven SDP socket |
//! | `socket_draw` | draws the fields of an SDP socket, the size of a send, and faults |
//! | `agent_draw` | draws the steps of a session with an agent |
//! | `portmap_draw` | draws the steps of a session with a port mapper |
//! | `shared_draw` | the draws that several services share |
//! | `extra_draw` | adds rare steps to the sessions of an exploration |
//! | `extra_socket_draw` | draws such steps for SDP sockets |
//! | `simpler` | simpler steps of the same kind, for a reduction |
//! | `merged` | one counted step in place of two steps, for a reduction |
//! | `lua_table` | a table in Lua: the fields of a step |
//! | `case` | the Lua case of a session |
//!
//! `weft test --explore` plays sessions with new seeds. The cases of the topics `rdmap/6-sessions`,
//! `rdmap/6-agent-sessions`, `sdp/9-sessions` and `sdp-pm/7-sessions` play some sessions with fixed
//! seeds. The files of `suites/library` play the steps.

use fastrand::Rng;

mod agent_draw;
mod agent_step;
mod case;
mod draw;
mod drive_draw;
mod drive_step;
mod echo_draw;
mod extra_draw;
mod extra_socket_draw;
mod fault;
mod fault_draw;
mod lua_table;
mod merged;
mod portmap_draw;
mod portmap_step;
mod profile;
mod rping_draw;
mod sdp_draw;
mod sdp_step;
mod service;
mod shared_draw;
mod simpler;
mod socket_draw;
mod step;

pub(crate) use agent_step::{AgentAction, AgentStep};
pub(crate) use case::{lua, lua_damaged, lua_steps};
pub(crate) use drive_step::{DriveAction, DriveStep};
pub(crate) use echo_draw::{LONG_BURST, MAX_BATCH};
pub(crate) use fault::NEIGHBOUR_WRITE;
pub(crate) use portmap_step::{MAPPED, MAX_PORTS, PortmapAction, PortmapStep};
pub(crate) use profile::{FEW_PRIVATE, MAX_PRIVATE, MAX_SEND, Profile};
pub(crate) use sdp_step::{SdpAction, SdpStep, SocketFields};
pub(crate) use service::SessionService;
pub(crate) use step::{MessageFields, Step};

/// Changes the seed for the random numbers of the rare steps.
const EXTRA: u64 = 0x6578_7472_615f_6472;

/// Draws the steps of a session: selects them at random.
pub(crate) fn steps(rng: &mut Rng, profile: &Profile) -> Vec<Step> {
    let mut extra = Rng::with_seed(rng.get_seed() ^ EXTRA);
    let mut steps = match profile.service {
        SessionService::Echo | SessionService::Rping => draw::steps(rng, profile),
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => sdp_draw::steps(rng, profile),
        SessionService::SdpDrive | SessionService::SdpConnect => drive_draw::steps(rng, profile),
        SessionService::Agent => agent_draw::steps(rng, profile),
        SessionService::PortMapper => portmap_draw::steps(rng, profile),
    };
    if profile.extras {
        extra_draw::add(&mut extra, profile, &mut steps);
    }
    steps
}
