//! The port mapper that a target asks, `m`; `t:port_mapper` gives it.
//!
//! ```lua
//! local m = t:port_mapper {}
//! m:start { service = 1 }                             -- the target shall connect to a service, and so asks
//! local request = m:expect { type = "req" }
//! local place = m:place {}                            -- a TCP address of the tester's: { ip, port }
//! m:answer(request, m:accept(request, { at = place, pm_time = 8 }))
//! local ack = m:expect { type = "ack", requirement = "PM-..." }
//! local conn = m:expect_connection { at = place }
//! conn:expect_from { port = request.cp_port }
//! conn:expect_sdp {}
//! m:answer(request, m:deny(request))
//! local conn = m:expect_connection { at = m:service { service = 1 } }
//! conn:expect_plain {}
//! m:send(message, request)                            -- what answers nothing
//! m:answer(request, message, { deviates = true })     -- the step that differs from a plain exchange: see stage/control.rs
//! m:expect_quiet {}   m:expect_no_connection {}
//! local count, ended = m:count_repeats { most = 3, within = 60 }  -- ended: "connection", "most" or "quiet"
//! if m:waiting() == "connection" then ... end                    -- or "datagram", or nil
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mlua::{Lua, LuaString, Table, UserData, UserDataMethods, Value};
use tokio::sync::Mutex;
use weft_core::RequirementId;

use super::location::here;
use super::mapper::{AP_IP, CP_IP};
use super::message::{self, portmap_from_lua, portmap_table};
use super::options::Reader;
use super::surface::{Connection, Tester};
use crate::stage::{Ended, Stage};
use crate::targets::Target;

/// `m`.
pub(super) struct PortMapper {
    stage: Arc<Mutex<Stage>>,
    target: Arc<Target>,
    requirements: Arc<Vec<RequirementId>>,
    v6: bool,
}

/// The fields of a place.
pub(crate) const PLACE_FIELDS: [(&str, &str); 3] = [("ip", "string"), ("octets", "string"), ("port", "integer")];

/// The method of `t` that leads here.
pub(super) fn add_to_tester<M: UserDataMethods<Tester>>(methods: &mut M) {
    methods.add_method("port_mapper", |lua, tester, table: Option<Table>| {
        let v6 = tester.reader(lua).mapper(table)?;
        let (stage, target, requirements) = (tester.stage.clone(), tester.target.clone(), tester.requirements.clone());
        Ok(PortMapper { stage, target, requirements, v6 })
    });
}

impl PortMapper {
    fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }
}

fn place_table(lua: &Lua, place: SocketAddr) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("ip", place.ip().to_string())?;
    let octets = match place.ip() {
        IpAddr::V4(ip) => lua.create_string(ip.octets())?,
        IpAddr::V6(ip) => lua.create_string(ip.octets())?,
    };
    table.set("octets", octets)?;
    table.set("port", place.port())?;
    Ok(table)
}

/// A place as [`place_table`] gives it.
pub(super) fn place_from(table: &Table) -> mlua::Result<SocketAddr> {
    let ip: String = table.get("ip")?;
    let ip: IpAddr = ip.parse().map_err(|_| mlua::Error::runtime(format!("{ip:?} is no address")))?;
    Ok(SocketAddr::new(ip, table.get("port")?))
}

/// Where a datagram came from.
fn sender(request: &Table) -> mlua::Result<SocketAddr> {
    let from: String = request.get("from")?;
    from.parse().map_err(|_| mlua::Error::runtime(format!("{from:?} is no address and port")))
}

/// An answer with what it has of its PMReq, unless `table` says otherwise.
fn answering(lua: &Lua, kind: &str, request: &Table, table: Table) -> mlua::Result<message::Message> {
    let octets: LuaString = request.get("octets")?;
    let field = |at: usize| match octets.as_bytes().get(at..at + 16) {
        Some(field) => lua.create_string(field),
        None => Err(mlua::Error::runtime("the request is no port mapper message: it has no 48 octets")),
    };
    let fill = |name: &str, value: Value| match table.raw_get::<Value>(name)? {
        Value::Nil => table.raw_set(name, value),
        _ => Ok(()),
    };
    fill("type", Value::String(lua.create_string(kind)?))?;
    for name in ["ipv", "cp_port", "handle"] {
        fill(name, request.get(name)?)?;
    }
    fill("cp_ip", Value::String(field(CP_IP)?))?;
    fill("ap_ip", Value::String(field(AP_IP)?))?;
    portmap_from_lua(lua, Some(table))
}

fn or_new(lua: &Lua, table: Option<Table>) -> mlua::Result<Table> {
    table.map_or_else(|| lua.create_table(), Ok)
}

