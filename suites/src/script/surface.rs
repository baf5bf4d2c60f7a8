//! The methods of the tester `t` and of its connections. `annotations/weft.lua` has a list of all
//! methods, and `suites/README.md` explains them.
//!
//! ```lua
//! t:good_exchange { shows = "MPA-..." }
//! local conn = t:connect()
//! conn:send(t:request { revision = 2 }, { deviates = t:request() })
//! local reply = conn:expect_reply { requirement = "MPA-...", within = 5, reject = false }
//! conn:send(mpa.fpdu { ulpdu = rdmap.send { payload = "hi" }, position = conn:position() }, { cuts = { 3, 16 }, pause = 0.01 })
//! local fpdu = conn:expect_fpdu { opcode = 3, crc = true }
//! conn:expect_close { requirement = { "MPA-...", "MPA-..." }, within = 15 }
//! ```
//!
//! If the target violates an expectation with a `requirement`, the case fails. If nothing arrives
//! in time, the case is usually inconclusive. An expectation without a `requirement` is a
//! preparation: if it is not met, the case is inconclusive. `shows` names requirements that the
//! monitor judges in the messages that meet the expectation. weft multiplies all times in seconds
//! (`within`) by the target's time scale.
//!
//! SDP is in `sdp.rs`, the port mapper in `mapper.rs` and `port_mapper.rs`.

use mlua::{Lua, Table, UserData, UserDataMethods, Value};
use weft_core::RequirementId;
use weft_core::wire::mpa::StartupKind;

use super::bind::surface;
use super::message::{self, fpdu_table, operation_table, reply_table, startup_from_lua, terminate_table};
use super::objects::{Connection, Context, Tester};
use super::options::{self, REPLY_SECONDS, SegmentSettings, SendSettings};
use crate::model::Role;
use crate::stage::{Deviation, Expectation, Message, NextEvent, Operation, ReplyFields, Stage};

surface! {
    TESTER = Tester, bind_tester |t, stage, lua|;

    /// Uses the target's service on a new connection, to show that the target works. Call this
    /// method before the stimulus. If the exchange fails, the case is inconclusive, or the target
    /// violates `requirement`.
    async good_exchange() { good_exchange as [requirements, shows] } => stage.judged_good_exchange(requirements, shows).await?;

    /// Does a good exchange after an expectation, to show that the target still works. weft does
    /// this at the end of each case. Call this method if more steps follow.
    async liveness() { good_exchange as [requirements, shows] } => stage.judged_good_exchange(requirements, shows).await?;

    /// Opens a TCP connection and sends no MPA frame. If the target is an Initiator, starts it and
    /// waits for its connection.
    async connect() -> "weft.Connection" => t.context.connection(stage.connect().await?);

    /// Opens a connection and does MPA start-up, so that the tester may send FPDUs. The second
    /// value is the target's Reply. If the target is an Initiator, the second value is its Request.
    /// If a Responder does not answer the Request in time, it violates `requirement`.
    async start_up(request: Option<Table> = "weft.fields.mpa_request?") { opening as requirements }
        -> "weft.Connection, weft.Reply" => {
        let (number, frame) = start_up(&lua, &t.context, &mut stage, request, requirements).await?;
        (t.context.connection(number), reply_table(&lua, &frame)?)
    };

    /// Opens a connection and brings it to Full Operation. If the target is a Responder, does the
    /// first exchange of the service, so that both sides have sent FPDUs. If the target is an
    /// Initiator, waits for its first message. If a Responder does not answer the Request in time,
    /// or accepts the connection and the exchange fails, it violates `requirement`.
    async operate(request: Option<Table> = "weft.fields.mpa_request?") { opening as requirements }
        -> "weft.Connection, weft.Operation" => {
        let (number, operation) = operate(&lua, &t.context, &mut stage, request, requirements).await?;
        (t.context.connection(number), operation_table(&lua, &operation)?)
    };

    /// Returns whether the target is an Initiator, which opens the connections.
    fn is_initiator() -> "boolean" => t.context.target.role() == Role::Initiator;

    /// Builds a Request that this target accepts.
    fn request() { "mpa.request" as table } -> "weft.Message" => startup_from_lua(lua, t.context.target.description.request.clone(), table)?;

    /// Judges a condition of the script.
    async check(holds: bool = "boolean") { check as (expectation, expected, actual, missing) } => {
        let mut recorder = stage.recorder();
        recorder.note_missing_answer(!holds && missing);
        recorder.check(holds, &expectation, &expected, &actual)?;
    };

    /// Ends the case as unimplemented, because the case is about an optional feature that the
    /// target does not implement.
    async unimplemented(why: String = "string") => Err::<(), _>(stage.recorder().unimplemented(&why))?;

    /// Ends the case as inconclusive, for a reason that decides nothing about the target.
    async inconclusive(why: String = "string") => Err::<(), _>(stage.recorder().inconclusive(&why))?;

    /// Returns the maximum payload of a DDP segment that fits into one TCP segment to the target.
    fn max_segment() -> "integer" => t.context.target.max_segment();

    /// Waits for this number of seconds. The target continues meanwhile.
    async pause(seconds: f64 = "number") => stage.connections.pause(options::pause(seconds).map_err(mlua::Error::runtime)?).await;

    /// Returns the number of seconds since the case began. For a builtin target in this process,
    /// the clock is virtual.
    async clock() -> "number" => stage.connections.now().since_origin().as_secs_f64();

    /// Sets the size in bytes of TCP's receive buffer for the connections that the tester opens
    /// after this call. With a small buffer, the target can send only a few bytes before the tester
    /// reads. This method has no effect on connections that the target opens.
    async receive_buffer(octets: u32 = "integer") => stage.connections.set_receive_buffer(octets);

    /// Sets the TCP sequence number of the tester's first byte, for the connections that are opened
    /// later. With a number near 2^32, the sequence number wraps to 0 after a few bytes. Needs the
    /// capability `segments`.
    async first_sequence(number: u32 = "integer") => stage.connections.set_first_sequence(number)?;

    /// Adds a line to the transcript.
    async note(text: String = "string") => stage.recorder().note(&text);
}

