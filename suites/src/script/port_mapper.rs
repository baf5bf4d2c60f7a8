//! A port mapper to which the target sends requests: the Lua object `m`. `t:port_mapper` opens it.
//!
//! ```lua
//! local m = t:port_mapper {}
//! m:start { service = 1 }              -- lets the target connect to a service, so it sends a PMReq
//! local request = m:expect { type = "req" }
//! local place = m:place {}             -- a TCP address of the tester: { ip, port }
//! m:answer(request, m:accept(request, { at = place, pm_time = 8 }))
//! local ack = m:expect { type = "ack", requirement = "PM-..." }
//! local conn = m:expect_connection { at = place }
//! conn:expect_from { port = request.cp_port }
//! conn:expect_sdp {}
//! ```

use std::net::{IpAddr, SocketAddr};

use mlua::{Lua, LuaString, Table, UserData, UserDataMethods, Value};

use super::bind::surface;
use super::lua_fields::LuaFields;
use super::mapper::{AP_IP, CP_IP, fill, or_new};
use super::message::{self, portmap_from_lua, portmap_table};
use super::objects::{Context, Tester};
use crate::stage::{Message, RepetitionEnd};

/// The Lua object `m`.
#[derive(Clone)]
pub(super) struct PortMapper {
    context: Context,
    v6: bool,
}

/// The fields of a place: a TCP address of the tester.
pub(crate) const PLACE_FIELDS: LuaFields = LuaFields("ip: string, octets: string, port: integer");

surface! {
    TESTER_PORT_MAPPER = Tester, bind_tester |t, stage, lua|;

    /// Opens the port mapper to which the target sends requests.
    fn port_mapper() { mapper as v6 } -> "weft.PortMapper" => PortMapper { context: t.context.clone(), v6 };
}

surface! {
    PORT_MAPPER = PortMapper, bind_port_mapper |m, stage, lua|;

    /// Returns the Conventional Address of a service.
    async service() { port_mapper_service as service } -> "weft.Place" =>
        place_table(&lua, stage.mapper_client().service(service, m.v6)?)?;

    /// Returns a TCP address of the tester.
    async place() { port_mapper_place as (other, refuses) } -> "weft.Place" =>
        place_table(&lua, stage.mapper_client().address(m.v6, other, !refuses)?)?;

    /// Lets the target connect to a service, and waits for a datagram or a connection.
    async start() { port_mapper_service as service } => {
        let service = stage.mapper_client().service(service, m.v6)?;
        stage.mapper_client().start(service).await?;
    };

    /// Expects that the next datagram has these fields. Connections remain for later expectations.
    async expect() { port_mapper_expect as (expectation, wanted) } -> "weft.PortMapperMessage" => {
        let datagram = stage.mapper_client().expect(&expectation, &wanted).await?;
        portmap_table(&lua, &datagram.from.to_string(), &datagram.octets)?
    };

    /// Builds the correct PMAccept to a PMReq. The PMAccept contains the address of the place `at`.
    fn accept(request: Table = "weft.PortMapperMessage") { "portmap.message" as table } -> "weft.Message" =>
        accept(lua, &request, or_new(lua, table)?)?;

    /// Builds the correct PMDeny to a PMReq.
    fn deny(request: Table = "weft.PortMapperMessage") { "portmap.message" as table } -> "weft.Message" =>
        answer(lua, "deny", &request, or_new(lua, table)?)?;

    /// Answers a PMReq and its repetitions.
    async answer(request: Table = "weft.PortMapperMessage", message: Value = "weft.Message|string") { port_mapper_send as options } => {
        let message = message::from_value(message)?;
        let octets = request.get::<LuaString>("octets")?.as_bytes().to_vec();
        let to = sender(&request)?;
        if options.deviates {
            stage.mapper_deviates().await?;
        }
        stage.mapper_client().send(&message, to, options.other_port, Some(octets)).await?;
    };

    /// Sends a datagram to the sender of a PMReq.
    async send(message: Value = "weft.Message|string", request: Table = "weft.PortMapperMessage") { port_mapper_send as options } => {
        let message = message::from_value(message)?;
        let to = sender(&request)?;
        if options.deviates {
            stage.mapper_deviates().await?;
        }
        stage.mapper_client().send(&message, to, options.other_port, None).await?;
    };

    /// Returns the kind of the event that has already arrived for the next expectation: a
    /// connection or a datagram. Returns nil if nothing has arrived.
    async waiting() -> "\"connection\"|\"datagram\"|nil" =>
        stage.mapper_client().waiting_kind().map(|is_connection| if is_connection { "connection" } else { "datagram" });

    /// Counts datagrams until the target connects, until `most` datagrams have arrived, or until no
    /// more datagrams arrive. Also returns the reason for the end of the count.
    async count_repeats() { port_mapper_repeats as (expectation, most) } -> "integer, \"connection\"|\"most\"|\"quiet\"" => {
        let (count, ended) = stage.mapper_client().count_repetitions(expectation.within, most).await?;
        let ended = match ended {
            RepetitionEnd::Connection => "connection",
            RepetitionEnd::Most => "most",
            RepetitionEnd::Quiet => "quiet",
        };
        (count, ended)
    };

    /// Expects that no datagram arrives, except repetitions of answered PMReqs.
    async expect_quiet() { port_mapper_quiet: silence as expectation } => stage.mapper_client().expect_quiet(&expectation).await?;

    /// Expects that no connection arrives.
    async expect_no_connection() { port_mapper_quiet: silence as expectation } =>
        stage.mapper_client().expect_no_connection(&expectation).await?;

    /// Expects that the next connection goes to this place.
    async expect_connection() { port_mapper_connection as (expectation, place) } -> "weft.Connection" =>
        m.context.connection(stage.mapper_client().expect_connection(&expectation, place).await?);
}

