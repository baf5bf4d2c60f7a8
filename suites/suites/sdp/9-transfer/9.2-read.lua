-- SrcAvails, and the Reads of what they advertise (draft-pinkerton-iwarp-sdp-01 sections 6.3, 9.2 and 11).

local VA = 0x700000001
local OCTETS = ("abcdefghij"):rep(200)

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
          got = got + #m.payload + (what == "src_avail" and #s:fetch(m) or 0)
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
        s:fetch(m)
      end
      s:collect(5200)
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