impl UserData for Tester {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_tester(methods);
        super::sdp::bind_tester(methods);
        super::sdp_socket::bind_tester(methods);
        super::drawn_session::bind_tester(methods);
        super::mapper::bind_tester(methods);
        super::port_mapper::bind_tester(methods);
    }
}

/// Returns an expectation of an answer that the case does not judge.
fn preparation(context: &Context) -> Expectation {
    Expectation::preparation(context.target.scaled(REPLY_SECONDS))
}

/// Does MPA start-up with a target in either role. If a Responder does not answer the Request in
/// time, it violates `requirements`. Returns the target's Reply or Request.
async fn start_up(
    lua: &Lua,
    context: &Context,
    stage: &mut Stage,
    table: Option<Table>,
    requirements: Vec<RequirementId>,
) -> mlua::Result<(u32, Vec<u8>)> {
    let expectation = preparation(context);
    if context.target.role() == Role::Initiator {
        let (number, _) = welcome(lua, stage, table, &expectation).await?;
        return Ok((number, stage.rdma(number).request()?));
    }
    let request = startup_from_lua(lua, context.target.description.request.clone(), table)?;
    let wanted = ReplyFields { reject: Some(false), ..ReplyFields::default() };
    let number = stage.connect().await?;
    stage.connections.send(number, &request).await?;
    if !requirements.is_empty() {
        let judged = Expectation { requirements, ..expectation.clone() };
        stage.rdma(number).await_answer(&judged).await?;
    }
    let reply = stage.rdma(number).expect_frame(&expectation, StartupKind::Reply, &wanted).await?;
    // Some targets lose a message that arrives immediately after their Reply. See `settle_ms`.
    if !context.target.options.settle_time.is_zero() {
        stage.connections.pause(context.target.options.settle_time).await;
    }
    Ok((number, reply))
}

/// Does MPA start-up with a target in either role. With a Responder, also does the first exchange
/// of its service. `requirements` are those of [`Stage::operate`]. With an Initiator, also waits
/// for its first message.
async fn operate(
    lua: &Lua,
    context: &Context,
    stage: &mut Stage,
    table: Option<Table>,
    requirements: Vec<RequirementId>,
) -> mlua::Result<(u32, Operation)> {
    let expectation = preparation(context);
    if context.target.role() == Role::Initiator {
        return welcome(lua, stage, table, &expectation).await;
    }
    let request = startup_from_lua(lua, context.target.description.request.clone(), table)?;
    let number = stage.connect().await?;
    let judged = Expectation { requirements, ..expectation };
    Ok((number, stage.operate(number, &request, &judged).await?))
}

/// Accepts the connection of an Initiator, and waits until the tester may send. `table` changes
/// fields of the correct Reply.
async fn welcome(
    lua: &Lua,
    stage: &mut Stage,
    table: Option<Table>,
    expectation: &Expectation,
) -> mlua::Result<(u32, Operation)> {
    let number = stage.connect().await?;
    stage.rdma(number).await_request().await?;
    let reply = startup_from_lua(lua, stage.rdma(number).correct_reply()?, table)?;
    Ok((number, stage.rdma(number).operate_as_responder(&reply, expectation).await?))
}

