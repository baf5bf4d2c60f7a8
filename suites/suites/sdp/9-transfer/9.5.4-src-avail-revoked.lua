-- How a target revokes its SrcAvails, and handles revoked SrcAvails (draft-pinkerton-iwarp-sdp-01
-- sections 6.3.9 and 9.5.4).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9-transfer", ...) end
local function observed(...) return sdp_case.observed("sdp/9-transfer", ...) end

-- Sends the SendSm that ends a cancel, and expects 1500 bytes. The first message shows that the
-- cancel has ended.
local function end_cancel(s, t)
  s:send(sdp.send_sm {})
  local m = s:expect({ "data", "src_avail" }, { requirement = "SDP-9.5.4-12", overdue_fails = true })
  local got = #m.payload
  if m.name == "src_avail" then
    t:check(#m.octets >= 32, { expected = "a complete SrcAvail", actual = #m.octets .. " bytes" })
    got = got + #s:fetch(m)
  end
  if got < 1500 then s:collect(1500 - got) end
end

case(observed("cancelled-send", "The target revokes a SrcAvail", { "SDP-9.5.4-12" },
  { "hello_ack", "dis_conn", "src_avail", "combined", "src_avail_cancel" }, { version = 3 }, function(s, shown, t)
  s:command "send 2000; wait 20; cancel-sends; send 1500"
  s:expect "src_avail"
  s:expect "src_avail_cancel"
  s:expect_quiet { within = 0.1 }
  end_cancel(s, t)
  s:close { shows = shown }
end))

case(observed("cancelled-sends", "The target revokes several SrcAvails at once", { "SDP-9.5.4-12", "SDP-9.5.4-10" },
  { "hello_ack", "dis_conn", "src_avail", "pipelined", "src_avail_cancel", "mode_change", "to_pipelined" }, { version = 3 }, function(s, shown, t)
  s:command "mode out pipelined; send 2000; send 2500; wait 20; cancel-sends; send 1500"
  s:expect "mode_change"
  s:expect "src_avail"
  s:expect "src_avail"
  s:expect "src_avail_cancel"
  s:expect_quiet { within = 0.1, requirement = "SDP-9.5.4-10", overdue_fails = true }
  end_cancel(s, t)
  s:close { shows = shown }
end))

--- The requirements of a SendSm that crosses the target's SrcAvailCancel. Its MSeqAck is less than
--- the MSeq of the SrcAvailCancel, so it only rejects the oldest SrcAvail.
local late = { "SDP-9.5.4-12", "SDP-9.2-24" }

--- Sends a SendSm that crosses the SrcAvailCancel. `first` and `second` are the oldest SrcAvails of
--- the target, in Pipelined Mode.
local function send_late(s, first, second)
  s:send(sdp.send_sm { mseq_ack = second.mseq })
  local left = first.length - #first.payload
  while left > 0 do
    left = left - #s:expect("data", { requirement = "SDP-9.5.4-12", overdue_fails = true }).payload
  end
  s:read { stag = second.stag, va = second.va, length = second.length }
  s:expect_response { requirement = "SDP-9.2-24", overdue_fails = true }
  s:connection():reset()
end

case(driven("late-send-sm", "After a SendSm that crosses its SrcAvailCancel, the target sends the data of the oldest SrcAvail only",
  late, {}, function(s)
  s:counters { updates = false }
  s:command "mode out pipelined; send 2000; send 2500; wait 20; cancel-sends"
  s:expect "mode_change"
  local first, second = s:expect "src_avail", s:expect "src_avail"
  s:expect "src_avail_cancel"
  send_late(s, first, second)
end))

case {
  id = "sdp/9-transfer/late-send-sm-to-source",
  title = "After a SendSm that crosses its SrcAvailCancel, a source sends the data of the oldest SrcAvail only",
  requirements = late,
  capabilities = { "sdp-source" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 64 } }
    -- The MSeqAck of an update would show that the tester has received the SrcAvailCancel.
    s:counters { bufs = 64, updates = false }
    local m = s:expect("src_avail", { past = { "data" } })
    local rest = m.length - #m.payload
    s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
    s:expect_response {}
    s:send(sdp.rdma_rd_compl { length = rest, req_pipe = true }, { invalidate = m.stag })
    -- A source revokes its SrcAvails if the tester does not read them for some time.
    local open, is_canceled = {}, false
    for _ = 1, 20 do
      for _, sent in ipairs(s:expect_quiet { within = 0.5, past = { "data", "mode_change", "src_avail", "src_avail_cancel" } }) do
        if sent.name == "src_avail" then open[#open + 1] = sent end
        is_canceled = is_canceled or sent.name == "src_avail_cancel"
      end
      if is_canceled or #open < 2 then break end
    end
    if #open < 2 then
      t:unimplemented("The target does not open two SrcAvails after REQ_PIPE.")
    end
    if not is_canceled then
      t:unimplemented("The target does not revoke its SrcAvails within 10 s.")
    end
    send_late(s, open[1], open[2])
  end,
}

-- Expects one SendSm as the answer to a SrcAvailCancel, and no Read of a revoked SrcAvail.
-- SinkAvails may arrive, too.
local function expect_one_send_sm(s, t)
  local dropped = { "SDP-9.5.4-2", "SDP-6.3.9-2" }
  local event
  repeat
    event = s:next { requirement = "SDP-9.5.4-9", overdue_fails = true }
    t:check(event ~= "read", { requirement = dropped, expected = "no Read of a revoked SrcAvail", actual = "an RDMA Read Request" })
  until event ~= "sink_avail"
  t:check(event == "send_sm", { requirement = "SDP-9.5.4-9", expected = "a SendSm", actual = event })
  for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "send_sm", "sink_avail" }, requirement = dropped }) do
    t:check(m.name ~= "send_sm", { requirement = "SDP-9.5.4-9", expected = "one SendSm", actual = "two SendSms" })
  end
