//! An SDP connection as scripts have it, `s`; `t:sdp`, `t:accept_sdp` and `t:greet` give one.
//!
//! ```lua
//! local s, hello_ack = t:sdp { hello = sdp.hello { max_adverts = 2 }, requirement = "SDP-..." }
//! local s, hello = t:accept_sdp { hello_ack = sdp.hello_ack {} }  -- the target connects
//! local conn = t:greet { hello = sdp.hello { majv = 2 } }         -- Hello alone: see what comes
//! s:send(sdp.data { payload = "hi" }, { solicited = true })        -- counters are filled in
//! s:send(message, { deviates = true })                             -- as that of conn
//! s:command "mode out pipelined; send 2000" -- Data with a line that a driven socket executes
//! local message = s:expect("data", { requirement = "SDP-...", fields = { payload = "hi" }, past = { "sink_avail" } })
//! local read = s:expect_read {}      s:answer_read(read, octets)
//! local write = s:expect_write { length = 2000 }
//! s:read { stag = a.stag, va = a.va, length = 9 }   local octets = s:expect_response {}
//! local octets = s:fetch(a)         -- the three that read an advertisement: Read Request, Read Response, RdmaRdCompl
//! s:write { stag = a.stag, va = a.va, payload = "..." }
//! local octets = s:collect(3000)     -- as the target offers them: by Data, or by SrcAvail and an RDMA Read
//! s:serve(octets, { va = a.va })     -- what the target reads of a SrcAvail
//! s:close { past = { "data" } }      -- DisConn both ways, and TCP's end
//! s:expect_quiet { within = 1 }      s:expect_end {}
//! s:counters { bufs = 3, updates = false }
//! ```

use std::sync::Arc;

use mlua::{Lua, Table, UserData, UserDataMethods, Value};
use tokio::sync::Mutex;
use weft_core::RequirementId;
use weft_core::wire::rdmap::{Opcode, ReadRequest};

use super::location::here;
use super::message;
use super::old_names;
use super::options::Reader;
use super::sdp_options::SdpOpen;
use super::surface::{Connection, Tester};
use crate::sdp::{Heard, shown};
use crate::stage::{Carrier, Item, Stage};
use crate::targets::Target;

/// `s`.
pub(super) struct Sdp {
    stage: Arc<Mutex<Stage>>,
    target: Arc<Target>,
    requirements: Arc<Vec<RequirementId>>,
    number: u32,
}

/// The fields of a message that came, with their types for editors.
pub(crate) const HEARD_FIELDS: [(&str, &str); 29] = [
    ("name", "string"),
    ("mid", "integer"),
    ("bufs", "integer"),
    ("flags", "integer"),
    ("oob_pres", "boolean"),
    ("oob_pend", "boolean"),
    ("req_pipe", "boolean"),
    ("len", "integer"),
    ("mseq", "integer"),
    ("mseq_ack", "integer"),
    ("opcode", "integer"),
    ("invalidates", "integer"),
    ("payload", "string"),
    ("octets", "string"),
    ("max_adverts", "integer?"),
    ("majv", "integer?"),
    ("minv", "integer?"),
    ("des_rem_rcv_sz", "integer?"),
    ("local_rcv_sz", "integer?"),
    ("act_rcv_sz", "integer?"),
    ("loc_ird", "integer?"),
    ("loc_ord", "integer?"),
    ("length", "integer?"),
    ("stag", "integer?"),
    ("va", "integer?"),
    ("non_discards", "integer?"),
    ("mode", "integer?"),
    ("act_sz", "integer?"),
    ("des_sz", "integer?"),
];

/// Puts `sdp.shown` beside the constructors: the rows that the monitor judges in what the target
/// sends, by what they are about (`sdp.shown { "hello_ack", "data" }`; those of every message are
/// always among them), and rows by their ids, which the case has to bring about itself.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let shown = lua.create_function(|_, names: Vec<String>| {
        let mut rows: Vec<&str> = Vec::new();
        for name in std::iter::once(shown::EVERY).chain(names.iter().map(String::as_str)) {
            if let Ok(row) = name.parse::<RequirementId>() {
                rows.push(row.as_str());
                continue;
            }
            let Some(subject) = shown::SUBJECTS.iter().find(|subject| subject.name == name) else {
                let known = shown::SUBJECTS.map(|subject| subject.name).join(", ");
                return Err(mlua::Error::runtime(format!("sdp.shown: no {name:?}; there are {known}")));
            };
            rows.extend(
                subject.rows().map(RequirementId::as_str).filter(|row| !rows.contains(row)).collect::<Vec<_>>(),
            );
        }
        Ok(rows)
    })?;
    lua.globals().get::<Table>("sdp")?.set("shown", shown)
}

