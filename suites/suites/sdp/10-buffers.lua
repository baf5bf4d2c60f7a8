-- How a target uses Private Buffers and send credit, and how it changes the size of the buffers
-- (draft-pinkerton-iwarp-sdp-01 sections 6.4 and 10).

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/10-buffers", ...) end
local function observed(...) return sdp_case.observed("sdp/10-buffers", ...) end

--- Returns the number of messages that the tester may send after this message of the target.
local function credit_after(t, s, m)
  local sent = s:counters().mseq - 1
  -- The monitor reports a wrong MSeqAck.
  t:check(m.mseq_ack <= sent, { expected = "an MSeqAck of at most " .. sent, actual = "MSeqAck " .. m.mseq_ack })
  return m.bufs - (sent - m.mseq_ack)
end

case(observed("few-credits", "The target sends no more messages than its credit allows", { "SDP-10.2-2", "SDP-6.3.1-4" },
  { "hello_ack", "dis_conn", "data", "SDP-10.2-1", "SDP-10.5-1", "SDP-10.5-3", "SDP-10.5-4", "SDP-10.5-5", "SDP-10.5-7", "SDP-10.5-8" },
  { version = 3, hello = { bufs = 6 } }, function(s, shown, t)
  --- Returns the number of bytes that arrive in this time.
  local function received(seconds)
    local got = 0
    for _, m in ipairs(s:expect_quiet { within = seconds, past = { "data" } }) do
      got = got + #m.payload
    end
    return got
  end
  s:counters { bufs = 6, updates = false }
  s:command("threshold 1000000" .. ("; send 200"):rep(4))
  local before = received(0.2)
  s:send(sdp.data { payload = (("send 200;"):rep(5)) })
  before = before + received(0.2)
  s:send(sdp.data { payload = (("send 200;"):rep(5)) })
  before = before + received(0.3)
  s:send(sdp.data {})
  local more = received(0.3)
  -- A target that has sent more than its credit allows may have no bytes left. The monitor reports
  -- this.
  t:check(more > 0 or before == 14 * 200, { requirement = { "SDP-10.2-2", "SDP-6.3.1-4" }, overdue_fails = true, expected = "more bytes after an update gave credit", actual = "none arrived" })
  s:counters { bufs = 16, updates = true }
  s:close { shows = shown, past = { "data" } }
end))