surface! {
    CONNECTION = Connection, bind_connection |conn, stage, lua|;

    /// Sends a message or bytes, in pieces if the options have cuts.
    async send(message: Value = "weft.Message|string") { send as options } =>
        send(&mut stage, conn.number, &message::from_value(message)?, &options).await?;

    /// Sends a message in TCP segments that the script chooses. `cuts` has the offsets at which a
    /// new segment begins, in the bytes with markers. `order` has the numbers of the segments, from
    /// 1, in the order in which they leave. A number that occurs twice is a retransmission. Segments
    /// that are not in `order` leave last. With `fragment`, IP fragments of at most this number of
    /// bytes carry each segment. With `last_first`, the last fragment of each segment leaves first.
    /// Needs the capability `segments`.
    async send_segments(message: Value = "weft.Message|string") { send_segments as settings } =>
        send_segments(&mut stage, conn.number, &message::from_value(message)?, &settings).await?;

    /// Gives a message to the tester's TCP, which does not send it yet. `cuts` has the offsets at
    /// which a new segment begins, in the bytes with markers. Then `send_segment` sends a segment,
    /// and `send_withheld` sends the rest. Needs the capability `segments`.
    async withhold(message: Value = "weft.Message|string") { withhold as (cuts, deviation) } => {
        let message = message::from_value(message)?;
        deviate(&mut stage, conn.number, &message, deviation.as_ref()).await?;
        stage.connections.withhold(conn.number, &message, &cuts).await?;
    };

    /// Sends a segment of the withheld message. `segment` is its number, from 1.
    async send_segment(segment: usize = "integer") { send_segment as fragments } =>
        stage.connections.send_segment(conn.number, segment, fragments).await?;

    /// Sends the bytes of the withheld message that no segment had.
    async send_withheld() => stage.connections.send_withheld(conn.number).await?;

    /// Sends a message as a TCP segment in the place of an earlier message of the same length, as if
    /// TCP had retransmitted that message with other content. `back` is the number of messages that
    /// were sent after the earlier message (default 0). Needs the capability `segments`.
    async retransmit(message: Value = "weft.Message|string") { retransmit as (back, deviation) } => {
        let message = message::from_value(message)?;
        deviate(&mut stage, conn.number, &message, deviation.as_ref()).await?;
        stage.connections.retransmit(conn.number, &message, back).await?;
    };

    /// Expects an MPA Reply with these fields.
    async expect_reply() { expect_reply: frame as (expectation, wanted) } -> "weft.Reply" =>
        reply_table(&lua, &stage.rdma(conn.number).expect_frame(&expectation, StartupKind::Reply, &wanted).await?)?;

    /// Expects an MPA Request with these fields from a target that is an Initiator.
    async expect_request() { expect_request: frame as (expectation, wanted) } -> "weft.Reply" =>
        reply_table(&lua, &stage.rdma(conn.number).expect_frame(&expectation, StartupKind::Request, &wanted).await?)?;

    /// Builds the correct Reply to the received Request.
    async reply() { "mpa.reply" as table } -> "weft.Message" =>
        startup_from_lua(&lua, stage.rdma(conn.number).correct_reply()?, table)?;

    /// Expects an FPDU with these fields.
    async expect_fpdu() { expect_fpdu as (expectation, wanted) } -> "weft.Fpdu" =>
        fpdu_table(&lua, &stage.rdma(conn.number).expect_fpdu(&expectation, &wanted).await?)?;

    /// Expects that the target refuses the message: it sends a Terminate with one of these errors,
    /// or closes the connection. `requirement` names requirements about the refusal, `terminate`
    /// names requirements about the Terminate, and `code` names requirements about the error in the
    /// Terminate.
    async expect_terminate() { expect_terminate as (expectation, wanted) } -> "weft.Terminate?" => {
        let fpdu = stage.rdma(conn.number).expect_terminate(&expectation, &wanted).await?;
        fpdu.map(|fpdu| terminate_table(&lua, &fpdu)).transpose()?
    };

    /// Expects that the next bytes of the target begin with `begins`.
    async expect_octets() { expect_octets as (expectation, fields) } -> "string" =>
        lua.create_string(stage.rdma(conn.number).expect_octets(&expectation, &fields).await?)?;

    /// Expects that the target sends no byte.
    async expect_silence() { expect_silence as (expectation, open) } =>
        stage.rdma(conn.number).expect_silence(&expectation, open).await?;

    /// Expects that the target closes the connection and sends no byte before the close. Returns
    /// the seconds until the close.
    async expect_close() { expect_close as (expectation, before, close) } -> "number" =>
        stage.rdma(conn.number).expect_close(&expectation, before, close).await?.as_secs_f64();

    /// Expects that the target starts SDP, with a Hello or a start-up frame of MPA.
    async expect_sdp() { expect_sdp: silence as expectation } => stage.sdp(conn.number).expect_start(&expectation).await?;

    /// Expects that the connection came from this address and this port, if they are given.
    async expect_from() { expect_from as (expectation, ip, port) } =>
        stage.mapper_client().expect_source(conn.number, &expectation, ip, port)?;

    /// Expects a connection without SDP: the first bytes are neither a Hello nor a start-up frame
    /// of MPA. The target may also send nothing.
    async expect_plain() { expect_plain: silence as expectation } =>
        stage.sdp(conn.number).expect_no_start(&expectation).await?;

    /// Returns the next event, and judges nothing. The event is a start-up frame, an FPDU, other
    /// bytes, or the end of the connection. For a start-up frame or an FPDU, also returns its
    /// fields. Returns nil if nothing arrives.
    async next() { waiting as expectation }
        -> "\"reply\"|\"request\"|\"fpdu\"|\"octets\"|\"close\"|nil, weft.Reply|weft.Fpdu|nil" =>
        event(&lua, stage.rdma(conn.number).next(&expectation).await?)?;

    /// Reads at most this number of bytes from TCP, and keeps them for the next expectation. Returns
    /// whether a byte arrived. If the receive buffer was full, the tester's own TCP opens its window
    /// by this number of bytes. TCP of the operating system waits until more bytes are read.
    async read_part(octets: usize = "integer") { waiting as expectation } -> "boolean" =>
        stage.connections.read_part(conn.number, octets, expectation.within).await?;

    /// Returns the number of bytes that the tester sent after its start-up frame. This number is
    /// the position of the tester's next FPDU.
    async position() -> "integer" => stage.connections.position(conn.number)?;

    /// Returns the position of the next FPDU in the tester's stream or, with `by_target`, in the
    /// target's stream. Returns nil if this stream has no markers. The script must have received
    /// all FPDUs of the target.
    async marked_position(by_target: bool = "boolean") -> "integer?" =>
        stage.connections.marked_position(conn.number, by_target)?;

    /// Closes the tester's direction of the connection with FIN.
    async finish() => stage.connections.half_close(conn.number).await?;

    /// Sends FIN, and waits a short time for the target's FIN.
    async close() => stage.connections.close(conn.number).await?;

    /// Resets the connection.
    async reset() => stage.connections.reset(conn.number).await?;
}

