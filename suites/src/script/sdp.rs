//! An SDP connection of a script: the Lua object `s`. `t:sdp` and `t:accept_sdp` open one.
//!
//! ```lua
//! local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 2 }, requirement = "SDP-..." }
//! s:command "mode out pipelined; send 2000"
//! local m = s:expect("src_avail", { requirement = "SDP-...", fields = { length = 2000 }, past = { "data" } })
//! s:read { stag = m.stag, va = m.va, length = 9 }
//! local octets = s:expect_response {}
//! s:send(sdp.rdma_rd_compl { length = 9 }, { deviates = true })
//! s:close { past = { "data" } }
//! ```

use mlua::{Lua, LuaString, Table, UserData, UserDataMethods, Value};
use weft_core::RequirementId;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::bind::surface;
use super::lua_fields::LuaFields;
use super::message;
use super::objects::{Context, Tester};
use super::old_names;
use super::sdp_options::SdpOpen;
use crate::sdp::{ReceivedMessage, observed_rules};
use crate::stage::Item;

/// The Lua object `s`.
#[derive(Clone)]
pub(super) struct Sdp {
    context: Context,
    number: u32,
}

/// The fields of a received message, with their types for editors.
pub(crate) const MESSAGE_FIELDS: LuaFields = LuaFields(
    "name: string, mid: integer, bufs: integer, flags: integer, oob_pres: boolean, oob_pend: boolean, \
    req_pipe: boolean, len: integer, mseq: integer, mseq_ack: integer, opcode: integer, invalidates: integer, \
    payload: string, octets: string, max_adverts: integer?, majv: integer?, minv: integer?, \
    des_rem_rcv_sz: integer?, local_rcv_sz: integer?, act_rcv_sz: integer?, loc_ird: integer?, loc_ord: integer?, \
    length: integer?, stag: integer?, va: integer?, non_discards: integer?, mode: integer?, act_sz: integer?, \
    des_sz: integer?",
);

/// Adds `sdp.shown` to the constructors. It lists the requirements that the monitor judges in the
/// messages of the target, by subject: `sdp.shown { "hello_ack", "data" }`. The requirements that
/// apply to every message are always included. A script can also name a requirement by its id. In
/// this case, the script must cause messages that the requirement is about.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let shown = lua.create_function(|_, names: Vec<String>| {
        let mut rows: Vec<&str> = Vec::new();
        for name in std::iter::once(observed_rules::EVERY).chain(names.iter().map(String::as_str)) {
            if let Ok(row) = name.parse::<RequirementId>() {
                rows.push(row.as_str());
                continue;
            }
            let Some(subject) = observed_rules::SUBJECTS.iter().find(|subject| subject.name == name) else {
                let known = observed_rules::SUBJECTS.map(|subject| subject.name).join(", ");
                return Err(mlua::Error::runtime(format!(
                    "sdp.shown: there is no subject {name:?}; the subjects are {known}"
                )));
            };
            rows.extend(
                subject.rows().map(RequirementId::as_str).filter(|row| !rows.contains(row)).collect::<Vec<_>>(),
            );
        }
        Ok(rows)
    })?;
    lua.globals().get::<Table>("sdp")?.set("shown", shown)
}

/// Converts a received message to a table.
fn message_table(lua: &Lua, message: &ReceivedMessage) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let name = crate::sdp::NAMES.iter().find(|(mid, _)| *mid == message.mid).map_or("unknown", |(_, name)| name);
    table.set("name", name)?;
    for field in ["mid", "bufs", "flags", "len", "mseq", "mseq_ack", "opcode", "invalidates"] {
        table.set(field, message.field(field))?;
    }
    for flag in ["oob_pres", "oob_pend", "req_pipe"] {
        table.set(flag, message.field(flag) == Some(1))?;
    }
    for (field, value) in &message.extension {
        table.set(*field, value.cast_signed())?;
    }
    table.set("payload", lua.create_string(&message.payload)?)?;
    table.set("octets", lua.create_string(&message.octets)?)?;
    Ok(table)
}

/// The fields of an RDMA Read Request.
pub(super) const READ_FIELDS: LuaFields =
    LuaFields("sink_stag: integer, sink_to: integer, length: integer, src_stag: integer, src_to: integer");
