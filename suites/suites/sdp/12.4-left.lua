-- How a target handles hints to change the Mode, and advertisements that are still open after a
-- ModeChange out of Pipelined Mode (draft-pinkerton-iwarp-sdp-01 sections 6.1.2, 12, 12.4 and
-- 12.5).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

local repeated = { "SDP-12.4-9", "SDP-12.5-5", "SDP-12.5-6" }

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/12.4-left", ...) end

case(driven("repeated", "The target repeats SrcAvails that a SinkAvail after the ModeChange has overridden", repeated,
  {}, function(s, t)
  s:command "mode out pipelined; wait 5; send 1800; wait 5; mode out combined"
  s:expect "mode_change"
  s:expect "src_avail"
  s:expect "mode_change"
  -- The MSeqAck of this SinkAvail shows that the SinkAvail crosses the ModeChange and the SrcAvail.
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, mseq_ack = s:counters().mseq_ack - 2 })
  local m = s:expect("src_avail", { fields = { length = 1800 }, requirement = repeated, overdue_fails = true })
  t:check(#m.payload > 0, { requirement = "SDP-12.5-6", expected = "payload, as in Combined Mode", actual = "none in the message" })
  s:connection():reset()
end))

case {
  id = "sdp/12.4-left/repeated-by-source",
  title = "A source repeats SrcAvails that a SinkAvail has overridden, if the SinkAvail crosses the ModeChange to Combined Mode",
  requirements = { "SDP-9.2-2", repeated },
  capabilities = { "sdp-source" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 64 } }
    -- The MSeqAck of an update would show that the tester has received the ModeChange.
    s:counters { bufs = 64, updates = false }
    -- Number of messages with payload before the ModeChange.
    local payloads = 0
    local function next_message()
      local event, m = s:next {}
      payloads = payloads + (event ~= "read" and #m.payload > 0 and 1 or 0)
      return event, m
    end
    local event, m
    repeat
      event, m = next_message()
    until event == "src_avail"
    local rest = m.length - #m.payload
    s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
    s:expect_response {}
    s:send(sdp.rdma_rd_compl { length = rest, req_pipe = true }, { invalidate = m.stag })
    event, m = next_message()
    if event ~= "mode_change" or m.mode ~= 2 then
      t:unimplemented("The target does not change to Pipelined Mode after REQ_PIPE.")
    end
    local open = {}
    for _, sent in ipairs(s:expect_quiet { within = 0.3, past = { "src_avail" } }) do
      if sent.name == "src_avail" then open[#open + 1] = sent end
    end
    if #open < 2 then
      t:unimplemented("The target opens fewer than two SrcAvails in Pipelined Mode.")
    end
    -- SendSm is a hint to change to Combined Mode. The MSeqAck shows that only the first SrcAvail
    -- has arrived.
    s:send(sdp.send_sm { mseq_ack = open[1].mseq })
    event, m = s:next {}
    if event ~= "mode_change" or m.mode ~= 1 then
      t:unimplemented("The target does not change to Combined Mode before it sends the data that the SendSm requests.")
    end
    s:send(sdp.sink_avail { length = 20000, stag = 0x901, mseq_ack = open[1].mseq, non_discards = payloads })
    local again = s:expect("src_avail", { past = { "data" }, requirement = repeated, overdue_fails = true })
    t:check(#again.payload > 0, {
      requirement = { "SDP-12.5-6", "SDP-9.2-2" }, expected = "payload, as in Combined Mode", actual = "none in the message",
    })
    s:connection():reset()
  end,
}

case {
  id = "sdp/12.4-left/credit-of-late-sink-avail",
  title = "The target uses the credit in Bufs of a SinkAvail that it ignores",
  requirements = { "SDP-12.4-13" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 5 } }
    s:counters { bufs = 5, updates = false }
    s:command("mode out pipelined; wait 5; mode out combined; wait 50; threshold 1000000" .. ("; send 100"):rep(8))
    s:expect "mode_change"
    s:expect "mode_change"
    s:send(sdp.sink_avail { length = 2000, stag = 0x901, bufs = 16, mseq_ack = s:counters().mseq_ack - 1 })
    s:collect(800, { requirement = "SDP-12.4-13", overdue_fails = true })
    s:connection():reset()
  end,
}

local dropped = { "SDP-12.4-14", "SDP-12.5-10", "SDP-12.5-11", "SDP-12.5-24" }

case(driven("sink-avails-dropped", "The target drops SinkAvails after the ModeChange to Combined Mode, and serves a SrcAvail with payload",
  dropped, {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 3000"
  s:expect "sink_avail"
  s:send(sdp.mode_change { mode = 1 })
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40), va = VA })
  local read = s:expect_read { requirement = dropped, overdue_fails = true }
  local first = read.src_to - VA
  s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
  s:expect("rdma_rd_compl", { requirement = dropped, overdue_fails = true })
  s:command "send 10"
  s:collect(10, { requirement = dropped, overdue_fails = true })
  s:close()
end))

--- Expects that the target follows a hint: a ModeChange. `half` has the requirements about
--- the half-connection of this ModeChange.
local function expect_hinted(t, s, requirement, half)
  local m = s:expect("mode_change", { past = { "data" }, requirement = requirement, overdue_fails = true })
  t:check(m.mode == 2 and m.s == 0, {
    requirement = half, expected = "mode 2, s 0", actual = ("mode %s, s %s"):format(tostring(m.mode), tostring(m.s)),
  })
end

case(driven("hint-of-reader", "The target applies REQ_PIPE in RdmaRdCompl to the half-connection that was read",
  { "SDP-6.1.2-20", "SDP-12.5-12", "SDP-12-13" }, { version = 2 }, function(s, t)
  s:command "follow; send 2000"
  local m = s:expect "src_avail"
  s:read { stag = m.stag, va = m.va + #m.payload, length = 2000 - #m.payload }
  s:expect_response {}
  s:send(sdp.rdma_rd_compl { length = 2000 - #m.payload, req_pipe = true }, { invalidate = m.stag })
  s:command "send 10"
  expect_hinted(t, s, { "SDP-12.5-12", "SDP-12-13" }, { "SDP-6.1.2-20", "SDP-12.5-12" })
  s:connection():reset()
end))

case(driven("hint-of-writer", "The target applies REQ_PIPE in RdmaWrCompl to the half-connection against the direction of the Write",
  { "SDP-6.1.2-21", "SDP-12-13" }, { version = 2 }, function(s, t)
  s:send(sdp.mode_change { mode = 2 })
  s:command "follow; read 2000"
  local m = s:expect "sink_avail"
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(2000) }
  s:send(sdp.rdma_wr_compl { length = 2000, req_pipe = true }, { invalidate = m.stag })
  s:command "send 10"
  expect_hinted(t, s, "SDP-12-13", "SDP-6.1.2-21")
  s:connection():reset()
end))

case(driven("hint-in-buffered", "The target ignores REQ_PIPE if the half-connection is in Buffered Mode", { "SDP-6.1.2-15" },
  {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "follow; mode out buffered; wait 5; read 2000"
  s:expect "mode_change"
  local m = s:expect "sink_avail"
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(2000) }
  s:send(sdp.rdma_wr_compl { length = 2000, req_pipe = true }, { invalidate = m.stag })
  s:command "send 10"
  s:expect("data", { requirement = "SDP-6.1.2-15", overdue_fails = true })
  s:expect_quiet { within = 0.1, requirement = "SDP-6.1.2-15", overdue_fails = true }
  s:close()
end))