impl UserData for Connection {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_connection(methods);
    }
}

async fn send(stage: &mut Stage, number: u32, message: &Message, options: &SendSettings) -> mlua::Result<()> {
    let cuts = options.cuts(message.octets.len())?;
    deviate(stage, number, message, options.deviation.as_ref()).await?;
    match cuts.is_empty() {
        true if options.queued => stage.connections.send_queued(number, message).await?,
        true => stage.connections.send(number, message).await?,
        false => stage.connections.send_cut(number, message, &cuts, options.pause).await?,
    }
    Ok(())
}

async fn send_segments(
    stage: &mut Stage,
    number: u32,
    message: &Message,
    settings: &SegmentSettings,
) -> mlua::Result<()> {
    deviate(stage, number, message, settings.deviation.as_ref()).await?;
    let SegmentSettings { cuts, order, pause, fragments, .. } = settings;
    stage.connections.send_segments(number, message, cuts, order, *pause, *fragments).await?;
    Ok(())
}

/// Notes that a step deviates from a plain exchange. In a control, this ends the case.
async fn deviate(stage: &mut Stage, number: u32, message: &Message, deviation: Option<&Deviation>) -> mlua::Result<()> {
    if let Some(deviation) = deviation {
        stage.deviates(number, message, deviation).await?;
    }
    Ok(())
}

/// Returns the name of an event and, for a start-up frame or an FPDU, its fields.
fn event(lua: &Lua, next: NextEvent) -> mlua::Result<(Option<&'static str>, Option<Table>)> {
    Ok(match next {
        NextEvent::Frame(StartupKind::Request, octets) => (Some("request"), Some(reply_table(lua, &octets)?)),
        NextEvent::Frame(StartupKind::Reply, octets) => (Some("reply"), Some(reply_table(lua, &octets)?)),
        NextEvent::Fpdu(octets) => match fpdu_table(lua, &octets)? {
            fpdu if fpdu.contains_key("opcode")? => (Some("fpdu"), Some(fpdu)),
            // The ULPDU has no DDP segment.
            _ => (Some("octets"), None),
        },
        NextEvent::Octets => (Some("octets"), None),
        NextEvent::Close => (Some("close"), None),
        NextEvent::Nothing => (None, None),
    })
}
