-- How connections end (draft-pinkerton-iwarp-sdp-01 sections 6.2 and 8.2).

-- What a driven socket is told to do.
local function tell(s, text)
  s:send(sdp.data { payload = text .. "\n" })
end

case {
  id = "sdp/8.2.1-close/by-tester",
  version = 1,
  title = "DisConn is answered by DisConn and the end of TCP",
  requirements = {
    "SDP-8.2.1-21",
  },
  roles = { "responder" },
  capabilities = { "sdp" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.dis_conn {})
    s:expect("dis_conn", { requirement = "SDP-8.2.1-21", overdue_fails = true, past = { "src_avail", "data" } })
    s:expect_end { graceful = true, requirement = "SDP-8.2.1-21", overdue_fails = true, past = { "data" } }
    t:liveness()
  end,
}

do
  -- What the monitor has to judge in this traffic.
  local shown = {
    "SDP-5-4", "SDP-6-1", "SDP-6-4", "SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-3", "SDP-6.1.1-4", "SDP-6.1.1-17",
    "SDP-6.1.1-18", "SDP-6.1.1-20", "SDP-6.1.1-23", "SDP-6.1.2-1", "SDP-6.1.2-4", "SDP-6.1.2-5", "SDP-6.1.2-16",
    "SDP-6.1.2-17", "SDP-6.1.4-1", "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.1.6-2", "SDP-6.2.2-1",
    "SDP-6.2.2-2", "SDP-6.2.2-4", "SDP-6.2.2-5", "SDP-6.2.2-6", "SDP-6.2.2-7", "SDP-6.2.2-9", "SDP-6.2.2.1-1",
    "SDP-6.2.2.2-1", "SDP-6.2.2.3-1", "SDP-6.2.2.4-1", "SDP-6.2.2.5-2", "SDP-6.2.2.6-2", "SDP-6.2.2.7-1",
    "SDP-6.2.3-1", "SDP-6.2.3-2", "SDP-6.2.4-2", "SDP-6.3.1-1", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4",
    "SDP-6.4.2-3", "SDP-8.1.1-24", "SDP-8.1.1-25", "SDP-8.1.1-28", "SDP-8.1.1-29", "SDP-8.2.1-4", "SDP-8.2.1-9",
    "SDP-9.1-2", "SDP-9.2-1", "SDP-9.2-18", "SDP-9.3-1", "SDP-9.5.5-10", "SDP-10-2", "SDP-10-4", "SDP-10-7",
    "SDP-10.1-1", "SDP-10.3-2", "SDP-11-2", "SDP-11-8", "SDP-11-20", "SDP-12-1", "SDP-12-3", "SDP-12-5",
    "SDP-12-8", "SDP-12-10", "SDP-12-12", "SDP-12-20", "SDP-12-23", "SDP-14.2-7", "SDP-14.2-12", "SDP-14.2-15",
  }

  case {
    id = "sdp/8.2.1-close/by-target",
    version = 1,
    title = "The target closes first; the tester still sends",
    requirements = { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11", table.unpack(shown) },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "send 300; shut")
      s:collect(300)
      s:expect "dis_conn"
      for _ = 1, 20 do
        s:send(sdp.data { payload = ("p"):rep(300) })
      end
      s:expect_quiet { within = 0.2, requirement = { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11" }, overdue_fails = true }
      s:send(sdp.dis_conn {})
      s:connection():finish()
      s:expect_end { shows = shown }
      t:liveness()
    end,
  }
end

do
  -- What the monitor has to judge in this traffic.
  local shown = {
    "SDP-5-4", "SDP-6-4", "SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-3", "SDP-6.1.1-4", "SDP-6.1.1-18",
    "SDP-6.1.1-22", "SDP-6.1.1-23", "SDP-6.1.2-1", "SDP-6.1.2-4", "SDP-6.1.2-5", "SDP-6.1.2-8", "SDP-6.1.2-16",
    "SDP-6.1.2-17", "SDP-6.1.3-1", "SDP-6.1.4-1", "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.1.6-2",
    "SDP-6.2.2-1", "SDP-6.2.2-2", "SDP-6.2.2-4", "SDP-6.2.2-5", "SDP-6.2.2-6", "SDP-6.2.2-7", "SDP-6.2.2-9",
    "SDP-6.2.2.1-1", "SDP-6.2.2.2-1", "SDP-6.2.2.3-1", "SDP-6.2.2.4-1", "SDP-6.2.2.5-2", "SDP-6.2.2.6-2",
    "SDP-6.2.2.7-1", "SDP-6.2.3-1", "SDP-6.2.3-2", "SDP-6.2.4-2", "SDP-6.3.1-1", "SDP-6.3.2-1", "SDP-6.3.2-3",
    "SDP-6.3.2.1-1", "SDP-6.3.2.1-2", "SDP-6.3.2.3-1", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4",
    "SDP-6.4.2-3", "SDP-6.5.2-2", "SDP-8.1.1-24", "SDP-8.1.1-25", "SDP-8.1.1-28", "SDP-8.1.1-29", "SDP-8.2.1-4",
    "SDP-8.2.1-9", "SDP-9.1-2", "SDP-9.2-1", "SDP-9.2-2", "SDP-9.2-18", "SDP-9.3-1", "SDP-9.5.5-10", "SDP-10-1",
    "SDP-10-2", "SDP-10-4", "SDP-10-7", "SDP-10.1-1", "SDP-10.3-2", "SDP-11-2", "SDP-11-7", "SDP-11-8",
    "SDP-11-9", "SDP-11-10", "SDP-11-20", "SDP-11.2-6", "SDP-11.2-7", "SDP-11.2-8", "SDP-11.2-9", "SDP-12-1",
    "SDP-12-2", "SDP-12-3", "SDP-12-5", "SDP-12-8", "SDP-12-10", "SDP-12-12", "SDP-12-17", "SDP-12-20",
    "SDP-12-23", "SDP-12.1-2", "SDP-12.5-13", "SDP-14.2-7", "SDP-14.2-12", "SDP-14.2-13", "SDP-14.2-15",
  }

  case {
    id = "sdp/8.2.1-close/half-closed",
    version = 1,
    title = "DisConn goes out behind all that was posted",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "wait 30; send 300; send 2000; shut")
      s:expect_quiet { within = 0.01 }
      s:collect(2300)
      s:expect "dis_conn"
      s:send(sdp.dis_conn {})
      s:connection():finish()
      s:expect_end { shows = shown }
      t:liveness()
    end,
  }
end

do
  -- What the monitor has to judge in this traffic.
  local shown = {
    "SDP-5-4", "SDP-6-4", "SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-3", "SDP-6.1.1-4", "SDP-6.1.1-5", "SDP-6.1.1-18",
    "SDP-6.1.1-23", "SDP-6.1.2-1", "SDP-6.1.2-4", "SDP-6.1.2-5", "SDP-6.1.2-16", "SDP-6.1.2-17", "SDP-6.1.3-1",
    "SDP-6.1.4-1", "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.1.6-2", "SDP-6.2.2-1", "SDP-6.2.2-2",
    "SDP-6.2.2-4", "SDP-6.2.2-5", "SDP-6.2.2-6", "SDP-6.2.2-7", "SDP-6.2.2-9", "SDP-6.2.2.1-1", "SDP-6.2.2.2-1",
    "SDP-6.2.2.3-1", "SDP-6.2.2.4-1", "SDP-6.2.2.5-2", "SDP-6.2.2.6-2", "SDP-6.2.2.7-1", "SDP-6.2.3-1",
    "SDP-6.2.3-2", "SDP-6.2.4-1", "SDP-6.2.4-2", "SDP-6.3.1-1", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4",
    "SDP-6.4.2-3", "SDP-8.1.1-24", "SDP-8.1.1-25", "SDP-8.1.1-28", "SDP-8.1.1-29", "SDP-8.2.1-4", "SDP-8.2.1-9",
    "SDP-9.1-2", "SDP-9.2-1", "SDP-9.2-18", "SDP-9.3-1", "SDP-9.5.5-10", "SDP-10-1", "SDP-10-2", "SDP-10-4",
    "SDP-10-7", "SDP-10.1-1", "SDP-10.3-2", "SDP-11-2", "SDP-11-8", "SDP-11-20", "SDP-12-1", "SDP-12-3",
    "SDP-12-5", "SDP-12-8", "SDP-12-10", "SDP-12-12", "SDP-12-20", "SDP-12-23", "SDP-14.2-1", "SDP-14.2-7",
    "SDP-14.2-12", "SDP-14.2-15",
  }

  case {
    id = "sdp/8.2.1-close/aborted-behind",
    version = 1,
    title = "AbortConn behind DisConn",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "send 10; shut; wait 10; abort")
      s:collect(10)
      s:expect "dis_conn"
      s:expect_end { shows = shown }
      t:liveness()
    end,
  }
end

do
  -- What the monitor has to judge in this traffic.
  local shown = {
    "SDP-5-4", "SDP-6-4", "SDP-6.1-1", "SDP-6.1.1-1", "SDP-6.1.1-3", "SDP-6.1.1-4", "SDP-6.1.1-18",
    "SDP-6.1.1-23", "SDP-6.1.2-1", "SDP-6.1.2-4", "SDP-6.1.2-5", "SDP-6.1.2-16", "SDP-6.1.2-17", "SDP-6.1.4-1",
    "SDP-6.1.5-1", "SDP-6.1.5-2", "SDP-6.1.6-1", "SDP-6.1.6-2", "SDP-6.2.2-1", "SDP-6.2.2-2", "SDP-6.2.2-4",
    "SDP-6.2.2-5", "SDP-6.2.2-6", "SDP-6.2.2-7", "SDP-6.2.2-9", "SDP-6.2.2.1-1", "SDP-6.2.2.2-1", "SDP-6.2.2.3-1",
    "SDP-6.2.2.4-1", "SDP-6.2.2.5-2", "SDP-6.2.2.6-2", "SDP-6.2.2.7-1", "SDP-6.2.3-1", "SDP-6.2.3-2",
    "SDP-6.2.4-2", "SDP-6.3.1-1", "SDP-6.3.8.2-2", "SDP-6.3.8.2-3", "SDP-6.3.8.2-4", "SDP-6.4.2-3",
    "SDP-8.1.1-24", "SDP-8.1.1-25", "SDP-8.1.1-28", "SDP-8.1.1-29", "SDP-8.2.1-4", "SDP-8.2.1-9", "SDP-9.1-2",
    "SDP-9.2-1", "SDP-9.2-18", "SDP-9.3-1", "SDP-9.5.5-10", "SDP-10-2", "SDP-10-4", "SDP-10-7", "SDP-10.1-1",
    "SDP-10.3-2", "SDP-11-2", "SDP-11-8", "SDP-11-20", "SDP-12-1", "SDP-12-3", "SDP-12-5", "SDP-12-8",
    "SDP-12-10", "SDP-12-12", "SDP-12-20", "SDP-12-23", "SDP-14.2-7", "SDP-14.2-12", "SDP-14.2-15",
  }

  case {
    id = "sdp/8.2.1-close/aborted",
    version = 1,
    title = "An abortive close without DisConn",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "send 10; abort")
      s:expect_end { past = { "data" }, shows = shown }
      t:liveness()
    end,
  }
end
