-- Flow Control Modes (draft-pinkerton-iwarp-sdp-01 section 12).

-- What a driven socket is told to do.
local function tell(s, text)
  s:send(sdp.data { payload = text .. "\n" })
end

do
  -- What the monitor has to judge in this traffic.
  local shown = {
    "SDP-5-4", "SDP-6-2", "SDP-6-4", "SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-3", "SDP-6.1.1-4", "SDP-6.1.1-9",
    "SDP-6.1.1-18", "SDP-6.1.1-22", "SDP-6.1.1-23", "SDP-6.1.2-1", "SDP-6.1.2-4", "SDP-6.1.2-5", "SDP-6.1.2-8",
    "SDP-6.1.2-16", "SDP-6.1.2-17", "SDP-6.1.3-1", "SDP-6.1.4-1", "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1",
    "SDP-6.1.6-2", "SDP-6.2.2-1", "SDP-6.2.2-2", "SDP-6.2.2-4", "SDP-6.2.2-5", "SDP-6.2.2-6", "SDP-6.2.2-7",
    "SDP-6.2.2-9", "SDP-6.2.2.1-1", "SDP-6.2.2.2-1", "SDP-6.2.2.3-1", "SDP-6.2.2.4-1", "SDP-6.2.2.5-2",
    "SDP-6.2.2.6-2", "SDP-6.2.2.7-1", "SDP-6.2.3-1", "SDP-6.2.3-2", "SDP-6.2.4-2", "SDP-6.3.1-1", "SDP-6.3.2-1",
    "SDP-6.3.2-3", "SDP-6.3.2.1-1", "SDP-6.3.2.1-2", "SDP-6.3.2.3-1", "SDP-6.3.8-1", "SDP-6.3.8-2",
    "SDP-6.3.8.2-1", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4", "SDP-6.3.8.2-5", "SDP-6.3.8.3-1",
    "SDP-6.4.2-3", "SDP-8.1.1-24", "SDP-8.1.1-25", "SDP-8.1.1-28", "SDP-8.1.1-29", "SDP-8.2.1-4", "SDP-8.2.1-9",
    "SDP-9.1-2", "SDP-9.2-1", "SDP-9.2-2", "SDP-9.2-3", "SDP-9.2-18", "SDP-9.3-1", "SDP-9.5.5-10", "SDP-10-1",
    "SDP-10-2", "SDP-10-4", "SDP-10-7", "SDP-10.1-1", "SDP-10.3-2", "SDP-11-6", "SDP-11-8", "SDP-11-9",
    "SDP-11-10", "SDP-11-13", "SDP-11-15", "SDP-11.1-2", "SDP-11.2-6", "SDP-11.2-8", "SDP-11.2-9", "SDP-11.3-7",
    "SDP-11.3-8", "SDP-12-1", "SDP-12-3", "SDP-12-4", "SDP-12-5", "SDP-12-7", "SDP-12-8", "SDP-12-9", "SDP-12-10",
    "SDP-12-12", "SDP-12-15", "SDP-12-17", "SDP-12-18", "SDP-12-20", "SDP-12.1-1", "SDP-12.1-2", "SDP-12.3-1",
    "SDP-12.4-1", "SDP-12.4-3", "SDP-12.5-8", "SDP-12.5-13", "SDP-14.2-7", "SDP-14.2-12", "SDP-14.2-13",
    "SDP-14.2-15", "SDP-14.2-16",
  }

  case {
    id = "sdp/12-modes/all",
    version = 1,
    title = "The target leads its half through all Modes, and the tester the others",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "mode out pipelined; send 2000; send 300")
      s:expect "mode_change"
      s:collect(2300)
      tell(s, "mode out combined; send 2000; send 300")
      s:collect(2300, { past = { "mode_change" } })
      tell(s, "mode out buffered; send 900; send 300")
      s:collect(1200, { past = { "mode_change" } })
      s:send(sdp.mode_change { mode = 1, s = 1 })
      tell(s, "send 2000")
      s:collect(2000)
      s:send(sdp.mode_change { mode = 0 })
      tell(s, "mode in combined; send 10")
      s:collect(10, { past = { "mode_change" } })
      s:close { shows = shown, past = { "mode_change" } }
      t:liveness()
    end,
  }
end

