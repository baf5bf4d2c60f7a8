//! A socket for datagrams to the target's port mapper, `m`; `t:mapper` gives one.
//!
//! ```lua
//! local m = t:mapper { v6 = false }
//! m:send(m:request { handle = 7 })     -- the Request that is right, with fields of portmap.message
//! local answer = m:expect { type = "accept", requirement = "PM-...", handle = 7 }
//! m:send(m:ack(answer))
//! m:expect_quiet { within = 1 }
//! local s = m:connect(answer)          -- SDP to the address that it gave
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mlua::{Table, UserData, UserDataMethods, Value};
use tokio::sync::Mutex;
use weft_core::RequirementId;

use super::location::here;
use super::message::{self, portmap_from_lua, portmap_table};
use super::options::Reader;
use super::surface::{Connection, Tester};
use crate::stage::Stage;
use crate::targets::Target;

/// `m`.
pub(super) struct Mapper {
    stage: Arc<Mutex<Stage>>,
    target: Arc<Target>,
    requirements: Arc<Vec<RequirementId>>,
    socket: usize,
    v6: bool,
}

/// The method of `t` that leads here.
pub(super) fn add_to_tester<M: UserDataMethods<Tester>>(methods: &mut M) {
    methods.add_async_method("mapper", |lua, tester, table: Option<Table>| {
        let (at, parts) = (here(&lua), (tester.stage.clone(), tester.target.clone(), tester.requirements.clone()));
        let read = tester.reader(&lua).mapper(table);
        async move {
            let (stage, target, requirements) = parts;
            let v6 = read?;
            let socket = stage.lock().await.mapper_socket(v6, at.as_ref()).await.map_err(mlua::Error::external)?;
            Ok(Mapper { stage, target, requirements, socket, v6 })
        }
    });
}

/// Where a message has its addresses (Figure 17).
pub(super) const CP_IP: usize = 16;
pub(super) const AP_IP: usize = 32;

/// An address of a message that came, `at` an octet; of IPv4 unless its IPV is 6.
pub(super) fn address(answer: &Table, at: usize) -> mlua::Result<IpAddr> {
    let octets: mlua::LuaString = answer.get("octets")?;
    let octets = octets.as_bytes();
    let field: Option<[u8; 16]> = octets.get(at..at + 16).and_then(|field| field.try_into().ok());
    let field =
        field.ok_or_else(|| mlua::Error::runtime("the answer is no port mapper message: it has no 48 octets"))?;
    Ok(match answer.get::<Option<u8>>("ipv")? {
        Some(6) => IpAddr::from(field),
        _ => IpAddr::from([field[0], field[1], field[2], field[3]]),
    })
}

impl Mapper {
    fn reader<'a>(&'a self, lua: &'a mlua::Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }
}