impl UserData for PortMapper {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_port_mapper(methods);
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

/// Converts the table of [`place_table`] to an address.
pub(super) fn place_from(table: &Table) -> mlua::Result<SocketAddr> {
    let ip: String = table.get("ip")?;
    let ip: IpAddr = ip.parse().map_err(|_| mlua::Error::runtime(format!("{ip:?} is not an address")))?;
    Ok(SocketAddr::new(ip, table.get("port")?))
}

/// Returns the sender of a datagram.
fn sender(request: &Table) -> mlua::Result<SocketAddr> {
    let from: String = request.get("from")?;
    from.parse().map_err(|_| mlua::Error::runtime(format!("{from:?} is not an address and port")))
}

/// Builds a PMAccept. The field `at` is a place.
fn accept(lua: &Lua, request: &Table, table: Table) -> mlua::Result<Message> {
    if let Some(place) = table.raw_get::<Option<Table>>("at")? {
        table.raw_set("at", Value::Nil)?;
        let place = place_from(&place)?;
        table.raw_set("ap_ip", place.ip().to_string())?;
        table.raw_set("ap_port", place.port())?;
    }
    answer(lua, "accept", request, table)
}

/// Builds an answer with the fields of its PMReq. `table` can set other values.
fn answer(lua: &Lua, kind: &str, request: &Table, table: Table) -> mlua::Result<Message> {
    let octets: LuaString = request.get("octets")?;
    let field = |at: usize| match octets.as_bytes().get(at..at + 16) {
        Some(field) => lua.create_string(field).map(Value::String),
        None => Err(mlua::Error::runtime("the request is not a port mapper message: it has fewer than 48 bytes")),
    };
    fill(&table, "type", Value::String(lua.create_string(kind)?))?;
    for name in ["ipv", "cp_port", "handle"] {
        fill(&table, name, request.get(name)?)?;
    }
    fill(&table, "cp_ip", field(CP_IP)?)?;
    fill(&table, "ap_ip", field(AP_IP)?)?;
    portmap_from_lua(lua, Some(table))
}