case(driven("last-credits", "The target sends no payload with the credits that are reserved for updates",
  { "SDP-10.2-1", "SDP-10.5-1", "SDP-10.5-2", "SDP-10.5-3", "SDP-10.5-6", "SDP-10.5-7", "SDP-10.5-8" }, { version = 2, hello = { bufs = 6 } }, function(s, t)
  s:counters { bufs = 6, updates = false }
  s:command("threshold 1000000;" .. ("send 9;"):rep(3))
  s:expect_quiet { within = 0.2, past = { "data" } }
  local acknowledged = s:counters().mseq_ack
  s:send(sdp.data { payload = ("send 90;"):rep(7) })
  -- The target may send six messages. The last two must not have payload.
  local with, all, last = 0, 0, nil
  local function receive()
    for _, m in ipairs(s:expect_quiet { within = 0.5, past = { "data" } }) do
      all, last = all + 1, m
      with = with + (#m.payload > 0 and 1 or 0)
    end
  end
  receive()
  -- The target gets no more credit. The tester uses up its own credit, so the target has to send an
  -- update.
  for _ = 1, last and credit_after(t, s, last) - 1 or 0 do
    s:send(sdp.data { payload = ";", bufs = 6, mseq_ack = acknowledged })
  end
  receive()
  local on_reserve, on_last, on_none = { "SDP-10.5-1", "SDP-10.5-3", "SDP-10.5-8" }, { "SDP-10.5-2", "SDP-10.5-7" }, { "SDP-10.2-1", "SDP-10.5-6" }
  local violated = {}
  if with > 4 then violated[#violated + 1] = on_reserve end
  if with > 5 then violated[#violated + 1] = on_last end
  if all > 6 then violated[#violated + 1] = on_none end
  t:check(#violated == 0, {
    requirement = #violated > 0 and violated or { on_reserve, on_last, on_none },
    expected = "at most 4 messages with payload and 6 in all", actual = with .. " with payload, " .. all .. " in all",
  })
  s:close { past = { "data" } }
end))

--- The requirements of an update, which a target sends when the tester has one credit left.
local updates = { "SDP-10.4-1", "SDP-10.5-9", "SDP-10.5-10" }

--- Ends the case without a verdict if the tester has only one credit at the beginning.
local function needs_credit(t, hello_ack)
  if hello_ack.bufs < 3 then t:unimplemented("The target has fewer than three Private Buffers.") end
end

--- Uses up the tester's credit until one is left, and expects an update. `credit` is the number of
--- messages that the tester may send. `size` is the size of their payload in bytes. Returns the
--- credit that the update grants.
local function expect_update(t, s, credit, size, requirement)
  for _ = 1, credit - 2 do
    s:send(sdp.data { payload = ("p"):rep(size) })
  end
  -- The tester sends an update (Data without payload). Then the tester has only one credit left, so
  -- the target has to send an update (section 10.5).
  s:send(sdp.data {})
  local m = s:expect("data", { updates = true, requirement = requirement, overdue_fails = true, fields = { payload_length = 0 } })
  return credit_after(t, s, m)
end

do
  local shown = sdp.shown { "dis_conn", "data" }

  case {
    id = "sdp/10-buffers/updates",
    version = 4,
    title = "The target reports free buffers without a request",
    requirements = { updates, shown },
    capabilities = { "sdp-sink" },
    -- Messages without payload use credit, too.
    parameters = { payload = { 1, 0 } },

    run = function(t, p)
      local s, hello_ack = t:sdp {}
      needs_credit(t, hello_ack)
      expect_update(t, s, hello_ack.bufs, p.payload, updates)
      s:send(sdp.data { payload = "p" })
      for _ = 1, 3 * hello_ack.bufs do
        s:send(sdp.data { payload = ("p"):rep(900) })
      end
      s:close { shows = shown }
    end,
  }

  case {
    id = "sdp/10-buffers/updates-of-echo",
    version = 2,
    title = "An echo reports free buffers after messages without payload",
    requirements = { updates, shown },
    capabilities = { "sdp-echo" },

    run = function(t)
      local s, hello_ack = t:sdp {}
      needs_credit(t, hello_ack)
      local credit = hello_ack.bufs
      for _ = 1, 3 do
        credit = expect_update(t, s, credit, 0, updates)
      end
      s:send(sdp.data { payload = "p" })
      s:collect(1)
      s:close { shows = shown }
    end,
  }
end

case {
  id = "sdp/10-buffers/updates-in-reserve",
  title = "A target with only two send credits still reports free buffers",
  requirements = updates,
  capabilities = { "sdp-sink" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { bufs = 3 } }
    -- Until the first update, Bufs and MSeqAck stay as they were at the beginning.
    s:counters { updates = false }
    local came
    for number = 1, hello_ack.bufs - 1 do
      s:send(sdp.data { payload = number < hello_ack.bufs - 1 and "p" or nil, bufs = 3, mseq_ack = 0 })
      came = s:expect_quiet { within = 0.05 }
      if #came > 0 then break end
    end
    if #came == 0 then
      came = { s:expect("data", { updates = true, requirement = updates, overdue_fails = true }) }
    end
    if #came > 1 then
      t:unimplemented("The target sends several updates at once.")
    end
    -- The user of the tester does not free the buffer that the update has used. So the target has
    -- two credits from now on, which are enough for messages without payload.
    s:counters { bufs = 2 }
    expect_update(t, s, credit_after(t, s, came[1]), 1, updates)
    s:counters { bufs = 16, updates = true }
    s:close()
  end,
}

case(driven("plain-updates", "The target sets OOB_PRES with an urgent byte at the end of the payload, and not in an update",
  { "SDP-6.1.2-7" }, { version = 2 }, function(s, t, hello_ack)
  s:command "urgent 300"
  local got = 0
  while got < 300 do
    local m = s:expect("data", { requirement = "SDP-6.1.2-7", overdue_fails = true })
    got = got + #m.payload
    t:check(m.oob_pres == (got == 300), {
      requirement = "SDP-6.1.2-7", expected = "OOB_PRES only with the urgent byte", actual = got .. " of 300 bytes, OOB_PRES " .. tostring(m.oob_pres),
    })
  end
  for _ = 1, hello_ack.bufs - 2 do
    s:send(sdp.data { payload = ";" })
  end
  s:send(sdp.data {})
  s:expect("data", { updates = true, requirement = "SDP-6.1.2-7", overdue_fails = true, fields = { payload_length = 0, oob_pres = false } })
  s:connection():reset()
end))

case(observed("nobody-reads", "The target returns credit when its user reads again", {},
  { "hello_ack", "dis_conn", "data" }, { version = 2 }, function(s, shown)
  s:command "wait 500; read 3000"
  for _ = 1, 30 do
    s:send(sdp.data { payload = (";"):rep(100) })
  end
  s:expect_quiet { within = 1 }
  s:command "send 10"
  s:collect(10)
  s:close { shows = shown }
end))

case(driven("message-size", "The target sends no message that is larger than the tester's Private Buffers",
  { "SDP-9.1-1", "SDP-10-6" }, { hello = { local_rcv_sz = 64 } }, function(s, t)
  s:command "threshold 1000000; send 300"
  local got = 0
  while got < 300 do
    local m = s:expect("data", { requirement = { "SDP-9.1-1", "SDP-10-6" }, overdue_fails = true })
    t:check(#m.octets <= 64, { requirement = { "SDP-9.1-1", "SDP-10-6" }, overdue_fails = true, expected = "at most 64 bytes", actual = #m.octets .. " bytes" })
    got = got + #m.payload
  end
  s:close()
end))

case(observed("target-asks", "The target requests larger Private Buffers", {},
  { "hello_ack", "dis_conn", "data", "ch_rcv_buf", "SDP-9.1-1", "SDP-10-6" }, { version = 2, hello = { local_rcv_sz = 1000 } }, function(s, shown)
  s:command "threshold 1000000; resize 2000; send 1900; send 1900"
  s:expect("ch_rcv_buf", { past = { "data" } })
  s:expect_quiet { within = 0.1, past = { "data" } }
  s:send(sdp.ch_rcv_buf_ack { act_sz = 6000 })
  s:command "send 1900"
  s:close { shows = shown, past = { "data" } }
end))

case(driven("target-asks-for-less", "The target requests smaller Private Buffers, and keeps to them", { "SDP-10.6-2" },
  {}, function(s, t)
  s:command "threshold 1000000; resize 500; send 1900"
  s:expect "ch_rcv_buf"
  local got = 0
  while got < 1900 do
    local m = s:expect("data", { requirement = "SDP-10.6-2", overdue_fails = true })
    t:check(#m.octets <= 500, { requirement = "SDP-10.6-2", overdue_fails = true, expected = "at most 500 bytes", actual = #m.octets .. " bytes" })
    got = got + #m.payload
  end
  s:send(sdp.ch_rcv_buf_ack { act_sz = 500 })
  s:close { past = { "data" } }
end))

case(driven("refused-change", "The target requests no further increase after the tester answered an increase with the old size",
  { "SDP-10.6-17", "SDP-10.6-19" }, { hello = { local_rcv_sz = 1000 } }, function(s)
  s:command "resize 2000"
  s:expect "ch_rcv_buf"
  s:expect_quiet { within = 0.3, requirement = "SDP-10.6-19", overdue_fails = true }
  s:send(sdp.ch_rcv_buf_ack { act_sz = 1000 })
  s:command "resize 3000"
  s:expect_quiet { within = 0.3, requirement = "SDP-10.6-17", overdue_fails = true }
  s:close()
end))

case(observed("tester-asks", "The target answers ChRcvBuf when the new buffers are posted",
  { "SDP-10.6-11", "SDP-10.6-10", "SDP-10.6-8", "SDP-10.6-9", "SDP-6.4.2-1", "SDP-6.4.2-2" },
  { "hello_ack", "dis_conn", "data", "ch_rcv_buf_ack", "SDP-10.6-13" }, { version = 3 }, function(s, shown, t, ack)
  s:send(sdp.ch_rcv_buf { des_sz = 2000 })
  for _ = 1, 40 do
    s:send(sdp.data { payload = ";;;;" })
  end
  local m = s:expect("ch_rcv_buf_ack", { requirement = "SDP-10.6-11", overdue_fails = true })
  t:check(#m.octets >= 20, { requirement = { "SDP-6.4.2-1", "SDP-6.4.2-2" }, overdue_fails = true, expected = "20 bytes", actual = #m.octets .. " bytes" })
  t:check(#m.octets <= 20, { requirement = "SDP-6.4.2-1", overdue_fails = true, expected = "20 bytes", actual = #m.octets .. " bytes" })
  -- If the old size is larger than the requested size, the request is not an increase.
  t:check(m.act_sz >= ack.act_rcv_sz or ack.act_rcv_sz > 2000, { requirement = "SDP-10.6-10", overdue_fails = true, expected = "at least the old size", actual = m.act_sz .. " bytes" })
  s:command("send 10" .. (" "):rep(m.act_sz - 40))
  s:collect(10)
  -- A ChRcvBufAck before the next request does not answer this request. The monitor reports it.
  s:expect_quiet { within = 0.05 }
  s:send(sdp.ch_rcv_buf { des_sz = 500 })
  local less = s:expect("ch_rcv_buf_ack", { requirement = "SDP-10.6-11", overdue_fails = true })
  t:check(less.act_sz <= m.act_sz, { requirement = "SDP-10.6-8", overdue_fails = true, expected = "at most the old size", actual = less.act_sz .. " bytes" })
  t:check(less.act_sz >= 500, { requirement = "SDP-10.6-9", overdue_fails = true, expected = "at least 500 bytes", actual = less.act_sz .. " bytes" })
  s:command "send 10"
  s:collect(10)
  s:close { shows = shown }
end))

case(observed("crossing", "The Accepting Peer does not answer if both sides send ChRcvBuf at once", { "SDP-10.6.1-1" },
  { "hello_ack", "dis_conn", "data", "ch_rcv_buf" }, { version = 2 }, function(s, shown)
  s:command "wait 20; resize 2000; send 10"
  s:expect_quiet { within = 0.01 }
  s:expect "ch_rcv_buf"
  s:send(sdp.ch_rcv_buf { des_sz = 2000, mseq_ack = 0 })
  s:expect_quiet { within = 0.1, past = { "data" }, requirement = "SDP-10.6.1-1", overdue_fails = true }
  s:send(sdp.ch_rcv_buf_ack { act_sz = 4096 })
  s:close { shows = shown, past = { "data" } }
end))
