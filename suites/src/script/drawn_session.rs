//! Sessions with random steps in a case of the suites. The number of a session determines its
//! steps, together with what the target file declares. `crate::session` draws the steps.

use fastrand::Rng;
use mlua::{Function, Lua};

use super::bind::surface;
use super::objects::Tester;
use crate::session::{self, Profile, SessionService, Step};
use crate::stage::Stage;

surface! {
    TESTER_DRAWN_SESSION = Tester, bind_tester |t, stage, lua|;

    /// Draws the random steps of a session with a service, such as `"echo"`, `"agent"` or
    /// `"sdp-echo"`, without faults, and adds the steps to the transcript. Returns a function that
    /// plays the steps. The parameter of the function is the session. `number` is the seed of the
    /// random steps, and `connections` is the maximum number of connections or clients at a time.
    async drawn_session(service: String = "string", number: u64 = "integer", connections: u32 = "integer")
        -> "fun(session: table)" => {
        let known = SessionService::ALL.map(|(_, service)| service);
        let Some(service) = known.into_iter().find(|known| known.name() == service) else {
            let names = known.map(|service| format!("{:?}", service.name())).join(", ");
            return Err(mlua::Error::runtime(format!("no sessions with the service {service:?}; use one of {names}")));
        };
        let profile = Profile::of(&t.context.target, service, connections);
        player(&lua, &mut stage, number, &session::steps(&mut Rng::with_seed(number), &profile))?
    };
}

/// Adds the steps to the transcript, and returns the function that plays them.
fn player(lua: &Lua, stage: &mut Stage, number: u64, steps: &[Step]) -> mlua::Result<Function> {
    let text = session::lua_steps(steps);
    text.lines().for_each(|step| stage.recorder().note(step.trim()));
    lua.load(format!("local s = ...\n{text}")).set_name(format!("=drawn session {number}")).into_function()
}
