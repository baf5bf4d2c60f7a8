//! What drives the target's own verbs, `target`: the third parameter of a case that has
//! `capabilities = { "agent" }`.
//!
//! ```lua
//! local conn, pair, op = target:operate { ird = 4 }  -- in either role: FPDUs may go both ways; op.msn, op.target_msn are the next Sends'
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

use std::sync::Arc;

use mlua::{Lua, LuaSerdeExt, Table, UserData, UserDataFields, UserDataMethods, Value};
use tokio::sync::Mutex;
use weft_agent::protocol::{Action, Done, Event, Object, Octets, pattern};
use weft_core::RequirementId;

use super::agent_options::WorkFields;
use super::agent_pair::Pair;
use super::location::here;
use super::message;
use super::options::Reader;
use super::surface::Connection;
use crate::model::SourceLocation;
use crate::stage::{Stage, Stop};
use crate::targets::Target;

/// `target`.
#[derive(Clone)]
pub(super) struct TargetVerbs {
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) target: Arc<Target>,
    pub(super) requirements: Arc<Vec<RequirementId>>,
}

/// `region`.
#[derive(Clone)]
pub(super) struct Region {
    stage: Arc<Mutex<Stage>>,
    agent: TargetVerbs,
    pub(super) object: Object,
    address: u64,
    local_key: u32,
    stag: u32,
    pub(super) octets: u64,
}

/// A window.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) object: Object,
    stag: u32,
}

/// A shared receive queue.
#[derive(Clone)]
pub(super) struct Shared {
    agent: TargetVerbs,
    pub(super) object: Object,
}

/// Fields that the objects have.
pub(super) const REGION_FIELDS: [(&str, &str); 4] =
    [("stag", "integer"), ("address", "integer"), ("local_key", "integer"), ("octets", "integer")];
pub(super) const WINDOW_FIELDS: [(&str, &str); 1] = [("stag", "integer")];
/// Fields of what [`TargetVerbs`]'s `operate` gives last.
pub(super) const OPERATED_FIELDS: [(&str, &str); 2] = [("msn", "integer"), ("target_msn", "integer")];

/// The end of a case, for Lua.
pub(super) fn stopped<T>(result: Result<T, Stop>) -> mlua::Result<T> {
    result.map_err(mlua::Error::external)
}

impl TargetVerbs {
    pub(super) fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }

    fn connection(&self, number: u32) -> Connection {
        let (stage, target, requirements) = (self.stage.clone(), self.target.clone(), self.requirements.clone());
        Connection { stage, target, requirements, number }
    }

    fn pair(&self, object: Object) -> Pair {
        Pair { agent: self.clone(), object }
    }

    /// Asks for something that stimulates nothing.
    async fn done(&self, action: Action, at: Option<&SourceLocation>) -> mlua::Result<Done> {
        stopped(self.stage.lock().await.agent_done(action, at).await)
    }

    async fn domain(&self, domain: Option<Object>, at: Option<&SourceLocation>) -> mlua::Result<Object> {
        match domain {
            Some(domain) => Ok(domain),
            None => stopped(self.stage.lock().await.agent_domain(at).await),
        }
    }

    async fn odd(&self, at: Option<&SourceLocation>) -> mlua::Error {
        mlua::Error::external(self.stage.lock().await.agent_gone("answers something else", at))
    }

    /// Posts a work request; gives its number, and `nil` with the reason where it may be refused
    /// and is.
    pub(super) async fn post(
        &self,
        work: &WorkFields,
        at: Option<&SourceLocation>,
        action: impl FnOnce(u64) -> Action,
    ) -> mlua::Result<(Option<u64>, Done, Option<String>)> {
        let mut stage = self.stage.lock().await;
        let number = work.work.unwrap_or_else(|| stage.agent_work());
        match stopped(stage.agent_stimulus(action(number), at).await)? {
            Ok(done) => Ok((Some(number), done, None)),
            Err(failure) if work.may_refuse => Ok((None, Done::Nothing, Some(failure.to_string()))),
            Err(failure) => Err(mlua::Error::external(stage.agent_gone(&format!("does not do it: {failure}"), at))),
        }
    }

    pub(super) async fn post_receive(
        &self,
        on: Object,
        work: WorkFields,
        at: Option<&SourceLocation>,
    ) -> mlua::Result<(Option<u64>, Option<String>)> {
        let parts = work.parts.clone();
        let (number, _, why) = self.post(&work, at, |work| Action::PostReceive { on, work, parts }).await?;
        Ok((number, why))
    }
}

