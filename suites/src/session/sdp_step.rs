//! The steps of a session with an SDP socket. The steps call the functions of
//! `suites/library/sdp_session.lua`. Some of them are also steps of a session with a driven socket
//! (`sdp_drive_session.lua`).

use std::fmt::{self, Display, Formatter};

use weft_core::wire::sdp::MIN_PRIVATE_BUFFER;

use super::lua_table::LuaTable;
use super::step::seconds;

/// Number of bytes that the tester's user takes from a source before the tester closes its own
/// half. A source may send data without end.
const MAX_RECEIVED: u32 = 1 << 18;

/// Fields of a new socket. They are fields of `t:sdp_socket`, except for `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketFields {
    pub(crate) crc: bool,
    pub(crate) mode: &'static str,
    pub(crate) bufs: u32,
    pub(crate) recv_size: u32,
    pub(crate) source_threshold: u32,
    pub(crate) sink_threshold: u32,
    pub(crate) max_src_avail: u32,
    pub(crate) src_avail_payload: u32,
    pub(crate) answer: &'static str,
    pub(crate) max_read: u32,
    pub(crate) read_batch: u32,
    pub(crate) receive: u32,
    pub(crate) receives: u32,
    pub(crate) max_adverts: u32,
    pub(crate) src_avails: u32,
    pub(crate) sink_avails: u32,
    pub(crate) ird: u32,
    pub(crate) wants_pipelined: bool,
    pub(crate) follows_hints: bool,
    pub(crate) data_first: bool,
    /// Only a socket that is connected to a source uses this number.
    pub(crate) max_received: u32,
    /// Virtual address of the tester's buffers. If it is 0, weft selects the address.
    pub(crate) buffers_at: u64,
    pub(crate) cut: u32,
    pub(crate) cut_fpdus: bool,
}

impl Default for SocketFields {
    /// The fields of `t:sdp_socket {}`.
    fn default() -> Self {
        SocketFields {
            crc: true,
            mode: "combined",
            bufs: 16,
            recv_size: 8192,
            source_threshold: 16384,
            sink_threshold: 16384,
            max_src_avail: 1 << 30,
            src_avail_payload: u32::MAX,
            answer: "read",
            max_read: 1 << 30,
            read_batch: u32::MAX,
            receive: 16384,
            receives: 2,
            max_adverts: 16,
            src_avails: 4,
            sink_avails: 4,
            ird: 16,
            wants_pipelined: false,
            follows_hints: false,
            data_first: false,
            max_received: MAX_RECEIVED,
            buffers_at: 0,
            cut: 0,
            cut_fpdus: false,
        }
    }
}

impl SocketFields {
    /// Returns the fields that differ from their defaults.
    fn table(&self) -> LuaTable {
        let usual = SocketFields::default();
        LuaTable::default()
            .number("bufs", self.bufs, usual.bufs)
            .number("recv_size", self.recv_size, usual.recv_size)
            .number("source_threshold", self.source_threshold, usual.source_threshold)
            .number("sink_threshold", self.sink_threshold, usual.sink_threshold)
            .number("max_src_avail", self.max_src_avail, usual.max_src_avail)
            .number("src_avail_payload", self.src_avail_payload, usual.src_avail_payload)
            .number("max_read", self.max_read, usual.max_read)
            .number("read_batch", self.read_batch, usual.read_batch)
            .number("receive", self.receive, usual.receive)
            .number("receives", self.receives, usual.receives)
            .number("max_adverts", self.max_adverts, usual.max_adverts)
            .number("src_avails", self.src_avails, usual.src_avails)
            .number("sink_avails", self.sink_avails, usual.sink_avails)
            .number("ird", self.ird, usual.ird)
            .number("max_received", self.max_received, usual.max_received)
            .number("cut", self.cut, usual.cut)
            .string("mode", self.mode, usual.mode)
            .string("answer", self.answer, usual.answer)
            .boolean("crc", self.crc, usual.crc)
            .boolean("wants_pipelined", self.wants_pipelined, usual.wants_pipelined)
            .boolean("follows_hints", self.follows_hints, usual.follows_hints)
            .boolean("data_first", self.data_first, usual.data_first)
            .boolean("cut_fpdus", self.cut_fpdus, usual.cut_fpdus)
            .hex("buffers_at", self.buffers_at)
    }