/// A message that came, as a table.
fn heard_table(lua: &Lua, heard: &Heard) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let name = crate::sdp::NAMES.iter().find(|(mid, _)| *mid == heard.mid).map_or("unknown", |(_, name)| name);
    table.set("name", name)?;
    for field in ["mid", "bufs", "flags", "len", "mseq", "mseq_ack", "opcode", "invalidates"] {
        table.set(field, heard.field(field))?;
    }
    for flag in ["oob_pres", "oob_pend", "req_pipe"] {
        table.set(flag, heard.field(flag) == Some(1))?;
    }
    for (field, value) in &heard.extension {
        table.set(*field, value.cast_signed())?;
    }
    table.set("payload", lua.create_string(&heard.payload)?)?;
    table.set("octets", lua.create_string(&heard.octets)?)?;
    Ok(table)
}

fn read_table(lua: &Lua, read: &ReadRequest) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("sink_stag", read.sink_stag)?;
    table.set("sink_to", read.sink_to.cast_signed())?;
    table.set("length", read.rdmardsz)?;
    table.set("src_stag", read.src_stag)?;
    table.set("src_to", read.src_to.cast_signed())?;
    Ok(table)
}

/// The methods of `t` that lead to SDP.
pub(super) fn add_to_tester<M: UserDataMethods<Tester>>(methods: &mut M) {
    methods.add_async_method("sdp", |lua, tester, table: Option<Table>| {
        let parts = (tester.stage.clone(), tester.target.clone(), tester.requirements.clone());
        let read = tester.reader(&lua).sdp(table);
        async move {
            let (stage, target, requirements) = parts;
            let SdpOpen { expectation, message, profile } = read?;
            let opened = stage.lock().await.sdp_open(&message, profile, &expectation).await;
            let (number, hello_ack) = opened.map_err(mlua::Error::external)?;
            let table = heard_table(&lua, &hello_ack)?;
            Ok((Sdp { stage, target, requirements, number }, table))
        }
    });
    methods.add_async_method("greet", |lua, tester, table: Option<Table>| {
        let parts = (tester.stage.clone(), tester.target.clone(), tester.requirements.clone());
        let (at, read) = (here(&lua), tester.reader(&lua).sdp(table));
        async move {
            let (stage, target, requirements) = parts;
            let SdpOpen { message, profile, .. } = read?;
            let hailed = stage.lock().await.sdp_hail(&message, profile, at.as_ref()).await;
            Ok(Connection { stage, target, requirements, number: hailed.map_err(mlua::Error::external)? })
        }
    });
    methods.add_async_method("accept_sdp", |lua, tester, table: Option<Table>| {
        let parts = (tester.stage.clone(), tester.target.clone(), tester.requirements.clone());
        let read = tester.reader(&lua).accept_sdp(table);
        async move {
            let (stage, target, requirements) = parts;
            let (expectation, hello_ack, when) = read?;
            let opened = stage.lock().await.sdp_accept(&hello_ack, when, &expectation).await;
            let (number, hello) = opened.map_err(mlua::Error::external)?;
            let table = heard_table(&lua, &hello)?;
            Ok((Sdp { stage, target, requirements, number }, table))
        }
    });
}

impl Sdp {
    fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }
}

