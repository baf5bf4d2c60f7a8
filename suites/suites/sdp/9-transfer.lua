-- Transfer of octets by each mechanism (draft-pinkerton-iwarp-sdp-01 sections 6.3, 9 and 11), cancelled ones among them.

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

-- Reads what a SrcAvail has beside its payload; gives how many octets that was.
local function fetch(s, m)
  local rest = m.length - #m.payload
  s:read { stag = m.stag, va = m.va + #m.payload, length = rest }
  s:expect_response {}
  s:send(sdp.rdma_rd_compl { length = rest }, { invalidate = m.stag })
  return rest
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn" }

  case {
    id = "sdp/9-transfer/bcopy",
    version = 2,
    title = "Small sends come back by Data",
    requirements = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3", shown },
    roles = { "responder" },
    capabilities = { "sdp-echo" },

    run = function(t)
      local s = t:sdp {}
      for _, octets in ipairs { "x", ("y"):rep(300), ("z"):rep(400) } do
        s:send(sdp.data { payload = octets })
        local got = s:collect(#octets, { requirement = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" }, overdue_fails = true })
        t:check(got == octets, { requirement = { "SDP-9-5", "SDP-6.3.1-2", "SDP-11.2-3" }, overdue_fails = true, expected = "the octets that were sent", actual = "others" })
      end
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "rdma_rd_compl", "SDP-6.3.7.1-3" }

  case {
    id = "sdp/9-transfer/read-by-target",
    version = 3,
    title = "A SrcAvail in Combined Mode is read, RdmaRdCompl tells how much, and the octets come back",
    requirements = { "SDP-9.2-10", "SDP-9.2-11", "SDP-9.2-12", "SDP-9-8", "SDP-11.2-4", shown },
    roles = { "responder" },
    capabilities = { "sdp-echo" },

    run = function(t)
      local rows = { "SDP-9.2-10", "SDP-9.2-11", "SDP-9-8", "SDP-11.2-4" }
      local s = t:sdp {}
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      -- Octets that were read or came as payload; those that the target said it has read; those that it gave back meanwhile.
      local read, told, got = 40, 0, 0
      while told < 1960 do
        local what, m = s:next { requirement = rows, overdue_fails = true }
        if what == "read" then
          local first = m.src_to - VA
          t:check(first >= 0 and first <= read and m.length > 0 and first + m.length <= 2000, {
            requirement = rows, expected = "a Read of what was advertised", actual = m.length .. " octets from octet " .. first,
          })
          s:answer_read(m, OCTETS:sub(first + 1, first + m.length))
          read = math.max(read, first + m.length)
        elseif what == "rdma_rd_compl" then
          told = told + m.length
          t:check(m.length > 0 and told <= read - 40, {
            requirement = { "SDP-9.2-12", "SDP-9.2-11" }, expected = "at most the " .. read - 40 .. " octets that were read", actual = told .. " octets",
          })
        elseif what == "send_sm" then
          t:unimplemented("the target refuses the SrcAvail, or the rest of it, by SendSm")
        else
          t:check(what == "data" or what == "src_avail", { expected = "Data or SrcAvail of the echo", actual = what })
          got = got + #m.payload + (what == "src_avail" and fetch(s, m) or 0)
        end
      end
      if got < 2000 then
        s:collect(2000 - got)
      end
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "src_avail", "combined" }

  case {
    id = "sdp/9-transfer/src-avails",
    version = 2,
    title = "Large sends in Combined Mode are advertised, one after the other",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "send 2000; send 3000; send 100; send 2000"
      s:collect(7100)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "src_avail", "combined" }

  case {
    id = "sdp/9-transfer/refused-by-tester",
    version = 2,
    title = "A SendSm makes the target send by Data",
    requirements = { "SDP-9.2-31", "SDP-9.2-32", "SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11-4", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "send 2000"
      local m = s:expect "src_avail"
      s:send(sdp.send_sm {})
      local got = 0
      while got < 2000 - #m.payload do
        got = got + #s:expect("data", { requirement = { "SDP-9.2-31", "SDP-9.2-32", "SDP-9.2-33", "SDP-9.2-35", "SDP-9.5.2.1-2", "SDP-9.5.2.1-6", "SDP-11-4" }, overdue_fails = true }).payload
      end
      s:tell "send 700"
      s:collect(700)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/refused-in-pipelined",
  version = 1,
  title = "A SendSm for the first of two SrcAvails brings Data for it while the second stays",
  requirements = {
    "SDP-9.2-33", "SDP-11.3-9",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "mode out pipelined; send 2000; send 1500"
    s:expect "mode_change"
    s:expect "src_avail"
    local second = s:expect "src_avail"
    s:send(sdp.send_sm {})
    local got = 0
    while got < 2000 do
      got = got + #s:expect("data", { requirement = { "SDP-11.3-9", "SDP-9.2-33" }, overdue_fails = true }).payload
    end
    s:read { stag = second.stag, va = second.va, length = 1500 }
    s:expect_response { requirement = { "SDP-11.3-9", "SDP-9.2-33" }, overdue_fails = true }
    s:send(sdp.rdma_rd_compl { length = 1500 }, { invalidate = second.stag })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/9-transfer/consumed-in-parts",
  version = 1,
  title = "A SrcAvail that is consumed in three rounds ends with the last",
  requirements = {
    "SDP-9.2-16", "SDP-9.2-17",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "send 2000; send 700"
    local m = s:expect "src_avail"
    local rest = 2000 - #m.payload
    local parts = { 500, 600, rest - 1100 }
    local at = #m.payload
    for number, len in ipairs(parts) do
      s:read { stag = m.stag, va = m.va + at, length = len }
      s:expect_response { requirement = { "SDP-9.2-16", "SDP-9.2-17" }, overdue_fails = true }
      s:send(sdp.rdma_rd_compl { length = len }, number == 3 and { invalidate = m.stag } or nil)
      at = at + len
      if number < 3 then
        s:expect_quiet { within = 0.1, requirement = { "SDP-9.2-16", "SDP-9.2-17" }, overdue_fails = true }
      end
    end
    s:expect("src_avail", { requirement = { "SDP-9.2-16", "SDP-9.2-17" }, overdue_fails = true })
    s:connection():reset()
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "send_sm" }

  case {
    id = "sdp/9-transfer/refused-by-target",
    version = 2,
    title = "The target refuses a SrcAvail by SendSm",
    requirements = { "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "answer send-sm; read 3000"
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      s:expect("send_sm", { requirement = { "SDP-9.5.2.1-5", "SDP-6.3.5-1", "SDP-9-8" }, overdue_fails = true })
      for at = 41, 2000, 490 do
        s:send(sdp.data { payload = OCTETS:sub(at, at + 489) })
      end
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "send_sm", "rdma_rd_compl" }

  case {
    id = "sdp/9-transfer/read-in-parts",
    version = 2,
    title = "The target reads a part of a SrcAvail, and refuses the rest",
    requirements = { "SDP-9.2-11", "SDP-9-9", "SDP-6.3.7.1-1", "SDP-9.2-13", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "answer both; max-read 700; read 3000"
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      local read = s:expect_read { requirement = { "SDP-9.2-11", "SDP-9-9" }, overdue_fails = true }
      local first = read.src_to - VA
      s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
      s:expect("rdma_rd_compl", { fields = { length = read.length }, requirement = { "SDP-6.3.7.1-1", "SDP-9.2-13" }, overdue_fails = true })
      s:expect("send_sm", { requirement = { "SDP-9.2-11", "SDP-9-9" }, overdue_fails = true })
      local rest = OCTETS:sub(first + read.length + 1)
      for at = 1, #rest, 490 do
        s:send(sdp.data { payload = rest:sub(at, at + 489) })
      end
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "src_avail", "pipelined", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/pipelined",
    version = 2,
    title = "Several SrcAvails in Pipelined Mode",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 2000; send 3000; send 2500; send 2700; send 300"
      s:expect "mode_change"
      s:collect(10500)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/read-whole",
  version = 1,
  title = "What a SrcAvail names begins with its payload",
  requirements = {
    "SDP-6.3.2.2-2", "SDP-9.2-4", "SDP-9.2-5", "SDP-14.1-1",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "send 2000"
    local m = s:expect "src_avail"
    s:read { stag = m.stag, va = m.va, length = m.length }
    local octets = s:expect_response { requirement = { "SDP-6.3.2.2-2", "SDP-9.2-5", "SDP-9.2-4", "SDP-14.1-1" }, overdue_fails = true }
    t:check(octets:sub(1, #m.payload) == m.payload, { requirement = { "SDP-6.3.2.2-2", "SDP-9.2-5", "SDP-9.2-4", "SDP-14.1-1" }, overdue_fails = true, expected = "the payload first", actual = "other octets" })
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/9-transfer/two-read",
  version = 2,
  title = "Each RdmaRdCompl invalidates the STag of its own SrcAvail, if any",
  requirements = {
    "SDP-9.2-26",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:tell "wait 20; read 900 900"
    for n = 1, 2 do
      s:send(sdp.src_avail { length = 900, stag = 0x900 + n, va = VA })
    end
    for _ = 1, 2 do
      s:answer_read(s:expect_read(), OCTETS:sub(1, 900))
    end
    for n = 1, 2 do
      local m = s:expect("rdma_rd_compl", { requirement = "SDP-9.2-26", overdue_fails = true })
      local own = m.invalidates == 0 or m.invalidates == 0x900 + n
      t:check(own, { requirement = "SDP-9.2-26", overdue_fails = true, expected = "its own STag", actual = ("%#x"):format(m.invalidates) })
    end
    s:connection():reset()
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "src_avail", "pipelined", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/max-adverts",
    version = 2,
    title = "No more advertisements are open than MaxAdverts says",
    requirements = { "SDP-6.2.1.3-3", "SDP-11.3-23", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp { hello = sdp.hello { max_adverts = 2 } }
      s:tell "mode out pipelined; send 2000; send 3000; send 2500; send 2700"
      s:expect "mode_change"
      local open = { s:expect "src_avail", s:expect "src_avail" } -- and are left for a while
      s:expect_quiet { within = 0.3, requirement = { "SDP-6.2.1.3-3", "SDP-11.3-23" }, overdue_fails = true }
      for _, m in ipairs(open) do
        s:read { stag = m.stag, va = m.va, length = m.length }
        s:expect_response {}
        s:send(sdp.rdma_rd_compl { length = m.length }, { invalidate = m.stag })
      end
      s:collect(5200)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "sink_avail" }

  case {
    id = "sdp/9-transfer/written-by-tester",
    version = 2,
    title = "Receives are advertised in Pipelined Mode and written to",
    requirements = { "SDP-11.3-5", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:tell "read 2000 3000 1500; send 100"
      local ms = {}
      for i = 1, 3 do
        ms[i] = s:expect("sink_avail", { past = { "data" } })
      end
      for i = 1, 3 do
        s:write { stag = ms[i].stag, va = ms[i].va, payload = ("w"):rep(ms[i].length) }
        s:send(sdp.rdma_wr_compl { length = ms[i].length }, { invalidate = ms[i].stag })
      end
      s:tell "send 50"
      s:collect(50, { past = { "sink_avail" }, requirement = "SDP-11.3-5", overdue_fails = true })
      s:close { shows = shown, past = { "sink_avail" } }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/echo-of-write",
  version = 1,
  title = "What is written comes back",
  requirements = {
    "SDP-6.3.3-4", "SDP-6.3.3.1-1", "SDP-6.3.3.2-1", "SDP-6.3.3.3-1", "SDP-6.3.6.1-2", "SDP-11.3-5", "SDP-14.1-2",
  },
  roles = { "responder" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    local m = s:expect "sink_avail"
    local octets = OCTETS:sub(1, 700)
    s:write { stag = m.stag, va = m.va, payload = octets }
    s:send(sdp.rdma_wr_compl { length = 700 }, { invalidate = m.stag })
    local got = s:collect(700, { past = { "sink_avail" }, requirement = { "SDP-11.3-5", "SDP-6.3.3-4", "SDP-6.3.3.1-1", "SDP-6.3.3.2-1", "SDP-6.3.3.3-1", "SDP-6.3.6.1-2", "SDP-14.1-2" }, overdue_fails = true })
    t:check(got == octets, { requirement = { "SDP-11.3-5", "SDP-6.3.3-4", "SDP-6.3.3.1-1", "SDP-6.3.3.2-1", "SDP-6.3.3.3-1", "SDP-6.3.6.1-2", "SDP-14.1-2" }, overdue_fails = true, expected = "the octets that were written", actual = "others" })
    s:close { past = { "sink_avail" } }
    t:liveness()
  end,
}

case {
  id = "sdp/9-transfer/pipelined-echo",
  version = 1,
  title = "Data, and a SrcAvail without payload, are taken in Pipelined Mode",
  requirements = {
    "SDP-11.3-3",
  },
  roles = { "responder" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:send(sdp.data { payload = "abc" })
    s:collect(3, { past = { "sink_avail" }, requirement = "SDP-11.3-3", overdue_fails = true })
    s:close { past = { "sink_avail" } }
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "rdma_wr_compl", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/target-writes",
    version = 2,
    title = "SinkAvails of the tester are written to",
    requirements = { "SDP-9.3-6", "SDP-9.5.1-9", "SDP-9.5.1-14", "SDP-9.3-8", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; wait 50; send 1500; send 2500"
      s:expect "mode_change"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 0x55 })
      s:send(sdp.sink_avail { length = 2000, stag = 0x902, va = 0x155 })
      s:expect_write { length = 1500, requirement = { "SDP-9.3-6", "SDP-9.5.1-9", "SDP-9.5.1-14" }, overdue_fails = true }
      s:expect("rdma_wr_compl", { fields = { length = 1500 }, requirement = "SDP-9.3-8", overdue_fails = true })
      s:expect_write { length = 2000, requirement = { "SDP-9.3-6", "SDP-9.5.1-9", "SDP-9.5.1-14" }, overdue_fails = true }
      s:expect("rdma_wr_compl", { fields = { length = 2000 }, requirement = "SDP-9.3-8", overdue_fails = true })
      s:close { shows = shown, past = { "src_avail", "data", "rdma_wr_compl" } }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/sink-avail-with-payload",
  version = 1,
  title = "Payload of a SinkAvail is taken",
  requirements = {
    "SDP-6.3.3-3", "SDP-9.4-1", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:tell "mode out pipelined"
    s:expect "mode_change"
    s:send(sdp.sink_avail { length = 2000, stag = 0x901, payload = "send 600\n" })
    s:expect_write { length = 600, requirement = { "SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6", "SDP-9.4-1" }, overdue_fails = true }
    s:expect("rdma_wr_compl", { requirement = { "SDP-6.3.3-3", "SDP-9.5.1-15", "SDP-11.2-5", "SDP-11.3-6", "SDP-9.4-1" }, overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "sink_avail", "transaction", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/transactions",
    version = 2,
    title = "Data and a SinkAvail in one",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:tell "mode out pipelined; wait 5; send 100; read 2000 2000"
      s:expect("sink_avail", { past = { "data", "mode_change" } })
      s:close { shows = shown, past = { "sink_avail", "data" } }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "src_avail", "combined", "src_avail_cancel" }

  case {
    id = "sdp/9-transfer/cancelled-send",
    version = 2,
    title = "A SrcAvail is revoked",
    requirements = { "SDP-9.5.4-12", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "send 2000; wait 20; cancel-sends; send 1500"
      s:expect "src_avail"
      s:expect "src_avail_cancel"
      s:expect_quiet { within = 0.1 }
      s:send(sdp.send_sm {})
      s:collect(1500, { requirement = "SDP-9.5.4-12", overdue_fails = true })
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "src_avail", "pipelined", "src_avail_cancel", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/cancelled-sends",
    version = 2,
    title = "Several SrcAvails are revoked at once",
    requirements = { "SDP-9.5.4-12", "SDP-9.5.4-10", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 2000; send 2500; wait 20; cancel-sends; send 1500"
      s:expect "mode_change"
      s:expect "src_avail"
      s:expect "src_avail"
      s:expect "src_avail_cancel"
      s:expect_quiet { within = 0.1, requirement = "SDP-9.5.4-10", overdue_fails = true }
      s:send(sdp.send_sm {})
      s:collect(1500, { requirement = "SDP-9.5.4-12", overdue_fails = true })
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "sink_avail", "sink_avail_cancel" }

  case {
    id = "sdp/9-transfer/cancelled-receives",
    version = 2,
    title = "SinkAvails are revoked",
    requirements = { "SDP-9.5.5-11", "SDP-9.5.5-14", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:tell "read 2000 2000; wait 20; cancel-receives; read 2000"
      s:expect "sink_avail"
      s:expect "sink_avail"
      s:expect "sink_avail_cancel"
      s:expect_quiet { within = 0.1, requirement = "SDP-9.5.5-11", overdue_fails = true }
      s:send(sdp.sink_cancel_ack {})
      local m = s:expect("sink_avail", { requirement = "SDP-9.5.5-14", overdue_fails = true })
      s:write { stag = m.stag, va = m.va, payload = ("w"):rep(m.length) }
      s:send(sdp.rdma_wr_compl { length = m.length }, { invalidate = m.stag })
      s:tell "send 10"
      s:collect(10, { past = { "sink_avail" } })
      s:close { shows = shown, past = { "sink_avail" } }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/written-in-cancel",
  version = 1,
  title = "A RdmaWrCompl for all that is revoked ends the cancel",
  requirements = {
    "SDP-9.5.5-12",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:tell "read 2000; wait 20; cancel-receives; read 2000"
    local m = s:expect "sink_avail"
    s:write { stag = m.stag, va = m.va, payload = ("w"):rep(2000) }
    s:expect "sink_avail_cancel"
    s:send(sdp.rdma_wr_compl { length = 2000 }, { invalidate = m.stag })
    s:expect("sink_avail", { requirement = "SDP-9.5.5-12", overdue_fails = true })
    s:connection():reset()
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "send_sm", "SDP-9.5.4-9" }

  case {
    id = "sdp/9-transfer/revoked-by-tester",
    version = 2,
    title = "A SrcAvail that the tester revokes is ended by SendSm",
    requirements = { "SDP-9.5.4-2", "SDP-6.3.9-2", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "wait 20; read 3000"
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      s:send(sdp.src_avail_cancel {})
      s:expect("send_sm", { requirement = { "SDP-9.5.4-2", "SDP-6.3.9-2" }, overdue_fails = true })
      s:expect_quiet { within = 0.1, requirement = { "SDP-9.5.4-2", "SDP-6.3.9-2" }, overdue_fails = true }
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/9-transfer/revoked-by-tester-several",
  version = 1,
  title = "Three SrcAvails that are revoked get one SendSm",
  requirements = {
    "SDP-6.3.9-2", "SDP-9.5.4-9",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:tell "wait 50; read 3000"
    for n = 1, 3 do
      s:send(sdp.src_avail { length = 1000, stag = 0x100 + n })
    end
    s:send(sdp.src_avail_cancel {})
    s:expect("send_sm", { requirement = { "SDP-9.5.4-9", "SDP-6.3.9-2" }, overdue_fails = true, past = { "sink_avail" } })
    s:expect_quiet { within = 0.2, past = { "sink_avail" }, requirement = { "SDP-9.5.4-9", "SDP-6.3.9-2" }, overdue_fails = true }
    s:close { past = { "sink_avail" } }
    t:liveness()
  end,
}

case {
  id = "sdp/9-transfer/cancel-of-nothing",
  version = 2,
  title = "Cancels with nothing to cancel bring no answer",
  requirements = {
    "SDP-9.5.4-4", "SDP-9.5.5-4",
  },
  roles = { "responder" },
  -- What speaks first has more to say than an answer.
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.src_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.4-4", overdue_fails = true }
    s:send(sdp.sink_avail_cancel {})
    s:expect_quiet { within = 0.3, requirement = "SDP-9.5.5-4", overdue_fails = true }
    s:close()
    t:liveness()
  end,
}

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "rdma_rd_compl" }

  case {
    id = "sdp/9-transfer/revoked-while-read",
    version = 2,
    title = "A SrcAvail is revoked while it is read",
    requirements = { "SDP-9.5.4-5", "SDP-6.1.6-3", "SDP-9.5.4-7", "SDP-9.5.4-6", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "read 3000; wait 10; send 50"
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      local read = s:expect_read {}
      s:send(sdp.src_avail_cancel {})
      local cancel = s:books().mseq - 1
      local m = s:expect "data"
      t:check(m.mseq_ack < cancel, { requirement = { "SDP-9.5.4-5", "SDP-6.1.6-3" }, overdue_fails = true, expected = "an MSeqAck below the cancel's MSeq", actual = "MSeqAck " .. m.mseq_ack })
      local first = read.src_to - VA
      s:answer_read(read, OCTETS:sub(first + 1, first + read.length))
      s:expect("rdma_rd_compl", { fields = { length = read.length }, requirement = "SDP-9.5.4-7", overdue_fails = true })
      s:expect_quiet { within = 0.1, past = { "send_sm" }, requirement = "SDP-9.5.4-6", overdue_fails = true }
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "sink_cancel_ack", "src_avail", "pipelined", "mode_change", "to_pipelined" }

  case {
    id = "sdp/9-transfer/revoked-sink-avails",
    version = 2,
    title = "SinkAvails that the tester revokes are answered by one SinkCancelAck",
    requirements = { "SDP-6.3.11-1", "SDP-9.5.5-10", "SDP-9.5.5-4", "SDP-9.5.5-2", "SDP-6.3.10-2", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined"
      s:expect "mode_change"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901 })
      s:send(sdp.sink_avail { length = 2000, stag = 0x902 })
      s:send(sdp.sink_avail_cancel {})
      s:expect("sink_cancel_ack", { requirement = { "SDP-6.3.11-1", "SDP-9.5.5-10" }, overdue_fails = true })
      s:send(sdp.sink_avail_cancel {})
      s:expect_quiet { within = 0.1, requirement = "SDP-9.5.5-4", overdue_fails = true }
      s:tell "send 600"
      s:expect("src_avail", { requirement = { "SDP-9.5.5-2", "SDP-6.3.10-2" }, overdue_fails = true })
      s:expect_quiet { within = 0.01, shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "src_avail", "pipelined", "mode_change", "to_pipelined", "SDP-9.5.2.2-2" }

  case {
    id = "sdp/9-transfer/stale",
    version = 2,
    title = "A SinkAvail that data sent before has made stale is not used",
    requirements = { "SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-11.3-14", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 100; send 1500; send 1500"
      s:expect "mode_change"
      s:expect "data"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, mseq_ack = 1 })
      s:collect(3000, { requirement = { "SDP-9.5.1-12", "SDP-9.5.1-3", "SDP-9.5.1-13", "SDP-11.3-14" }, overdue_fails = true })
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "src_avail", "pipelined", "rdma_wr_compl", "mode_change", "to_pipelined", "SDP-9.3-8" }

  case {
    id = "sdp/9-transfer/crossing",
    version = 3,
    title = "A SinkAvail that crosses a SrcAvail is written to",
    requirements = { "SDP-11.3-12", "SDP-11.3-15", "SDP-11.3-16", "SDP-11-12", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 1800"
      s:expect "mode_change"
      s:expect "src_avail"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, va = 5, mseq_ack = 1 })
      s:expect_write { length = 1800, requirement = { "SDP-11.3-12", "SDP-11.3-15", "SDP-11.3-16", "SDP-11-12" }, overdue_fails = true }
      s:expect("rdma_wr_compl", { requirement = { "SDP-11.3-12", "SDP-11.3-15", "SDP-11.3-16", "SDP-11-12" }, overdue_fails = true })
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "sink_avail" }

  case {
    id = "sdp/9-transfer/crossing-back",
    version = 2,
    title = "A SrcAvail that crosses a SinkAvail is not read",
    requirements = { "SDP-11.3-20", shown },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.mode_change { mode = 2 })
      s:tell "read 2000 2000"
      local before = s:books()
      local m = s:expect "sink_avail"
      s:expect_quiet { within = 0.05, past = { "sink_avail" } }
      s:send(sdp.src_avail { length = 1500, mseq_ack = before.mseq_ack })
      s:expect_quiet { within = 0.1, requirement = "SDP-11.3-20", overdue_fails = true }
      s:write { stag = m.stag, va = m.va, payload = ("w"):rep(1500) }
      s:send(sdp.rdma_wr_compl { length = 1500 }, { invalidate = m.stag })
      s:close { shows = shown, past = { "sink_avail", "data" } }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "urgent", "src_avail", "combined", "SDP-9.1-1", "SDP-10-6" }

  case {
    id = "sdp/9-transfer/urgent",
    version = 2,
    title = "Out-Of-Band octets, announced and sent",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "send 2000; urgent 300; send 100"
      s:collect(2400)
      s:tell "threshold 1000000; urgent 67000; send 50"
      s:collect(67050)
      s:send(sdp.data { oob_pend = true })
      s:send(sdp.data { oob_pres = true, payload = "send 7;" })
      s:collect(7)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "rdma_rd_compl", "hint", "SDP-6.3.7.1-3" }

  case {
    id = "sdp/9-transfer/hints",
    version = 2,
    title = "REQ_PIPE in a completion",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "hints; read 3000"
      s:send(sdp.src_avail { length = 2000, payload = OCTETS:sub(1, 40) })
      s:serve(OCTETS, { va = VA, from = 40 })
      s:expect "rdma_rd_compl"
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "src_avail", "SDP-6.2-1", "SDP-8.1.1-4" }

  case {
    id = "sdp/9-transfer/source",
    version = 2,
    title = "A target that has something to say",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-source" },

    run = function(t)
      local s = t:sdp {}
      s:collect(5800)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "urgent" }

  case {
    id = "sdp/9-transfer/urgent-alone",
    version = 1,
    title = "An Out-Of-Band octet is announced at the latest with itself",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "threshold 1000000; urgent 300; send 100; send 100"
      local pending, got = false, 0
      while got < 500 do
        local m = s:expect "data"
        pending, got = pending or m.oob_pend, got + #m.payload
        if m.oob_pres then
          t:check(pending, {
            requirement = { "SDP-9.5.3-5", "SDP-6.1.2-3" }, expected = "OOB_PEND up to the Data with OOB_PRES", actual = "none",
          })
        end
      end
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn", "data", "sink_cancel_ack", "SDP-9.5.5-6", "SDP-9.5.5-7" }

  case {
    id = "sdp/9-transfer/revoked-before-use",
    version = 1,
    title = "Nothing is written to a SinkAvail that was revoked",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 100"
      s:expect "mode_change"
      s:expect "data"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, non_discards = 1 })
      s:send(sdp.sink_avail_cancel {})
      s:expect "sink_cancel_ack"
      s:tell "send 200"
      s:collect(200)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end

do
  -- What is written ends before the ModeChange, and nothing is written behind it.
  local shown = sdp.shown {
    "hello_ack", "dis_conn", "data", "rdma_wr_compl", "mode_change", "to_pipelined", "to_combined",
    "SDP-12.4-6", "SDP-12.4-8", "SDP-12.4-11", "SDP-12.4-12", "SDP-12.5-4", "SDP-12.5-7", "SDP-9.5.1-17",
  }

  case {
    id = "sdp/9-transfer/written-then-left",
    version = 1,
    title = "A SinkAvail is used in Pipelined Mode, and those that cross the way out of it are not",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      s:tell "mode out pipelined; send 100; wait 30; send 1500; wait 1; mode out combined; wait 400; send 300"
      s:expect "mode_change"
      s:expect "data"
      s:send(sdp.sink_avail { length = 2000, stag = 0x901, non_discards = 1 })
      -- The Write, RdmaWrCompl and the ModeChange, in the order that the monitor sees.
      s:expect_open { within = 0.2 }
      -- They cross the ModeChange, as their MSeqAck says.
      local before = s:books().mseq_ack - 1
      s:send(sdp.sink_avail { length = 2000, stag = 0x902, non_discards = 1, mseq_ack = before })
      s:send(sdp.sink_avail { length = 2000, stag = 0x903, non_discards = 1, mseq_ack = before })
      s:collect(300)
      s:close { shows = shown }
      t:liveness()
    end,
  }
end
