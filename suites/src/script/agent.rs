//! The target's own verbs: the Lua object `target`, the third parameter of a case with
//! `capabilities = { "agent" }`.
//!
//! ```lua
//! local conn, pair, op = target:operate { ird = 4 }  -- in either role; op.msn and op.target_msn are the MSNs of the next Sends
//! local region = target:region { octets = 64, access = { "local_write", "remote_write" }, put = "hello" }
//! region:get { offset = 0, length = 5 }              -- "hello"; region.stag, region.address, region.octets
//! local work = pair:post_receive { region = region }
//! conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "hi", msn = op.msn } })
//! pair:expect_completion { work = work, octets = 2, requirement = "RDMAP-..." }
//! pair:post_write { region = region, length = 5, stag = 7, to = 4096 }   -- and post_send, post_read, post_atomic, post_bind, post_invalidate
//! conn:expect_fpdu { opcode = 0, payload = "hello", requirement = "RDMAP-..." }
//! pair:expect_event { event = { "disconnected", "asynchronous" } }   pair:expect_error { or_end = true }   pair:expect_no_completion { within = 2 }
//! -- step by step; a responder:
//! local conn = t:connect() conn:send(t:request {}) local pair = target:expect_request { private_data = "..." }
//! pair:open {} pair:accept { private_data = "..." } conn:expect_reply {} pair:expect_event { event = "established" }
//! -- an initiator:
//! local conn, pair = target:connect { private_data = "..." } conn:expect_request {} conn:send(conn:reply {})
//! ```

use mlua::{Lua, LuaSerdeExt, Table, UserData, UserDataFields, UserDataMethods, Value};
use weft_agent::protocol::{Action, Event, Object, Octets, Success, pattern};

use super::agent_objects::{Region, Shared, Window};
use super::agent_options::RegionFields;
use super::agent_pair::Pair;
use super::agent_work::post_receive;
use super::bind::surface;
use super::lua_fields::LuaFields;
use super::message::startup_from_lua;
use super::objects::Context;
use crate::stage::{Expectation, Stage};

/// The Lua object `target`.
#[derive(Clone)]
pub(super) struct TargetVerbs {
    pub(super) context: Context,
}

/// Fields of the objects, with their types for editors.
pub(super) const REGION_FIELDS: LuaFields =
    LuaFields("stag: integer, address: integer, local_key: integer, octets: integer");
pub(super) const WINDOW_FIELDS: LuaFields = LuaFields("stag: integer");
/// Fields of the last value of `target:operate`.
pub(super) const OPERATED_FIELDS: LuaFields = LuaFields("msn: integer, target_msn: integer");

impl TargetVerbs {
    fn pair(&self, object: Object) -> Pair {
        Pair { context: self.context.clone(), object }
    }
}

surface! {
    AGENT = TargetVerbs, bind_agent |target, stage, lua|;

    /// Returns the properties and the objects of the device. See docs/agent.md.
    async device() -> "table" => match stage.agent().perform(Action::Device).await? {
        Success::Device(device) => lua.to_value(&device)?,
        _ => Err(stage.agent().wrong_answer())?,
    };

    /// Creates another Protection Domain.
    async domain() -> "integer" => match stage.agent().perform(Action::Domain).await? {
        Success::Domain { domain } => domain,
        _ => Err(stage.agent().wrong_answer())?,
    };

    /// Registers memory of the target. With `may_refuse`, returns nil and the reason of a refusal.
    async region() { agent_region as wanted } -> "weft.Region, string?" =>
        region(&target.context, &mut stage, wanted).await?;

    /// Creates a memory window that is not bound.
    async window() { agent_window as (posted, given) } -> "weft.Window" => {
        let domain = stage.agent().domain_or(given).await?;
        match stage.agent().perform(Action::Window { domain, posted }).await? {
            Success::Window { window, remote_key } => Window { object: window, stag: remote_key },
            _ => Err(stage.agent().wrong_answer())?,
        }
    };

    /// Creates a shared receive queue.
    async shared() { agent_shared as (depth, parts, given) } -> "weft.Shared" => {
        let domain = stage.agent().domain_or(given).await?;
        match stage.agent().perform(Action::Shared { domain, depth, parts }).await? {
            Success::Shared { shared } => Shared { context: target.context.clone(), object: shared },
            _ => Err(stage.agent().wrong_answer())?,
        }
    };

    /// Opens a connection in either role, and exchanges the first Send. Then the connection is in
    /// Full Operation: both sides may send FPDUs.
    async operate() { agent_operate: agent_pair as (expectation, options) }
        -> "weft.Connection, weft.Pair, weft.Operated" => {
        let request = startup_from_lua(&lua, target.context.target.description.request.clone(), None)?;
        let operated = stage.agent().operate(&options, &request, &expectation).await?;
        let op = lua.create_table()?;
        op.set("msn", operated.msn)?;
        op.set("target_msn", operated.target_msn)?;
        (target.context.connection(operated.number), target.pair(operated.pair), op)
    };

    /// Lets an Initiator connect over TCP and send its Request.
    async connect() { agent_pair as (expectation, options) } -> "weft.Connection, weft.Pair" => {
        let (number, pair) = stage.agent().connect(&options, &expectation).await?;
        (target.context.connection(number), target.pair(pair))
    };

    /// Expects that the Responder's user is notified of a Request that has these private data. Also
    /// returns the notification.
    async expect_request() { agent_request as (expectation, private_data) } -> "weft.Pair, table" => {
        let (pair, request) = expect_request(&lua, &mut stage, &expectation, private_data).await?;
        (target.pair(pair), request)
    };

    /// Returns the bytes that `fill` writes into memory.
    fn pattern(seed: i64 = "integer", length: u64 = "integer") -> "string" => {
        // Sessions with an agent have regions of several MiB.
        const MAX_PATTERN: u64 = 1 << 24;
        if length > MAX_PATTERN {
            return Err(mlua::Error::runtime(format!("target:pattern makes at most {MAX_PATTERN} bytes")));
        }
        let octets: Vec<u8> = (0..length).map(|index| pattern(seed.cast_unsigned(), index)).collect();
        lua.create_string(octets)?
    };
}

