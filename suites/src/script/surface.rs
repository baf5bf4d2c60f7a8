//! What a case's function can do: the tester `t` and its connections.
//!
//! ```lua
//! t:good_exchange { shows = "MPA-..." }  -- the target does its work; call it before the stimulus
//! t:liveness()                           -- the same, on a new connection, behind the last expectation
//! t:request { ... }                      -- the Request that this target accepts, fields as those of mpa.request
//! t:check(ok, { requirement = "MPA-...", expected = "...", actual = "..." })
//! t:unimplemented("...")                 -- the target does not do this, and may: the case ends
//! t:pause(0.5)
//! t:note("...")                          -- a line for the transcript
//! local conn = t:connect()               -- TCP only; a target that is an initiator is started, and waited for
//! local conn, reply = t:start_up { ... } -- TCP, t:request { ... }, a Reply with R=0, and a pause before the first FPDU; with an initiator
//!                                        -- TCP, its Request, conn:reply { ... }, its first FPDUs; gives the Request
//! local conn, op = t:operate { ... }     -- as start_up, and the service's first exchange: FPDUs went both ways; see weft.Operation
//! local request = conn:expect_request { requirement = "MPA-..." } -- an initiator's
//! conn:send(conn:reply { crc = false })  -- the right Reply to it, fields as those of mpa.reply
//! conn:send(message_or_octets, { cuts = { 3, 16 }, pause = 0.01 })
//! conn:send(message, { deviates = true }) -- the step by which the case differs from a plain exchange: see stage/control.rs
//! conn:send(request, { deviates = t:request() }) -- the same of a start-up frame, with the legal frame in its place
//! local reply = conn:expect_reply { requirement = "MPA-...", within = 5, reject = false, revision = 1, crc = true }
//! local fpdu = conn:expect_fpdu { opcode = 3, crc = true }
//! conn:expect_octets { begins = "\0\0\0\0", keep = true }
//! conn:expect_silence { requirement = "MPA-...", within = 2 }
//! local seconds = conn:expect_close { requirement = { "MPA-...", "MPA-..." }, within = 15 }
//! local terminate = conn:expect_terminate { requirement = "DDP-...", error = "12 01", code = "DDP-...", terminate = "RDMAP-..." }
//! mpa.fpdu { ulpdu = ..., position = conn:position() } -- with the markers that are due there, for a target with M=1
//! conn:finish()                          -- FIN alone
//! conn:close()                           -- FIN, and wait for the target's
//! conn:reset()
//! ```
//!
//! SDP and the port mapper are in `sdp.rs` and `mapper.rs`.
//!
//! An expectation with a `requirement` that is not met fails the case; one without is preparation,
//! and leaves it inconclusive. `shows` names requirements whose rules in the monitor have something
//! to judge when the expectation is met. Seconds (`within`) are stretched by the target's time
//! scale. Two `send`s go behind each other; one with `cuts` goes in pieces.

use std::sync::Arc;

use mlua::{Lua, Table, UserData, UserDataMethods, Value};
use tokio::sync::Mutex;
use weft_core::RequirementId;
use weft_core::wire::mpa::StartupKind;

use super::location::here;
use super::message;
use super::options::{self, Reader};
use crate::model::Role;
use crate::script::message::Message;
use crate::stage::{Expectation, Next, Operation, ReplyFields, Stage, Stop};
use crate::targets::Target;

/// `t`.
pub(super) struct Tester {
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) target: Arc<Target>,
    pub(super) requirements: Arc<Vec<RequirementId>>,
}

impl Tester {
    pub(super) fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }
}