end

case(observed("revoked-by-tester", "If the tester revokes a SrcAvail, the target answers with SendSm",
  { "SDP-9.5.4-2", "SDP-6.3.9-2" }, { "hello_ack", "dis_conn", "send_sm", "SDP-9.5.4-9" }, { version = 3 }, function(s, shown, t, hello_ack)
  -- With fewer buffers, the SrcAvailCancel would be late.
  t:check(hello_ack.bufs >= 3, { expected = "at least 3 Private Buffers", actual = hello_ack.bufs .. " Private Buffers" })
  s:command "wait 20; read 3000"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  s:send(sdp.src_avail_cancel {})
  expect_one_send_sm(s, t)
  s:close { shows = shown }
end))

case(driven("revoked-by-tester-several", "The target sends one SendSm for three revoked SrcAvails",
  { "SDP-9.5.4-2", "SDP-6.3.9-2", "SDP-9.5.4-9" }, { version = 2 }, function(s, t)
  s:send(sdp.mode_change { mode = 2 })
  s:command "wait 50; read 3000"
  for n = 1, 3 do
    s:send(sdp.src_avail { length = 1000, stag = 0x100 + n })
  end
  s:send(sdp.src_avail_cancel {})
  expect_one_send_sm(s, t)
  s:close { past = { "sink_avail" } }
end))

case(observed("revoked-while-read", "The target ends a SrcAvail that the tester revokes while the target reads it",
  { "SDP-9.5.4-5", "SDP-6.1.6-3", "SDP-9.5.4-7", "SDP-9.5.4-6" }, { "hello_ack", "dis_conn", "data", "rdma_rd_compl" },
  { version = 3 }, function(s, shown, t)
  s:command "read 3000; wait 10; send 50"
  s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
  local read = s:expect_read {}
  s:send(sdp.src_avail_cancel {})
  local cancel = s:counters().mseq - 1
  local m = s:expect "data"
  t:check(m.mseq_ack < cancel, { requirement = { "SDP-9.5.4-5", "SDP-6.1.6-3" }, overdue_fails = true, expected = "an MSeqAck below the cancel's MSeq", actual = "MSeqAck " .. m.mseq_ack })
  local first = read.src_to - VA
  s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
  local completed = s:expect("rdma_rd_compl", { requirement = "SDP-9.5.4-7", overdue_fails = true })
  -- The monitor judges Len.
  t:check(completed.length == read.length, { expected = read.length .. " bytes", actual = tostring(completed.length) .. " bytes" })
  s:expect_quiet { within = 0.1, past = { "send_sm" }, requirement = "SDP-9.5.4-6", overdue_fails = true }
  s:close { shows = shown }
end))

case {
  id = "sdp/9-transfer/cancel-of-nothing",
  version = 2,
  title = "The target does not answer cancels without an advertisement",
  requirements = { "SDP-9.5.4-4", "SDP-9.5.5-4" },
  -- Other sockets also send data of their own.
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.src_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.4-4", overdue_fails = true }
    s:send(sdp.sink_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.5-4", overdue_fails = true }
    s:close()
  end,
}
