//! An SDP socket of a script: the Lua object that `t:sdp_socket` opens. weft's implementation of
//! SDP chooses the messages, and the script chooses what the socket's user does. The script can
//! also send single messages, which may violate the draft.
//!
//! ```lua
//! local s = t:sdp_socket { source_threshold = 500, answer = "send-sm" }
//! s:send("hello", { urgent = true })
//! if s:wait { octets = 5 } then s:received() end
//! s:shut()
//! s:wait { ended = true }
//! ```

use std::time::Duration;

use mlua::{LuaString, Table, UserData, UserDataMethods, Value};
use weft_core::wire::sdp::Mode;
use weft_peer::sdp::{Half, Policy, Settings, SrcAvailAnswer};

use super::bind::surface;
use super::fields::Fields;
use super::message;
use super::objects::{Context, Tester};
use super::options::{self, Reader};
use crate::stage::{Cut, SocketSettings, SocketWait};

/// Seconds that a socket waits if the script sets no time.
const WAIT_SECONDS: f64 = 10.0;

/// The Lua object of a socket.
#[derive(Clone)]
pub(super) struct SdpSocket {
    context: Context,
    number: u32,
}

surface! {
    TESTER_SDP_SOCKET = Tester, bind_tester |t, stage, lua|;

    /// Opens an SDP socket of the tester, in the target's profile. The socket is the Connecting
    /// Peer. If the target connects, the socket is the Accepting Peer.
    async sdp_socket() { sdp_socket as settings } -> "weft.SdpSocket" =>
        SdpSocket { context: t.context.clone(), number: stage.open_sdp_socket(settings).await? };
}

