-- Start-up in another profile (another order of MPA frames and Hellos), start-up in the mirrored
-- field order, and start-up of a target that connects (draft-pinkerton-iwarp-sdp-01 section 8.1.1).

-- The roles of a Connecting Peer. The target file of a socket that connects has the role initiator.
-- The builtin responder also has a socket that connects.
local CONNECTING = { "responder", "initiator" }

do
  local shown = sdp.shown { "hello_ack", "dis_conn" }

  case {
    id = "sdp/8.1.1-profiles/natural",
    version = 2,
    title = "The target accepts a Hello that comes together with the MPA Request",
    requirements = shown,
    capabilities = { "sdp" },

    run = function(t)
      local s = t:sdp { profile = "natural" }
      s:close { shows = shown }
    end,
  }
end

do
  local shown = sdp.shown { "hello_ack", "dis_conn" }

  case {
    id = "sdp/8.1.1-profiles/mirrored",
    version = 3,
    title = "The target accepts messages with the mirrored field order of InfiniBand's SDP",
    requirements = shown,
    capabilities = { "sdp-echo" },

    run = function(t)
      local s = t:sdp { hello = sdp.hello { order = "mirrored" } }
      s:send(sdp.data { payload = "hi" })
      s:collect(2)
      s:close { shows = shown }
    end,
  }
end

do
  local shown = sdp.shown { "hello", "dis_conn", "data" }

  case {
    id = "sdp/8.1.1-profiles/target-connects",
    version = 4,
    title = "The Connecting Peer sends a correct Hello in streaming mode, and waits for HelloAck",
    requirements = { "SDP-8.1.1-12", "SDP-8.1.1-2", "SDP-6.2-1", "SDP-8.1.1-10", "SDP-8.1.1-11", "SDP-8.1.1-30", shown },
    roles = CONNECTING,
    capabilities = { "sdp-connect" },

    run = function(t)
      local s = t:accept_sdp { requirement = { "SDP-8.1.1-12", "SDP-8.1.1-2", "SDP-6.2-1" }, overdue_fails = true }
      -- The HelloAck does not end the connection.
      s:expect_open { within = 0.2, requirement = { "SDP-8.1.1-10", "SDP-8.1.1-11" } }
      s:command "send 2"
      s:collect(2, { requirement = "SDP-8.1.1-30", overdue_fails = true })
      s:close { shows = shown }
    end,
  }
end

-- Declares a case for a Connecting Peer. `run` gets the connection, on which SDP has started, and
-- the Hello. `declared` has the other fields of the case.
local function connecting(name, title, requirements, declared, run)
  declared.id, declared.title = "sdp/8.1.1-profiles/" .. name, title
  declared.requirements = requirements
  declared.roles = CONNECTING
  declared.capabilities = { "sdp-connect" }
  declared.run = function(t)
    local s, hello = t:accept_sdp {}
    run(s, hello, t)
  end
  return declared
end

case(connecting("hello-of-target", "The Connecting Peer's Hello has Len 32, with the most significant byte first",
  { "SDP-6-4", "SDP-6.2.1-4" }, { version = 2 }, function(s, hello, t)
  t:check(hello.len ~= 32 << 24, { requirement = "SDP-6-4", expected = "Len 32", actual = "Len 32 with the least significant byte first" })
  t:check(hello.len == 32, { requirement = "SDP-6.2.1-4", expected = "Len 32", actual = "Len " .. hello.len })
  s:connection():reset()
end))

case {
  id = "sdp/8.1.1-profiles/target-waits",
  title = "The Connecting Peer sends nothing before HelloAck",
  requirements = { "SDP-8.1.1-4", "SDP-8.1.1-13" },
  roles = CONNECTING,
  capabilities = { "sdp-connect" },

  run = function(t)
    local s = t:accept_sdp { hold = 2, requirement = { "SDP-8.1.1-13", "SDP-8.1.1-4" }, overdue_fails = true }
    s:connection():reset()
  end,
}

-- The Connecting Peer has to reject these HelloAcks.
for _, row in ipairs {
  { "version", "a HelloAck of another MajV", { majv = 2, minv = 2 }, { "SDP-6.2.2.1-2", "SDP-8.1.1-31" } },
  { "max-adverts", "a HelloAck with MaxAdverts 0", { max_adverts = 0 }, { "SDP-6.2.2.3-2", "SDP-8.1.1-32" } },
  { "loc-ird", "a HelloAck with LocIRD 0", { loc_ird = 0 }, { "SDP-8.1.1-34" } },
  { "loc-ord", "a HelloAck with LocORD 0", { loc_ord = 0 }, { "SDP-8.1.1-33" } },
} do
  local name, object, fields, requirements = table.unpack(row)
  case {
    id = "sdp/8.1.1-profiles/target-refuses-" .. name,
    title = "The Connecting Peer ends the connection on " .. object,
    requirements = requirements,
    roles = CONNECTING,
    capabilities = { "sdp-connect" },

    run = function(t)
      t:good_exchange()
      local s = t:accept_sdp { hello_ack = sdp.hello_ack(fields) }
      s:expect_end { requirement = requirements, overdue_fails = true }
    end,
  }
