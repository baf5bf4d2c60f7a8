//! A socket for datagrams to the target's port mapper: the Lua object `m`. `t:mapper` opens one.
//!
//! ```lua
//! local m = t:mapper { v6 = false }
//! m:send(m:request { handle = 7 })     -- the correct PMReq, with fields of portmap.message
//! local answer = m:expect { type = "accept", requirement = "PM-...", handle = 7 }
//! m:send(m:ack(answer))
//! m:expect_quiet { within = 1 }
//! local conn = m:connect(answer)       -- TCP to the address in the answer
//! ```

use std::net::{IpAddr, SocketAddr};

use mlua::{Lua, Table, UserData, UserDataMethods, Value};

use super::bind::surface;
use super::message::{self, portmap_from_lua, portmap_table};
use super::objects::{Context, Tester};
use crate::stage::Message;

/// The Lua object `m`.
#[derive(Clone)]
pub(super) struct Mapper {
    context: Context,
    socket: usize,
    v6: bool,
}

/// The byte offsets of the addresses in a message (draft-pinkerton-iwarp-sdp-01 Figure 17).
pub(super) const CP_IP: usize = 16;
pub(super) const AP_IP: usize = 32;

/// Returns the address at a byte offset of a received message. The address is IPv6 if the field IPV
/// is 6, otherwise IPv4.
pub(super) fn address(answer: &Table, at: usize) -> mlua::Result<IpAddr> {
    let octets: mlua::LuaString = answer.get("octets")?;
    let octets = octets.as_bytes();
    let field: Option<[u8; 16]> = octets.get(at..at + 16).and_then(|field| field.try_into().ok());
    let field = field
        .ok_or_else(|| mlua::Error::runtime("the answer is not a port mapper message: it has fewer than 48 bytes"))?;
    Ok(match answer.get::<Option<u8>>("ipv")? {
        Some(6) => IpAddr::from(field),
        _ => IpAddr::from([field[0], field[1], field[2], field[3]]),
    })
}

surface! {
    TESTER_MAPPER = Tester, bind_tester |t, stage, lua|;

    /// Opens a socket for datagrams to the target's port mapper.
    async mapper() { mapper as v6 } -> "weft.Mapper" =>
        Mapper { context: t.context.clone(), socket: stage.mapper_server().open(v6).await?, v6 };
}

surface! {
    MAPPER = Mapper, bind_mapper |m, stage, lua|;

    /// Builds the correct PMReq. `service` may be "mapped", "unmapped" or "made".
    async request() { "portmap.message" as table } -> "weft.Message" =>
        request(&lua, &m, stage.mapper_server().addresses(m.socket), or_new(&lua, table)?)?;

    /// Builds the PMAck to a PMAccept.
    fn ack(answer: Table = "weft.PortMapperMessage") { "portmap.message" as table } -> "weft.Message" =>
        ack(lua, &answer, or_new(lua, table)?)?;

    /// Sends a datagram.
    async send(message: Value = "weft.Message|string") { mapper_send as deviates } => {
        let message = message::from_value(message)?;
        if deviates {
            stage.mapper_deviates().await?;
        }
        stage.mapper_server().send(m.socket, &message).await?;
    };

    /// Expects that the next datagram has these fields.
    async expect() { mapper_expect as (expectation, wanted) } -> "weft.PortMapperMessage" => {
        let (from, octets) = stage.mapper_server().expect(m.socket, &expectation, &wanted).await?;
        portmap_table(&lua, &from.to_string(), &octets)?
    };

    /// Returns the next datagram, and judges nothing. The second value is whether the datagram came
    /// from the queried address and port of the port mapper. Returns nil if nothing arrives.
    async next() { waiting as expectation } -> "weft.PortMapperMessage?, boolean?" =>
        match stage.mapper_server().next(m.socket, &expectation).await? {
            Some((from, octets, is_from_there)) => {
                (Some(portmap_table(&lua, &from.to_string(), &octets)?), Some(is_from_there))
            }
            None => (None, None),
        };

    /// Expects that no datagram arrives.
    async expect_quiet() { mapper_quiet as (expectation, or_deny) } =>
        stage.mapper_server().expect_quiet(m.socket, &expectation, or_deny).await?;

    /// Opens a TCP connection to the address in a PMAccept, from the port in the PMAccept's CpPort.
    async connect(answer: Table = "weft.PortMapperMessage") { mapper_quiet as (expectation, _) } -> "weft.Connection" => {
        let to = SocketAddr::new(address(&answer, AP_IP)?, answer.get("ap_port")?);
        let from = SocketAddr::new(stage.mapper_server().addresses(m.socket).0.ip(), answer.get("cp_port")?);
        m.context.connection(stage.mapper_server().connect((from, to), &expectation).await?)
    };
}

impl UserData for Mapper {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_mapper(methods);
    }
}

/// Returns the table, or a new table if there is none.
pub(super) fn or_new(lua: &Lua, table: Option<Table>) -> mlua::Result<Table> {
    table.map_or_else(|| lua.create_table(), Ok)
}

/// Sets a field that the script has not set.
pub(super) fn fill(table: &Table, name: &str, value: Value) -> mlua::Result<()> {
    match table.raw_get::<Value>(name)? {
        Value::Nil => table.raw_set(name, value),
        _ => Ok(()),
    }
}

/// Builds a PMReq. `own` is the socket's address, and `next` is the address that the tester's next
/// connection will come from.
fn request(lua: &Lua, m: &Mapper, (own, next): (SocketAddr, SocketAddr), table: Table) -> mlua::Result<Message> {
    let target = &m.context.target;
    let which: Option<String> = table.raw_get("service")?;
    table.raw_set("service", Value::Nil)?;
    let service = match which.as_deref() {
        Some("unmapped") => target.description.mapper.unmapped,
        Some("made") if let Some(made) = target.description.mapper.made => made,
        None | Some("mapped" | "made") => target
            .description
            .mapper
            .v6
            .filter(|_| m.v6)
            .map_or(target.description.mapper.mapped, |(_, service)| service),
        Some(_) => {
            let why = "request: service: expected \"mapped\", \"unmapped\" or \"made\"";
            return Err(mlua::Error::runtime(why));
        }
    };
    // After a PMReq over IPv6, the tester opens no connection.
    let connecting = if m.v6 { own } else { next };
    let ip = |address: SocketAddr| Ok::<_, mlua::Error>(Value::String(lua.create_string(address.ip().to_string())?));
    fill(&table, "cp_ip", ip(connecting)?)?;
    fill(&table, "cp_port", Value::Integer(connecting.port().into()))?;
    fill(&table, "ap_ip", ip(service)?)?;
    fill(&table, "ap_port", Value::Integer(service.port().into()))?;
    portmap_from_lua(lua, Some(table))
}

/// Builds the PMAck to a PMAccept.
fn ack(lua: &Lua, answer: &Table, table: Table) -> mlua::Result<Message> {
    for name in ["ap_port", "cp_port", "handle", "ipv"] {
        fill(&table, name, answer.raw_get(name)?)?;
    }
    // Copies an IPv4 address, but not the bytes after it in the field.
    for (name, at) in [("cp_ip", CP_IP), ("ap_ip", AP_IP)] {
        if table.raw_get::<Value>(name)?.is_nil() {
            let mut field = [0; 16];
            match address(answer, at)? {
                IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
                IpAddr::V6(address) => field = address.octets(),
            }
            table.raw_set(name, lua.create_string(field)?)?;
        }
    }
    fill(&table, "type", Value::String(lua.create_string("ack")?))?;
    portmap_from_lua(lua, Some(table))
}
