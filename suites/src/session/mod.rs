//! Sessions: random legal traffic between a tester and the service of a target.
//!
//! | file | content |
//! | --- | --- |
//! | `step` | the steps of a session, and its Lua case |
//! | `sdp_step` | the steps of a session with an SDP socket, and how they are drawn |
//! | `draw` | draws the steps of other sessions |
//!
//! `weft test --explore` plays sessions with new seeds. The cases of the topic `sdp/9-sessions`
//! play some sessions with fixed seeds. The Lua modules `session` and `sdp_session` play the steps.

mod draw;
mod sdp_step;
mod step;

pub(crate) use draw::{MAX_SEND, Profile, steps};
pub(crate) use sdp_step::{SdpAction, SdpStep, SocketFields, steps as sdp_steps};
pub(crate) use step::{SessionService, Step, lua, lua_damaged, lua_steps};
