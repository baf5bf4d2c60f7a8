-- The tester or the target suspends a connection, and the target continues on a new connection
-- (draft-pinkerton-iwarp-sdp-01 sections 6.5 and 13.1).

--- Expects the end of TCP after SuspCommAck. The monitor judges messages and RDMA operations before
--- this end. `shown` has its requirements.
local function expect_end(s, shown)
  s:expect_end { graceful = true, past = { "data", "susp_comm_ack" }, requirement = "SDP-13.1.1-15", overdue_fails = true, shows = shown }
end

do
  local shown = sdp.shown { "hello_ack", "susp_comm_ack", "SDP-13.1.1-12" }

  case {
    id = "sdp/13.1-suspension/answered",
    version = 3,
    title = "The target answers SuspComm with SuspCommAck, and ends TCP",
    requirements = { "SDP-13.1.1-11", "SDP-13.1.1-15", shown },
    -- A target that is a source may wait until its advertised data was read (section 13.1.1, step
    -- 3).
    capabilities = { "sdp-echo" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.susp_comm { port = 7000 })
      s:expect("susp_comm_ack", { requirement = "SDP-13.1.1-11", overdue_fails = true })
      expect_end(s, shown)
    end,
  }
end

case {
  id = "sdp/13.1-suspension/answer-before-end",
  title = "The target does not end TCP before it has sent SuspCommAck",
  requirements = { "SDP-13.1.1-14" },
  capabilities = { "sdp-echo" },

  run = function(t)
    t:good_exchange()
    local s = t:sdp {}
    s:send(sdp.susp_comm { port = 7000 })
    -- A target that sends nothing at all violates another requirement.
    s:expect("susp_comm_ack", { requirement = "SDP-13.1.1-14" })
  end,
}

-- Declare cases with a driven socket. `suites/library/sdp_case.lua` describes the parameters.
local function driven(...) return sdp_case.driven("sdp/13.1-suspension", ...) end
local function observed(...) return sdp_case.observed("sdp/13.1-suspension", ...) end

case(observed("with-data", "The target sends SuspCommAck after the messages that it was sending, and nothing after it",
  { "SDP-13.1.1-11", "SDP-13.1.1-15" }, { "hello_ack", "data", "susp_comm_ack", "SDP-13.1.1-12", "SDP-13.1.1-13" },
  { version = 3 }, function(s, shown)
  s:command "threshold 1000000; send 900; send 900; wait 1; send 900"
  s:send(sdp.susp_comm { port = 7000 })
  s:expect("susp_comm_ack", { past = { "data" }, requirement = "SDP-13.1.1-11", overdue_fails = true })
  expect_end(s, shown)
end))

case(observed("while-read", "The target sends SuspCommAck after the RdmaRdCompl of an open Read",
  { "SDP-13.1.1-10", "SDP-13.1.1-11", "SDP-13.1.1-15" },
  { "hello_ack", "rdma_rd_compl", "susp_comm_ack", "SDP-13-2", "SDP-13.1.1-12", "SDP-13.1.1-13" },
  { version = 3 }, function(s, shown, t)
  local octets = ("abcdefghij"):rep(200)
  s:command "read 3000"
  s:send(sdp.src_avail { length = 2000, payload = octets:sub(1, 40), va = 0 })
  local read = s:expect_read()
  s:send(sdp.susp_comm { port = 7000 })
  for _, m in ipairs(s:expect_quiet { within = 0.2, past = { "susp_comm" }, requirement = "SDP-13.1.1-10" }) do
    -- The monitor judges a SuspComm of the target.
    t:check(m.name ~= "susp_comm", { expected = "no SuspComm", actual = "a SuspComm" })
  end
  s:answer_read(read, octets:sub(read.src_to + 1, read.src_to + read.length))
  local first = s:expect({ "rdma_rd_compl", "susp_comm_ack" }, { requirement = "SDP-13.1.1-11", overdue_fails = true })
  t:check(first.name == "rdma_rd_compl", {
    requirement = "SDP-13.1.1-10", expected = "RdmaRdCompl before SuspCommAck", actual = "SuspCommAck before RdmaRdCompl",
  })
  s:expect("susp_comm_ack", { past = { "send_sm" }, requirement = "SDP-13.1.1-11", overdue_fails = true })
  expect_end(s, shown)
end))

do
  local shown = sdp.shown { "rdma_rd_compl", "susp_comm_ack", "SDP-13-2", "SDP-13.1.1-12", "SDP-13.1.1-13" }

  -- A sink reads a SrcAvail without a command.
  case {
    id = "sdp/13.1-suspension/while-read-by-sink",
    version = 2,
    title = "A sink sends SuspCommAck after the RdmaRdCompl of an open Read",
    requirements = { "SDP-13.1.1-10", "SDP-13.1.1-11", "SDP-13.1.1-15", shown },
    capabilities = { "sdp-sink" },

    run = function(t)
      local octets = ("abcdefghij"):rep(200)
      local s = t:sdp {}
      s:send(sdp.src_avail { length = 2000, payload = octets:sub(1, 40), va = 0 })
      local event, m = s:next {}
      if event == "send_sm" then
        t:unimplemented("The target rejects the SrcAvail with SendSm.")
      end
      t:check(event == "read", { expected = "an RDMA Read Request", actual = event })
      s:send(sdp.susp_comm { port = 7000 })
      -- During this time, a target that does not wait would send the SuspCommAck.
      t:pause(0.2)
      local is_reported = false
      while event ~= "susp_comm_ack" do
        if event == "read" then
          s:answer_read(m, octets:sub(m.src_to + 1, m.src_to + m.length))
        elseif event == "rdma_rd_compl" then
          is_reported = true
        else
          t:check(event == "send_sm", { expected = "RdmaRdCompl or SuspCommAck", actual = event })
        end
        event, m = s:next { requirement = "SDP-13.1.1-11", overdue_fails = true }
      end
      t:check(is_reported, {
        requirement = "SDP-13.1.1-10", shows = "SDP-13.1.1-11", expected = "RdmaRdCompl before SuspCommAck",
        actual = "SuspCommAck before RdmaRdCompl",
      })
      expect_end(s, shown)
    end,
  }