/// The fields of an RDMA Write.
pub(super) const WRITE_FIELDS: LuaFields = LuaFields("stag: integer, va: integer, payload: string");

fn read_table(lua: &Lua, read: &ReadRequest) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("sink_stag", read.sink_stag)?;
    table.set("sink_to", read.sink_to.cast_signed())?;
    table.set("length", read.rdmardsz)?;
    table.set("src_stag", read.src_stag)?;
    table.set("src_to", read.src_to.cast_signed())?;
    Ok(table)
}

/// Converts received messages to a list of tables.
fn message_tables(lua: &Lua, messages: &[ReceivedMessage]) -> mlua::Result<Vec<Table>> {
    messages.iter().map(|message| message_table(lua, message)).collect()
}

surface! {
    TESTER_SDP = Tester, bind_tester |t, stage, lua|;

    /// Opens an SDP connection in the target's profile. Also returns the HelloAck.
    async sdp() { sdp as options } -> "weft.Sdp, weft.SdpMessage" => {
        let SdpOpen { expectation, message, profile } = options;
        let (number, hello_ack) = stage.open_sdp(&message, profile, &expectation).await?;
        (Sdp { context: t.context.clone(), number }, message_table(&lua, &hello_ack)?)
    };

    /// Accepts an SDP connection from the target. Also returns the Hello.
    async accept_sdp() { accept_sdp as (expectation, hello_ack, when) } -> "weft.Sdp, weft.SdpMessage" => {
        let (number, hello) = stage.accept_sdp(&hello_ack, when, &expectation).await?;
        (Sdp { context: t.context.clone(), number }, message_table(&lua, &hello)?)
    };

    /// Opens a connection and sends a Hello. Does not wait for an answer.
    async greet() { sdp as options } -> "weft.Connection" =>
        t.context.connection(stage.send_hello(&options.message, options.profile).await?);
}

