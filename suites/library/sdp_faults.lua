-- The faults of sessions with an SDP socket (draft-pinkerton-iwarp-sdp-01): messages after which
-- the target should end the connection, and unusual messages that each receiver must accept.

--- After a protocol violation, an implementation should end the connection abortively.
local ENDS = "SDP-8.2.2-8"
--- Invalid messages, and messages with a wrong format, are protocol violations.
local INVALID, MALFORMED = "SDP-8.2.2-10", "SDP-8.2.2-11"

--- Number of bytes that no SrcAvail or SinkAvail of a target advertises.
local TOO_LONG = 0x7fffffff

--- The faults, by name. `build` returns the messages, which the tester sends one directly after the
--- other. The draft forbids one of them in each state in which a fault can begin, whatever the
--- Modes of the connection are. So the target should end the connection, and it violates
--- `requirement` if it does not. If the target ends the connection, it also meets the requirements
--- in `shows`.
---
--- Most faults follow after all answers. A fault with `is_early` does not wait for answers. After a
--- fault with `is_accepted`, the connection must stay open. No message has payload that the target
--- could deliver, because the tester's socket does not count such payload.
local FAULTS = {
  ["reserved-mid"] = { shows = { INVALID }, build = function() return { sdp.data { mid = 0x0f } } end },
  ["reserved-mid-payload"] = {
    shows = { INVALID },
    build = function() return { sdp.data { mid = 0xfc, payload = "abcd" } } end,
  },
  ["len-short"] = { shows = { MALFORMED }, build = function() return { sdp.data { payload = "abcd", len = 19 } } end },
  ["len-long"] = { shows = { MALFORMED }, build = function() return { sdp.data { payload = "abcd", len = 4096 } } end },
  -- The header of a message has 16 bytes.
  ["short-header"] = { shows = { MALFORMED }, build = function() return { ("h"):rep(15) } end },
  ["send-sm-payload"] = { shows = { MALFORMED }, build = function() return { sdp.send_sm { payload = "abcd" } } end },
  ["ch-rcv-buf-payload"] = {
    shows = { MALFORMED },
    build = function() return { sdp.ch_rcv_buf { payload = "abcd" } } end,
  },
  ["mode-value"] = { shows = { MALFORMED }, build = function() return { sdp.mode_change { mode = 3 } } end },
  -- In Combined Mode, only the second ModeChange is illegal. In the other Modes, the first is, too.
  ["mode-skipped"] = {
    shows = { "SDP-12-7" },
    build = function() return { sdp.mode_change { mode = 0 }, sdp.mode_change { mode = 2 } } end,
  },
  -- In Combined Mode, only the SrcAvail is illegal. In the other Modes, the ModeChange is illegal.
  ["src-avail-in-buffered"] = {
    shows = { INVALID },
    build = function() return { sdp.mode_change { mode = 0 }, sdp.src_avail { length = 600 } } end,
  },
  -- In Pipelined Mode, the ModeChange makes all SinkAvails void, so no SinkAvail is left for the
  -- RdmaWrCompl. In the other Modes, the ModeChange is illegal.
  ["left-pipelined"] = {
    shows = { INVALID },
    build = function() return { sdp.mode_change { mode = 1 }, sdp.rdma_wr_compl { length = 100 } } end,
  },
  -- If the target has an open ChRcvBuf, the first ChRcvBufAck answers it.
  ["ack-of-nothing"] = {
    shows = { INVALID },
    build = function() return { sdp.ch_rcv_buf_ack {}, sdp.ch_rcv_buf_ack {} } end,
  },
  ["rd-compl-too-long"] = {
    shows = { INVALID },
    is_early = true,
    build = function() return { sdp.rdma_rd_compl { length = TOO_LONG } } end,
  },
  ["wr-compl-too-long"] = {
    shows = { INVALID },
    is_early = true,
    build = function() return { sdp.rdma_wr_compl { length = TOO_LONG } } end,
  },
  -- The next two faults need a target that has no open SrcAvail after all answers. A source may
  -- have an open SrcAvail at any time.
  ["rd-compl-of-nothing"] = { shows = { INVALID }, build = function() return { sdp.rdma_rd_compl { length = 100 } } end },
  ["send-sm-of-nothing"] = { shows = { INVALID }, build = function() return { sdp.send_sm {} } end },
  -- A receiver ignores the reserved bits of Flags, and REQ_PIPE in messages other than RdmaRdCompl
  -- and RdmaWrCompl.
  ["reserved-flags"] = {
    requirement = "SDP-6.1.2-6",
    is_accepted = true,
    build = function() return { sdp.data { flags = 0xf8 } } end,
  },
  ["req-pipe-in-data"] = {
    requirement = "SDP-6.1.2-19",
    is_accepted = true,
    build = function() return { sdp.data { req_pipe = true } } end,
  },
}
for name, fault in pairs(FAULTS) do
  fault.requirement = fault.requirement or ENDS
  -- An SDP session judges no Terminate.
  fault.silent = true
  session.FAULTS[name] = fault
end
