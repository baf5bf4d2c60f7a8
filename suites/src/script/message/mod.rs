//! Messages of scripts: bytes that are correct by default. A script can make them wrong on purpose.
//!
//! A constructor reads a table, and uses correct values for missing fields. If a script changes the
//! bytes afterwards, the message records the range, so that reports can mark these bytes.

mod fpdu;
mod memory_account;
mod methods;
mod portmap;
mod read;
mod read_request;
mod sdp;
mod send;
mod startup;
mod ulpdu;
mod write;

use mlua::{IntoLua, Lua, Table, Value};

use weft_core::wire::sdp::Mid;

use crate::correct::StartupFields;
use crate::stage::Message;
use memory_account::count_memory;

pub(in crate::script) use methods::MESSAGE;
pub(crate) use portmap::{PORTMAP_FIELDS, from_lua as portmap_from_lua, portmap_table, type_named};
pub(crate) use read::{
    FPDU_FIELDS, OPERATION_FIELDS, REPLY_FIELDS, TERMINATE_FIELDS, fpdu_table, operation_table, reply_table,
    terminate_table,
};
pub(crate) use startup::from_lua as startup_from_lua;

/// Reads the value that `conn:send` accepts: a message, or a Lua string of raw bytes.
pub(crate) fn from_value(value: Value) -> mlua::Result<Message> {
    match value {
        Value::UserData(data) => Ok(data.borrow::<Message>()?.clone()),
        Value::String(octets) => Ok(Message::new("octets", octets.as_bytes().to_vec())),
        other => {
            let found = other.type_name();
            Err(mlua::Error::runtime(format!("expected a message or a string of bytes, found {found}")))
        }
    }
}

/// A function that makes a message from the fields of a table.
type MakeMessage = fn(&Lua, Option<Table>) -> mlua::Result<Message>;

/// A constructor as scripts see it.
pub(crate) struct Constructor {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) make: MakeMessage,
}

const fn constructor(module: &'static str, name: &'static str, about: &'static str, make: MakeMessage) -> Constructor {
    Constructor { module, name, about, make }
}

/// The constructor of an SDP message.
macro_rules! sdp {
    ($name:literal, $mid:ident) => {
        constructor(
            "sdp",
            $name,
            concat!("The SDP message ", $name, " (draft-pinkerton-iwarp-sdp-01 section 6)"),
            |lua, table| sdp::from_lua(lua, concat!("sdp.", $name), Mid::$mid, table),
        )
    };
}

/// All constructors.
pub(crate) const CONSTRUCTORS: [Constructor; 25] = [
    constructor(
        "mpa",
        "request",
        "An MPA Request (RFC 5044 section 7.1.1, RFC 6581 section 9). By default, it has revision 1, C=1 and M=0",
        |lua, table| startup::from_lua(lua, StartupFields::REQUEST, table),
    ),
    constructor("mpa", "reply", "An MPA Reply", |lua, table| startup::from_lua(lua, StartupFields::REPLY, table)),
    constructor(
        "mpa",
        "fpdu",
        "An FPDU with a ULPDU (RFC 5044 section 4.1). If `position` is set (`conn:position()`), the FPDU has markers",
        fpdu::from_lua,
    ),
    constructor("rdmap", "send", "The ULPDU of a Send in one segment (RFC 5040 section 4.3)", send::from_lua),
    constructor("rdmap", "write", "The ULPDU of an RDMA Write in one segment (RFC 5040 section 4.3)", write::from_lua),
    constructor(
        "rdmap",
        "read_request",
        "The ULPDU of an RDMA Read Request (RFC 5040 section 4.4)",
        read_request::from_lua,
    ),
    constructor(
        "portmap",
        "message",
        "A port mapper message (draft-pinkerton-iwarp-sdp-01 section 7.3). By default, it is a PMReq over IPv4",
        portmap::from_lua,
    ),
    sdp!("hello", HELLO),
    sdp!("hello_ack", HELLO_ACK),
    sdp!("dis_conn", DIS_CONN),
    sdp!("abort_conn", ABORT_CONN),
    sdp!("send_sm", SEND_SM),
    sdp!("rdma_wr_compl", RDMA_WR_COMPL),
    sdp!("rdma_rd_compl", RDMA_RD_COMPL),
    sdp!("mode_change", MODE_CHANGE),
    sdp!("src_avail_cancel", SRC_AVAIL_CANCEL),
    sdp!("sink_avail_cancel", SINK_AVAIL_CANCEL),
    sdp!("sink_cancel_ack", SINK_CANCEL_ACK),
    sdp!("ch_rcv_buf", CH_RCV_BUF),
    sdp!("ch_rcv_buf_ack", CH_RCV_BUF_ACK),
    sdp!("susp_comm", SUSP_COMM),
    sdp!("susp_comm_ack", SUSP_COMM_ACK),
    sdp!("sink_avail", SINK_AVAIL),
    sdp!("src_avail", SRC_AVAIL),
    sdp!("data", DATA),
];