surface! {
    SDP_SOCKET = SdpSocket, bind_socket |s, stage, lua|;

    /// Queues bytes to send. Returns false if the connection does not accept them any more.
    async send(octets: LuaString = "string") { sdp_socket_send as urgent } -> "boolean" =>
        stage.sdp_socket_send(s.number, octets.as_bytes().to_vec(), urgent)?;

    /// Queues a line of text commands for a driven socket, like `send`. If the driven socket does
    /// not execute one of the commands, the case ends as unimplemented.
    async command(line: LuaString = "string") -> "boolean" =>
        stage.sdp_socket_command(s.number, &line.as_bytes())?;

    /// Sends messages that the script builds, one directly after the other. The draft may forbid
    /// the messages. weft fills in the counters that a message does not set. The messages have no
    /// other effect on the socket. Returns false, and sends nothing, if the send credit does not
    /// suffice, or if answers of the socket wait for credit.
    async inject(messages: Vec<Value> = "(weft.Message|string)[]") -> "boolean" => {
        let messages = messages.into_iter().map(message::from_value).collect::<mlua::Result<Vec<_>>>()?;
        stage.inject_sdp_messages(s.number, &messages)?
    };

    /// Returns the number of messages that the socket may send now, according to the send credit.
    async credit() -> "integer" => stage.sdp_endpoint(s.number)?.machine().credit();

    /// Runs all sockets of the case until a condition is met. The conditions are `octets` (number
    /// of received bytes that the script has not taken yet), `open` (HelloAck), `sent` (all sends
    /// have ended), and `ended` (the connection has ended). The end of the connection meets every
    /// condition. The wait also ends if the connection receives no byte for `within` seconds.
    /// Without a condition, waits for `within` seconds. Returns whether the condition is met.
    async wait() { sdp_socket_wait as (wait, within) } -> "boolean" =>
        stage.sdp_socket_wait(s.number, wait, within).await?;

    /// Returns the received bytes that the script has not taken yet.
    async received() -> "string" => lua.create_string(&stage.sdp_socket_received(s.number)?)?;

    /// Returns the number of sent bytes for each send that has ended since the last call.
    async sent() -> "integer[]" => stage.sdp_socket_sent(s.number)?;

    /// Requests a Mode: `"combined"`, `"pipelined"` or `"buffered"`. The socket changes to this
    /// Mode when the draft allows it. `receiving` selects the half-connection from the target.
    async mode(mode: String = "string") { sdp_socket_mode as receiving } => {
        let mode = match mode.as_str() {
            "combined" => Mode::Combined,
            "pipelined" => Mode::Pipelined,
            "buffered" => Mode::Buffered,
            other => {
                let why = format!("mode: expected \"combined\", \"pipelined\" or \"buffered\", found {other:?}");
                return Err(mlua::Error::runtime(why));
            }
        };
        let half = if receiving { Half::In } else { Half::Out };
        // A Mode that cannot be requested now is ignored.
        let _ = stage.sdp_endpoint(s.number)?.machine_mut().set_mode(half, mode);
    };

    /// Requests another size of the target's Private Buffers.
    async resize(octets: u32 = "integer") => stage.sdp_endpoint(s.number)?.machine_mut().resize(octets);

    /// Returns the maximum length in bytes of a message that the socket may send now. This is the
    /// size of the target's Private Buffers.
    async message_limit() -> "integer" => stage.sdp_endpoint(s.number)?.machine().message_limit();

    /// Cancels the sends that have not ended.
    async cancel() => stage.sdp_endpoint(s.number)?.machine_mut().cancel_sends();

    /// For this number of seconds, the socket only sends, and leaves the target's bytes unread. So
    /// its messages cross messages of the target.
    async stop_reading(seconds: f64 = "number") => {
        let time = options::pause(seconds).map_err(mlua::Error::runtime)?;
        stage.sdp_socket_stop_reading(s.number, time)?;
    };

    /// For this number of seconds, the socket has no receive: it cancels its receives and posts no
    /// others. So data of the target stays in the Private Buffers, and SrcAvails stay open. A later
    /// call replaces the time.
    async hold(seconds: f64 = "number") => {
        let time = options::pause(seconds).map_err(mlua::Error::runtime)?;
        stage.sdp_socket_hold(s.number, time)?;
    };

    /// Changes the field `source_threshold`: if the rest of a send has at most this number of
    /// bytes, the socket sends the rest as Data.
    async source_threshold(octets: u64 = "integer") => {
        stage.sdp_endpoint(s.number)?.machine_mut().policy_mut().source_threshold = octets;
    };

    /// Changes how the socket answers a SrcAvail: `"read"`, `"send-sm"` or `"both"`.
    async answer(how: String = "string") => {
        let wrong = || format!("answer: expected \"read\", \"send-sm\" or \"both\", found {how:?}");
        let answer = answer_named(&how).ok_or_else(|| mlua::Error::runtime(wrong()))?;
        stage.sdp_endpoint(s.number)?.machine_mut().policy_mut().answer = answer;
    };

    /// Closes the sending half-connection after all queued bytes.
    async shut() => stage.shut_sdp_socket(s.number)?;

    /// Sends a FIN without DisConn. Afterwards the socket sends nothing, but still receives.
    async finish() => stage.finish_sdp_socket(s.number).await?;

    /// Suspends the connection: after a SuspComm with this TCP port, the target has to answer and
    /// to connect to this port of the tester. A suspended connection counts as ended. Returns false
    /// if the connection is not open.
    async suspend(port: u16 = "integer") -> "boolean" =>
        stage.sdp_endpoint(s.number)?.machine_mut().suspend(port).is_ok();

    /// Continues a suspended connection: waits until the target connects to this TCP port of the
    /// tester, and returns the socket on the new connection. Sends and receives that have not ended
    /// continue. Only a builtin target can connect to another port of the tester.
    async resume(port: u16 = "integer") { sdp_socket_resume: answer as expectation } -> "weft.SdpSocket" =>
        SdpSocket { context: s.context.clone(), number: stage.resume_sdp_socket(s.number, port, &expectation).await? };

    /// Closes the connection abortively.
    async abort() => {
        let now = stage.connections.now();
        stage.sdp_endpoint(s.number)?.machine_mut().abort(now);
    };

    /// Resets the TCP connection. The socket cannot be used any more.
    async reset() => stage.reset_sdp_socket(s.number).await?;

    /// Returns whether the target has sent DisConn.
    async has_dis_conn() -> "boolean" => stage.has_sdp_dis_conn(s.number)?;

    /// Returns how the connection ended, or nil if it has not ended. The table has the fields
    /// `graceful` and `suspended`. If weft's SDP ended the connection, the table also has the field
    /// `reason`.
    async ended() -> "{ graceful: boolean, suspended: boolean, reason: string? }?" => match stage.sdp_socket_end(s.number)? {
        Some(end) => {
            let table: Table = lua.create_table()?;
            table.set("graceful", end.graceful)?;
            table.set("suspended", end.suspended)?;
            table.set("reason", end.reason)?;
            Some(table)
        }
        None => None,
    };
}