impl UserData for TargetVerbs {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("device", |lua, agent, ()| {
            let (at, agent) = (here(&lua), agent.clone());
            async move {
                match agent.done(Action::Device, at.as_ref()).await? {
                    Done::Device(device) => lua.to_value(&device),
                    _ => Err(agent.odd(at.as_ref()).await),
                }
            }
        });
        methods.add_async_method("domain", |lua, agent, ()| {
            let (at, agent) = (here(&lua), agent.clone());
            async move {
                match agent.done(Action::Domain, at.as_ref()).await? {
                    Done::Domain { domain } => Ok(domain),
                    _ => Err(agent.odd(at.as_ref()).await),
                }
            }
        });
        methods.add_async_method("region", |lua, agent, table: Option<Table>| {
            let (at, agent) = (here(&lua), agent.clone());
            let read = agent.reader(&lua).agent_region(table);
            async move {
                let (wanted, at) = (read?, at.as_ref());
                let domain = agent.domain(wanted.domain, at).await?;
                let octets = wanted.octets;
                let action = Action::Register { domain, octets, access: wanted.access };
                let Done::Region { region, address, local_key, remote_key } = agent.done(action, at).await? else {
                    return Err(agent.odd(at).await);
                };
                if let Some(seed) = wanted.fill {
                    agent.done(Action::Fill { region, offset: 0, length: octets, seed }, at).await?;
                }
                if let Some(put) = wanted.put {
                    agent.done(Action::Put { region, offset: 0, octets: Octets(put) }, at).await?;
                }
                let stage = agent.stage.clone();
                Ok(Region { stage, agent, object: region, address, local_key, stag: remote_key, octets })
            }
        });
        methods.add_async_method("window", |lua, agent, table: Option<Table>| {
            let (at, agent) = (here(&lua), agent.clone());
            let read = agent.reader(&lua).agent_window(table);
            async move {
                let (posted, domain) = read?;
                let domain = agent.domain(domain, at.as_ref()).await?;
                match agent.done(Action::Window { domain, posted }, at.as_ref()).await? {
                    Done::Window { window, remote_key } => Ok(Window { object: window, stag: remote_key }),
                    _ => Err(agent.odd(at.as_ref()).await),
                }
            }
        });
        methods.add_async_method("shared", |lua, agent, table: Option<Table>| {
            let (at, agent) = (here(&lua), agent.clone());
            let read = agent.reader(&lua).agent_shared(table);
            async move {
                let (depth, parts, domain) = read?;
                let domain = agent.domain(domain, at.as_ref()).await?;
                match agent.done(Action::Shared { domain, depth, parts }, at.as_ref()).await? {
                    Done::Shared { shared } => Ok(Shared { agent, object: shared }),
                    _ => Err(agent.odd(at.as_ref()).await),
                }
            }
        });
        methods.add_async_method("operate", |lua, agent, table: Option<Table>| {
            let agent = agent.clone();
            let read = agent.reader(&lua).agent_pair(table, "agent_operate");
            async move {
                let (expectation, options) = read?;
                let request = message::startup_from_lua(&lua, agent.target.description.request.clone(), None)?;
                let operated = agent.stage.lock().await.agent_operate(&options, &request, &expectation).await;
                let operated = stopped(operated)?;
                let op = lua.create_table()?;
                op.set("msn", operated.msn)?;
                op.set("target_msn", operated.target_msn)?;
                Ok((agent.connection(operated.number), agent.pair(operated.pair), op))
            }
        });
        methods.add_async_method("connect", |lua, agent, table: Option<Table>| {
            let agent = agent.clone();
            let read = agent.reader(&lua).agent_pair(table, "agent_pair");
            async move {
                let (expectation, options) = read?;
                let connected = agent.stage.lock().await.agent_connect(&options, &expectation).await;
                let (number, pair) = stopped(connected)?;
                Ok((agent.connection(number), agent.pair(pair)))
            }
        });
        methods.add_async_method("expect_request", |lua, agent, table: Option<Table>| {
            let agent = agent.clone();
            let read = agent.reader(&lua).agent_request(table);
            async move {
                let (expectation, private_data) = read?;
                let mut stage = agent.stage.lock().await;
                let (pair, told) = stopped(stage.agent_request(&expectation).await)?;
                let Event::Request { private_data: came, ird, ord, .. } = told else {
                    return Err(mlua::Error::runtime("no request"));
                };
                let (expected, actual) = match &private_data {
                    Some(wanted) => (format!("{:?}", Octets(wanted.clone())), format!("{came:?}")),
                    None => ("a Request".to_owned(), "its user is told of it".to_owned()),
                };
                let holds = private_data.is_none_or(|wanted| wanted == came.0);
                stopped(stage.check(holds, &expectation, &expected, &actual))?;
                let request = lua.create_table()?;
                request.set("private_data", lua.create_string(&came.0)?)?;
                request.set("ird", ird)?;
                request.set("ord", ord)?;
                Ok((agent.pair(pair), request))
            }
        });
        methods.add_method("pattern", |lua, _, (seed, length): (i64, u64)| {
            const MOST: u64 = 1 << 20;
            if length > MOST {
                return Err(mlua::Error::runtime(format!("target:pattern makes at most {MOST} octets")));
            }
            let octets: Vec<u8> = (0..length).map(|index| pattern(seed.cast_unsigned(), index)).collect();
            lua.create_string(octets)
        });
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
        for name in ["get", "put", "fill", "hash"] {
            methods.add_async_method(name, move |lua, region, table: Option<Table>| {
                let (at, agent, region) = (here(&lua), region.agent.clone(), region.clone());
                let read = agent.reader(&lua).agent_octets(table, region.octets);
                async move {
                    let (it, region) = (read?, region.object);
                    let (offset, length) = (it.offset, it.length);
                    let action = match name {
                        "get" => Action::Get { region, offset, length },
                        "put" => Action::Put { region, offset, octets: Octets(it.octets) },
                        "fill" => Action::Fill { region, offset, length, seed: it.seed },
                        _ => Action::Hash { region, offset, length },
                    };
                    match agent.done(action, at.as_ref()).await? {
                        Done::Octets { octets } => lua.create_string(&octets.0).map(Value::String),
                        Done::Hash { crc32c } => Ok(Value::Integer(crc32c.into())),
                        _ => Ok(Value::Nil),
                    }
                }
            });
        }
        methods.add_async_method("destroy", |lua, region, ()| {
            let (at, stage, object) = (here(&lua), region.stage.clone(), region.object);
            async move { stopped(stage.lock().await.agent_done(Action::Destroy { object }, at.as_ref()).await).map(|_| ()) }
        });
    }
}

impl UserData for Window {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("stag", |_, window| Ok(window.stag));
    }
}

impl UserData for Shared {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("post_receive", |lua, shared, table: Option<Table>| {
            let (at, agent, on) = (here(&lua), shared.agent.clone(), shared.object);
            let read = agent.reader(&lua).agent_work(table, "post_receive", |_| Ok(()));
            async move { agent.post_receive(on, read?.0, at.as_ref()).await }
        });
        methods.add_async_method("limit", |lua, shared, receives: u32| {
            let (at, stage) = (here(&lua), shared.agent.stage.clone());
            let action = Action::Limit { shared: shared.object, receives };
            async move {
                let limited = stopped(stage.lock().await.agent_stimulus(action, at.as_ref()).await)?;
                Ok((limited.is_ok(), limited.err().map(|failure| failure.to_string())))
            }
        });
        methods.add_async_method("expect_limit", |lua, shared, table: Option<Table>| {
            let (read, stage) = (shared.agent.reader(&lua).expect_limit(table), shared.agent.stage.clone());
            async move { stopped(stage.lock().await.expect_limit(&read?).await) }
        });
    }
}