/// Adds the constructors, in their modules, to the globals of a script.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    memory_account::open(lua);
    for constructor in &CONSTRUCTORS {
        let globals = lua.globals();
        let module = match globals.get::<Option<Table>>(constructor.module)? {
            Some(module) => module,
            None => lua.create_table()?,
        };
        let make = constructor.make;
        let function =
            lua.create_function(move |lua, table: Option<Table>| count_memory(lua, make(lua, table)?)?.into_lua(lua))?;
        module.set(constructor.name, function)?;
        globals.set(constructor.module, module)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MarkKind;

    fn lua() -> Lua {
        let lua = Lua::new();
        install(&lua).unwrap();
        lua
    }

    #[test]
    fn a_flip_changes_one_octet_and_marks_it() {
        let lua = lua();
        let message: mlua::AnyUserData = lua.load("mpa.request():flip(3)").eval().unwrap();
        let message = message.borrow::<Message>().unwrap();
        assert_eq!(&message.octets[..5], b"MPA\xdfI");
        assert_eq!(message.octets.len(), 20);
        assert_eq!((message.marks[0].start, message.marks[0].end), (3, 4));
        assert_eq!(message.marks[0].kind, MarkKind::Stimulus);
    }

    #[test]
    fn changes_do_not_touch_the_original() {
        let script = "local a = mpa.request(); local b = a:replace(16, '\\xff\\x02'); return a:octets() .. b:octets()";
        let lua = lua();
        let octets: mlua::LuaString = lua.load(script).eval().unwrap();
        assert_eq!(octets.as_bytes()[16..20], [0x40, 1, 0, 0]);
        assert_eq!(octets.as_bytes()[36..40], [0xff, 2, 0, 0]);
    }

    #[test]
    fn messages_are_joined_and_cut_with_their_marks() {
        let lua = lua();
        let joined: mlua::AnyUserData = lua.load("mpa.request():flip(3) .. mpa.request():flip(0)").eval().unwrap();
        let joined = joined.borrow::<Message>().unwrap();
        assert_eq!(joined.octets.len(), 40);
        assert_eq!((joined.marks[1].start, joined.marks[1].end), (20, 21));
        let piece = joined.piece(2, 19, 22);
        assert_eq!((piece.octets.len(), piece.marks.len(), piece.marks[0].start), (3, 1, 1));
        assert!(joined.piece(3, 50, 60).octets.is_empty());
    }

    #[test]
    fn rejects_changes_that_do_not_fit() {
        for script in [
            "mpa.request():flip(20)",
            "mpa.request():flip(-1)",
            "mpa.request():replace(21, 'x')",
            "mpa.request():replace(math.maxinteger, 'x')",
            "mpa.request { revison = 1 }",
            "mpa.reply { private_data = 7, keys = '' }",
            "rdmap.write { stagg = 1 }",
            "return mpa.request() .. 7",
            "return mpa.request() .. ('x'):rep(1 << 20)",
        ] {
            assert!(lua().load(script).exec().is_err(), "{script}");
        }
    }
}