impl UserData for TargetVerbs {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_agent(methods);
    }
}

/// Registers memory and writes its first contents. If the agent refuses the registration, and the
/// script accepts a refusal, returns the reason instead of the region.
async fn region(
    context: &Context,
    stage: &mut Stage,
    wanted: RegionFields,
) -> mlua::Result<(Option<Region>, Option<String>)> {
    let domain = stage.agent().domain_or(wanted.domain).await?;
    let octets = wanted.octets;
    let action = Action::Register { domain, octets, access: wanted.access };
    let registered = match stage.agent().request(action).await? {
        Err(failure) if wanted.may_refuse => return Ok((None, Some(failure.to_string()))),
        result => stage.agent().succeeded(result)?,
    };
    let Success::Region { region, address, local_key, remote_key } = registered else {
        return Err(stage.agent().wrong_answer().into());
    };
    if let Some(seed) = wanted.fill {
        stage.agent().perform(Action::Fill { region, offset: 0, length: octets, seed }).await?;
    }
    if let Some(put) = wanted.put {
        stage.agent().perform(Action::Put { region, offset: 0, octets: Octets(put) }).await?;
    }
    let context = context.clone();
    Ok((Some(Region { context, object: region, address, local_key, stag: remote_key, octets }), None))
}

/// Expects the notification of a Request. Returns the pair, and the fields of the Request.
async fn expect_request(
    lua: &Lua,
    stage: &mut Stage,
    expectation: &Expectation,
    private_data: Option<Vec<u8>>,
) -> mlua::Result<(Object, Table)> {
    let (pair, event) = stage.agent().expect_request(expectation).await?;
    let Event::Request { private_data: received, ird, ord, .. } = event else {
        return Err(mlua::Error::runtime("the event of the agent is not a Request"));
    };
    let (expected, actual) = match &private_data {
        Some(wanted) => (format!("{:?}", Octets(wanted.clone())), format!("{received:?}")),
        None => ("a Request".to_owned(), "the target's user is notified of a Request".to_owned()),
    };
    let holds = private_data.is_none_or(|wanted| wanted == received.0);
    stage.recorder().check(holds, expectation, &expected, &actual)?;
    let request = lua.create_table()?;
    request.set("private_data", lua.create_string(&received.0)?)?;
    request.set("ird", ird)?;
    request.set("ord", ord)?;
    Ok((pair, request))
}

surface! {
    REGION = Region, bind_region |region, stage, lua|;

    /// Returns bytes of the memory.
    async get() { agent_octets as fields } -> "string" => access(&lua, &mut stage, Action::Get {
        region: region.object, offset: fields.offset, length: fields.length(region.octets),
    }).await?;

    /// Writes `octets` to the memory.
    async put() { agent_octets as fields } => access(&lua, &mut stage, Action::Put {
        region: region.object, offset: fields.offset, octets: Octets(fields.octets),
    }).await?;

    /// Fills the memory with the pattern that depends on `seed`.
    async fill() { agent_octets as fields } => access(&lua, &mut stage, Action::Fill {
        region: region.object, offset: fields.offset, length: fields.length(region.octets), seed: fields.seed,
    }).await?;

    /// Returns the CRC32c of the bytes.
    async hash() { agent_octets as fields } -> "integer" => access(&lua, &mut stage, Action::Hash {
        region: region.object, offset: fields.offset, length: fields.length(region.octets),
    }).await?;

    /// Deregisters the memory.
    async destroy() => { stage.agent().perform(Action::Destroy { object: region.object }).await?; };
}

/// Accesses memory, and returns what the agent read.
async fn access(lua: &Lua, stage: &mut Stage, action: Action) -> mlua::Result<Value> {
    match stage.agent().perform(action).await? {
        Success::Octets { octets } => lua.create_string(&octets.0).map(Value::String),
        Success::Hash { crc32c } => Ok(Value::Integer(crc32c.into())),
        _ => Ok(Value::Nil),
    }
}

impl UserData for Region {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("stag", |_, region| Ok(region.stag));
        fields.add_field_method_get("address", |_, region| Ok(region.address.cast_signed()));
        fields.add_field_method_get("local_key", |_, region| Ok(region.local_key));
        fields.add_field_method_get("octets", |_, region| Ok(region.octets));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_region(methods);
    }
}

impl UserData for Window {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("stag", |_, window| Ok(window.stag));
    }
}

surface! {
    SHARED = Shared, bind_shared |shared, stage, lua|;

    /// Posts a receive. Returns its number, or nil and the reason of a refusal.
    async post_receive() { post_receive: agent_work as work } -> "integer?, string?" =>
        post_receive(&mut stage, shared.object, &work).await?;

    /// Requests that the user is notified when fewer than this number of receives remain in the
    /// queue. Returns whether the device supports this request. If not, also returns the reason.
    async limit(receives: u32 = "integer") -> "boolean, string?" => {
        let action = Action::Limit { shared: shared.object, receives };
        let limited = stage.agent().stimulate(action).await?;
        (limited.is_ok(), limited.err().map(|failure| failure.to_string()))
    };

    /// Expects that the user is notified that fewer receives than the limit remain in the queue.
    async expect_limit() { expect_limit: answer as expectation } => stage.agent().expect_limit(&expectation).await?;
}

impl UserData for Shared {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_shared(methods);
    }
}