case {
  id = "sdp/12-modes/out-of-buffered",
  version = 1,
  title = "A Data Sink leads the target out of Buffered Mode",
  requirements = {
    "SDP-6.3.8-3", "SDP-6.3.8.1-1", "SDP-11-5", "SDP-12-19", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    tell(s, "mode out buffered; wait 20; send 300")
    s:expect "mode_change"
    s:expect("data", { fields = { payload_length = 300 } })
    s:send(sdp.mode_change { mode = 1, s = 1 })
    tell(s, "send 2000")
    s:expect("src_avail", { requirement = { "SDP-6.3.8.1-1", "SDP-12.2-2", "SDP-12.5-17", "SDP-12.5-20", "SDP-11-5", "SDP-6.3.8-3", "SDP-12-19" }, overdue_fails = true })
    s:connection():reset()
    t:liveness()
  end,
}

case {
  id = "sdp/12-modes/out-of-pipelined",
  version = 1,
  title = "No SinkAvail follows the way back to Combined Mode",
  requirements = {
    "SDP-12-21", "SDP-12.4-14", "SDP-12.5-9", "SDP-12.5-24",
  },
  roles = { "responder" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.mode_change { mode = 2 })
    s:expect "sink_avail"
    s:expect_quiet { within = 0.1, past = { "sink_avail" } }
    s:send(sdp.mode_change { mode = 1 })
    s:send(sdp.data { payload = "abc" })
    s:collect(3, { requirement = { "SDP-12.5-24", "SDP-12-21", "SDP-12.5-9", "SDP-12.4-14" }, overdue_fails = true })
    s:expect_quiet { within = 0.3, requirement = { "SDP-12.5-24", "SDP-12-21", "SDP-12.5-9", "SDP-12.4-14" }, overdue_fails = true }
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/12-modes/written-then-combined",
  version = 1,
  title = "No RdmaWrCompl follows the ModeChange out of Pipelined Mode",
  requirements = {
    "SDP-12.4-7", "SDP-12.5-2",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    tell(s, "mode out pipelined; wait 20; send 1500; wait 1; mode out combined; wait 20; send 10")
    s:expect "mode_change"
    s:send(sdp.sink_avail { length = 2000, stag = 0x901 })
    s:expect_write { length = 1500 }
    s:expect("rdma_wr_compl", { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true })
    s:expect("mode_change", { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true, fields = { mode = 1 } })
    s:collect(10, { requirement = { "SDP-12.4-7", "SDP-12.5-2" }, overdue_fails = true })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/12-modes/frozen",
  version = 1,
  title = "No ModeChange follows one out of Pipelined Mode that is not acknowledged",
  requirements = {
    "SDP-12.4-3", "SDP-12.5-8",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    tell(s, "mode out pipelined; wait 10; mode out combined; wait 10; mode out buffered")
    s:books { updates = false }
    s:expect "mode_change"
    s:expect "mode_change"
    s:expect_quiet { within = 0.3, requirement = { "SDP-12.4-3", "SDP-12.5-8" }, overdue_fails = true }
    s:send(sdp.data {})
    s:expect("mode_change", { fields = { mode = 0 } })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/12-modes/with-open-src-avail",
  version = 1,
  title = "A half does not go to Buffered Mode while a SrcAvail is open",
  requirements = {
    "SDP-12.1-2", "SDP-12.5-13",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    tell(s, "send 2000; wait 10; mode out buffered")
    local m = s:expect "src_avail"
    s:expect_quiet { within = 0.3, requirement = { "SDP-12.1-2", "SDP-12.5-13" }, overdue_fails = true }
    s:read { stag = m.stag, va = m.va + #m.payload, length = 2000 - #m.payload }
    s:expect_response {}
    s:send(sdp.rdma_rd_compl { length = 2000 - #m.payload }, { invalidate = m.stag })
    s:expect("mode_change", { fields = { mode = 0 } })
    s:close()
    t:liveness()
  end,
}

case {
  id = "sdp/12-modes/wait-for-src-avail",
  version = 1,
  title = "Nothing with payload follows a SrcAvail that is open",
  requirements = {
    "SDP-11-7", "SDP-11-10", "SDP-11-15", "SDP-11.2-6", "SDP-11.2-7",
  },
  roles = { "responder" },
  capabilities = { "sdp-drive" },

  run = function(t)
    local s = t:sdp {}
    tell(s, "send 2000; send 300; send 2000")
    s:expect "src_avail"
    s:expect_quiet { within = 0.3, requirement = { "SDP-11.2-6", "SDP-11.2-7", "SDP-11-7", "SDP-11-10", "SDP-11-15" }, overdue_fails = true }
    s:connection():reset()
    t:liveness()
  end,
}
