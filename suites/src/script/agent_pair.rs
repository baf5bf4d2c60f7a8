//! The agent's end of a connection: the Lua object `pair`. The target's user posts work requests on
//! it, and is notified of events.

use mlua::{IntoLuaMulti, Lua, LuaSerdeExt, MultiValue, UserData, UserDataMethods, Value};
use weft_agent::protocol::{Action, Object, Octets, Operation, Success};

use super::agent_events::event_table;
use super::agent_options::WorkFields;
use super::agent_work::{post, post_receive};
use super::bind::surface;
use super::objects::Context;
use crate::stage::{Stage, parameters};

/// The Lua object `pair`.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) context: Context,
    pub(super) object: Object,
}

surface! {
    PAIR = Pair, bind_pair |pair, stage, lua|;

    /// Creates the Queue Pair of a requested connection, so that receives can be posted.
    async open() { agent_pair as (_, options) } => stage.agent().create_pair(pair.object, &options).await?;

    /// Accepts the connection.
    async accept() { agent_pair as (_, options) } =>
        request(&mut stage, Action::Accept(parameters(pair.object, &options))).await?;

    /// Rejects the connection with these private data.
    async reject() { agent_pair as (_, options) } => {
        let action = Action::Reject { connection: pair.object, private_data: Octets(options.private_data) };
        request(&mut stage, action).await?;
    };

    /// Ends the connection.
    async disconnect() => request(&mut stage, Action::Disconnect { connection: pair.object }).await?;

    /// Destroys the connection. The peer notices only the end of TCP.
    async destroy() => request(&mut stage, Action::Destroy { object: pair.object }).await?;

    /// Posts a receive. Returns its number, or nil and the reason of a refusal.
    async post_receive() { post_receive: agent_work as work } -> "integer?, string?" =>
        post_receive(&mut stage, pair.object, &work).await?;

    /// Posts a Send.
    async post_send() { post_send as work } -> "integer?, string?" => send(&lua, &mut stage, pair.object, work).await?;

    /// Posts an RDMA Write to `stag` and `to`.
    async post_write() { post_write as work } -> "integer?, string?" => send(&lua, &mut stage, pair.object, work).await?;

    /// Posts an RDMA Read from `stag` and `to`.
    async post_read() { post_read as work } -> "integer?, string?" => send(&lua, &mut stage, pair.object, work).await?;

    /// Posts an Atomic Operation on the eight bytes at `stag` and `to`. The operation is `add`
    /// alone, or `compare` together with `swap`.
    async post_atomic() { post_atomic as work } -> "integer?, string?" => send(&lua, &mut stage, pair.object, work).await?;

    /// Posts an Invalidate Local of an STag of the target.
    async post_invalidate() { post_invalidate as work } -> "integer?, string?" => send(&lua, &mut stage, pair.object, work).await?;

    /// Posts a Bind of a window to bytes of a region. Also returns the new STag of the window.
    async post_bind() { post_bind as work } -> "integer?, integer|string|nil" => send(&lua, &mut stage, pair.object, work).await?;

    /// Expects that the user is notified of this completion of a work request.
    async expect_completion() { expect_completion as (expectation, wanted) } -> "weft.Completion" =>
        lua.to_value(&stage.agent().expect_completion(pair.object, &expectation, &wanted).await?)?;

    /// Returns the next completion on the connection, and judges nothing. Returns nil if the user
    /// is not notified in time.
    async next_completion() { waiting as expectation } -> "weft.Completion?" =>
        match stage.agent().next_completion(pair.object, &expectation).await? {
            Some(completion) => lua.to_value(&completion)?,
            None => Value::Nil,
        };

    /// Expects that the user is notified of one of these events of the connection.
    async expect_event() { expect_event as (expectation, wanted) } -> "weft.Event" =>
        event_table(&lua, &stage.agent().expect_event(pair.object, &expectation, &wanted).await?)?;

    /// Expects that the user is notified of an error: an event of the Queue Pair, or a completion
    /// with an error. A work request that fails only because the connection has ended (a flush)
    /// does not count, except if `or_end` is set.
    async expect_error() { expect_error as (expectation, or_end) } =>
        stage.agent().expect_error(pair.object, &expectation, or_end).await?;

    /// Expects that the user is not notified of a completion.
    async expect_no_completion() { expect_no_completion: silence as expectation } =>
        stage.agent().expect_no_completion(pair.object, &expectation).await?;
}

impl UserData for Pair {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_pair(methods);
    }
}

/// Requests an action of the target. If the agent refuses the action, the case ends.
async fn request(stage: &mut Stage, action: Action) -> mlua::Result<()> {
    let result = stage.agent().stimulate(action).await?;
    stage.agent().succeeded(result)?;
    Ok(())
}

/// Posts a work request of the Send Queue. Returns its number and, for a Bind, the new STag of the
/// window. After a refusal, returns nil and the reason.
async fn send(
    lua: &Lua,
    stage: &mut Stage,
    connection: Object,
    (work, operation): (WorkFields, Operation),
) -> mlua::Result<MultiValue> {
    let (parts, signaled, fence, inline) = (work.parts.clone(), work.signaled, work.fence, work.inline);
    let action = |work| Action::PostSend { connection, work, operation, parts, signaled, fence, inline };
    match post(stage, &work, action).await? {
        (number, Success::Bound { remote_key }, _) => (number, remote_key).into_lua_multi(lua),
        (number, _, why) => (number, why).into_lua_multi(lua),
    }
}