    /// Returns simpler fields: first the defaults of all fields, then variants in which one field,
    /// or a group of related fields, has its default.
    fn simpler(self) -> Vec<SocketFields> {
        let usual = SocketFields::default();
        let tried = [
            usual,
            SocketFields { crc: usual.crc, ..self },
            SocketFields { mode: usual.mode, ..self },
            SocketFields { bufs: usual.bufs, ..self },
            SocketFields { recv_size: usual.recv_size, ..self },
            SocketFields { source_threshold: usual.source_threshold, ..self },
            SocketFields { sink_threshold: usual.sink_threshold, ..self },
            SocketFields { max_src_avail: usual.max_src_avail, ..self },
            SocketFields { src_avail_payload: usual.src_avail_payload, ..self },
            SocketFields { answer: usual.answer, ..self },
            SocketFields { max_read: usual.max_read, read_batch: usual.read_batch, ..self },
            SocketFields { receive: usual.receive, receives: usual.receives, ..self },
            SocketFields { max_adverts: usual.max_adverts, ..self },
            SocketFields { src_avails: usual.src_avails, sink_avails: usual.sink_avails, ..self },
            SocketFields { ird: usual.ird, ..self },
            SocketFields { wants_pipelined: false, follows_hints: false, ..self },
            SocketFields { data_first: false, ..self },
            SocketFields { max_received: usual.max_received, ..self },
            SocketFields { buffers_at: usual.buffers_at, ..self },
            SocketFields { cut: usual.cut, cut_fpdus: usual.cut_fpdus, ..self },
        ];
        tried.into_iter().filter(|fields| *fields != self).collect()
    }
}