impl UserData for Mapper {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // m:request { service = "mapped" | "unmapped" | "made", ... }
        methods.add_async_method("request", |lua, m, table: Option<Table>| {
            let (stage, socket) = (m.stage.clone(), m.socket);
            let (target, v6) = (m.target.clone(), m.v6);
            async move {
                let table = match table {
                    Some(table) => table,
                    None => lua.create_table()?,
                };
                let which: Option<String> = table.raw_get("service")?;
                table.raw_set("service", Value::Nil)?;
                let service = match which.as_deref() {
                    Some("unmapped") => target.description.mapper.unmapped,
                    Some("made") if let Some(made) = target.description.mapper.made => made,
                    None | Some("mapped" | "made") => target
                        .description
                        .mapper
                        .v6
                        .filter(|_| v6)
                        .map_or(target.description.mapper.mapped, |(_, service)| service),
                    Some(_) => {
                        let why = "request: service: expected \"mapped\", \"unmapped\" or \"made\"";
                        return Err(mlua::Error::runtime(why));
                    }
                };
                let (own, next) = stage.lock().await.mapper_address(socket);
                // One of IPv6 opens no connection.
                let connecting = if v6 { own } else { next };
                let fill = |name: &str, value: Value| match table.raw_get::<Value>(name)? {
                    Value::Nil => table.raw_set(name, value),
                    _ => Ok(()),
                };
                fill("cp_ip", Value::String(lua.create_string(connecting.ip().to_string())?))?;
                fill("cp_port", Value::Integer(connecting.port().into()))?;
                fill("ap_ip", Value::String(lua.create_string(service.ip().to_string())?))?;
                fill("ap_port", Value::Integer(service.port().into()))?;
                portmap_from_lua(&lua, Some(table))
            }
        });
        // m:ack(answer, { ... }): the PMAck to a PMAccept, with other fields.
        methods.add_method("ack", |lua, _, (answer, table): (Table, Option<Table>)| {
            let table = match table {
                Some(table) => table,
                None => lua.create_table()?,
            };
            for name in ["ap_port", "cp_port", "handle", "ipv"] {
                if table.raw_get::<Value>(name)?.is_nil() {
                    table.raw_set(name, answer.raw_get::<Value>(name)?)?;
                }
            }
            // By its octets: what stands behind an IPv4 address is the answer's own affair.
            for (name, at) in [("cp_ip", CP_IP), ("ap_ip", AP_IP)] {
                if table.raw_get::<Value>(name)?.is_nil() {
                    let mut field = [0; 16];
                    match address(&answer, at)? {
                        IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
                        IpAddr::V6(address) => field = address.octets(),
                    }
                    table.raw_set(name, lua.create_string(field)?)?;
                }
            }
            if table.raw_get::<Value>("type")?.is_nil() {
                table.raw_set("type", "ack")?;
            }
            portmap_from_lua(lua, Some(table))
        });
        methods.add_async_method("send", |lua, m, (value, table): (Value, Option<Table>)| {
            let (at, stage, socket) = (here(&lua), m.stage.clone(), m.socket);
            let read = message::from_value(value).and_then(|message| Ok((message, m.reader(&lua).mapper_send(table)?)));
            async move {
                let (message, deviates) = read?;
                let mut stage = stage.lock().await;
                if deviates {
                    stage.mapper_deviates(at.as_ref()).await.map_err(mlua::Error::external)?;
                }
                stage.mapper_send(socket, &message, at.as_ref()).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect", |lua, m, table: Option<Table>| {
            let (stage, socket) = (m.stage.clone(), m.socket);
            let read = m.reader(&lua).mapper_expect(table);
            async move {
                let (expectation, fields) = read?;
                let came = stage.lock().await.mapper_expect(socket, &expectation, &fields).await;
                let (from, octets) = came.map_err(mlua::Error::external)?;
                portmap_table(&lua, &from.to_string(), &octets)
            }
        });
        methods.add_async_method("expect_quiet", |lua, m, table: Option<Table>| {
            let (stage, socket) = (m.stage.clone(), m.socket);
            let read = m.reader(&lua).mapper_quiet(table);
            async move {
                let (expectation, or_deny) = read?;
                let quiet = stage.lock().await.mapper_quiet(socket, &expectation, or_deny).await;
                quiet.map_err(mlua::Error::external)
            }
        });
        // m:connect(answer, { requirement = ... }): TCP to the address of a PMAccept, from its
        // CpPort.
        methods.add_async_method("connect", |lua, m, (answer, table): (Table, Option<Table>)| {
            let socket = m.socket;
            let parts = (m.stage.clone(), m.target.clone(), m.requirements.clone());
            let read = m.reader(&lua).mapper_quiet(table);
            async move {
                let (stage, target, requirements) = parts;
                let (expectation, _) = read?;
                let to = SocketAddr::new(address(&answer, AP_IP)?, answer.get("ap_port")?);
                let mut locked = stage.lock().await;
                let from = SocketAddr::new(locked.mapper_address(socket).0.ip(), answer.get("cp_port")?);
                let connected = locked.mapper_connect((from, to), &expectation).await;
                drop(locked);
                let number = connected.map_err(mlua::Error::external)?;
                Ok(Connection { stage, target, requirements, number })
            }
        });
    }
}