end

-- The Connecting Peer has to accept these HelloAcks, although they have unusual values.
for _, row in ipairs {
  { "minor-version", "accepts a HelloAck of another MinV", { minv = 15 }, { "SDP-6.2.2.2-2", "SDP-8.1.1-35" } },
  { "mseq", "ignores MSeq of a HelloAck", { mseq = 0xdeadbeef }, { "SDP-6.2.2-8" } },
  { "mseq-ack", "ignores MSeqAck of a HelloAck", { mseq_ack = 0xdeadbeef }, { "SDP-6.2.2-10" } },
  { "rsvd", "ignores Rsvd of a HelloAck", { rsvd = 0xff }, { "SDP-6.2.2.7-2" } },
} do
  local name, action, fields, requirements = table.unpack(row)
  case {
    id = "sdp/8.1.1-profiles/target-takes-" .. name,
    title = "The Connecting Peer " .. action,
    requirements = requirements,
    roles = CONNECTING,
    capabilities = { "sdp-connect" },

    run = function(t)
      local s = t:accept_sdp { hello_ack = sdp.hello_ack(fields) }
      s:command "send 2"
      s:expect("data", { requirement = requirements, overdue_fails = true })
      s:connection():reset()
    end,
  }
end

case(connecting("target-answers-resize", "The Connecting Peer answers a ChRcvBuf that crosses its own",
  { "SDP-10.6-11", "SDP-10.6.1-2" }, { version = 2 }, function(s)
  s:command "wait 20; resize 2000"
  local before = s:counters()
  s:expect "ch_rcv_buf"
  s:send(sdp.ch_rcv_buf { des_sz = 500, mseq_ack = before.mseq_ack })
  s:expect("ch_rcv_buf_ack", { requirement = { "SDP-10.6-11", "SDP-10.6.1-2" }, overdue_fails = true })
  s:connection():reset()
end))

case(connecting("target-answers-suspension", "The Connecting Peer answers a SuspComm that crosses its own",
  { "SDP-13.1.2-2" }, {}, function(s)
  s:command "wait 20; suspend 7001"
  local before = s:counters()
  s:expect "susp_comm"
  s:send(sdp.susp_comm { port = 7000, mseq_ack = before.mseq_ack })
  s:expect("susp_comm_ack", { requirement = "SDP-13.1.2-2", overdue_fails = true })
end))

case(connecting("target-keeps-all", "The Connecting Peer keeps all messages that its Hello gives credit for",
  { "SDP-8.1.1-7" }, {}, function(s, hello)
  -- The target's user does not read during this time.
  s:command "wait 1000"
  for _ = 1, hello.bufs - 4 do
    s:send(sdp.data { payload = ";" })
  end
  s:expect_quiet { within = 0.2, requirement = "SDP-8.1.1-7", overdue_fails = true }
end))

case(connecting("target-serves-reads", "The Connecting Peer serves as many Reads at once as its LocIRD allows",
  { "SDP-6.2.1.6-1" }, {}, function(s, hello)
  s:command "send 2000"
  local m = s:expect "src_avail"
  for number = 1, hello.loc_ird do
    s:read { stag = m.stag, va = m.va + number, length = 10 }
  end
  for _ = 1, hello.loc_ird do
    s:expect_response { requirement = "SDP-6.2.1.6-1", overdue_fails = true }
  end
  s:connection():reset()
end))

case {
  id = "sdp/8.1.1-profiles/target-keeps-to-max-adverts",
  title = "The Connecting Peer has no more open advertisements than MaxAdverts of the HelloAck allows",
  requirements = { "SDP-6.2.2.3-3" },
  roles = CONNECTING,
  capabilities = { "sdp-connect" },

  run = function(t)
    local s = t:accept_sdp { hello_ack = sdp.hello_ack { max_adverts = 1 } }
    s:command "mode out pipelined; send 2000; send 2000"
    s:expect "mode_change"
    s:expect "src_avail"
    s:expect_quiet { within = 0.3, requirement = "SDP-6.2.2.3-3", overdue_fails = true }
    s:connection():reset()
  end,
}