impl UserData for Sdp {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("send", |lua, s, (value, table): (Value, Option<Table>)| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let read = message::from_value(value).and_then(|message| Ok((message, s.reader(&lua).carrier(table)?)));
            async move {
                let (message, (carrier, deviates)) = read?;
                let mut stage = stage.lock().await;
                if deviates {
                    stage.sdp_deviates(number, &message, at.as_ref()).await.map_err(mlua::Error::external)?;
                }
                stage.sdp_send(number, &message, carrier, at.as_ref()).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("command", |lua, s, text: mlua::LuaString| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let message = message::sdp_data([&text.as_bytes()[..], b"\n"].concat());
            async move {
                let mut stage = stage.lock().await;
                stage.sdp_send(number, &message, Carrier::default(), at.as_ref()).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("fill", |lua, s, value: Value| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let message = message::from_value(value);
            async move {
                let mut stage = stage.lock().await;
                let counters = stage.talk(number, at.as_ref()).map_err(mlua::Error::external)?.counters();
                Ok(message?.filled(counters))
            }
        });
        methods.add_async_method("expect", |lua, s, (names, table): (Value, Option<Table>)| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_expect(names, table);
            async move {
                let (expectation, wanted) = read?;
                let heard = stage.lock().await.sdp_expect(number, &expectation, &wanted).await;
                heard_table(&lua, &heard.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("expect_read", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "expect_read");
            async move {
                let (expectation, _) = read?;
                let read = stage.lock().await.sdp_expect_read(number, &expectation).await;
                read_table(&lua, &read.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("answer_read", |lua, s, (read, octets): (Table, mlua::LuaString)| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let octets = octets.as_bytes().to_vec();
            async move {
                let at_sink = (read.get::<u32>("sink_stag")?, read.get::<i64>("sink_to")?.cast_unsigned());
                let mut stage = stage.lock().await;
                let sent = stage.sdp_tagged(number, Opcode::READ_RESPONSE, at_sink, &octets, at.as_ref()).await;
                sent.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_write", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "expect_write");
            async move {
                let (expectation, length) = read?;
                let wrote = stage.lock().await.sdp_expect_write(number, &expectation, length).await;
                let (stag, va, payload) = wrote.map_err(mlua::Error::external)?;
                let table = lua.create_table()?;
                table.set("stag", stag)?;
                table.set("va", va.cast_signed())?;
                table.set("payload", lua.create_string(&payload)?)?;
                Ok(table)
            }
        });
        methods.add_async_method("expect_response", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "expect_response");
            async move {
                let (expectation, _) = read?;
                let octets = stage.lock().await.sdp_expect_response(number, &expectation).await;
                lua.create_string(octets.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("read", |lua, s, table: Option<Table>| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_read(table);
            async move {
                let sent = stage.lock().await.sdp_request_read(number, read?, at.as_ref()).await;
                sent.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("fetch", |lua, s, (advert, table): (Table, Option<Table>)| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "fetch");
            async move {
                let (expectation, _) = read?;
                let carried = advert.get::<mlua::LuaString>("payload")?.as_bytes().len();
                let rest = advert.get::<u32>("length")?.saturating_sub(u32::try_from(carried).unwrap_or(u32::MAX));
                let va = advert.get::<i64>("va")?.cast_unsigned().wrapping_add(carried as u64);
                let place = (advert.get::<u32>("stag")?, va);
                let octets = stage.lock().await.sdp_fetch(number, &expectation, place, rest).await;
                lua.create_string(octets.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("write", |lua, s, table: Option<Table>| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_write(table);
            async move {
                let (place, octets) = read?;
                let mut stage = stage.lock().await;
                let sent = stage.sdp_tagged(number, Opcode::WRITE, place, &octets, at.as_ref()).await;
                sent.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_quiet", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_quiet(table);
            async move {
                let (expectation, past) = read?;
                let came = stage.lock().await.sdp_quiet(number, &expectation, &past).await;
                let came = came.map_err(mlua::Error::external)?;
                came.iter().map(|heard| heard_table(&lua, heard)).collect::<mlua::Result<Vec<_>>>()
            }
        });
        methods.add_async_method("collect", |lua, s, (due, table): (usize, Option<Table>)| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_quiet(table);
            async move {
                let (expectation, past) = read?;
                let octets = stage.lock().await.sdp_collect(number, &expectation, due, &past).await;
                lua.create_string(octets.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("serve", |lua, s, (octets, table): (mlua::LuaString, Option<Table>)| {
            let (stage, number, octets) = (s.stage.clone(), s.number, octets.as_bytes().to_vec());
            let read = s.reader(&lua).sdp_serve(table);
            async move {
                let (expectation, va, from) = read?;
                let served = stage.lock().await.sdp_serve(number, &expectation, va, &octets, from).await;
                served.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("close", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_quiet(table);
            async move {
                let (expectation, past) = read?;
                let closed = stage.lock().await.sdp_close(number, &expectation, &past).await;
                closed.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("next", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "next");
            async move {
                let (expectation, _) = read?;
                let item = stage.lock().await.sdp_next(number, &expectation).await.map_err(mlua::Error::external)?;
                match item {
                    Item::Read(read) => Ok(("read".to_owned(), read_table(&lua, &read)?)),
                    Item::Message(heard) => {
                        let table = heard_table(&lua, &heard)?;
                        Ok((table.get("name")?, table))
                    }
                    other => Err(mlua::Error::runtime(format!("next: {} is neither", other.name()))),
                }
            }
        });
        methods.add_async_method("expect_open", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_rdma(table, "expect_open");
            async move {
                let (expectation, _) = read?;
                stage.lock().await.sdp_expect_open(number, &expectation).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_end", |lua, s, table: Option<Table>| {
            let (stage, number) = (s.stage.clone(), s.number);
            let read = s.reader(&lua).sdp_end(table);
            async move {
                let (expectation, ending) = read?;
                let came = stage.lock().await.sdp_expect_end(number, &expectation, &ending).await;
                let came = came.map_err(mlua::Error::external)?;
                came.iter().map(|heard| heard_table(&lua, heard)).collect::<mlua::Result<Vec<_>>>()
            }
        });
        methods.add_async_method("counters", |lua, s, table: Option<Table>| {
            let (at, stage, number) = (here(&lua), s.stage.clone(), s.number);
            let read = s.reader(&lua).counters(table);
            async move {
                let (bufs, updates) = read?;
                let mut stage = stage.lock().await;
                let talk = stage.talk(number, at.as_ref()).map_err(mlua::Error::external)?;
                talk.bufs = bufs.unwrap_or(talk.bufs);
                talk.updates = updates.unwrap_or(talk.updates);
                let table = lua.create_table()?;
                table.set("mseq", talk.mseq)?;
                table.set("mseq_ack", talk.heard)?;
                table.set("bufs", talk.bufs)?;
                Ok(table)
            }
        });
        old_names::keep(methods, &[("tell", "command"), ("books", "counters")]);
        methods.add_method("connection", |_, s, ()| {
            let (stage, target, requirements) = (s.stage.clone(), s.target.clone(), s.requirements.clone());
            Ok(Connection { stage, target, requirements, number: s.number })
        });
    }
}
