-- The faults of sessions with an SDP socket (draft-pinkerton-iwarp-sdp-01): messages after which
-- the target should end the connection, unusual messages that each receiver must accept, and
-- unusual ends of a connection.

local shared = ...
local ANSWER = shared.ANSWER

--- After a protocol violation, an implementation should end the connection abortively.
local ENDS = "SDP-8.2.2-8"
--- Invalid messages, and messages with a wrong format, are protocol violations.
local INVALID, MALFORMED = "SDP-8.2.2-10", "SDP-8.2.2-11"

--- Number of bytes that no SrcAvail or SinkAvail of a target advertises.
local TOO_LONG = 0x7fffffff

--- When the tester has at most one credit, the target sends a message that grants credit.
local UPDATES = "SDP-10.5-9"
--- Number of times that the tester uses up its credit, and maximum number of messages at a time.
local ROUNDS, MAX_EMPTY = 4, 64
--- Number of times that the tester looks for more credit.
local TRIES = 100

--- An endpoint that ends a connection without DisConn ends TCP at once.
local ENDS_TCP = "SDP-8.2.2-4"
--- The end of TCP without DisConn is abortive.
local FIN_IS_ABORTIVE = "SDP-8.2.2-5"

--- The target answers SuspComm with SuspCommAck, and then ends TCP.
local ANSWERS_SUSP_COMM, ENDS_SUSPENDED = "SDP-13.1.1-11", "SDP-13.1.1-15"
--- The TCP port in a SuspComm. The session does not use the new connection.
local PORT = 7000

--- Sends messages without payload until the socket has one credit left. Returns false if the socket
--- can send none.
local function use_credit(socket)
  local messages = {}
  for index = 1, math.min(socket:credit() - 1, MAX_EMPTY) do messages[index] = sdp.data {} end
  return #messages > 0 and socket:inject(messages)
end

--- Sends messages without payload until the target has to grant credit several times.
local function updates(socket, s)
  for _ = 1, ROUNDS do
    local is_sent, tries = use_credit(socket), 0
    while not is_sent and tries < TRIES and not socket:ended() do
      socket:wait { within = ANSWER / TRIES }
      is_sent, tries = use_credit(socket), tries + 1
    end
    s.check(is_sent, UPDATES, "more credit when the tester has one credit left", s.state(), true)
  end
end

--- Ends the tester's direction of TCP without DisConn. All data is sent and returned, so a DisConn
--- of the target would answer the FIN.
local function fin(socket, s)
  socket:finish()
  local has_ended = socket:wait { ended = true, within = ANSWER }
  s.check(not socket:has_dis_conn(), FIN_IS_ABORTIVE, "no DisConn after a FIN without DisConn", "a DisConn")
  s.check(has_ended, ENDS_TCP, "the end of TCP after a FIN without DisConn", s.state(), true)
end

--- Suspends the connection while the target waits for the Read Responses of the tester.
local function suspend(socket, s)
  socket:stop_reading(0.1)
  s.send(30000)
  socket:wait { within = 0.02 }
  socket:suspend(PORT)
  local has_ended = socket:wait { ended = true, within = ANSWER }
  local ended = socket:ended()
  s.check(ended and ended.suspended, ANSWERS_SUSP_COMM, "a SuspCommAck", s.state(), true)
  s.check(has_ended, ENDS_SUSPENDED, "the end of TCP after the SuspCommAck", "TCP stays open", true)
end

--- The faults, by name. `build` returns the messages, which the tester sends one directly after the
--- other. The draft forbids one of them in each state in which a fault can begin, whatever the
--- Modes of the connection are. So the target should end the connection, and it violates
--- `requirement` if it does not. If the target ends the connection, it also meets the requirements
--- in `shows`.
---
--- Most faults follow after all answers. A fault with `is_early` does not wait for answers. After a
--- fault with `is_accepted`, the connection must stay open. No message has payload that the target
--- could deliver, because the tester's socket does not count such payload.
---
--- A fault with `play` has several steps, and judges the target by itself. `play` gets the socket,
--- and functions of the session.
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
  -- If the target has an open ChRcvBuf, the first ChRcvBufAck answers it. A driven socket may have
  -- further ones later.
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
  -- The next two faults need a target that has no open SrcAvail after all answers. A source or a
  -- driven socket may have an open SrcAvail at any time.
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
  ["updates"] = { requirement = UPDATES, is_accepted = true, play = updates },
  ["fin"] = { requirement = FIN_IS_ABORTIVE, shows = { ENDS_TCP }, play = fin },
  ["suspend"] = { requirement = ANSWERS_SUSP_COMM, shows = { ENDS_SUSPENDED }, play = suspend },
}
for name, fault in pairs(FAULTS) do
  fault.requirement = fault.requirement or ENDS
  -- An SDP session judges no Terminate.
  fault.silent = true
  session.FAULTS[name] = fault
end
