//! Messages of scripts: octets that are correct by default. A script can make them wrong on
//! purpose.
//!
//! A constructor reads a table, and fills a missing field correctly. If a script changes the octets
//! afterwards, the message records the range, so that reports show the stimulus.

mod fpdu;
mod held;
mod portmap;
mod read;
mod read_request;
mod sdp;
mod send;
mod startup;
mod ulpdu;
mod write;

use mlua::{IntoLua, Lua, LuaString, MetaMethod, Table, UserData, UserDataMethods, Value};

use weft_core::wire::sdp::Mid;

use super::bind::surface;
use crate::correct::StartupFields;
use crate::model::{Mark, MarkKind};
use crate::sdp::{Counters, Draft};
use held::{Held, held};

pub(crate) use portmap::{PORTMAP_FIELDS, from_lua as portmap_from_lua, portmap_table};
pub(crate) use read::{
    FPDU_FIELDS, OPERATION_FIELDS, REPLY_FIELDS, TERMINATE_FIELDS, fpdu_table, operation_table, reply_table,
    terminate_table,
};
pub(crate) use sdp::data as sdp_data;
pub(crate) use startup::from_lua as startup_from_lua;

/// Maximum length of a message in octets: ten times the longest legal FPDU.
const MAX_LEN: usize = 1 << 20;
/// Maximum number of changed pieces of a message, and of octets of its name. Both would double with
/// each `m .. m`.
const MOST_MARKS: usize = 1000;
const LONGEST_NAME: usize = 1000;

/// Octets to be sent, with a name for the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) octets: Vec<u8>,
    pub(crate) marks: Vec<Mark>,
    /// An SDP message. The connection that sends it may fill in the counters.
    pub(crate) draft: Option<Box<Draft>>,
    /// The memory that it uses while a script has it.
    held: Held,
}

impl Message {
    pub(crate) fn new(name: impl Into<String>, octets: Vec<u8>) -> Self {
        Message { name: name.into(), octets, marks: Vec::new(), draft: None, held: Held::default() }
    }

    /// An SDP message whose octets the connection makes.
    pub(crate) fn of_draft(name: impl Into<String>, draft: Draft) -> Self {
        let mut message = Message::new(name, Vec::new());
        message.draft = Some(Box::new(draft));
        message
    }

    /// The message with `octets` from `first`. It grows if they reach beyond its end.
    fn replaced(&self, first: usize, octets: &[u8]) -> mlua::Result<Self> {
        let end = first.saturating_add(octets.len());
        if first > self.octets.len() || end > MAX_LEN {
            let len = self.octets.len();
            return Err(mlua::Error::runtime(format!("octets {first} to {end} do not fit a message of {len} octets")));
        }
        check_marks(self.marks.len() + 1)?;
        let mut changed = Message { draft: None, ..self.clone() };
        changed.octets.resize(end.max(changed.octets.len()), 0);
        changed.octets[first..end].copy_from_slice(octets);
        changed.marks.push(Mark {
            start: first as u64,
            end: end as u64,
            label: if octets.len() == 1 { format!("octet {first} changed") } else { "octets changed".to_owned() },
            kind: MarkKind::Stimulus,
        });
        Ok(changed)
    }

    /// The message with the bits of `mask` (all by default) changed in one octet.
    fn flipped(&self, at: usize, mask: Option<u8>) -> mlua::Result<Self> {
        let Some(octet) = self.octets.get(at) else {
            let len = self.octets.len();
            return Err(mlua::Error::runtime(format!("no octet {at} in a message of {len} octets")));
        };
        self.replaced(at, &[octet ^ mask.unwrap_or(0xff)])
    }

    /// The first `len` octets.
    fn truncated(&self, len: usize) -> Self {
        let mut cut = Message { draft: None, ..self.clone() };
        cut.octets.truncate(len);
        cut.name = joined(&self.name, &format!("cut to {} octets", cut.octets.len()));
        cut
    }
}

impl Message {
    /// Octets `begin..end`, the piece `number`, with their marks.
    pub(crate) fn piece(&self, number: usize, begin: usize, end: usize) -> Self {
        let end = end.min(self.octets.len());
        let begin = begin.min(end);
        let (from, to) = (begin as u64, end as u64);
        let marks = self.marks.iter().filter(|mark| mark.start < to && mark.end > from);
        Message {
            name: format!("{}, piece {number} ({} octets)", self.name, end - begin),
            octets: self.octets[begin..end].to_vec(),
            marks: marks
                .map(|mark| Mark { start: mark.start.max(from) - from, end: mark.end.min(to) - from, ..mark.clone() })
                .collect(),
            draft: None,
            held: Held::default(),
        }
    }

    /// The message with the counters of the connection.
    pub(crate) fn filled(&self, counters: Counters) -> Self {
        match &self.draft {
            Some(draft) => Message { octets: draft.octets(counters), draft: None, ..self.clone() },
            None => self.clone(),
        }
    }
}