impl UserData for Tester {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        for name in ["good_exchange", "liveness"] {
            methods.add_async_method(name, |lua, tester, table: Option<Table>| {
                let (at, stage) = (here(&lua), tester.stage.clone());
                let read = tester.reader(&lua).good_exchange(table);
                async move {
                    let shows = read?;
                    stage.lock().await.good_exchange(shows, at.as_ref()).await.map_err(mlua::Error::external)
                }
            });
        }
        methods.add_async_method("connect", |lua, tester, ()| {
            let (at, stage) = (here(&lua), tester.stage.clone());
            let (target, requirements) = (tester.target.clone(), tester.requirements.clone());
            async move {
                let number = stage.lock().await.connect(at.as_ref()).await.map_err(mlua::Error::external)?;
                Ok(Connection { stage, target, requirements, number })
            }
        });
        methods.add_async_method("start_up", |lua, tester, table: Option<Table>| {
            let (at, stage) = (here(&lua), tester.stage.clone());
            let (target, requirements) = (tester.target.clone(), tester.requirements.clone());
            let read = tester.reader(&lua).expect_reply(None);
            async move {
                let (expectation, _) = read?;
                let (number, frame) = {
                    let mut stage = stage.lock().await;
                    if target.role == Role::Initiator {
                        let (number, _) = welcome(&lua, &mut stage, table, &expectation).await?;
                        (number, stage.request_on(number, at.as_ref()).map_err(mlua::Error::external)?)
                    } else {
                        let request = message::startup_from_lua(&lua, target.request.clone(), table)?;
                        let reply = started_up(&mut stage, &request, &expectation, &target).await;
                        reply.map_err(mlua::Error::external)?
                    }
                };
                Ok((Connection { stage, target, requirements, number }, message::reply_table(&lua, &frame)?))
            }
        });
        methods.add_async_method("operate", |lua, tester, table: Option<Table>| {
            let (at, stage) = (here(&lua), tester.stage.clone());
            let (target, requirements) = (tester.target.clone(), tester.requirements.clone());
            let read = tester.reader(&lua).expect_reply(None);
            async move {
                let (expectation, _) = read?;
                let (number, operation) = {
                    let mut stage = stage.lock().await;
                    if target.role == Role::Initiator {
                        welcome(&lua, &mut stage, table, &expectation).await?
                    } else {
                        let request = message::startup_from_lua(&lua, target.request.clone(), table)?;
                        let number = stage.connect(at.as_ref()).await.map_err(mlua::Error::external)?;
                        let operation = stage.operate(number, &request, &expectation).await;
                        (number, operation.map_err(mlua::Error::external)?)
                    }
                };
                let operation = message::operation_table(&lua, &operation)?;
                Ok((Connection { stage, target, requirements, number }, operation))
            }
        });
        super::sdp::add_to_tester(methods);
        super::mapper::add_to_tester(methods);
        super::asked::add_to_tester(methods);
        methods.add_method("request", |lua, tester, table: Option<Table>| {
            message::startup_from_lua(lua, tester.target.request.clone(), table)
        });
        methods.add_async_method("check", |lua, tester, (holds, table): (bool, Option<Table>)| {
            let stage = tester.stage.clone();
            let read = tester.reader(&lua).check(table);
            async move {
                let (expectation, expected, actual) = read?;
                let checked = stage.lock().await.check(holds, &expectation, &expected, &actual);
                checked.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("unimplemented", |lua, tester, why: String| {
            let (at, stage) = (here(&lua), tester.stage.clone());
            async move {
                let stop = stage.lock().await.unimplemented(&why, at.as_ref());
                Err::<(), _>(mlua::Error::external(stop))
            }
        });
        methods.add_async_method("pause", |_, tester, seconds: f64| {
            let stage = tester.stage.clone();
            async move {
                let time = options::pause(seconds).map_err(mlua::Error::runtime)?;
                stage.lock().await.pause(time).await;
                Ok(())
            }
        });
        methods.add_async_method("note", |_, tester, text: String| {
            let stage = tester.stage.clone();
            async move {
                stage.lock().await.note(&text);
                Ok(())
            }
        });
    }
}

/// TCP, the Request, a Reply with R=0, and the pause that the target needs. Gives the Reply.
async fn started_up(
    stage: &mut Stage,
    request: &Message,
    expectation: &Expectation,
    target: &Target,
) -> Result<(u32, Vec<u8>), Stop> {
    let at = expectation.at.as_ref();
    let wanted = ReplyFields { reject: Some(false), ..ReplyFields::default() };
    let number = stage.connect(at).await?;
    stage.send(number, request, at).await?;
    let reply = stage.expect_frame(number, expectation, StartupKind::Reply, &wanted).await?;
    // Some targets lose what arrives right behind their Reply; see `settle_ms`.
    if !target.settle.is_zero() {
        stage.pause(target.settle).await;
    }
    Ok((number, reply))
}

/// The same with a target that connects: its Request, a Reply as `table` overrides the right one,
/// and what lets the tester speak.
async fn welcome(
    lua: &Lua,
    stage: &mut Stage,
    table: Option<Table>,
    expectation: &Expectation,
) -> mlua::Result<(u32, Operation)> {
    let at = expectation.at.as_ref();
    let begun = async {
        let number = stage.connect(at).await?;
        stage.await_request(number, at).await?;
        let right = stage.right_reply(number, at)?;
        Ok::<_, Stop>((number, right))
    };
    let (number, right) = begun.await.map_err(mlua::Error::external)?;
    let reply = message::startup_from_lua(lua, right, table)?;
    let operation = stage.welcomed(number, &reply, expectation).await.map_err(mlua::Error::external)?;
    Ok((number, operation))
}

/// `conn`.
pub(super) struct Connection {
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) target: Arc<Target>,
    pub(super) requirements: Arc<Vec<RequirementId>>,
    pub(super) number: u32,
}

impl Connection {
    fn reader<'a>(&'a self, lua: &'a Lua) -> Reader<'a> {
        Reader { lua, target: &self.target, requirements: &self.requirements }
    }
}

impl UserData for Connection {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_method("send", |lua, conn, (value, table): (Value, Option<Table>)| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            let read = message::from_value(value).and_then(|message| {
                let (cuts, pause, deviates) = conn.reader(&lua).send(table, message.octets.len())?;
                Ok((message, cuts, pause, deviates))
            });
            async move {
                let (message, cuts, pause, deviates) = read?;
                let mut stage = stage.lock().await;
                if let Some(deviation) = deviates {
                    let marked = stage.deviates(number, &message, &deviation, at.as_ref()).await;
                    marked.map_err(mlua::Error::external)?;
                }
                let sent = match cuts.is_empty() {
                    true => stage.send(number, &message, at.as_ref()).await,
                    false => stage.send_cut(number, &message, &cuts, pause, at.as_ref()).await,
                };
                sent.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_close", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_close(table);
            async move {
                let (expectation, before, close) = read?;
                let took = stage.lock().await.expect_close(number, &expectation, before, close).await;
                took.map(|took| took.as_secs_f64()).map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_silence", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_silence(table);
            async move {
                let (expectation, open) = read?;
                stage.lock().await.expect_silence(number, &expectation, open).await.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_sdp", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).asked_quiet(table, "expect_sdp");
            async move {
                let begun = stage.lock().await.expect_sdp(number, &read?).await;
                begun.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_from", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).asked_from(table);
            async move {
                let (expectation, ip, port) = read?;
                let came = stage.lock().await.asked_from(number, &expectation, ip, port);
                came.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_plain", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).asked_quiet(table, "expect_plain");
            async move {
                let begun = stage.lock().await.expect_plain(number, &read?).await;
                begun.map_err(mlua::Error::external)
            }
        });
        methods.add_async_method("expect_reply", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_reply(table);
            async move {
                let (expectation, wanted) = read?;
                let reply = stage.lock().await.expect_frame(number, &expectation, StartupKind::Reply, &wanted).await;
                message::reply_table(&lua, &reply.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("expect_request", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_request(table);
            async move {
                let (expectation, wanted) = read?;
                let request =
                    stage.lock().await.expect_frame(number, &expectation, StartupKind::Request, &wanted).await;
                message::reply_table(&lua, &request.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("reply", |lua, conn, table: Option<Table>| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            async move {
                let right = stage.lock().await.right_reply(number, at.as_ref()).map_err(mlua::Error::external)?;
                message::startup_from_lua(&lua, right, table)
            }
        });
        methods.add_async_method("expect_fpdu", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_fpdu(table);
            async move {
                let (expectation, wanted) = read?;
                let fpdu = stage.lock().await.expect_fpdu(number, &expectation, &wanted).await;
                message::fpdu_table(&lua, &fpdu.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("expect_terminate", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_terminate(table);
            async move {
                let (expectation, wanted) = read?;
                let fpdu = stage.lock().await.expect_terminate(number, &expectation, &wanted).await;
                let fpdu = fpdu.map_err(mlua::Error::external)?;
                fpdu.map(|fpdu| message::terminate_table(&lua, &fpdu)).transpose()
            }
        });
        methods.add_async_method("expect_octets", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).expect_octets(table);
            async move {
                let (expectation, begins, keep) = read?;
                let octets = stage.lock().await.expect_octets(number, &expectation, &begins, keep).await;
                lua.create_string(octets.map_err(mlua::Error::external)?)
            }
        });
        methods.add_async_method("next", |lua, conn, table: Option<Table>| {
            let (stage, number) = (conn.stage.clone(), conn.number);
            let read = conn.reader(&lua).waiting(table);
            async move {
                let next = stage.lock().await.next(number, &read?).await.map_err(mlua::Error::external)?;
                Ok(match next {
                    Next::Frame(kind, octets) => {
                        let name = if kind == StartupKind::Request { "request" } else { "reply" };
                        (Some(name), Some(message::reply_table(&lua, &octets)?))
                    }
                    Next::Fpdu(octets) => (Some("fpdu"), Some(message::fpdu_table(&lua, &octets)?)),
                    Next::Octets => (Some("octets"), None),
                    Next::Close => (Some("close"), None),
                    Next::Nothing => (None, None),
                })
            }
        });
        methods.add_async_method("position", |lua, conn, ()| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            async move { stage.lock().await.position(number, at.as_ref()).map_err(mlua::Error::external) }
        });
        methods.add_async_method("finish", |lua, conn, ()| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            async move { stage.lock().await.half_close(number, at.as_ref()).await.map_err(mlua::Error::external) }
        });
        methods.add_async_method("close", |lua, conn, ()| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            async move { stage.lock().await.close(number, at.as_ref()).await.map_err(mlua::Error::external) }
        });
        methods.add_async_method("reset", |lua, conn, ()| {
            let (at, stage, number) = (here(&lua), conn.stage.clone(), conn.number);
            async move { stage.lock().await.reset(number, at.as_ref()).await.map_err(mlua::Error::external) }
        });
    }
}