surface! {
    SDP = Sdp, bind_sdp |s, stage, lua|;

    /// Sends an SDP message in a Send. Fills in the counters that the message does not set.
    async send(message: Value = "weft.Message|string") { carrier as (carrier, deviates) } => {
        let message = message::from_value(message)?;
        if deviates {
            stage.sdp_deviates(s.number, &message).await?;
        }
        stage.sdp(s.number).send(&message, carrier).await?;
    };

    /// Sends a line of text commands as Data. Text commands must control the target's socket. If the
    /// socket does not execute one of the commands, the case ends as unimplemented.
    async command(line: LuaString = "string") =>
        stage.sdp(s.number).command(&bytes(&line)).await?;

    /// Returns the message with its counters filled in, so that it can be changed before it is
    /// sent.
    async fill(message: Value = "weft.Message|string") -> "weft.Message" =>
        message::from_value(message)?.filled(stage.sdp(s.number).connection()?.counters());

    /// Expects that the next message of the target has this name. Updates (Data that only update
    /// counters) and ModeChanges may arrive before it.
    async expect(name: Value = "string|string[]") { sdp_expect as options } -> "weft.SdpMessage" => {
        let wanted = options.wanted(&lua, name)?;
        message_table(&lua, &stage.sdp(s.number).expect(&options.expectation, &wanted).await?)?
    };

    /// Expects an RDMA Read Request.
    async expect_read() { expect_read: answer as expectation } -> "weft.ReadRequest" =>
        read_table(&lua, &stage.sdp(s.number).expect_read(&expectation).await?)?;

    /// Sends the Read Response.
    async answer_read(read: Table = "weft.ReadRequest", octets: LuaString = "string") => {
        let sink = (read.get("sink_stag")?, read.get::<i64>("sink_to")?.cast_unsigned());
        stage.sdp(s.number).send_tagged(Opcode::READ_RESPONSE, sink, &bytes(&octets)).await?;
    };

    /// Expects RDMA Writes of `length` bytes.
    async expect_write() { expect_write as (expectation, length, past) } -> "weft.Write" => {
        let (stag, va, payload) = stage.sdp(s.number).expect_write(&expectation, length, &past).await?;
        let table = lua.create_table()?;
        table.set("stag", stag)?;
        table.set("va", va.cast_signed())?;
        table.set("payload", lua.create_string(&payload)?)?;
        table
    };

    /// Sends an RDMA Read Request.
    async read() { read: sdp_read as read } => stage.sdp(s.number).request_read(read).await?;

    /// Expects the answer to a Read Request.
    async expect_response() { expect_response: answer as expectation } -> "string" =>
        lua.create_string(stage.sdp(s.number).expect_response(&expectation).await?)?;

    /// Reads the bytes that a SrcAvail advertises but does not carry as payload, and sends the
    /// RdmaRdCompl.
    async fetch(src_avail: Table = "weft.SdpMessage") { fetch: answer as expectation } -> "string" => {
        let carried = src_avail.get::<LuaString>("payload")?.as_bytes().len();
        let rest = src_avail.get::<u32>("length")?.saturating_sub(u32::try_from(carried).unwrap_or(u32::MAX));
        let va = src_avail.get::<i64>("va")?.cast_unsigned().wrapping_add(carried as u64);
        let source = (src_avail.get("stag")?, va);
        lua.create_string(stage.sdp(s.number).fetch(&expectation, source, rest).await?)?
    };

    /// Sends an RDMA Write.
    async write() { write: sdp_write as (sink, octets) } =>
        stage.sdp(s.number).send_tagged(Opcode::WRITE, sink, &octets).await?;

    /// Expects that the target sends only updates, and keeps the connection open.
    async expect_quiet() { sdp_quiet as (expectation, past) } -> "weft.SdpMessage[]" =>
        message_tables(&lua, &stage.sdp(s.number).expect_quiet(&expectation, &past).await?)?;

    /// Receives this number of bytes. The target may send the bytes as payload, or advertise them
    /// with SrcAvails. The tester gets advertised bytes by RDMA Reads.
    async collect(octets: usize = "integer") { sdp_quiet as (expectation, past) } -> "string" =>
        lua.create_string(stage.sdp(s.number).collect(&expectation, octets, &past).await?)?;

    /// Answers the target's Reads of advertised bytes until all bytes are read.
    async serve(octets: LuaString = "string") { serve: sdp_serve as (expectation, va, from) } =>
        stage.sdp(s.number).serve(&expectation, va, &bytes(&octets), from).await?;

    /// Closes the connection: DisConn in both directions, and the end of TCP.
    async close() { sdp_quiet as (expectation, past) } => stage.sdp(s.number).close(&expectation, &past).await?;

    /// Returns the next event that is not an update, and its fields. The event is the name of a
    /// message, or "read" for an RDMA Read Request.
    async next() { next: answer as expectation } -> "string, table" =>
        match stage.sdp(s.number).next(&expectation).await? {
            Item::Read(read) => ("read".to_owned(), read_table(&lua, &read)?),
            Item::Message(message) => {
                let table = message_table(&lua, &message)?;
                (table.get("name")?, table)
            }
            other => Err(mlua::Error::runtime(format!("next: the target sent {}, which is neither a message nor a Read Request", other.name())))?,
        };

    /// Expects that the connection stays open. Any message except AbortConn may arrive.
    async expect_open() { expect_open: answer as expectation } => stage.sdp(s.number).expect_open(&expectation).await?;

    /// Expects that the target ends the connection. AbortConn or a Terminate may arrive before the
    /// end.
    async expect_end() { sdp_end as (expectation, ending) } -> "weft.SdpMessage[]" =>
        message_tables(&lua, &stage.sdp(s.number).expect_end(&expectation, &ending).await?)?;

    /// Returns the counters of the next message. `bufs` sets the number of announced buffers.
    /// `updates` sets whether updates are sent automatically.
    async counters() { counters as (bufs, updates) } -> "{ mseq: integer, mseq_ack: integer, bufs: integer }" => {
        let mut sdp = stage.sdp(s.number);
        let connection = sdp.connection()?;
        connection.bufs = bufs.unwrap_or(connection.bufs);
        connection.updates = updates.unwrap_or(connection.updates);
        let table = lua.create_table()?;
        table.set("mseq", connection.mseq)?;
        table.set("mseq_ack", connection.last_mseq)?;
        table.set("bufs", connection.bufs)?;
        table
    };

    /// Returns the TCP connection below SDP.
    fn connection() -> "weft.Connection" => s.context.connection(s.number);
}

impl UserData for Sdp {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_sdp(methods);
        old_names::keep(methods, &old_names::SDP_METHODS);
    }
}

fn bytes(text: &LuaString) -> Vec<u8> {
    text.as_bytes().to_vec()
}
