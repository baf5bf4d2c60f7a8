-- A connection that the tester or the target suspends (draft-pinkerton-iwarp-sdp-01 sections 6.5 and 13.1), up to the end of its LLP connection.

-- What a driven socket is told to do.
local function tell(s, text)
  s:send(sdp.data { payload = text .. "\n" })
end

do
  local shown = sdp.shown { "hello_ack", "susp_comm_ack" }

  case {
    id = "sdp/13.1-suspension/answered",
    version = 2,
    title = "SuspComm is answered by SuspCommAck, and by the end of TCP",
    requirements = { "SDP-13.1.1-11", "SDP-13.1.1-12", "SDP-13.1.1-14", "SDP-13.1.1-15", table.unpack(shown) },
    roles = { "responder" },
    -- A source may wait for what it has advertised to be read (section 13.1.1, step 3).
    capabilities = { "sdp-echo" },

    run = function(t)
      local s = t:sdp {}
      s:send(sdp.susp_comm { port = 7000 })
      s:expect("susp_comm_ack", { requirement = "SDP-13.1.1-11", overdue_fails = true })
      s:expect_end { graceful = true, requirement = { "SDP-13.1.1-12", "SDP-13.1.1-14", "SDP-13.1.1-15" }, overdue_fails = true, shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "data", "susp_comm_ack", "SDP-13.1.1-13" }

  case {
    id = "sdp/13.1-suspension/with-data",
    version = 2,
    title = "SuspCommAck comes behind what is under way, and nothing comes behind it",
    requirements = { "SDP-13.1.1-11", "SDP-13.1.1-12", "SDP-13.1.1-15", table.unpack(shown) },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "threshold 1000000; send 900; send 900; wait 1; send 900")
      s:send(sdp.susp_comm { port = 7000 })
      s:expect("susp_comm_ack", { past = { "data" }, requirement = "SDP-13.1.1-11", overdue_fails = true })
      s:expect_end { graceful = true, requirement = { "SDP-13.1.1-12", "SDP-13.1.1-15" }, overdue_fails = true, shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "rdma_rd_compl", "susp_comm_ack", "SDP-13-2", "SDP-13.1.1-12" }

  case {
    id = "sdp/13.1-suspension/while-read",
    version = 2,
    title = "SuspCommAck waits for the RdmaRdCompl of a Read that is open",
    requirements = { "SDP-13.1.1-10", "SDP-13.1.1-13", table.unpack(shown) },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local octets = ("abcdefghij"):rep(200)
      local s = t:sdp {}
      tell(s, "read 3000")
      s:send(sdp.src_avail { length = 2000, payload = octets:sub(1, 40), va = 0 })
      local read = s:expect_read()
      s:send(sdp.susp_comm { port = 7000 })
      s:expect_quiet { within = 0.2, requirement = "SDP-13.1.1-10", overdue_fails = true }
      s:answer_read(read, octets:sub(read.src_to + 1, read.src_to + read.length))
      s:expect("rdma_rd_compl", { requirement = "SDP-13.1.1-10", overdue_fails = true })
      s:expect("susp_comm_ack", { past = { "send_sm" }, requirement = "SDP-13.1.1-10", overdue_fails = true })
      s:expect_end { graceful = true, requirement = "SDP-13.1.1-13", overdue_fails = true, shows = shown }
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "data", "susp_comm", "SDP-13.1-2", "SDP-13.1.1-8", "SDP-13.1.1-9" }

  case {
    id = "sdp/13.1-suspension/by-target",
    version = 1,
    title = "SuspComm comes behind what was sent, names the port, and nothing comes behind it",
    requirements = shown,
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "threshold 1000000; send 100; wait 20; suspend 7001")
      s:expect "data"
      local m = s:expect "susp_comm"
      t:check(m.constant1 == 0 and m.port == 7001 and m.constant2 == 1, {
        requirement = { "SDP-6.5.1-2", "SDP-13.1.1-6" }, expected = "the port that it was given, between the constants",
        actual = ("%s, port %s, %s"):format(tostring(m.constant1), tostring(m.port), tostring(m.constant2)),
      })
      s:expect_quiet { within = 0.2, shows = shown }
      s:send(sdp.susp_comm_ack {})
      s:connection():finish()
      t:liveness()
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "susp_comm" }

  case {
    id = "sdp/13.1-suspension/crossing",
    version = 1,
    title = "Where both ask at once, the Accepting Peer does not answer",
    requirements = { "SDP-13.1.2-1", table.unpack(shown) },
    roles = { "responder" },
    capabilities = { "sdp-drive" },

    run = function(t)
      local s = t:sdp {}
      tell(s, "wait 20; suspend 7001")
      local before = s:books()
      s:expect "susp_comm"
      s:send(sdp.susp_comm { port = 7000, mseq_ack = before.mseq_ack })
      s:expect_quiet { within = 0.2, requirement = "SDP-13.1.2-1", shows = shown, overdue_fails = true }
      s:send(sdp.susp_comm_ack {})
      s:connection():finish()
      t:liveness()
    end,
  }
end