/// A step on the SDP connection with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SdpStep {
    pub(crate) connection: u32,
    pub(crate) action: SdpAction,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SdpAction {
    /// Opens the connection.
    Open(SocketFields),
    /// Sends `size` bytes. With `urgent`, the last byte is Out-Of-Band data.
    Send { size: u32, urgent: bool },
    /// Requests a Mode of the half-connection to the target.
    Mode(&'static str),
    /// Ends Buffered Mode of the half-connection from the target.
    Unbuffer,
    /// Requests another size of the target's Private Buffers.
    Resize(u32),
    /// Sends `count` requests for other sizes of the target's Private Buffers. Each size is one
    /// byte less than the previous size. After each request, sends 20 bytes one by one.
    Resizes { count: u32, size: u32 },
    /// Requests `size` bytes for the target's Private Buffers, directly after `before` messages.
    /// When the target has larger buffers, sends messages of their size.
    Grow { size: u32, before: u32 },
    /// Sends `count` times as many bytes as one message to the target holds, and `more` bytes.
    Fill { count: u32, more: i32 },
    /// Leaves the target's bytes unread for this number of milliseconds.
    StopReading(u32),
    /// For this number of milliseconds, the tester's user takes no data.
    Hold(u32),
    /// For `ms` milliseconds, the tester's user takes no data. Then the tester answers a SrcAvail
    /// before it reads what the target has sent meanwhile. Before the wait, sends `size` bytes.
    LateAnswer { ms: u32, size: u32 },
    /// Sends `size` bytes, and `count` short messages, while the tester's user takes no data.
    Huge { size: u32, count: u32 },
    /// Changes how the tester answers a SrcAvail.
    Answer(&'static str),
    /// Cancels the sends.
    Cancel,
    /// Lets the connection continue for this number of milliseconds.
    Run(u32),
    /// Ends the connection abortively.
    Abort,
    /// Suspends the connection, and continues it on another TCP connection.
    Resume,
    /// Closes the connection to a driven socket gracefully, while the target may still send.
    CloseEarly,
}

impl SdpStep {
    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<SdpStep> {
        let actions: Vec<SdpAction> = match self.action {
            SdpAction::Open(fields) => fields.simpler().into_iter().map(SdpAction::Open).collect(),
            SdpAction::Send { size, urgent } => {
                let plain = urgent.then_some(SdpAction::Send { size, urgent: false });
                let sizes = smaller(size).into_iter().filter(|size| *size > 0);
                plain.into_iter().chain(sizes.map(|size| SdpAction::Send { size, urgent })).collect()
            }
            SdpAction::Resize(size) => {
                smaller(size).into_iter().filter(|size| *size >= MIN_PRIVATE_BUFFER).map(SdpAction::Resize).collect()
            }
            SdpAction::Resizes { count, size } => {
                smaller(count).into_iter().map(|count| SdpAction::Resizes { count, size }).collect()
            }
            SdpAction::Grow { size, before } => {
                let befores = smaller(before).into_iter().map(|before| SdpAction::Grow { size, before });
                let sizes = smaller(size).into_iter().filter(|size| *size >= MIN_PRIVATE_BUFFER);
                befores.chain(sizes.map(|size| SdpAction::Grow { size, before })).collect()
            }
            SdpAction::Fill { count, more } => {
                smaller(count).into_iter().map(|count| SdpAction::Fill { count, more }).collect()
            }
            SdpAction::StopReading(ms) => {
                smaller(ms).into_iter().filter(|ms| *ms > 0).map(SdpAction::StopReading).collect()
            }
            SdpAction::Hold(ms) => smaller(ms).into_iter().filter(|ms| *ms > 0).map(SdpAction::Hold).collect(),
            SdpAction::LateAnswer { ms, size } => {
                let times = smaller(ms).into_iter().filter(|ms| *ms > 0);
                let sizes = smaller(size).into_iter().map(|size| SdpAction::LateAnswer { ms, size });
                times.map(|ms| SdpAction::LateAnswer { ms, size }).chain(sizes).collect()
            }
            SdpAction::Huge { size, count } => {
                let sizes = smaller(size).into_iter().filter(|size| *size > 0);
                let counts = smaller(count).into_iter().map(|count| SdpAction::Huge { size, count });
                sizes.map(|size| SdpAction::Huge { size, count }).chain(counts).collect()
            }
            SdpAction::Run(ms) => smaller(ms).into_iter().map(SdpAction::Run).collect(),
            SdpAction::Mode(_)
            | SdpAction::Unbuffer
            | SdpAction::Answer(_)
            | SdpAction::Cancel
            | SdpAction::Abort
            | SdpAction::Resume
            | SdpAction::CloseEarly => Vec::new(),
        };
        actions.into_iter().map(|action| SdpStep { action, ..self }).collect()
    }
}

/// A call in Lua, with the session in `s`.
impl Display for SdpStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            SdpAction::Open(fields) => write!(f, "s:open({connection}{})", fields.table().last_argument()),
            SdpAction::Send { size, urgent } => {
                write!(f, "s:send({connection}, {})", LuaTable::of_size(size).flag("urgent", urgent))
            }
            SdpAction::Mode(mode) => write!(f, "s:mode({connection}, \"{mode}\")"),
            SdpAction::Unbuffer => write!(f, "s:unbuffer({connection})"),
            SdpAction::Resize(size) => write!(f, "s:resize({connection}, {size})"),
            SdpAction::Resizes { count, size } => write!(f, "s:resizes({connection}, {count}, {size})"),
            SdpAction::Grow { size, before } => write!(f, "s:grow({connection}, {size}, {before})"),
            SdpAction::Fill { count, more } => write!(f, "s:fill({connection}, {count}, {more})"),
            SdpAction::StopReading(ms) => write!(f, "s:stop_reading({connection}, {})", seconds(ms)),
            SdpAction::Hold(ms) => write!(f, "s:hold({connection}, {})", seconds(ms)),
            SdpAction::LateAnswer { ms, size } => write!(f, "s:late_answer({connection}, {}, {size})", seconds(ms)),
            SdpAction::Huge { size, count } => write!(f, "s:huge({connection}, {size}, {count})"),
            SdpAction::Answer(how) => write!(f, "s:answer({connection}, \"{how}\")"),
            SdpAction::Cancel => write!(f, "s:cancel({connection})"),
            SdpAction::Run(ms) => write!(f, "s:run({connection}, {})", seconds(ms)),
            SdpAction::Abort => write!(f, "s:abort({connection})"),
            SdpAction::Resume => write!(f, "s:resume({connection})"),
            SdpAction::CloseEarly => write!(f, "s:close_early({connection})"),
        }
    }
}