surface! {
    MESSAGE = Message, bind_message |message, stage, at, lua|;

    /// Returns the message with the bits of `mask` (all by default) changed in one byte. The first
    /// byte is 0.
    fn flip(octet: usize = "integer", mask: Option<u8> = "integer?") -> "weft.Message" =>
        held(lua, message.flipped(octet, mask)?)?;

    /// Returns the message with other bytes from `first`. The first byte is 0.
    fn replace(first: usize = "integer", octets: LuaString = "string") -> "weft.Message" =>
        held(lua, message.replaced(first, &octets.as_bytes())?)?;

    /// Returns the first `len` bytes of the message.
    fn cut(len: usize = "integer") -> "weft.Message" => held(lua, message.truncated(len))?;

    /// Returns the bytes as a string.
    fn octets() -> "string" => lua.create_string(&message.octets)?;
}

impl UserData for Message {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_message(methods);
        // message .. octets: two messages that are sent together.
        methods.add_meta_function(MetaMethod::Concat, |lua, (a, b): (Value, Value)| {
            let (mut a, b) = (from_value(a)?, from_value(b)?);
            if a.octets.len() + b.octets.len() > MAX_LEN {
                return Err(mlua::Error::runtime(format!("a message has at most {MAX_LEN} octets")));
            }
            check_marks(a.marks.len() + b.marks.len())?;
            let first = a.octets.len() as u64;
            let moved = |mark: Mark| Mark { start: mark.start + first, end: mark.end + first, ..mark };
            a.marks.extend(b.marks.into_iter().map(moved));
            a.octets.extend(b.octets);
            a.draft = None;
            a.name = joined(&a.name, &format!("then {}", b.name));
            held(lua, a)
        });
        methods.add_meta_method(MetaMethod::Len, |_, message, ()| Ok(message.octets.len()));
        methods.add_meta_method(MetaMethod::ToString, |_, message, ()| Ok(message.name.clone()));
    }
}

/// Rejects a message with too many changed pieces.
fn check_marks(pieces: usize) -> mlua::Result<()> {
    if pieces > MOST_MARKS {
        return Err(mlua::Error::runtime(format!("a message has at most {MOST_MARKS} changed pieces")));
    }
    Ok(())
}

/// The name of a message that was made from a message of this name.
fn joined(name: &str, more: &str) -> String {
    if name.len() + more.len() > LONGEST_NAME { name.to_owned() } else { format!("{name}, {more}") }
}

/// What `conn:send` takes: a message, or a Lua string of raw octets.
pub(crate) fn from_value(value: Value) -> mlua::Result<Message> {
    match value {
        Value::UserData(data) => Ok(data.borrow::<Message>()?.clone()),
        Value::String(octets) => Ok(Message::new("octets", octets.as_bytes().to_vec())),
        other => {
            let found = other.type_name();
            Err(mlua::Error::runtime(format!("expected a message or a string of octets, found {found}")))
        }
    }
}

/// A function that makes a message of the fields of a table.
type Make = fn(&Lua, Option<Table>) -> mlua::Result<Message>;

/// A constructor as scripts see it.
pub(crate) struct Constructor {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) make: Make,
}

/// The constructor of an SDP message.
macro_rules! sdp {
    ($name:literal, $mid:ident) => {
        Constructor {
            module: "sdp",
            name: $name,
            about: concat!("The SDP message ", $name, " (draft-pinkerton-iwarp-sdp-01 section 6)"),
            make: |lua, table| sdp::from_lua(lua, concat!("sdp.", $name), Mid::$mid, table),
        }
    };
}

/// All constructors.
pub(crate) const CONSTRUCTORS: [Constructor; 25] = [
    Constructor {
        module: "mpa",
        name: "request",
        about: "An MPA Request (RFC 5044 section 7.1.1, RFC 6581 section 9): revision 1, CRC, no markers",
        make: |lua, table| startup::from_lua(lua, StartupFields::REQUEST, table),
    },
    Constructor {
        module: "mpa",
        name: "reply",
        about: "An MPA Reply",
        make: |lua, table| startup::from_lua(lua, StartupFields::REPLY, table),
    },
    Constructor {
        module: "mpa",
        name: "fpdu",
        about: "An FPDU with a ULPDU (RFC 5044 section 4.1). With `position` in the stream it has markers",
        make: fpdu::from_lua,
    },
    Constructor {
        module: "rdmap",
        name: "send",
        about: "The ULPDU of a Send in one segment (RFC 5040 section 4.3)",
        make: send::from_lua,
    },
    Constructor {
        module: "rdmap",
        name: "write",
        about: "The ULPDU of an RDMA Write in one segment (RFC 5040 section 4.3)",
        make: write::from_lua,
    },
    Constructor {
        module: "rdmap",
        name: "read_request",
        about: "The ULPDU of an RDMA Read Request (RFC 5040 section 4.4)",
        make: read_request::from_lua,
    },
    Constructor {
        module: "portmap",
        name: "message",
        about: "A port mapper message (draft-pinkerton-iwarp-sdp-01 section 7.3): a PMReq over IPv4",
        make: portmap::from_lua,
    },
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

/// Puts the constructors, in their modules, into the globals of a script.
pub(crate) fn install(lua: &Lua) -> mlua::Result<()> {
    held::open(lua);
    for constructor in &CONSTRUCTORS {
        let globals = lua.globals();
        let module = match globals.get::<Option<Table>>(constructor.module)? {
            Some(module) => module,
            None => lua.create_table()?,
        };
        let make = constructor.make;
        let function =
            lua.create_function(move |lua, table: Option<Table>| held(lua, make(lua, table)?)?.into_lua(lua))?;
        module.set(constructor.name, function)?;
        globals.set(constructor.module, module)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
