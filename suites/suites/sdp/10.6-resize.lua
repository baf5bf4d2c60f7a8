-- How Private Buffers change their size, and how the credit changes with the buffers
-- (draft-pinkerton-iwarp-sdp-01 sections 6.4, 10.3, 10.5 and 10.6).

-- Requests Private Buffers of this size, and uses up the old ones (section 10.6.2). Returns the
-- size that the target reports.
local function resize(s, size, options)
  s:send(sdp.ch_rcv_buf { des_sz = size })
  for _ = 1, 40 do
    s:send(sdp.data { payload = ";" })
  end
  return s:expect("ch_rcv_buf_ack", options).act_sz
end

case {
  id = "sdp/10.6-resize/as-requested",
  version = 2,
  title = "The target takes a size that it supports, and reports its greatest size if a greater size is requested",
  requirements = { "SDP-10.6-5", "SDP-10.6-14" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local first = t:sdp {}
    local most = resize(first, 1000000)
    local again = resize(first, most + 1000)
    t:check(again == most, { requirement = "SDP-10.6-14", expected = "the current size, " .. most .. " bytes", actual = tostring(again) .. " bytes" })
    first:connection():reset()
    local second = t:sdp {}
    local met = resize(second, most)
    t:check(met == most, { requirement = "SDP-10.6-5", expected = most .. " bytes, the size that it had before", actual = tostring(met) .. " bytes" })
    second:connection():reset()
  end,
}

case {
  id = "sdp/10.6-resize/nearest",
  title = "The target takes the nearest size if it does not support the requested one",
  requirements = { "SDP-10.6-7" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local first = t:sdp {}
    local most = resize(first, 1000000)
    first:connection():reset()
    local second = t:sdp {}
    local nearest = resize(second, most + 500)
    t:check(nearest >= most, { requirement = "SDP-10.6-7", expected = "at least " .. most .. " bytes, the size that it had before", actual = tostring(nearest) .. " bytes" })
    second:connection():reset()
  end,
}

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/10.6-resize", ...) end

case(driven("full-size", "The target accepts messages of the new size after a ChRcvBufAck for a larger size", { "SDP-10.6.2-1" },
  {}, function(s)
  local size = resize(s, 2000)
  s:command("send 10" .. (" "):rep(size - 40))
  s:collect(10, { requirement = "SDP-10.6.2-1", overdue_fails = true })
  s:close()
end))

case(driven("while-held", "The target posts larger Private Buffers while the old ones are in use", { "SDP-10.6.2-2" },
  {}, function(s, t, hello_ack)
  -- The target's user does not read during this time, so that no old buffer becomes free.
  s:command "wait 2000"
  for _ = 1, hello_ack.bufs - 6 do
    s:send(sdp.data { payload = ";" })
  end
  s:send(sdp.ch_rcv_buf { des_sz = 2000 })
  local edge = 0
  for _, m in ipairs(s:expect_quiet { within = 0.3 }) do
    edge = math.max(edge, m.mseq_ack + m.bufs)
  end
  -- The buffers of the command and of ChRcvBuf are free again. Any further credit comes from new
  -- buffers.
  local least = hello_ack.bufs + 3
  t:check(edge >= least, {
    requirement = "SDP-10.6.2-2", expected = "credit up to message " .. least .. " or more", actual = "up to " .. edge,
  })
  s:connection():reset()
end))

case(driven("more-than-requested", "The target counts DesSz in bytes, and accepts a greater ActSz",
  { "SDP-6.4.1.1-1", "SDP-10.6-6" }, { hello = { local_rcv_sz = 1000 } }, function(s)
  s:command "resize 2000"
  s:expect("ch_rcv_buf", { fields = { des_sz = 2000 }, requirement = "SDP-6.4.1.1-1", overdue_fails = true })
  s:send(sdp.ch_rcv_buf_ack { act_sz = 6000 })
  s:command "send 300"
  s:expect("data", { requirement = "SDP-10.6-6", overdue_fails = true })
  s:close()
end))

-- In each row, the tester sends a ChRcvBufAck for which it needs no new buffer. `old`, `requested`
-- and `answered` are sizes of a Private Buffer in bytes.
for _, row in ipairs {
  { name = "answered-at-once", about = "an immediate ChRcvBufAck for a smaller size", old = 4096, requested = 500, answered = 500,
    requirement = "SDP-10.6-12" },
  { name = "unchanged", about = "an ActSz that is the current size", old = 1000, requested = 2000, answered = 1000,
    requirement = "SDP-6.4.2.1-1" },
} do
  case {
    id = "sdp/10.6-resize/" .. row.name,
    title = "The target accepts " .. row.about,
    requirements = { row.requirement },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp { hello = sdp.hello { local_rcv_sz = row.old } }
      s:command("resize " .. row.requested)
      s:expect "ch_rcv_buf"
      s:send(sdp.ch_rcv_buf_ack { act_sz = row.answered })
      s:command "send 300"
      s:collect(300, { requirement = row.requirement, overdue_fails = true })
      s:close()
    end,
  }
end

case(driven("requested-again", "The target answers a repeated ChRcvBuf if the first ChRcvBuf crossed the target's own",
  { "SDP-10.6-1", "SDP-10.6.1-3" }, { version = 2 }, function(s)
  s:command "wait 20; resize 2000"
  local before = s:counters()
  s:expect "ch_rcv_buf"
  s:send(sdp.ch_rcv_buf { des_sz = 2000, mseq_ack = before.mseq_ack })
  s:send(sdp.ch_rcv_buf_ack { act_sz = 4096 })
  s:expect_open { within = 0.1, requirement = "SDP-10.6-1" }
  resize(s, 2000, { requirement = "SDP-10.6.1-3", overdue_fails = true })
  s:close()
end))

case(driven("sink-avail-after-growth", "After a ChRcvBufAck for a larger size, the target advertises only receives that exceed the new size",
  { "SDP-10.6-16" }, {}, function(s, t, hello_ack)
  local size = resize(s, hello_ack.act_rcv_sz + 1000)
  s:send(sdp.mode_change { mode = 2 })
  s:command("read " .. size - 300 .. "; send 10")
  s:expect("data", { requirement = "SDP-10.6-16", overdue_fails = true })
  s:connection():reset()
end))

case(driven("sink-avail-before-answer", "Before a ChRcvBufAck for a smaller size, the target advertises only receives that exceed the old size",
  { "SDP-10.6-15" }, {}, function(s, t, hello_ack)
  local size = hello_ack.act_rcv_sz
  s:send(sdp.mode_change { mode = 2 })
  s:send(sdp.ch_rcv_buf { des_sz = size // 2 })
  s:command("read " .. size - 300)
  local event
  repeat
    local m
    event, m = s:next { requirement = "SDP-10.6-15", overdue_fails = true }
    if event == "ch_rcv_buf_ack" then
      size = m.act_sz
    else
      t:check(event == "sink_avail" and m.length > size, {
        requirement = "SDP-10.6-15", expected = "a SinkAvail for more than " .. size .. " bytes", actual = event .. " for " .. tostring(m.length),
      })
    end
  until event == "sink_avail"
  s:connection():reset()
end))

case(driven("more-buffers", "The target uses the additional credit of a greater Bufs", { "SDP-10.3-3" },
  { hello = { bufs = 6 } }, function(s, t)
  s:counters { bufs = 6, updates = false }
  s:command("threshold 1000000" .. ("; send 100"):rep(10))
  s:expect_quiet { within = 0.2, past = { "data" } }
  s:counters { bufs = 16, updates = false }
  s:send(sdp.data {})
  local got = 0
  for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "data" } }) do
    got = got + #m.payload
  end
  -- The credit of six allowed four messages with payload. So six of the ten messages are left.
  t:check(got >= 500, { requirement = "SDP-10.3-3", expected = "at least five messages of 100 bytes", actual = got .. " bytes" })
  s:connection():reset()
end))

case(driven("three-credits", "The target sends payload with three credits left", { "SDP-10.5-11" },
  { hello = { bufs = 5 } }, function(s)
  s:counters { bufs = 5, updates = false }
  -- After `wait 100`, the target no longer reserves the credit of the HelloAck.
  s:command "threshold 1000000; wait 100; send 100; send 100; send 100"
  s:expect "data"
  s:expect "data"
  s:expect("data", { requirement = "SDP-10.5-11", overdue_fails = true })
  s:connection():reset()
end))
