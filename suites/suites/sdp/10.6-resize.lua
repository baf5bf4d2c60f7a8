-- Private Buffers that change their size, and credit that changes with them (draft-pinkerton-iwarp-sdp-01 sections 6.4, 10.3, 10.5 and 10.6).

-- Asks the target for Private Buffers of this size, and uses the old ones up (section 10.6.2); gives the size that it tells.
local function ask(s, size, options)
  s:send(sdp.ch_rcv_buf { des_sz = size })
  for _ = 1, 40 do
    s:send(sdp.data { payload = ";" })
  end
  return s:expect("ch_rcv_buf_ack", options).act_sz
end

case {
  id = "sdp/10.6-resize/as-asked",
  version = 2,
  title = "A size that the target can have it takes; where it has the most that it can, it says so",
  requirements = { "SDP-10.6-5", "SDP-10.6-14" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local first = t:sdp {}
    local most = ask(first, 1000000)
    local again = ask(first, most + 1000)
    t:check(again == most, { requirement = "SDP-10.6-14", expected = "the size that there is, " .. most, actual = tostring(again) })
    first:connection():reset()
    local second = t:sdp {}
    local met = ask(second, most)
    t:check(met == most, { requirement = "SDP-10.6-5", expected = most .. ", which it had before", actual = tostring(met) })
    second:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/nearest",
  version = 1,
  title = "Where the target cannot have a size, it takes the nearest one",
  requirements = { "SDP-10.6-7" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local first = t:sdp {}
    local most = ask(first, 1000000)
    first:connection():reset()
    local second = t:sdp {}
    local nearest = ask(second, most + 500)
    t:check(nearest >= most, { requirement = "SDP-10.6-7", expected = "at least " .. most .. ", which it had before", actual = tostring(nearest) })
    second:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/full-size",
  version = 1,
  title = "Behind a ChRcvBufAck for more, messages of that size are taken",
  requirements = { "SDP-10.6.2-1" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    local size = ask(s, 2000)
    s:tell("send 10" .. (" "):rep(size - 40))
    s:collect(10, { requirement = "SDP-10.6.2-1", overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/while-held",
  version = 1,
  title = "Larger Private Buffers are posted while the old ones are in use",
  requirements = { "SDP-10.6.2-2" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s, hello_ack = t:sdp {}
    -- Nobody reads meanwhile, so that no old one comes back.
    s:tell "wait 2000"
    for _ = 1, hello_ack.bufs - 6 do
      s:send(sdp.data { payload = ";" })
    end
    s:send(sdp.ch_rcv_buf { des_sz = 2000 })
    local edge = 0
    for _, m in ipairs(s:expect_quiet { within = 0.3 }) do
      edge = math.max(edge, m.mseq_ack + m.bufs)
    end
    -- The buffers of the command and of ChRcvBuf are free again; more comes of new ones alone.
    local least = hello_ack.bufs + 3
    t:check(edge >= least, {
      requirement = "SDP-10.6.2-2", expected = "credit up to message " .. least .. " at least", actual = "up to " .. edge,
    })
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/more-than-asked",
  version = 1,
  title = "DesSz counts octets, and ActSz may be more",
  requirements = { "SDP-6.4.1.1-1", "SDP-10.6-6" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { local_rcv_sz = 1000 } }
    s:tell "resize 2000"
    s:expect("ch_rcv_buf", { fields = { des_sz = 2000 }, requirement = "SDP-6.4.1.1-1", overdue_fails = true })
    s:send(sdp.ch_rcv_buf_ack { act_sz = 6000 })
    s:tell "send 300"
    s:expect("data", { requirement = "SDP-10.6-6", overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/answered-at-once",
  version = 1,
  title = "A ChRcvBufAck for less may come at once",
  requirements = { "SDP-10.6-12" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "resize 500"
    s:expect "ch_rcv_buf"
    s:send(sdp.ch_rcv_buf_ack { act_sz = 500 })
    s:tell "send 300"
    s:collect(300, { requirement = "SDP-10.6-12", overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/unchanged",
  version = 1,
  title = "ActSz may be the size that there was",
  requirements = { "SDP-6.4.2.1-1" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { local_rcv_sz = 1000 } }
    s:tell "resize 2000"
    s:expect "ch_rcv_buf"
    s:send(sdp.ch_rcv_buf_ack { act_sz = 1000 })
    s:tell "send 300"
    s:collect(300, { requirement = "SDP-6.4.2.1-1", overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

local asking = { "SDP-10.6-1", "SDP-10.6.1-3" }

case {
  id = "sdp/10.6-resize/asked-again",
  version = 1,
  title = "A ChRcvBuf that crossed the target's is asked again behind the ChRcvBufAck, and answered then",
  requirements = asking,
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "wait 20; resize 2000"
    local before = s:books()
    s:expect "ch_rcv_buf"
    s:send(sdp.ch_rcv_buf { des_sz = 2000, mseq_ack = before.mseq_ack })
    s:send(sdp.ch_rcv_buf_ack { act_sz = 4096 })
    ask(s, 2000, { requirement = asking, overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/sink-avail-behind-growth",
  version = 1,
  title = "Behind a ChRcvBufAck for more, the new size says which receives are advertised",
  requirements = { "SDP-10.6-16" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s, hello_ack = t:sdp {}
    local size = ask(s, hello_ack.act_rcv_sz + 1000)
    s:send(sdp.mode_change { mode = 2 })
    s:tell("read " .. size - 300 .. "; send 10")
    s:expect("data", { requirement = "SDP-10.6-16", overdue_fails = true })
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/sink-avail-before-answer",
  version = 1,
  title = "Before a ChRcvBufAck for less, the old size says which receives are advertised",
  requirements = { "SDP-10.6-15" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s, hello_ack = t:sdp {}
    local size = hello_ack.act_rcv_sz
    s:send(sdp.mode_change { mode = 2 })
    s:send(sdp.ch_rcv_buf { des_sz = size // 2 })
    s:tell("read " .. size - 300)
    local what
    repeat
      local m
      what, m = s:next { requirement = "SDP-10.6-15", overdue_fails = true }
      if what == "ch_rcv_buf_ack" then
        size = m.act_sz
      else
        t:check(what == "sink_avail" and m.length > size, {
          requirement = "SDP-10.6-15", expected = "a SinkAvail for more than " .. size .. " octets", actual = what .. " for " .. tostring(m.length),
        })
      end
    until what == "sink_avail"
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/more-buffers",
  version = 1,
  title = "Bufs that grows gives more credit",
  requirements = { "SDP-10.3-3" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 6 } }
    s:books { bufs = 6, updates = false }
    s:tell("threshold 1000000" .. ("; send 100"):rep(10))
    s:expect_quiet { within = 0.2, past = { "data" } }
    s:books { bufs = 16, updates = false }
    s:send(sdp.data {})
    local got = 0
    for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "data" } }) do
      got = got + #m.payload
    end
    -- Four messages had to do with six buffers; six are left.
    t:check(got >= 500, { requirement = "SDP-10.3-3", expected = "five messages of 100 octets at least", actual = got .. " octets" })
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/10.6-resize/three-credits",
  version = 1,
  title = "With three credits left, payload is sent",
  requirements = { "SDP-10.5-11" },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp { hello = sdp.hello { bufs = 5 } }
    s:books { bufs = 5, updates = false }
    -- By then the credit of the HelloAck is not kept back any more.
    s:tell "threshold 1000000; wait 100; send 100; send 100; send 100"
    s:expect "data"
    s:expect "data"
    s:expect("data", { requirement = "SDP-10.5-11", overdue_fails = true })
    s:connection():reset()
    t:liveness()
  end,
}