impl UserData for SdpSocket {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        bind_socket(methods);
    }
}

fn answer_named(name: &str) -> Option<SrcAvailAnswer> {
    match name {
        "read" => Some(SrcAvailAnswer::Read),
        "send-sm" => Some(SrcAvailAnswer::SendSm),
        "both" => Some(SrcAvailAnswer::ReadThenSendSm),
        _ => None,
    }
}

impl Reader<'_> {
    /// The settings of a socket. Each field has a correct default value.
    pub(super) fn sdp_socket(&self, fields: &mut Fields<'_>) -> mlua::Result<SocketSettings> {
        let answer: String = fields.or("answer", "read".to_owned())?;
        let answer = answer_named(&answer)
            .ok_or_else(|| fields.wrong("answer", "expected \"read\", \"send-sm\" or \"both\""))?;
        let policy = Policy {
            source_threshold: fields.or("source_threshold", 16384)?,
            sink_threshold: fields.or("sink_threshold", 16384)?,
            max_src_avail: fields.or("max_src_avail", 1u32 << 30)?.max(1),
            src_avails: fields.or("src_avails", 4)?,
            sink_avails: fields.or("sink_avails", 4)?,
            src_avail_payload: fields.or("src_avail_payload", u32::MAX)?.max(1),
            answer,
            max_read: fields.or("max_read", 1u32 << 30)?.max(1),
            read_batch: fields.or("read_batch", u32::MAX)?.max(1),
            transactions: fields.or("transactions", true)?,
            wants_pipelined: fields.or("wants_pipelined", false)?,
            follows_hints: fields.or("follows_hints", false)?,
            data_first: fields.or("data_first", false)?,
            ..Policy::default()
        };
        let recv_size = fields.or("recv_size", 8192)?;
        let mut sdp = Settings {
            bufs: fields.or("bufs", 16)?,
            recv_size,
            max_recv_size: fields.or("max_recv_size", 65536)?,
            des_rem_rcv_sz: fields.or("des_rem_rcv_sz", 8192)?,
            max_adverts: fields.or("max_adverts", 16)?,
            ird: fields.or("ird", 16)?,
            policy,
            // If the target does not close, a time limit of the script ends the wait before this
            // time.
            close_timeout: Duration::from_secs(300),
            ..Settings::default()
        };
        let crc = fields.or("crc", true)?;
        sdp.mpa.crc = crc;
        sdp.bare.framing_sent.crc = crc;
        sdp.bare.framing_received.crc = crc;
        let cut = match (fields.or("cut_fpdus", false)?, fields.or("cut", 0)?) {
            (true, _) => Cut::Fpdus,
            (false, 0) => Cut::None,
            (false, octets) => Cut::Octets(octets),
        };
        Ok(SocketSettings {
            sdp,
            receive: fields.or("receive", 16384)?,
            receives: fields.or("receives", 2)?,
            max_received: fields.or("max_received", u64::MAX)?,
            buffers_at: fields.optional("buffers_at")?,
            cut,
        })
    }

    /// `urgent`: whether the last byte is Out-Of-Band data.
    pub(super) fn sdp_socket_send(&self, fields: &mut Fields<'_>) -> mlua::Result<bool> {
        fields.or("urgent", false)
    }

    /// `receiving`: whether the Mode is for the half-connection from the target.
    pub(super) fn sdp_socket_mode(&self, fields: &mut Fields<'_>) -> mlua::Result<bool> {
        fields.or("receiving", false)
    }

    /// The condition to wait for, and the time `within` in seconds.
    pub(super) fn sdp_socket_wait(&self, fields: &mut Fields<'_>) -> mlua::Result<(SocketWait, Duration)> {
        let octets: Option<usize> = fields.optional("octets")?;
        let flags = [("open", SocketWait::Open), ("sent", SocketWait::Sent), ("ended", SocketWait::End)];
        let mut waits: Vec<SocketWait> = octets.map(SocketWait::Octets).into_iter().collect();
        for (name, wait) in flags {
            if fields.or(name, false)? {
                waits.push(wait);
            }
        }
        let within = self.within(fields, WAIT_SECONDS)?;
        let wait = match waits[..] {
            [] => SocketWait::Time,
            [wait] => wait,
            _ => return Err(fields.wrong("octets", "set only one of `octets`, `open`, `sent` and `ended`")),
        };
        Ok((wait, within))
    }
}