impl UserData for PortMapper {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("service", |lua, m, table: Option<Table>| {
            let (at, stage, v6) = (here(&lua), m.stage.clone(), m.v6);
            let read = m.reader(&lua).asked_service(table);
            async move {
                let service = stage.lock().await.asked_service(read?, v6, at.as_ref());
                place_table(&lua, service.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("place", |lua, m, table: Option<Table>| {
            let (at, stage, v6) = (here(&lua), m.stage.clone(), m.v6);
            let read = m.reader(&lua).asked_place(table);
            async move {
                let (other, refuses) = read?;
                let place = stage.lock().await.asked_place(v6, other, !refuses, at.as_ref());
                place_table(&lua, place.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("start", |lua, m, table: Option<Table>| {
            let (at, stage, v6) = (here(&lua), m.stage.clone(), m.v6);
            let read = m.reader(&lua).asked_service(table);
            async move {
                let mut stage = stage.lock().await;
                let service = stage.asked_service(read?, v6, at.as_ref()).map_err(mlua::Error::external)?;
                stage.asked_start(service, at.as_ref()).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect", |lua, m, table: Option<Table>| {
            let stage = m.stage.clone();
            let read = m.reader(&lua).asked_expect(table);
            async move {
                let (expectation, fields) = read?;
                let came = stage.lock().await.asked_expect(&expectation, &fields).await;
                let came = came.map_err(mlua::Error::external)?;
                portmap_table(&lua, &came.from.to_string(), &came.octets)
            }
        });
        // m:accept(request, { at = place, ... })
        methods.add_method("accept", |lua, _, (request, table): (Table, Option<Table>)| {
            let table = or_new(lua, table)?;
            if let Some(place) = table.raw_get::<Option<Table>>("at")? {
                table.raw_set("at", Value::Nil)?;
                let place = place_from(&place)?;
                table.raw_set("ap_ip", place.ip().to_string())?;
                table.raw_set("ap_port", place.port())?;
            }
            answering(lua, "accept", &request, table)
        });
        methods.add_method("deny", |lua, _, (request, table): (Table, Option<Table>)| {
            answering(lua, "deny", &request, or_new(lua, table)?)
        });
        // m:answer(request, message, { aside = true })
        methods.add_async_method("answer", |lua, m, (request, value, table): (Table, Value, Option<Table>)| {
            let (at, stage) = (here(&lua), m.stage.clone());
            let read = m.reader(&lua).asked_send(table);
            async move {
                let (how, message) = (read?, message::from_value(value)?);
                let octets: LuaString = request.get("octets")?;
                let (to, octets) = (sender(&request)?, octets.as_bytes().to_vec());
                let sent = stage.lock().await.asked_send(&message, to, how, Some(octets), at.as_ref()).await;
                sent.map_err(mlua::Error::external)
            }
        });
        // m:send(message, request, { aside = true }): to where the request came from.
        methods.add_async_method("send", |lua, m, (value, request, table): (Value, Table, Option<Table>)| {
            let (at, stage) = (here(&lua), m.stage.clone());
            let read = m.reader(&lua).asked_send(table);
            async move {
                let (how, message, to) = (read?, message::from_value(value)?, sender(&request)?);
                let sent = stage.lock().await.asked_send(&message, to, how, None, at.as_ref()).await;
                sent.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("waiting", |_, m, ()| {
            let stage = m.stage.clone();
            async move {
                let waiting = stage.lock().await.asked_waiting();
                Ok(waiting.map(|connection| if connection { "connection" } else { "datagram" }))
            }
        });
        methods.add_async_method("count_repeats", |lua, m, table: Option<Table>| {
            let stage = m.stage.clone();
            let read = m.reader(&lua).asked_repeats(table);
            async move {
                let (expectation, most) = read?;
                let counted = stage.lock().await.asked_repeats(expectation.within, most, expectation.at.as_ref()).await;
                let (count, ended) = counted.map_err(mlua::Error::external)?;
                let ended = match ended {
                    Ended::Connection => "connection",
                    Ended::Most => "most",
                    Ended::Quiet => "quiet",
                };
                Ok((count, ended))
            }
        });
        methods.add_async_method("expect_quiet", |lua, m, table: Option<Table>| {
            let stage = m.stage.clone();
            let read = m.reader(&lua).asked_quiet(table, "asked_quiet");
            async move {
                let quiet = stage.lock().await.asked_quiet(&read?).await;
                quiet.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_no_connection", |lua, m, table: Option<Table>| {
            let stage = m.stage.clone();
            let read = m.reader(&lua).asked_quiet(table, "asked_quiet");
            async move {
                let quiet = stage.lock().await.asked_no_connection(&read?).await;
                quiet.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_connection", |lua, m, table: Option<Table>| {
            let (stage, target, requirements) = (m.stage.clone(), m.target.clone(), m.requirements.clone());
            let read = m.reader(&lua).asked_connection(table);
            async move {
                let (expectation, place) = read?;
                let came = stage.lock().await.asked_connection(&expectation, place).await;
                let number = came.map_err(mlua::Error::external)?;
                Ok(Connection { stage, target, requirements, number })
            }
        });
    }
}