end

case(observed("by-target", "The target sends SuspComm with the port after all earlier messages, and nothing after it", {},
  { "hello_ack", "data", "susp_comm", "SDP-13.1-2", "SDP-13.1.1-8", "SDP-13.1.1-9" }, { version = 2 }, function(s, shown, t)
  s:command "threshold 1000000; send 100; wait 20; suspend 7001"
  s:expect "data"
  local m = s:expect "susp_comm"
  -- The monitor judges the values of the constants.
  t:check(m.constant2 ~= nil and m.constant2 ~= 7001, {
    requirement = "SDP-6.5.1-2", expected = "the port before the second constant",
    actual = ("port %s, then %s"):format(tostring(m.port), tostring(m.constant2)),
  })
  t:check(m.port == 7001, { requirement = "SDP-13.1.1-6", expected = "port 7001", actual = "port " .. tostring(m.port) })
  s:expect_quiet { within = 0.2, shows = shown }
  s:send(sdp.susp_comm_ack {})
  s:connection():finish()
end))

case(observed("crossing", "The Accepting Peer does not answer if both sides send SuspComm at once", { "SDP-13.1.2-1" },
  { "hello_ack", "susp_comm" }, {}, function(s, shown)
  s:command "wait 20; suspend 7001"
  local before = s:counters()
  s:expect "susp_comm"
  s:send(sdp.susp_comm { port = 7000, mseq_ack = before.mseq_ack })
  s:expect_quiet { within = 0.2, requirement = "SDP-13.1.2-1", shows = shown, overdue_fails = true }
  s:send(sdp.susp_comm_ack {})
  s:connection():finish()
end))

-- Suspends a connection. Expects that the target answers, and then ends the TCP connection.
local function suspend(s, port)
  s:send(sdp.susp_comm { port = port })
  s:expect("susp_comm_ack", { past = { "data", "send_sm" } })
  s:expect_end { graceful = true }
end

case(observed("resumed", "The target connects to the port of the SuspComm with a normal Hello, and continues",
  { "SDP-6.5.1.1-1", "SDP-13.1-1", "SDP-13.1.1-7", "SDP-13.1.1-16", "SDP-13.1.1-19" }, { "hello" }, {}, function(s, shown, t)
  local rows = { "SDP-6.5.1.1-1", "SDP-13.1-1", "SDP-13.1.1-7", "SDP-13.1.1-16" }
  s:send(sdp.susp_comm { port = 7000 })
  s:expect("susp_comm_ack", { requirement = "SDP-13.1-1", overdue_fails = true })
  s:expect_end { graceful = true }
  local again, hello = t:accept_sdp { port = 7000, requirement = rows, overdue_fails = true }
  t:check(hello.mseq == 0, { requirement = "SDP-13.1.1-19", expected = "MSeq 0", actual = "MSeq " .. hello.mseq })
  again:command "send 10"
  again:collect(10)
  again:close { shows = shown, past = { "data" } }
end))

case(driven("resumed-with-credit", "The target keeps all messages for which its Hello on the new connection gives credit",
  { "SDP-13.1.1-18" }, {}, function(s, t)
  suspend(s, 7000)
  local again, hello = t:accept_sdp { port = 7000 }
  again:command "wait 1000"
  for _ = 1, hello.bufs - 4 do
    again:send(sdp.data { payload = ";" })
  end
  again:expect_quiet { within = 0.2, requirement = "SDP-13.1.1-18", overdue_fails = true }
end))

case(driven("nothing-kept", "The target does not use earlier advertisements on the new connection", { "SDP-13-3" },
  {}, function(s, t)
  local octets = ("abcdefghij"):rep(200)
  -- While its user waits, the target does not read the SrcAvail.
  s:command "wait 20"
  s:send(sdp.src_avail { length = 2000, payload = octets:sub(1, 39) .. ";", stag = 0x111 })
  suspend(s, 7000)
  local again = t:accept_sdp { port = 7000 }
  again:command "read 3000"
  again:send(sdp.src_avail { length = 2000, payload = octets:sub(1, 40), stag = 0x222 })
  local read = again:expect_read { requirement = "SDP-13-3", overdue_fails = true }
  t:check(read.src_stag == 0x222, { requirement = "SDP-13-3", expected = "a Read of the new advertisement", actual = "a Read of another STag" })
  again:connection():reset()
end))

case {
  id = "sdp/13.1-suspension/requested-again",
  title = "The Connecting Peer repeats its SuspComm on the new connection if the SuspComms of both sides crossed",
  requirements = { "SDP-13.1.2-3" },
  -- The builtin responder also has a socket that connects.
  roles = { "responder", "initiator" },
  capabilities = { "sdp-connect" },

  run = function(t)
    local s = t:accept_sdp {}
    s:command "wait 20; suspend 7001"
    local before = s:counters()
    s:expect "susp_comm"
    s:send(sdp.susp_comm { port = 7000, mseq_ack = before.mseq_ack })
    s:expect "susp_comm_ack"
    s:expect_end { graceful = true }
    local again = t:accept_sdp { port = 7000 }
    again:expect("susp_comm", { requirement = "SDP-13.1.2-3", overdue_fails = true })
  end,
}
