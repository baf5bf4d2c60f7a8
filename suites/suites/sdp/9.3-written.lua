-- The memory that a SinkAvail advertises, and messages that the peer sends instead of a Write to
-- this memory (draft-pinkerton-iwarp-sdp-01 sections 9.3, 9.4, 9.5.1, 9.5.2.2, 9.5.5, 11.3 and
-- 14.1).

-- Writes to the memory that a SinkAvail advertises, and reports the completion.
local function fill(s, m, len)
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(len) }
  s:send(sdp.rdma_wr_compl { length = len }, { invalidate = m.stag })
end

-- The opcode of a Terminate, and errors of a Terminate that refuses a Write (RFC 5040 sections 4.1
-- and 4.8).
local TERMINATE = 7
local INVALID_STAG, OUT_OF_BOUNDS = "\x11\x00", "\x11\x01"

case {
  id = "sdp/9.3-written/writable",
  version = 2,
  title = "The target accepts late Writes to all of its SinkAvail, by STag and VA",
  requirements = { "SDP-9.3-3", "SDP-9.3-4", "SDP-9.3-17", "SDP-14.1-2" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    local m = s:expect "sink_avail"
    s:expect_open { within = 2 }
    s:write { stag = m.stag, va = m.va, payload = ("w"):rep(m.length) }
    local event, fpdu = s:connection():next { within = 0.1 }
    local refusal = event == "fpdu" and fpdu.opcode == TERMINATE and fpdu.payload:sub(1, 2)
    local covers = { "SDP-9.3-3", "SDP-9.3-4" }
    t:check(refusal ~= INVALID_STAG, { requirement = { covers, "SDP-9.3-17" }, expected = "a valid STag", actual = "a Terminate: invalid STag" })
    t:check(refusal ~= OUT_OF_BOUNDS, { requirement = covers, expected = "advertised bytes at VA", actual = "a Terminate: out of bounds" })
    t:check(not refusal and event ~= "close", {
      requirement = "SDP-14.1-2", expected = "no answer to the Write", actual = "a refusal that is not about the STag or the bounds",
    })
    s:send(sdp.rdma_wr_compl { length = m.length }, { invalidate = m.stag })
    local got = s:collect(m.length, { past = { "sink_avail" }, requirement = covers, overdue_fails = true })
    t:check(got == ("w"):rep(m.length), { requirement = covers, expected = "the bytes that were written", actual = "other bytes than expected" })
  end,
}

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/9.3-written", ...) end

case(driven("writable-in-cancel", "The target accepts Writes to all of a SinkAvail that is being revoked", { "SDP-9.3-18" },
  {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000; wait 20; cancel-receives"
  local m = s:expect "sink_avail"
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(1000) }
  s:expect "sink_avail_cancel"
  s:write { stag = m.stag, va = m.va + 1000, payload = ("w"):rep(1000) }
  s:send(sdp.rdma_wr_compl { length = 2000 }, { invalidate = m.stag })
  s:command "send 10"
  s:collect(10, { requirement = "SDP-9.3-18", overdue_fails = true })
  s:close()
end))

case(driven("without-invalidate", "The target allows no second Write to a SinkAvail, even if RdmaWrCompl invalidated nothing",
  { "SDP-9.3-13" }, {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000"
  local m = s:expect "sink_avail"
  s:write { stag = m.stag, va = m.va, payload = ("w"):rep(2000) }
  s:send(sdp.rdma_wr_compl { length = 2000 })
  s:command "send 10"
  s:collect(10)
  s:write { stag = m.stag, va = m.va, payload = "again" }
  s:expect_end { requirement = "SDP-9.3-13", overdue_fails = true }
end))

case(driven("data-between", "The target accepts Data while SinkAvails are open, and later Writes to the remaining SinkAvails",
  { "SDP-9.5.2.2-1", "SDP-11-14" }, {}, function(s)
  local rows = { requirement = { "SDP-9.5.2.2-1", "SDP-11-14" }, overdue_fails = true, past = { "sink_avail" } }
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000 2000 2000"
  local open = { s:expect "sink_avail", s:expect "sink_avail", s:expect "sink_avail" }
  fill(s, open[1], 700)
  -- This Data makes the second SinkAvail stale.
  s:send(sdp.data { payload = "abc" })
  fill(s, open[3], 700)
  s:command "send 10"
  s:collect(10, rows)
  s:close()
end))

-- Declares a case in which `answer` sends the answer to a SinkAvail with payload (a Transaction).
local function transaction(name, title, row, answer)
  case {
    id = "sdp/9.3-written/transaction-by-" .. name,
    title = title,
    requirements = { row },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:command "mode out pipelined; wait 5; send 100; read 2000"
      local m = s:expect("sink_avail", { past = { "data", "mode_change" } })
      t:check(#m.payload > 0, { expected = "a SinkAvail with payload", actual = "a SinkAvail without payload" })
      answer(s, m)
      s:command "send 10"
      s:collect(10, { requirement = row, overdue_fails = true })
      s:close()
    end,
  }
end

transaction("write", "The target accepts a Write as the reply to a Transaction", "SDP-9.4-4", function(s, m) fill(s, m, 900) end)
transaction("data", "The target accepts Data as the reply to a Transaction", "SDP-9.4-5", function(s) s:send(sdp.data { payload = ("d"):rep(90) }) end)

case(driven("fresh-after-data", "The target uses a SinkAvail whose NonDiscards counts the Data before it",
  { "SDP-9.5.1-8", "SDP-9.5.1-11" }, {}, function(s)
  local rows = { "SDP-9.5.1-8", "SDP-9.5.1-11" }
  s:command "mode out pipelined; send 100; send 100; wait 30; send 1500"
  s:expect "mode_change"
  s:expect "data"
  s:expect "data"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901, non_discards = 2 })
  s:expect_write { length = 1500, requirement = rows, overdue_fails = true }
  s:expect("rdma_wr_compl", { requirement = rows, overdue_fails = true })
  s:connection():reset()
end))

--- Declares a case about NonDiscards of the first SinkAvail, after each of these numbers of Data.
local function non_discards(name, title, row, messages)
  case {
    id = "sdp/9.3-written/" .. name,
    version = 2,
    title = title,
    requirements = { row },
    capabilities = { "sdp-echo" },
    parameters = { messages = messages },

    run = function(t, p)
      local s = t:sdp {}
      for _ = 1, p.messages do
        s:send(sdp.data { payload = "abc" })
        s:collect(3)
      end
      s:send(sdp.mode_change { mode = 2 })
      local m = s:expect "sink_avail"
      t:check(m.non_discards == p.messages, {
        requirement = row, expected = ("NonDiscards %d"):format(p.messages), actual = ("NonDiscards %d"):format(m.non_discards),
      })
    end,
  }
end

non_discards("non-discards", "The target's NonDiscards counts the Data that came before", "SDP-6.3.3.4-2", { 1, 3 })
non_discards("first-non-discards", "The target's NonDiscards is 0 before it received Data", "SDP-6.3.3.4-1", { 0 })

case(driven("rest-offered", "The target offers data in a SrcAvail if it does not fit into a SinkAvail", { "SDP-11.3-17" },
  {}, function(s)
  s:command "mode out pipelined; wait 20; send 3000"
  s:expect "mode_change"
  s:send(sdp.sink_avail { length = 2000, stag = 0x901 })
  s:expect_write { length = 2000 }
  s:expect "rdma_wr_compl"
  s:expect("src_avail", { fields = { length = 1000 }, requirement = "SDP-11.3-17", overdue_fails = true })
  s:connection():reset()
end))

case(driven("crossing-ignored", "The target does not read a SrcAvail that crossed SinkAvails, even after these were used",
  { "SDP-11.3-20", "SDP-11.3-21", "SDP-9.5.2.1-4" }, {}, function(s)
  local rows = { "SDP-11.3-20", "SDP-11.3-21", "SDP-9.5.2.1-4" }
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000 2000"
  local before = s:counters()
  local open = { s:expect "sink_avail", s:expect "sink_avail" }
  s:send(sdp.src_avail { length = 1500, mseq_ack = before.mseq_ack })
  for _, m in ipairs(open) do
    fill(s, m, 1500)
  end
  s:expect_quiet { within = 0.2, requirement = rows, overdue_fails = true }
  s:command "send 10"
  s:collect(10, { requirement = rows, overdue_fails = true })
  s:close()
end))

case(driven("revoked-in-process", "When a SinkAvailCancel arrives, the target completes the SinkAvail in use, and uses no other SinkAvail",
  { "SDP-9.5.5-3", "SDP-6.3.10-2" }, { version = 2 }, function(s)
  local rows = { "SDP-9.5.5-3", "SDP-6.3.10-2" }
  s:command "mode out pipelined; send 100; wait 20; send 1500"
  s:expect "mode_change"
  s:expect "data"
  -- The waiting data uses the first SinkAvail at once.
  s:expect "src_avail"
  for stag = 0x901, 0x903 do
    s:send(sdp.sink_avail { length = 2000, stag = stag, non_discards = 1, mseq_ack = 2 })
  end
  s:send(sdp.sink_avail_cancel {})
  s:expect_write { length = 1500 }
  s:expect "rdma_wr_compl"
  local is_acknowledged = false
  for _, m in ipairs(s:expect_quiet { within = 0.1, past = { "sink_cancel_ack" }, requirement = rows }) do
    is_acknowledged = is_acknowledged or m.name == "sink_cancel_ack"
  end
  if not is_acknowledged then s:expect("sink_cancel_ack", { requirement = "SDP-6.3.10-2", overdue_fails = true }) end
  s:command "send 600"
  s:expect("src_avail", { requirement = rows, overdue_fails = true })
  s:connection():reset()
end))

case(driven("data-in-cancel", "The target ends its cancel on Data that makes the last revoked SinkAvail stale", { "SDP-9.5.5-13" },
  {}, function(s)
  s:send(sdp.mode_change { mode = 2 })
  s:command "read 2000; wait 20; cancel-receives; read 2000"
  s:expect "sink_avail"
  s:expect "sink_avail_cancel"
  -- For the target, this Data crosses its SinkAvailCancel.
  s:send(sdp.data { payload = "abc" })
  s:expect("sink_avail", { requirement = "SDP-9.5.5-13", overdue_fails = true })
  s:connection():reset()
end))
