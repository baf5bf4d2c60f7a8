-- How connections end (draft-pinkerton-iwarp-sdp-01 sections 6.2 and 8.2).

case {
  id = "sdp/8.2.1-close/by-tester",
  version = 2,
  title = "The target answers DisConn with DisConn, and ends TCP",
  requirements = { "SDP-8.2.1-21" },
  -- A source first has to send its data (section 8.2.1). The case sdp/9-transfer/source receives
  -- this data, and then closes the connection.
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.dis_conn {})
    s:expect("dis_conn", { requirement = "SDP-8.2.1-21", overdue_fails = true })
    s:expect_end { graceful = true, requirement = "SDP-8.2.1-21", overdue_fails = true }
  end,
}

case {
  id = "sdp/8.2.1-close/aborted-by-tester",
  title = "After DisConn and AbortConn, the target discards its waiting data and ends TCP",
  requirements = { "SDP-8.2.2-6", "SDP-8.2.2-7" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s, hello_ack = t:sdp { hello = sdp.hello { bufs = 3 } }
    if hello_ack.bufs < 8 then
      t:unimplemented("The target has fewer than eight Private Buffers.")
    end
    -- Bufs and MSeqAck stay as they were at the beginning, so the target gets no more credit. It
    -- has to wait with a part of the echo, and with its DisConn.
    s:counters { updates = false }
    local function send(message, fields)
      fields.bufs, fields.mseq_ack = 3, 0
      s:send(message(fields))
    end
    local got = 0
    for _ = 1, 4 do
      send(sdp.data, { payload = "wait" })
      for _, m in ipairs(s:expect_quiet { within = 0.1, past = { "data", "src_avail", "mode_change" } }) do got = got + #m.payload end
    end
    t:check(got < 16, { expected = "an echo that waits for credit", actual = "an echo of all data" })
    send(sdp.dis_conn, {})
    -- With this credit, the target could send the waiting data and a DisConn.
    s:send(sdp.abort_conn { bufs = 16 })
    t:pause(0.2)
    s:connection():finish()
    s:expect_end { requirement = { "SDP-8.2.2-6", "SDP-8.2.2-7" }, overdue_fails = true }
  end,
}

case {
  id = "sdp/8.2.1-close/fin-without-dis-conn",
  title = "The target sends no DisConn after the end of TCP without DisConn",
  requirements = { "SDP-8.2.2-3", "SDP-8.2.2-5" },
  capabilities = { "sdp-echo" },

  run = function(t)
    local s = t:sdp {}
    s:send(sdp.data { payload = "abc" })
    s:collect(3)
    s:connection():finish()
    s:expect_end { requirement = { "SDP-8.2.2-3", "SDP-8.2.2-5" } }
  end,
}

--- Uses up the tester's credit until one is left, and expects an update. `m` is the last message of
--- the target.
local function expect_update(s, m, requirement)
  for _ = 1, m.bufs - (s:counters().mseq - 1 - m.mseq_ack) - 2 do
    s:send(sdp.data { payload = ";" })
  end
  s:send(sdp.data {})
  s:expect("data", { updates = true, requirement = requirement, overdue_fails = true, fields = { payload_length = 0 } })
end

--- The requirements of the updates of a target that has sent DisConn.
local updates = { "SDP-8.2.1-10", "SDP-10.5-9" }

case {
  id = "sdp/8.2.1-close/updates-of-source",
  title = "A source reports free buffers after its DisConn",
  requirements = updates,
  capabilities = { "sdp-source" },

  run = function(t)
    local s = t:sdp {}
    -- A source may send without end.
    local ended, is_quiet, got = nil, false, 0
    repeat
      is_quiet = true
      for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "data", "src_avail", "mode_change", "dis_conn" } }) do
        is_quiet, ended = false, ended or m.name == "dis_conn" and m or nil
        got = got + #m.payload + (m.name == "src_avail" and #s:fetch(m) or 0)
      end
    until ended or is_quiet or got > 1 << 20
    if not ended then
      t:unimplemented("The target does not send DisConn before the tester does.")
    end
    expect_update(s, ended, updates)
    s:send(sdp.dis_conn {})
    s:connection():finish()
    s:expect_end {}
  end,
}

-- Declares a case with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function observed(...) return sdp_case.observed("sdp/8.2.1-close", ...) end

case(observed("by-target", "The target accepts the tester's messages after it has sent DisConn, and reports free buffers",
  { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11", "SDP-10.5-9" }, { "hello_ack", "dis_conn", "data" }, { version = 4 }, function(s, shown, t)
  s:command "send 300; shut"
  s:collect(300)
  s:expect "dis_conn"
  for _ = 1, 20 do
    s:send(sdp.data { payload = ("p"):rep(300) })
  end
  -- The monitor judges payload and SrcAvails after DisConn.
  local came = s:expect_quiet {
    within = 0.2, past = { "data", "src_avail" }, requirement = { "SDP-8.2.1-3", "SDP-8.2.1-10", "SDP-8.2.1-11" },
  }
  t:check(#came > 0, { requirement = "SDP-10.5-9", expected = "an update after 20 messages", actual = "no message" })
  expect_update(s, came[#came], "SDP-10.5-9")
  s:send(sdp.dis_conn {})
  s:connection():finish()
  s:expect_end { shows = shown }
end))

case(observed("half-closed", "The target sends DisConn after all data that its user posted", {},
  { "hello_ack", "dis_conn", "data", "src_avail", "combined" }, { version = 2 }, function(s, shown)
  s:command "wait 30; send 300; send 2000; shut"
  s:expect_quiet { within = 0.01 }
  s:collect(2300)
  s:expect "dis_conn"
  s:send(sdp.dis_conn {})
  s:connection():finish()
  s:expect_end { shows = shown }
end))

case(observed("aborted-after", "The target sends AbortConn after DisConn", {},
  { "hello_ack", "dis_conn", "abort_conn", "data", "SDP-6.2.4-2" }, { version = 2 }, function(s, shown)
  s:command "send 10; shut; wait 10; abort"
  s:collect(10)
  s:expect "dis_conn"
  s:expect_end { shows = shown }
end))

case(observed("aborted", "The target closes abortively without DisConn", {},
  { "hello_ack", "data", "SDP-6.2.4-2" }, { version = 2 }, function(s, shown)
  s:command "send 10; wait 10; abort"
  s:expect "data"
  s:expect_end { past = { "data" }, shows = shown }
end))
